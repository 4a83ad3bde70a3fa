/*
 * cost_result: what one request cost, measured and printed in one way for tests/cost/run.
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

/* Of a request of so many bytes, which is sent between these two. */
struct cost cost_begin(size_t plain_bytes);
void cost_end(struct cost *cost, bool is_taken);

/* "plain 65536 peak 1234567 us 890 taken" */
void cost_print(const struct cost *cost);
/* The request to standard output. False: not all of it. */
bool cost_write_request(const struct wire_writer *request);

#endif
