/*
 * sequences: sends a sequence of requests to one processor in a pipeline.
 *
 * The input is protobuf: field 1 is a traces request, field 2 a profiles request, field 3 a delay
 * in milliseconds. Requests that a receiver would refuse are skipped.
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
