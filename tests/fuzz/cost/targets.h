/*
 * targets: the targets of fuzz_cost: paths of a request through receivers, processors and
 * exporters.
 *
 * Owner: none.
 *
 * Thread: one.
 */
#ifndef PROFCOL_TESTS_FUZZ_COST_TARGETS_H
#define PROFCOL_TESTS_FUZZ_COST_TARGETS_H

#include "core/base/slice.h"
#include "core/base/verdict.h"
#include "tests/fuzz/cost/meter.h"

/* The format in which the mutator parses an input. */
enum cost_format { COST_TEXT, COST_PROTOBUF, COST_JFR };

struct cost_target {
    const char *name;
    enum cost_format format;
};

/* Returns the target for the first byte of an input; the rest is the request. */
const struct cost_target *cost_target_of(uint8_t first);
/* Returns the target with this number; NULL if there is none. */
const struct cost_target *cost_target_at(size_t number);
/* Call it once, before the first target. */
void cost_targets_start(void);
struct measured cost_target_run(const struct cost_target *target, struct slice input,
                                struct verdict *why);

/* Return the limits on peak memory and on steps for a request of `size` bytes. */
size_t cost_target_bytes_max(const struct cost_target *target, size_t size);
uint64_t cost_target_steps_max(const struct cost_target *target, size_t size);

#endif
