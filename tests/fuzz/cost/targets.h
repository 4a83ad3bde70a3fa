/*
 * targets: what fuzz_cost measures, each a way of a request through a receiver, a processor or an
 * exporter.
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

/* How the mutator may take an input apart. */
enum cost_format { COST_TEXT, COST_PROTOBUF, COST_JFR };

struct cost_target {
    const char *name;
    enum cost_format format;
};

/* The first byte of an input says which, the rest is the request. */
const struct cost_target *cost_target_of(uint8_t first);
/* NULL: there is none of that number. */
const struct cost_target *cost_target_at(size_t number);
/* Once, before the first. */
void cost_targets_start(void);
struct measured cost_target_run(const struct cost_target *target, struct slice input,
                                struct verdict *why);

/* What it may hold at once for a request of so many bytes, and how many steps it may take. */
size_t cost_target_bytes_max(const struct cost_target *target, size_t size);
uint64_t cost_target_steps_max(const struct cost_target *target, size_t size);

#endif
