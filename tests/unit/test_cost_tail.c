/*
 * The cost of traces that wait in tail_sampling; the sender chooses their number.
 *
 * A request has as many traces as fit, of one small span each. Twice as many must cost twice as
 * much, whatever ends their wait.
 */
#include "tests/unit/cost.h"
#include "tests/unit/tail_requests.h"

#define SECOND UINT64_C(1000000000)

static void many_traces(struct wire_writer *out, size_t size)
{
    tail_write_traces(out, size / TAIL_SPAN_BYTES);
}

/* ---- the processor ---- */

static uint32_t spans_sent(const struct fixture *f)
{
    uint32_t spans = 0;
    for (size_t i = 0; i < f->recorder.count; i++)
        spans += f->recorder.items[i].items;
    return spans;
}

/* Sends the request and ends the wait. Returns whether what is sampled has left, and no other. */
static bool consume(const char *settings, bool drains, bool samples, struct slice request)
{
    struct fixture f;
    uint32_t spans = (uint32_t)(request.size / TAIL_SPAN_BYTES);
    fixture_init(&f, 1);
    f.budget.limit_bytes = SIZE_MAX / 4;
    struct fixture_place *traces = tail_place(&f, SIGNAL_TRACES, settings);
    fixture_consume(&f, traces->nodes[0], request, spans, NULL);
    fixture_advance(&f, 0); /* the job that reads it */
    if (drains)
        fixture_drain(traces->nodes[0]);
    fixture_advance(&f, 2 * SECOND);
    bool have_left = spans_sent(&f) == (samples ? spans : 0) && fixture_is_idle(traces->nodes[0]);
    fixture_deinit(&f);
    return have_left;
}

static bool send_sampled(struct slice request, struct verdict *why)
{
    *why = verdict_ok;
    return consume("decision_wait: 1s, num_traces: 1000000, max_held_mib: 1000, " TAIL_ALL, false,
                   true, request);
}

static bool send_not_sampled(struct slice request, struct verdict *why)
{
    *why = verdict_ok;
    return consume("decision_wait: 1s, num_traces: 1000000, max_held_mib: 1000, " TAIL_ERRORS,
                   false, false, request);
}

static bool send_drained(struct slice request, struct verdict *why)
{
    *why = verdict_ok;
    return consume("decision_wait: 60s, num_traces: 1000000, max_held_mib: 1000, " TAIL_ALL, true,
                   true, request);
}

/* Each trace pushes the one before out. */
static bool send_pushed_out(struct slice request, struct verdict *why)
{
    *why = verdict_ok;
    return consume("decision_wait: 1s, num_traces: 1, max_held_mib: 1000, " TAIL_ALL, false, true,
                   request);
}

static bool send_beyond_memory(struct slice request, struct verdict *why)
{
    *why = verdict_ok;
    return consume("decision_wait: 1s, num_traces: 1000000, max_held_mib: 1, " TAIL_ALL, false,
                   true, request);
}

int main(int argc, char **argv)
{
    static const struct cost_case cases[] = {
        {"tail_sampled", many_traces, send_sampled, GRPC_OK},
        {"tail_not_sampled", many_traces, send_not_sampled, GRPC_OK},
        {"tail_drained", many_traces, send_drained, GRPC_OK},
        {"tail_pushed_out", many_traces, send_pushed_out, GRPC_OK},
        {"tail_beyond_memory", many_traces, send_beyond_memory, GRPC_OK},
    };
    return cost_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
