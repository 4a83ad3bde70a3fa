/*
 * trace_facts: what is kept of a trace to decide about it: a few numbers, and a bit for each policy
 * that looks for a span or sample with some property.
 *
 * Spans and samples are looked at once, when they arrive; a decision reads only the facts.
 *
 * Owner: the caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TRACE_FACTS_H
#define PROFCOL_TAIL_SAMPLING_TRACE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_facts {
    uint64_t start_ns, end_ns; /* of all its spans; 0: none has one */
    uint64_t spans, bytes;
    int64_t cpu_ns, samples; /* of the samples that are linked to it */
    bool has_root;           /* a span without a parent */
};

/* The bits are in words behind the struct, or apart from it. */
static inline uint32_t facts_words(uint32_t bits)
{
    return (bits + 63) / 64;
}

static inline bool facts_has(const uint64_t *bits, uint32_t bit)
{
    return bits[bit / 64] >> (bit % 64) & 1;
}

static inline void facts_set(uint64_t *bits, uint32_t bit)
{
    bits[bit / 64] |= UINT64_C(1) << (bit % 64);
}

/* Adds what was seen of more spans or samples of the trace. */
void facts_add(struct trace_facts *facts, uint64_t *bits, const struct trace_facts *more,
               const uint64_t *more_bits, uint32_t words);

#endif
