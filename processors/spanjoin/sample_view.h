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

/* Where the attributes of a usual sample are, with their tag and length; without any, where they
 * go. */
struct list_place {
    size_t start, list, end;
};
/* Returns the bits that say so (sample_plan.h); 0 if they do not suffice. */
static inline uint32_t sample_bits_of_place(struct slice raw, const struct sample_layout *layout)
{
    size_t start = (size_t)(layout->attributes_start - raw.data);
    if (start > SAMPLE_START_MAX || layout->attributes.size > SAMPLE_LIST_MAX)
        return 0;
    return SAMPLE_IS_USUAL | (uint32_t)start << SAMPLE_START_SHIFT |
           (uint32_t)layout->attributes.size << SAMPLE_LIST_SHIFT;
}
static inline struct list_place sample_list_place(uint32_t bits)
{
    size_t start = bits >> SAMPLE_START_SHIFT & SAMPLE_START_MAX;
    size_t list = bits >> SAMPLE_LIST_SHIFT & SAMPLE_LIST_MAX;
    return (struct list_place){start, list, start + (list > 0 ? 2 + list : 0)};
}

/* Whether an encoded Profile, or one of an encoded ResourceProfiles, has samples. */
bool profile_has_samples(struct slice profile);
bool resource_has_samples(struct slice resource_profiles);

#endif
