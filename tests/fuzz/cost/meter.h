/*
 * meter: measures the cost of a piece of work, in steps.
 *
 * A step is an edge of the instrumented program (clang's trace-pc-guard), or 32 bytes that the C
 * library copied, compared, searched or set. An allocation counts as eight steps. Because bytes
 * count, copying a long text for each reference to it is noticed, although each copy is only one
 * edge.
 *
 * Only the preset fuzz-cost counts edges (PROFCOL_COUNTS_EDGES). In other builds, steps are 0;
 * under sanitizers, peak_bytes is 0, too.
 *
 * Owner: none.
 *
 * Thread: one.
 */
#ifndef PROFCOL_TESTS_FUZZ_COST_METER_H
#define PROFCOL_TESTS_FUZZ_COST_METER_H

#include <stddef.h>
#include <stdint.h>

struct measured {
    uint64_t steps;
    size_t peak_bytes; /* peak memory, without what was held before */
};

void meter_begin(void);
struct measured meter_end(void);

/* Tells libFuzzer which features an input of this size has; does nothing without libFuzzer. Each
 * quarter of an octave of steps per byte, and of peak bytes per byte, is a feature, separately for
 * each size class. So libFuzzer keeps inputs whose cost grows more than linearly. */
void meter_tell(struct measured measured, size_t size);
/* Smaller inputs count as inputs of METER_SIZE_MIN bytes; otherwise constant costs would
 * dominate. */
enum { METER_SIZE_MIN = 4096, METER_SIZE_CLASSES = 10 };
/* Returns 0 up to METER_SIZE_MIN, then one more for each doubling. */
unsigned meter_size_class(size_t size);
double meter_ratio(uint64_t amount, size_t size);

#endif
