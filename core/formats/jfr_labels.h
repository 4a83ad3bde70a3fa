/*
 * jfr_labels: what the Pyroscope Java agent sends beside a recording: the labels that a context id
 * means, and the texts of span names (message LabelsSnapshot of pyroscope-java).
 *
 *     message LabelsSnapshot { map<int64, Context> contexts = 1; map<int64, string> strings = 2; }
 *     message Context { map<int64, int64> labels = 1; }     // of strings to strings
 *
 * Owner: the caller initialises with jfr_labels_read, also when that fails, and frees with
 * jfr_labels_deinit; texts point into its snapshot. Contexts live as long as the labels.
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

/* The labels of a context, as they stand at its samples. */
struct jfr_context {
    struct span_labels ids; /* of labels that name a span or a trace */
    bool has_span_name;
    uint32_t attribute_count;
    uint32_t attributes[];
};

struct jfr_labels {
    struct slice snapshot;
    struct arena arena;
    struct id_map contexts, strings;     /* place: 1 + that of the value's field in the snapshot */
    const struct jfr_context **resolved; /* built of an entry of contexts: 1 + its index */
    uint32_t resolved_count;
    struct id_map attributes; /* place: 1 + string or attribute in the builder */
};

/* Reads a snapshot. If there is no room, the builder's state says so. */
bool jfr_labels_read(struct jfr_labels *labels, struct slice snapshot,
                     struct profiles_builder *builder, struct budget *budget, struct error *err);
void jfr_labels_deinit(struct jfr_labels *labels);

/* Returns the labels of a context; the first call adds its attributes to the builder. An unknown
 * context has no labels; NULL: error. */
const struct jfr_context *jfr_labels_context(struct jfr_labels *labels, uint64_t id,
                                             struct profiles_builder *builder, struct error *err);
/* Returns the attribute span_name for the id of a text, 0 if the id is unknown. */
uint32_t jfr_labels_span_name(struct jfr_labels *labels, uint64_t id,
                              struct profiles_builder *builder);

#endif
