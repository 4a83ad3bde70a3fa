/*
 * series: converts the labels of one series to the resource of its profiles.
 *
 * The table is in docs/pyroscope.md.
 *
 * Owner: slices belong to the caller and must live as long as the struct series.
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
    struct built_attribute attributes[SERIES_LABELS_MAX + 4]; /* labels and defaults */
    size_t attribute_count;
    struct slice scope_name, scope_version;
    struct slice metric_name; /* label __name__; empty: none */
    struct span_labels ids;
};

/* Reads the labels. Returns false, with err set, if a label exceeds the limits or is not UTF-8. */
bool series_read(struct series *series, const struct series_label *labels, size_t count,
                 struct error *err);
/* Returns the value of an attribute; empty if it is not set. */
struct slice series_attribute(const struct series *series, struct slice key);
/* Sets an attribute if the labels did not set it; an empty value does nothing. */
void series_set_default(struct series *series, struct slice key, struct slice value);
/* Begins a resource with these attributes in the builder. */
void series_begin(const struct series *series, struct profiles_builder *builder);

#endif
