/*
 * mutate: makes of one request another one that may cost more.
 *
 * Costs are products: something large, and many references to it. Byte by byte those are found
 * late, so whole pieces are repeated here, a text grows, and a list gets one value all over; in
 * protobuf and JFR with the lengths around it kept right, in anything else with a count before it
 * that may be one.
 *
 * Owner: the caller's memory.
 *
 * Thread: one.
 */
#ifndef PROFCOL_TESTS_FUZZ_COST_MUTATE_H
#define PROFCOL_TESTS_FUZZ_COST_MUTATE_H

#include "core/data/wire_writer.h"
#include "tests/fuzz/cost/targets.h"

struct mutation {
    uint64_t random; /* its state; not 0 */
    size_t room;     /* for what is added */
    /* libFuzzer's own ways. */
    size_t (*mutate)(uint8_t *data, size_t size, size_t size_max);
};

/* Writes the new request. */
void mutate_request(struct mutation *mutation, enum cost_format format, struct slice request,
                    struct wire_writer *out);

#endif
