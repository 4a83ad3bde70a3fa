#include "processors/tail_sampling/trace_facts.h"

#include "core/base/saturate.h"

void facts_add(struct trace_facts *facts, uint64_t *bits, const struct trace_facts *more,
               const uint64_t *more_bits, uint32_t words)
{
    if (more->start_ns && (!facts->start_ns || more->start_ns < facts->start_ns))
        facts->start_ns = more->start_ns;
    if (more->end_ns > facts->end_ns)
        facts->end_ns = more->end_ns;
    facts->spans += more->spans;
    facts->bytes += more->bytes;
    facts->cpu_ns = saturate_add(facts->cpu_ns, more->cpu_ns);
    facts->samples = saturate_add(facts->samples, more->samples);
    facts->has_root |= more->has_root;
    for (uint32_t i = 0; i < words; i++)
        bits[i] |= more_bits[i];
}
