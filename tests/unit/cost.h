/*
 * cost: what a request costs, for each byte of it, when its sender makes it as dear as he can.
 *
 * A case builds a request of about so many plain bytes: the largest table entry and as many
 * references to it as fit. The program of a table of cases (cost_main) is run in two ways. As a
 * test, without arguments, it asserts what every machine can: peak bytes per plain byte, linear
 * growth of the peak, and the answer; and it takes every case once at a size at which work that is
 * quadratic needs minutes. With the arguments CASE SIZE [CASE SIZE ...] it does each of these once,
 * for tests/cost/run, which counts the instructions of cost_send under callgrind. With `write CASE
 * SIZE` it prints the request, for tests/cost/replay.
 *
 * Owner: requests are the caller's.
 *
 * Thread: one.
 */
#ifndef PROFCOL_TESTS_COST_H
#define PROFCOL_TESTS_COST_H

#include "core/base/slice.h"
#include "core/base/verdict.h"
#include "core/data/wire_writer.h"

struct cost_case {
    const char *name;
    /* Writes the request. */
    void (*build)(struct wire_writer *out, size_t size);
    /* False: *why says why. */
    bool (*send)(struct slice request, struct verdict *why);
    enum grpc_code answer; /* GRPC_OK: it is taken; RESOURCE_EXHAUSTED: it unfolds to too much */
};

int cost_main(int argc, char **argv, const struct cost_case *cases, size_t count);

/* What a case may hold at once: so many bytes for each byte of the request, and so many more. */
enum { COST_PEAK_PER_BYTE = 64, COST_PEAK_MORE = 6 << 20 };

#endif
