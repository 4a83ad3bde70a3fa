/*
 * cost_result: measures and prints the cost of one request, for tests/cost/run.
 *
 * Owner: the caller.
 *
 * Thread: one; processor time is that of the calling thread.
 */
#ifndef PROFCOL_TESTS_COST_RESULT_H
#define PROFCOL_TESTS_COST_RESULT_H

#include "core/base/verdict.h"
#include "core/data/wire_writer.h"

struct cost {
    size_t plain_bytes, peak_bytes;
    uint64_t cpu_ns;
    bool is_taken;
    struct verdict why;
};

/* Measure a request of this size, which is sent between the two calls. */
struct cost cost_begin(size_t plain_bytes);
void cost_end(struct cost *cost, bool is_taken);

/* Prints "plain 65536 peak 1234567 us 890 taken". */
void cost_print(const struct cost *cost);
/* Writes the request to standard output. Returns false on an error. */
bool cost_write_request(const struct wire_writer *request);

#endif
