/*
 * sequences: requests that come one after the other to one processor, as it is in a pipeline.
 *
 * The input is protobuf: field 1 is a request of traces, field 2 one of profiles, field 3 a time of
 * so many milliseconds. What arrives is what a receiver lets through.
 *
 * Owner: none.
 *
 * Thread: one.
 */
#ifndef PROFCOL_TESTS_FUZZ_COST_SEQUENCES_H
#define PROFCOL_TESTS_FUZZ_COST_SEQUENCES_H

#include "core/base/slice.h"
#include "tests/fuzz/cost/meter.h"

struct measured cost_sequence_spanjoin(struct slice input);
struct measured cost_sequence_batch(struct slice input);

#endif
