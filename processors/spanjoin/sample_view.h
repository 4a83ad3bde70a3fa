/*
 * sample_view: a sample, as far as the join reads it.
 *
 * Owner: the plan; a view is valid until the next one is read.
 *
 * Thread: that of the plan.
 */
#ifndef PROFCOL_SPANJOIN_SAMPLE_VIEW_H
#define PROFCOL_SPANJOIN_SAMPLE_VIEW_H

#include "processors/spanjoin/sample_plan.h"

/* Of a sample or a profile; one with more goes on as it is. */
enum { JOINED_ATTRIBUTES_MAX = 4096 };

struct sample_view {
    const uint32_t *attributes; /* valid until the next one is read */
    uint32_t attribute_count;   /* JOINED_ATTRIBUTES_MAX + 1: as many, or more */
    uint32_t link;
    uint64_t timestamps;
    uint64_t values;
    uint64_t sum;
    uint64_t from_ns; /* of the timestamps */
    uint64_t to_ns;
};
/* Appends the attributes in a field, packed or not, to the `count` in plan->attributes, up to
 * JOINED_ATTRIBUTES_MAX + 1 in all; returns how many there are then. */
uint32_t sample_view_attributes(struct sample_plan *plan, uint32_t count,
                                const struct wire_field *field);
/* Reads an encoded Sample. */
struct sample_view sample_view_read(struct sample_plan *plan, struct slice raw);

/* Whether an encoded Profile, or one of an encoded ResourceProfiles, has samples. */
bool profile_has_samples(struct slice profile);
bool resource_has_samples(struct slice resource_profiles);

#endif
