/*
 * static_labels: converts labels from the configuration to a resource.
 *
 * Owner: slices point into the configuration.
 *
 * Thread: any.
 */
#ifndef PROFCOL_STATIC_LABELS_H
#define PROFCOL_STATIC_LABELS_H

#include "config/field.h"
#include "core/formats/series.h"

/* Reads the labels. The default service name is unknown_service. Returns false, with err set, if a
 * label is refused (series.h). */
bool static_labels_read(const struct config_pairs *labels, struct series *series,
                        struct error *err);
/* Like static_labels_read, for labels from other places, too. */
bool static_labels_read_all(const struct series_label *labels, size_t count, struct series *series,
                            struct error *err);

#endif
