/*
 * span_labels: recognises labels of a sample or of a whole upload that name a span or a trace.
 *
 *     struct span_labels ids = {0};
 *     if (!span_labels_take(&ids, key, value))
 *         ...                                     // a label like any other
 *     sample.link = span_labels_link(&ids, builder);
 *
 * docs/pyroscope.md has the names and their order. The first name in that order takes precedence,
 * whatever the order of the labels. Every label with a valid id is removed, even if another one
 * takes precedence, because ids make bad attributes. Readers of formats that have ids in fields of
 * their own set has_span and span_id themselves.
 *
 * Owner: plain data; all-zero is valid and empty.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_FORMATS_SPAN_LABELS_H
#define PROFCOL_CORE_FORMATS_SPAN_LABELS_H

#include "core/base/slice.h"
#include "core/data/otlp.h"

struct profiles_builder;

struct span_labels {
    bool has_span, has_trace;
    uint8_t span_id[SPAN_ID_SIZE], trace_id[TRACE_ID_SIZE];
    uint8_t span_spelling,
        trace_spelling; /* index of the name it came from; 0 has the highest precedence */
};

/* Reads a label. Returns true if it names a span or a trace; otherwise it remains a label. */
bool span_labels_take(struct span_labels *labels, struct slice key, struct slice value);
/* Like span_labels_take, for a numeric label. Only names whose ids are decimal numbers count. */
bool span_labels_take_number(struct span_labels *labels, struct slice key, int64_t value);
/* Copies from an upload's labels the ids that the sample does not have. */
void span_labels_inherit(struct span_labels *sample, const struct span_labels *upload);
/* Returns the index of a link with these ids; 0 if there are none. */
uint32_t span_labels_link(const struct span_labels *labels, struct profiles_builder *builder);

#endif
