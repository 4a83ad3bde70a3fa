/*
 * mutate: changes a request so that it may cost more.
 *
 * Large costs are products: something large, and many references to it. Mutating single bytes finds
 * these late. So this mutator repeats whole pieces, lengthens texts, and sets all elements of a
 * list to one value. In protobuf and JFR it corrects the lengths around a change; in other formats
 * it changes a byte before it that may be a count.
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
    uint64_t random; /* state of the random numbers; not 0 */
    size_t room;     /* bytes that may be added */
    /* libFuzzer's own mutations. */
    size_t (*mutate)(uint8_t *data, size_t size, size_t size_max);
};

/* Writes the changed request. */
void mutate_request(struct mutation *mutation, enum cost_format format, struct slice request,
                    struct wire_writer *out);

#endif
