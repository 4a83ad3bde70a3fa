/*
 * cost: measures the cost of the most expensive requests, per byte of the request.
 *
 * A case builds a request of about the given number of plain bytes: the largest table entry, and as
 * many references to it as fit. The program for a table of cases (cost_main) has three modes.
 * Without arguments it is a test: it asserts what does not depend on the machine (peak memory per
 * plain byte, linear growth of the peak, the answer), and runs every case once at a size at which
 * quadratic work takes minutes. With the arguments CASE SIZE [CASE SIZE ...] it runs each of these
 * once, for tests/cost/run, which counts the instructions of cost_send under callgrind. With `write
 * CASE SIZE` it prints the request, for tests/cost/replay.
 *
 * Owner: requests belong to the caller.
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
    /* Sends the request. Returns false, with *why set, if it is refused. */
    bool (*send)(struct slice request, struct verdict *why);
    enum grpc_code answer; /* GRPC_OK: accepted; RESOURCE_EXHAUSTED: it unfolds to too much */
};

int cost_main(int argc, char **argv, const struct cost_case *cases, size_t count);

/* Limits on the peak memory of a case: bytes for each byte of the request, plus a constant. */
enum { COST_PEAK_PER_BYTE = 64, COST_PEAK_MORE = 6 << 20 };

#endif
