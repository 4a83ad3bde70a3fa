/*
 * jfr_labels: reads what the Pyroscope Java agent sends with a recording: the labels of each
 * context id, and the texts of span names (message LabelsSnapshot of pyroscope-java).
 *
 *     message LabelsSnapshot { map<int64, Context> contexts = 1; map<int64, string> strings = 2; }
 *     message Context { map<int64, int64> labels = 1; }     // of strings to strings
 *
 * Owner: the caller initialises it with jfr_labels_read, and frees it with jfr_labels_deinit, also
 * if jfr_labels_read failed. Texts point into the caller's snapshot. Contexts live as long as the
 * labels.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_JFR_LABELS_H
#define PROFCOL_CORE_FORMATS_JFR_LABELS_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/formats/id_map.h"
#include "core/formats/profiles_builder.h"
#include "core/formats/span_labels.h"

enum { JFR_CONTEXT_LABELS_MAX = 64 };

/* The labels of a context, in the form of attributes for its samples. */
struct jfr_context {
    struct span_labels ids; /* from labels that name a span or a trace */
    bool has_span_name;
    uint32_t attribute_count;
    uint32_t attributes[];
};

struct jfr_labels {
    struct slice snapshot;
    struct arena arena;
    struct id_map contexts, strings; /* place: 1 + offset of the value's field in the snapshot */
    const struct jfr_context *
        *resolved; /* `built` of an entry of `contexts`: 1 + index in this array */
    uint32_t resolved_count;
    struct id_map attributes; /* place: 1 + index of a string or attribute in the builder */
};

/* Reads a snapshot. Returns false, with err set, if it is invalid. If there is no room, the
 * builder's state says so. */
bool jfr_labels_read(struct jfr_labels *labels, struct slice snapshot,
                     struct profiles_builder *builder, struct budget *budget, struct error *err);
/* Frees the labels and their contexts. */
void jfr_labels_deinit(struct jfr_labels *labels);

/* Returns the labels of a context; the first call adds its attributes to the builder. An unknown
 * context has no labels. Returns NULL, with err set, on an error. */
const struct jfr_context *jfr_labels_context(struct jfr_labels *labels, uint64_t id,
                                             struct profiles_builder *builder, struct error *err);
/* Returns the index of the attribute span_name for the id of a text; 0 if the id is unknown. */
uint32_t jfr_labels_span_name(struct jfr_labels *labels, uint64_t id,
                              struct profiles_builder *builder);

#endif
