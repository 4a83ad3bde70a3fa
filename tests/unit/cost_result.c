#include "tests/unit/cost_result.h"

#include "tests/unit/cost_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static uint64_t thread_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

struct cost cost_begin(size_t plain_bytes)
{
    cost_memory_begin();
    return (struct cost){.plain_bytes = plain_bytes, .cpu_ns = thread_cpu_ns(), .why = verdict_ok};
}

void cost_end(struct cost *cost, bool is_taken)
{
    cost->cpu_ns = thread_cpu_ns() - cost->cpu_ns;
    cost->peak_bytes = cost_memory_peak();
    cost->is_taken = is_taken;
}

void cost_print(const struct cost *cost)
{
    printf("plain %zu peak %zu us %" PRIu64 " %s %s\n", cost->plain_bytes, cost->peak_bytes,
           cost->cpu_ns / 1000, cost->is_taken ? "taken" : "refused",
           cost->is_taken ? "" : cost->why.text);
}

bool cost_write_request(const struct wire_writer *request)
{
    return fwrite(request->data, 1, request->size, stdout) == request->size;
}
