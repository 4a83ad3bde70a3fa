/*
 * series: the labels of one series become the resource that its profiles belong to.
 *
 * The table is in docs/pyroscope.md.
 *
 * Owner: slices are the caller's and have to live as long as the struct series.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_SERIES_H
#define PROFCOL_CORE_FORMATS_SERIES_H

#include "core/base/error.h"
#include "core/formats/profiles_builder.h"
#include "core/formats/span_labels.h"

enum {
    SERIES_LABELS_MAX = 100,
    SERIES_NAME_MAX_BYTES = 1024,
    SERIES_VALUE_MAX_BYTES = 2048,
};

struct series_label {
    struct slice name, value;
};

struct series {
    struct built_attribute
        attributes[SERIES_LABELS_MAX + 4]; /* the labels, and what is set below */
    size_t attribute_count;
    struct slice scope_name, scope_version;
    struct slice metric_name; /* label __name__; empty: none */
    struct span_labels ids;
};

/* False: a label is over the limits, or not UTF-8. */
bool series_read(struct series *series, const struct series_label *labels, size_t count,
                 struct error *err);
/* Empty: not set. */
struct slice series_attribute(const struct series *series, struct slice key);
/* Sets an attribute that the labels did not; an empty value does nothing. */
void series_set_default(struct series *series, struct slice key, struct slice value);
/* Begins the builder's resource. */
void series_begin(const struct series *series, struct profiles_builder *builder);

#endif
