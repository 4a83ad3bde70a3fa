/*
 * graph_bench: a graph from YAML on workers of a test, requests of numbered spans, and senders that
 * record their answers.
 *
 *     struct graph_bench bench;
 *     graph_bench_init(&bench, 1, false);
 *     graph_bench_begin(&bench, types, yaml);
 *     graph_bench_send(&bench, 0, &request, &sender);
 *     graph_bench_advance(&bench, 1000000000); // one second later
 *     graph_bench_end(&bench);                 // stops, checks that nothing is left
 *
 * The receiver `source` of every bench forwards what the test sends. On other threads, use assert:
 * cmocka can fail a test only on its own thread.
 *
 * Owner: the test.
 *
 * Thread: the test's; graph_bench_send runs on the worker.
 */
#ifndef PROFCOL_TESTS_UNIT_GRAPH_BENCH_H
#define PROFCOL_TESTS_UNIT_GRAPH_BENCH_H

#include "core/base/budget.h"
#include "core/pipeline/graph.h"

#define GRAPH_BENCH_WORKERS_MAX 2
#define GRAPH_BENCH_START_NS UINT64_C(1000000000000) /* the manual clock starts here */

struct graph_bench {
    struct worker workers[GRAPH_BENCH_WORKERS_MAX];
    struct budget budget;
    struct process process;
    struct config *config;
    struct graph *graph;
    bool is_real; /* workers have threads */
};

/* A sender that waits for an answer. Must outlive its request. */
struct sender {
    struct receipt receipt; /* first */
    struct worker *worker;
    unsigned settled; /* number of settlements */
    struct verdict verdict;
    uint64_t at_ns;
    bool has_given_up;
};

/* Spans with the ids first, first + 1...; the first one carries `ballast` bytes. */
struct numbered_request {
    uint64_t first;
    uint32_t count;
    size_t ballast;
};

extern const struct component_type graph_bench_source_type; /* receiver "source", no settings */

void graph_bench_init(struct graph_bench *bench, unsigned workers, bool is_real);
/* Builds and starts the graph. types: NULL-terminated. Fails the test on an error. */
void graph_bench_begin(struct graph_bench *bench, const struct config_type *const *types,
                       const char *yaml);
/* Sends a request as a receiver does. sender may be NULL: nobody waits. */
void graph_bench_send(struct graph_bench *bench, unsigned worker,
                      const struct numbered_request *request, struct sender *sender);
/* Moves all manual workers forward by the same steps. */
void graph_bench_advance(struct graph_bench *bench, uint64_t delta_ns);
uint64_t graph_bench_now(const struct graph_bench *bench);
/* Starts to drain, and moves manual workers forward until it is done, at most limit_ns. Returns
 * whether it is done. */
bool graph_bench_drain(struct graph_bench *bench, uint64_t limit_ns);
/* Stops the graph. Metrics and components still exist. */
void graph_bench_stop(struct graph_bench *bench);
/* Frees the stopped graph, and checks that the budget is back at zero. */
void graph_bench_end(struct graph_bench *bench);
struct node *graph_bench_node(struct graph_bench *bench, unsigned worker, const char *id,
                              const char *pipeline);
double graph_bench_metric(const struct graph_bench *bench, const char *name, const char *labels);

/* Calls `visit` with the id of each span. */
void batch_visit_spans(struct batch *batch, void (*visit)(void *context, uint64_t span),
                       void *context);
uint64_t batch_first_span(struct batch *batch);

#endif
