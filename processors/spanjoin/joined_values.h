/*
 * joined_values: the values of joined attributes, as encoded AnyValue payloads.
 *
 * A span gives values by the paths of the settings. Those that cannot be computed from its facts
 * are kept in the index in a compact form (position in the list of attributes, size, payload),
 * from which the values of a sample's span are read again.
 *
 * Owner: results live in the given arena, or point into what was given.
 *
 * Thread: any.
 */
#ifndef PROFCOL_SPANJOIN_JOINED_VALUES_H
#define PROFCOL_SPANJOIN_JOINED_VALUES_H

#include "core/base/arena.h"
#include "core/data/span_index.h"
#include "core/pipeline/batch.h"
#include "processors/spanjoin/spanjoin_settings.h"

/* An encoded Span, read as far as the join needs it. */
struct span_view {
    struct slice raw;
    struct slice trace_id;
    struct slice span_id;
    struct slice parent_id;
    struct slice name;
    struct slice status_message;
    struct slice attributes; /* from the first one to the last, with what stands between */
    uint64_t start_ns;
    uint64_t end_ns;
    uint8_t kind;
    uint8_t status;
};
struct span_view span_view_read(struct slice raw);
/* Returns true, with the key, if both ids are present and not all zero. */
bool span_view_key(const struct span_view *span, struct span_key *key_out);

/* What many spans share: read once, whatever their number. */
struct span_place {
    struct slice scope_name;                           /* empty: none, or too long to be joined */
    struct slice resource_values[JOIN_ATTRIBUTES_MAX]; /* by position in side->joined */
};
/* resource, scope: encoded, may be empty. Values of more than SPAN_INDEX_VALUES_MAX bytes are left
 * out. */
void span_place_set_resource(struct span_place *place, const struct spanjoin_side *side,
                             struct slice resource);
void span_place_set_scope(struct span_place *place, struct slice scope);

/* The value of an attribute among the KeyValue fields `number` of a message; empty: not there, or
 * without a value. */
struct slice attribute_value(struct slice message, uint32_t number, struct slice key);

/* Returns the values that the index has to keep so that samples can gain `side->joined` from the
 * span: at most SPAN_INDEX_VALUES_MAX bytes; values that do not fit are left out. */
struct slice values_to_keep(const struct spanjoin_side *side, const struct span_view *span,
                            const struct span_place *place, struct arena *arena);

/* Returns the value of side->joined[i] for a sample of this span; empty: none. */
struct slice value_for_sample(const struct spanjoin_side *side, size_t i,
                              const struct span_match *match, struct arena *arena);
/* Whether value_for_sample is equal for all spans of equal kind, status and kept values. */
bool values_are_shared(const struct spanjoin_side *side);
/* Returns the value of side->joined[i] for a span with these totals of its samples. */
struct slice value_for_span(const struct spanjoin_side *side, size_t i,
                            const struct span_view *span, const struct span_place *place,
                            const uint64_t *totals, struct arena *arena);

#endif
