/*
 * joined_values: the values of joined attributes, as encoded AnyValue payloads.
 *
 * The settings name the values of a span by paths. Values that cannot be computed from the span's
 * facts are kept in the index in a compact form (index in the list of attributes, size, payload).
 *
 * Owner: results live in the given arena, or point into the arguments.
 *
 * Thread: any.
 */
#ifndef PROFCOL_SPANJOIN_JOINED_VALUES_H
#define PROFCOL_SPANJOIN_JOINED_VALUES_H

#include "core/base/arena.h"
#include "core/data/attributes.h"
#include "core/data/span_fields.h"
#include "core/data/span_index.h"
#include "core/data/top_functions.h"
#include "core/pipeline/batch.h"
#include "processors/spanjoin/spanjoin_settings.h"
#include "processors/spanjoin/value_expressions.h"
#include "processors/spanjoin/wanted_attributes.h"

/* An encoded Span, as the join needs it. */
struct span_view {
    struct slice raw;
    struct span_fields fields;
    const struct wanted_attributes *wanted; /* those that were looked for; NULL: none were */
};
/* Reads an encoded Span. wanted: attributes to look for (NULL: none); it must exist as long as the
 * view. */
struct span_view span_view_read(struct slice raw, struct wanted_attributes *wanted);
/* Sets *key_out and returns true if both ids are present and not all zero. */
bool span_view_key(const struct span_view *span, struct span_key *key_out);

/* Where a span is in its request: values that many spans share, read once. */
struct span_place {
    struct value_expressions *expressions;             /* at the same resource and scope */
    struct slice scope_name;                           /* empty: none, or too long to be joined */
    struct slice resource_values[JOIN_ATTRIBUTES_MAX]; /* by index in side->joined */
};
/* Set the values of a resource or scope, which is encoded and may be empty. Values of more than
 * SPAN_INDEX_VALUES_MAX bytes are left out. */
void span_place_set_resource(struct span_place *place, const struct spanjoin_side *side,
                             struct slice resource);
void span_place_set_scope(struct span_place *place, struct slice scope);

/* Values that spans had to keep, by what they were made of: most spans of a request have the same
 * few names and attributes. Forgets one when another takes its place. */
enum { KEPT_REMEMBERED = 16, KEPT_PARTS_MAX = 4 };
struct remembered_values {
    bool is_used;  /* the values can be told from the parts */
    uint32_t time; /* those of another time are forgotten; never 0 */
    struct kept_parts {
        uint32_t time;
        struct slice parts[KEPT_PARTS_MAX]; /* for each kept path */
        struct slice values;
    } of[KEPT_REMEMBERED];
};
void remembered_values_init(struct remembered_values *remembered, const struct spanjoin_side *side);
/* Call it when the arena is emptied, and in another resource or scope. */
void remembered_values_forget(struct remembered_values *remembered);

/* Returns the values that the index has to keep so that samples can gain their attributes from the
 * span, and if it is a local root, so that others can gain those of it: at most
 * SPAN_INDEX_VALUES_MAX bytes; values that do not fit are left out. The parts of what is remembered
 * point into the request. */
struct slice values_to_keep(const struct spanjoin_settings *settings, const struct span_view *span,
                            bool is_root, const struct span_place *place,
                            struct remembered_values *remembered, struct arena *arena);

/* Returns the value of side->joined[i] for a sample of this span; empty if there is none. root: the
 * local root above the span; NULL: not known. */
struct slice value_for_sample(const struct spanjoin_side *side, size_t i,
                              const struct span_match *match, const struct span_match *root,
                              struct arena *arena);
/* Whether value_for_sample is equal for all spans of equal kind, status and kept values, whose
 * roots have equal kept values. */
bool values_are_shared(const struct spanjoin_side *side);
/* What is known of a span by its samples and by other spans. */
struct span_surroundings {
    const uint64_t *totals;          /* of its samples */
    const struct span_match *root;   /* the local root above it; NULL: not known */
    const struct top_ask *functions; /* of its samples; NULL: not needed */
};
/* Returns the value of side->joined[i] for a span. */
struct slice value_for_span(const struct spanjoin_side *side, size_t i,
                            const struct span_view *span, const struct span_place *place,
                            const struct span_surroundings *around, struct arena *arena);

#endif
