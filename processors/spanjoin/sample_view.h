/*
 * sample_view: reads the fields of a sample that the join needs.
 *
 * Owner: the plan; a view is valid until the next one is read.
 *
 * Thread: that of the plan.
 */
#ifndef PROFCOL_SPANJOIN_SAMPLE_VIEW_H
#define PROFCOL_SPANJOIN_SAMPLE_VIEW_H

#include "core/data/sample_fields.h"
#include "processors/spanjoin/sample_plan.h"

/* Limit on the attributes of a sample or profile; one with more is sent on unchanged. */
enum { JOINED_ATTRIBUTES_MAX = 4096 };

struct sample_view {
    const uint32_t *attributes; /* valid until the next one is read */
    uint32_t attribute_count;   /* JOINED_ATTRIBUTES_MAX + 1: that many or more */
    uint32_t link;
    uint64_t timestamps;
    uint64_t values;
    uint64_t sum;
    uint64_t from_ns; /* earliest and latest timestamp */
    uint64_t to_ns;
};
/* What a sample adds to totals. */
struct sample_amount {
    uint64_t count; /* of its timestamps, else of its values */
    uint64_t sum;   /* of its values; without values, each timestamp counts 1 */
};
static inline struct sample_amount sample_amount_of(uint64_t timestamps, uint64_t values,
                                                    uint64_t sum)
{
    uint64_t count = timestamps ? timestamps : values ? values : 1;
    return (struct sample_amount){.count = count, .sum = values ? sum : count};
}
static inline struct sample_amount sample_view_amount(const struct sample_view *view)
{
    return sample_amount_of(view->timestamps, view->values, view->sum);
}

/* Appends the attribute indices in a field, packed or not, to the `count` indices in
 * plan->attributes, up to JOINED_ATTRIBUTES_MAX + 1 in all. Returns the new number of indices. */
uint32_t sample_view_attributes(struct sample_plan *plan, uint32_t count,
                                const struct wire_field *field);
/* Reads an encoded Sample. */
struct sample_view sample_view_read(struct sample_plan *plan, struct slice raw);

/* Whether an encoded Profile, or one of an encoded ResourceProfiles, has samples. */
bool profile_has_samples(struct slice profile);
bool resource_has_samples(struct slice resource_profiles);

#endif
