/*
 * meter: what a piece of work cost, in steps.
 *
 * A step is an edge of the instrumented program (clang's trace-pc-guard), or 32 bytes that the C
 * library copied, compared, searched or set for it, and an allocation is eight. So a copy of a
 * long text for each reference to it shows, which is one edge each.
 *
 * Only the preset fuzz-cost has edges to count (PROFCOL_COUNTS_EDGES); elsewhere steps are 0, and
 * under sanitizers bytes are, too.
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
    size_t peak_bytes; /* held at once, beside what was there before */
};

void meter_begin(void);
struct measured meter_end(void);

/* Tells libFuzzer what is new about an input of so many bytes (without it, nothing): each quarter
 * of an octave of steps and of peak bytes for each byte, apart for each size class, so that growth
 * beyond the linear is a way to go on. */
void meter_tell(struct measured measured, size_t size);
/* Small inputs count as one of so many bytes, or constants would win. */
enum { METER_SIZE_MIN = 4096, METER_SIZE_CLASSES = 10 };
/* 0: up to METER_SIZE_MIN; then one for each doubling. */
unsigned meter_size_class(size_t size);
double meter_ratio(uint64_t amount, size_t size);

#endif
