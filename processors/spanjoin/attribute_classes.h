/*
 * attribute_classes: classifies the entries of a request's attribute_table for the join.
 *
 * An entry is read once, when the first sample refers to it.
 *
 * Owner: the plan.
 *
 * Thread: that of the plan.
 */
#ifndef PROFCOL_SPANJOIN_ATTRIBUTE_CLASSES_H
#define PROFCOL_SPANJOIN_ATTRIBUTE_CLASSES_H

#include "processors/spanjoin/sample_plan.h"

/* The role of an entry of the attribute_table, by its key. */
enum attribute_role {
    ATTRIBUTE_UNREAD,
    ATTRIBUTE_PLAIN,
    ATTRIBUTE_SPAN_ID,
    ATTRIBUTE_TRACE_ID,
    ATTRIBUTE_SPAN_NAME, /* the span's name, which some senders put next to its id */
};
/* The ids are those of the operating system, and of the runtime. */
enum thread_attribute {
    THREAD_ATTRIBUTE_NONE,
    THREAD_ATTRIBUTE_ID,
    THREAD_ATTRIBUTE_NAME,
    THREAD_ATTRIBUTE_RUNTIME_ID,
};
/* What a sample needs to know of all of its attributes together. */
enum attribute_traits {
    TRAIT_IS_NOT_PLAIN = 1, /* its samples may lose it, or it is one that samples gain */
    TRAIT_NAMES_SPAN = 2,   /* its value is the id of a span */
    TRAIT_THREAD = 4,
    TRAIT_ADDED = 8,     /* by the reader of the profile, for the join */
    TRAIT_UNPAIRED = 16, /* a runtime's id of a thread, whose other id in plan->pairs_process was
                            not noted yet (thread_pairs.h) */
};
struct attribute_class {
    uint8_t role;
    uint8_t rank;   /* index in sources or trace_sources */
    uint8_t joined; /* index of the same key in samples.attributes; JOIN_ATTRIBUTES_MAX: none */
    uint8_t thread; /* enum thread_attribute */
    uint8_t traits; /* enum attribute_traits */
    bool has_id;    /* its value is the id of a span or a trace, by its role */
    /* With THREAD_ATTRIBUTE_RUNTIME_ID: the process of whose thread the other id is noted already;
     * 0: none. */
    uint16_t paired;
    uint8_t id[TRACE_ID_SIZE];
};

/* Reads and classifies the entry at this index. */
const struct attribute_class *sample_plan_classify(struct sample_plan *plan, uint32_t attribute);
/* Returns the class of the entry at this index; the scan has checked the index. */
static inline const struct attribute_class *sample_plan_class(struct sample_plan *plan,
                                                              uint32_t attribute)
{
    if (attribute < plan->class_count && plan->classes[attribute].role != ATTRIBUTE_UNREAD)
        return &plan->classes[attribute];
    return sample_plan_classify(plan, attribute);
}

/* Returns the bits of a sample with these traits (sample_plan.h). */
static inline uint32_t sample_bits_of_traits(uint8_t traits)
{
    return (traits & TRAIT_IS_NOT_PLAIN ? 0 : SAMPLE_IS_PLAIN) |
           (traits & TRAIT_ADDED ? SAMPLE_IS_STRIPPED : 0);
}

#endif
