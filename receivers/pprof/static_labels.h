/*
 * static_labels: labels that stand in the configuration, as the resource of what they are put on.
 *
 * Owner: slices point into the configuration.
 *
 * Thread: any.
 */
#ifndef PROFCOL_STATIC_LABELS_H
#define PROFCOL_STATIC_LABELS_H

#include "config/field.h"
#include "core/formats/series.h"

/* Without a service name it is unknown_service. */
bool static_labels_read(const struct config_pairs *labels, struct series *series,
                        struct error *err);
/* The same of labels that come from elsewhere, too. */
bool static_labels_read_all(const struct series_label *labels, size_t count, struct series *series,
                            struct error *err);

#endif
