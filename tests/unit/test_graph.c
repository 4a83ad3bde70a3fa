#include "config/config.h"
#include "config/diff.h"
#include "core/base/budget.h"
#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/pipeline/graph.h"

#include <assert.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/*
 * Components that record what happens to them in `story`. Their settings say which errors they
 * make. They run on worker threads, where cmocka cannot fail a test, so they use assert.
 */

static pthread_mutex_t story_lock = PTHREAD_MUTEX_INITIALIZER;
static struct text story;

static void tell(const char *what, const char *id)
{
    pthread_mutex_lock(&story_lock);
    text_printf(&story, "%s%s %s", story.size ? ", " : "", what, id);
    pthread_mutex_unlock(&story_lock);
}

static void tell_node(const char *what, const struct node *node)
{
    char text[64];
    snprintf(text, sizeof text, "%u:%s", node->worker->index, what);
    tell(text, node->component->id);
}

static void assert_story(const char *expected)
{
    assert_string_equal(text_string(&story), expected);
    text_clear(&story);
}

struct test_settings {
    bool fail_init;
    int64_t fail_start; /* on this worker; -1: on none */
    int64_t drain_delay;
    bool never_drain;
    bool drain_in_stop;
    bool hold; /* an exporter holds batches until it is drained or stopped */
    bool refuse;
    bool offer_again; /* a processor passes batches on with a receipt of its own, and again after
                       * a refusal */
};

static const struct field test_fields[] = {
    FIELD_BOOL(test_settings, fail_init, "Init fails."),
    FIELD_INT(test_settings, fail_start, "Start fails on this worker.", .fallback = "-1"),
    FIELD_DURATION(test_settings, drain_delay, "Draining takes as long."),
    FIELD_BOOL(test_settings, never_drain, "Draining does not end."),
    FIELD_BOOL(test_settings, drain_in_stop, "Draining ends when it is stopped."),
    FIELD_BOOL(test_settings, hold, "Keeps batches."),
    FIELD_BOOL(test_settings, refuse, "Refuses batches."),
    FIELD_BOOL(test_settings, offer_again, "Offers again what was refused."),
    FIELD_END,
};

struct test_node {
    struct node node; /* first */
    struct timer drained;
    struct receipt receipt; /* of the batch that a processor passed on */
    struct batch *original;
    struct batch *held; /* by an exporter */
    unsigned consumed;
    struct text bytes;          /* of all consumed batches */
    struct buffer *last_buffer; /* only for comparison */
    unsigned offered;
};

static const struct test_settings *settings_of(const struct node *node)
{
    return node->component->settings;
}

static struct test_node *test_node(struct node *node)
{
    return (struct test_node *)node;
}

static bool test_init(struct component *component, struct error *err)
{
    tell("init", component->id);
    const struct test_settings *settings = component->settings;
    return !settings->fail_init || error_set(err, "told to");
}

static void test_deinit(struct component *component)
{
    tell("deinit", component->id);
}

static void on_drain_delay(struct timer *timer)
{
    struct test_node *self = container_of(timer, struct test_node, drained);
    node_drained(&self->node);
}

static bool test_start(struct node *node, struct error *err)
{
    tell_node("start", node);
    assert(worker_is_current(node->worker));
    test_node(node)->drained.on_timer = on_drain_delay;
    return settings_of(node)->fail_start != (int64_t)node->worker->index ||
           error_set(err, "told to");
}

static void release_held(struct test_node *self, const struct verdict *verdict)
{
    if (self->held)
        batch_drop(self->held, verdict);
    self->held = NULL;
}

static void test_drain(struct node *node)
{
    tell_node("drain", node);
    assert(node->draining && worker_is_current(node->worker));
    if (settings_of(node)->never_drain || settings_of(node)->drain_in_stop)
        return;
    release_held(test_node(node), &verdict_ok);
    if (settings_of(node)->drain_delay > 0)
        worker_set_timer(node->worker, &test_node(node)->drained,
                         (uint64_t)settings_of(node)->drain_delay);
    else
        node_drained(node);
}

static void test_stop(struct node *node)
{
    static const struct verdict stopped = {
        .code = GRPC_UNAVAILABLE, .retry_after_ns = -1, .text = "stopped"};
    tell_node("stop", node);
    assert(worker_is_current(node->worker));
    worker_cancel_timer(node->worker, &test_node(node)->drained);
    release_held(test_node(node), &stopped);
    if (test_node(node)->original)
        batch_drop(test_node(node)->original, &stopped);
    if (settings_of(node)->drain_in_stop && node->draining && !node->drained)
        node_drained(node);
    text_deinit(&test_node(node)->bytes);
}

static void note_bytes(struct test_node *self, struct batch *batch)
{
    struct slice_list list = {0};
    batch_gather(batch, &list);
    for (size_t i = 0; i < list.count; i++)
        text_append_slice(&self->bytes, list.items[i]);
    self->consumed++;
    self->last_buffer = batch->parts[0].buffer;
}

static void sink_consume(struct node *node, struct batch *batch)
{
    static const struct verdict refused = {
        .code = GRPC_INVALID_ARGUMENT, .retry_after_ns = -1, .text = "refused"};
    struct test_node *self = test_node(node);
    assert(worker_is_current(node->worker) && !node->stopped);
    note_bytes(self, batch);
    if (settings_of(node)->hold) {
        assert(!self->held);
        self->held = batch;
    } else {
        batch_drop(batch, settings_of(node)->refuse ? &refused : &verdict_ok);
    }
}

static void hand_on_clone(struct test_node *self)
{
    struct batch *clone = batch_clone(self->original);
    clone->receipt = &self->receipt;
    self->offered++;
    node_forward(&self->node, clone);
}

static void on_handed_on(struct receipt *receipt, const struct verdict *verdict)
{
    struct test_node *self = container_of(receipt, struct test_node, receipt);
    tell_node(verdict->text[0] ? verdict->text : "done", &self->node);
    if (verdict_is_ok(verdict)) {
        batch_free(self->original);
        self->original = NULL;
    } else if (self->offered < 3) {
        receipt_init(&self->receipt, on_handed_on);
        hand_on_clone(self);
    }
}

/* Changes the batch: appends an empty resource_spans. */
static void pass_consume(struct node *node, struct batch *batch)
{
    struct test_node *self = test_node(node);
    self->consumed++;
    message_append(&batch->parts[0].root, &batch->arena, SLICE("\x0a\x00"));
    if (!settings_of(node)->offer_again) {
        node_forward(node, batch);
        return;
    }
    batch_settle(batch, &verdict_ok);
    self->original = batch;
    receipt_init(&self->receipt, on_handed_on);
    hand_on_clone(self);
}

#define TEST_TYPE(NAME, SECTION, CONSUME)                                                          \
    {                                                                                              \
        .config = {.name = (NAME),                                                                 \
                   .section = (SECTION),                                                           \
                   .stability = {STABILITY_STABLE, STABILITY_STABLE},                              \
                   .help = "Tells what happens to it.",                                            \
                   .fields = test_fields,                                                          \
                   .config_size = sizeof(struct test_settings)},                                   \
        .init = test_init, .deinit = test_deinit, .node_size = sizeof(struct test_node),           \
        .node_start = test_start, .consume = (CONSUME), .node_drain = test_drain,                  \
        .node_stop = test_stop,                                                                    \
    }

static const struct component_type source_type = TEST_TYPE("source", CONFIG_RECEIVERS, NULL);
static const struct component_type pass_type = TEST_TYPE("pass", CONFIG_PROCESSORS, pass_consume);
static const struct component_type sink_type = TEST_TYPE("sink", CONFIG_EXPORTERS, sink_consume);
static const struct component_type helper_type = TEST_TYPE("helper", CONFIG_EXTENSIONS, NULL);
/* A component that implements nothing optional. */
static const struct field no_fields[] = {FIELD_END};
static const struct component_type bare_type = {
    .config = {.name = "bare",
               .section = CONFIG_EXPORTERS,
               .stability = {STABILITY_STABLE, STABILITY_STABLE},
               .fields = no_fields},
    .consume = sink_consume,
};

static const struct config_type *const types[] = {&source_type.config, &pass_type.config,
                                                  &sink_type.config,   &helper_type.config,
                                                  &bare_type.config,   NULL};

/* ---- a process with its graph ---- */

#define START_NS ((uint64_t)1000000000000)
#define SECOND_NS ((uint64_t)1000000000)
#define POLL_NS ((uint64_t)2000000) /* how often a worker looks whether it is drained */

enum { OLDER_MAX = 4 };

struct bench {
    struct worker workers[2];
    struct budget budget;
    struct process process;
    struct config *config;
    struct config *older[OLDER_MAX]; /* of what a reload has carried over */
    struct graph *graph;
    bool real;
};

static struct bench bench;

static void load(const char *yaml)
{
    struct text report = {0};
    bench.config = config_load_text(types, "test", slice_of_string(yaml), &report);
    if (!bench.config)
        fail_msg("%s", text_string(&report));
    text_deinit(&report);
}

static void init_workers(unsigned count, bool real)
{
    struct error err;
    bench = (struct bench){.real = real};
    for (unsigned i = 0; i < count; i++) {
        if (real)
            assert_true(worker_init(&bench.workers[i], i, &err));
        else
            worker_init_manual(&bench.workers[i], i, START_NS);
    }
    for (unsigned i = 0; real && i < count; i++)
        assert_true(worker_start(&bench.workers[i], &err));
    bench.process = (struct process){.workers = bench.workers,
                                     .worker_count = count,
                                     .metrics = metrics_new(count),
                                     .budget = &bench.budget,
                                     .version = "test"};
    text_clear(&story);
}

static void begin(const char *yaml, unsigned workers, bool real)
{
    struct error err = {0};
    init_workers(workers, real);
    load(yaml);
    bench.graph = graph_new(bench.config, &bench.process, &err);
    if (!bench.graph || !graph_start(bench.graph, &err))
        fail_msg("%s", err.text);
}

static void end(void)
{
    for (unsigned i = 0; bench.real && i < bench.process.worker_count; i++)
        worker_stop(&bench.workers[i]);
    for (unsigned i = 0; bench.real && i < bench.process.worker_count; i++)
        worker_join(&bench.workers[i]);
    workers_settle(bench.workers, bench.process.worker_count);
    for (unsigned i = 0; i < bench.process.worker_count; i++)
        worker_deinit(&bench.workers[i]);
    graph_free(bench.graph);
    config_free(bench.config);
    for (size_t i = 0; i < OLDER_MAX; i++)
        config_free(bench.older[i]);
    metrics_free(bench.process.metrics);
    assert_int_equal(budget_used(&bench.budget), 0);
    text_deinit(&story);
}

static void finish(void)
{
    graph_drain(bench.graph);
    for (unsigned i = 0; !bench.real && i < bench.process.worker_count; i++)
        worker_advance(&bench.workers[i], bench.workers[i].now_ns + 60 * SECOND_NS);
    assert_true(graph_wait_drained(bench.graph, 10 * SECOND_NS));
    graph_stop(bench.graph);
    end();
}

struct watched {
    struct receipt receipt; /* first */
    unsigned settled;
    struct verdict verdict;
};

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    ((struct watched *)receipt)->settled++;
    ((struct watched *)receipt)->verdict = *verdict;
}

static struct test_node *find(unsigned worker, const char *id, const char *pipeline,
                              enum signal signal)
{
    struct node *node = graph_node(bench.graph, worker, id, pipeline, signal);
    assert_non_null(node);
    return test_node(node);
}

static struct test_node *sink(const char *id)
{
    return find(0, id, NULL, SIGNAL_TRACES);
}

/* Forwards a request like a receiver, on the receiver's worker. */
static void receive(struct node *receiver, enum signal signal, struct watched *watched)
{
    struct slice request = SLICE("\x0a\x03\x1a\x01"
                                 "s");
    struct buffer *buffer = buffer_new_charged(request.size, &bench.budget);
    buffer_append(buffer, request.data, request.size, request.size);
    if (watched)
        receipt_init(&watched->receipt, on_settled);
    node_forward(receiver, batch_new(receiver->worker, signal, buffer, 1,
                                     watched ? &watched->receipt : NULL, NULL));
}

static void receive_traces(struct watched *watched)
{
    *watched = (struct watched){0};
    receive(&sink("source")->node, SIGNAL_TRACES, watched);
}

#define PIPELINE(ID, RECEIVERS, PROCESSORS, EXPORTERS)                                             \
    ID ": {receivers: [" RECEIVERS "], processors: [" PROCESSORS "], exporters: [" EXPORTERS "]}"

/* ---- building, and the order of start and stop ---- */

static void nodes_live_and_end_in_order(void **state)
{
    (void)state;
    begin("receivers: {source: }\nprocessors: {pass/a: , pass/b: }\nexporters: {sink: }\n"
          "extensions: {helper: }\n"
          "service: {extensions: [helper], pipelines: {" PIPELINE("traces", "source",
                                                                  "pass/a, pass/b", "sink") "}}\n",
          1, false);
    assert_story("init helper, init sink, init pass/a, init pass/b, init source, "
                 "0:start helper, 0:start sink, 0:start pass/b, 0:start pass/a, 0:start source");
    graph_drain(bench.graph);
    assert_story("0:drain source, 0:drain pass/a, 0:drain pass/b, 0:drain sink, 0:drain helper");
    assert_true(graph_is_drained(bench.graph));
    graph_stop(bench.graph);
    assert_story("0:stop helper, 0:stop sink, 0:stop pass/b, 0:stop pass/a, 0:stop source");
    worker_advance(&bench.workers[0], START_NS + SECOND_NS);
    graph_free(bench.graph);
    bench.graph = NULL;
    assert_story("deinit source, deinit pass/b, deinit pass/a, deinit sink, deinit helper");
    end();
}

#define TWO_PIPELINES                                                                              \
    "receivers: {source: }\nprocessors: {pass: }\nexporters: {sink: , sink/2: }\n"                 \
    "service: {pipelines: {" PIPELINE("traces", "source", "pass", "sink") ", " PIPELINE(           \
        "traces/2", "source", "pass", "sink, sink/2") ", " PIPELINE("profiles", "source", "",      \
                                                                    "sink") "}}\n"

static void nodes_are_shared_where_the_graph_says_so(void **state)
{
    (void)state;
    begin(TWO_PIPELINES, 2, false);
    for (unsigned worker = 0; worker < 2; worker++) {
        struct node *source = &find(worker, "source", NULL, SIGNAL_TRACES)->node;
        struct node *pass = &find(worker, "pass", "traces", SIGNAL_TRACES)->node;
        struct node *pass2 = &find(worker, "pass", "traces/2", SIGNAL_TRACES)->node;
        struct node *out = &find(worker, "sink", NULL, SIGNAL_TRACES)->node;
        struct node *profiles = &find(worker, "sink", NULL, SIGNAL_PROFILES)->node;
        assert_ptr_equal(source, find(worker, "source", NULL, SIGNAL_PROFILES)); /* one for all */
        assert_ptr_not_equal(pass, pass2); /* a processor has one per pipeline */
        assert_ptr_equal(pass->component, pass2->component);
        assert_ptr_not_equal(out, profiles); /* an exporter one per signal */
        assert_ptr_equal(out->component, profiles->component);
        assert_int_equal(out->component->pipeline_count[SIGNAL_TRACES], 2);
        assert_int_equal(out->component->pipeline_count[SIGNAL_PROFILES], 1);
        assert_int_equal(source->outlets[SIGNAL_TRACES].count, 2);
        assert_ptr_equal(pass->outlets[SIGNAL_TRACES].branches[0]->to,
                         out); /* shared by pipelines */
        assert_ptr_equal(pass2->outlets[SIGNAL_TRACES].branches[0]->to, out);
        assert_int_equal(pass2->outlets[SIGNAL_TRACES].count, 2);
        assert_ptr_equal(source->outlets[SIGNAL_PROFILES].branches[0]->to, profiles);
        assert_ptr_equal(source->worker, &bench.workers[worker]);
        assert_string_equal(out->component->label, "exporter sink");
    }
    assert_ptr_equal(find(0, "pass", "traces", SIGNAL_TRACES)->node.component,
                     find(1, "pass", "traces", SIGNAL_TRACES)->node.component);
    assert_null(graph_node(bench.graph, 0, "pass", "nowhere", SIGNAL_TRACES));
    assert_null(graph_node(bench.graph, 0, "sink/2", NULL, SIGNAL_PROFILES));
    finish();
}

static void a_component_may_leave_out_what_it_does_not_need(void **state)
{
    (void)state;
    begin("receivers: {source: }\nexporters: {bare: , bare/2: }\n"
          "service: {pipelines: {" PIPELINE("traces", "source", "", "bare, bare/2") "}}\n",
          1, false);
    assert_ptr_not_equal(sink("bare")->node.component, sink("bare/2")->node.component);
    finish();
}

/* ---- data and receipts ---- */

#define FAN_OUT(SINK1, SINK2)                                                                      \
    "receivers: {source: }\nprocessors: {pass: }\n"                                                \
    "exporters: {sink/1: " SINK1 ", sink/2: " SINK2 "}\n"                                          \
    "service: {pipelines: {" PIPELINE("traces", "source", "pass", "sink/1, sink/2") ", " PIPELINE( \
        "traces/2", "source", "", "sink/2") "}}\n"

static void fan_out_gives_clones_and_one_receipt(void **state)
{
    (void)state;
    begin(FAN_OUT("", ""), 1, false);
    struct watched watched;
    receive_traces(&watched);
    assert_int_equal(watched.settled, 1);
    assert_true(verdict_is_ok(&watched.verdict));
    /* A pipeline does not see what the other one appended. */
    assert_string_equal(text_string(&sink("sink/1")->bytes), "\x0a\x03\x1a\x01"
                                                             "s\x0a");
    assert_int_equal(sink("sink/1")->bytes.size, 7);
    assert_int_equal(sink("sink/2")->consumed, 2);
    assert_memory_equal(sink("sink/2")->bytes.data,
                        "\x0a\x03\x1a\x01"
                        "s"
                        "\x0a\x00"
                        "\x0a\x03\x1a\x01"
                        "s",
                        12);
    finish();
}

static void one_branch_that_takes_it_is_enough(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        const char *answer;
        double lost_by_pass, lost_by_source;
    } cases[] = {
        {FAN_OUT("{refuse: true}", ""), "", 1, 0},
        {FAN_OUT("", "{refuse: true}"), "", 1, 1},
        {FAN_OUT("{refuse: true}", "{refuse: true}"), "refused", 0, 0},
    };
    for (size_t i = 0; i < 3; i++) {
        begin(cases[i].yaml, 1, false);
        struct watched watched;
        receive_traces(&watched);
        assert_int_equal(watched.settled, 1);
        assert_string_equal(watched.verdict.text, cases[i].answer);
        const char *sink_that_refuses = i == 0 ? "sink/1" : "sink/2";
        char labels[120];
        snprintf(labels, sizeof labels, "from=\"processor pass\",to=\"exporter %s\"",
                 sink_that_refuses);
        assert_true(metrics_value(bench.process.metrics, "profcol_branch_lost_spans", labels) ==
                    cases[i].lost_by_pass);
        assert_true(metrics_value(bench.process.metrics, "profcol_branch_lost_spans",
                                  "from=\"receiver source\",to=\"exporter sink/2\"") ==
                    cases[i].lost_by_source);
        finish();
    }
}

static void the_receipt_waits_for_the_last(void **state)
{
    (void)state;
    begin("receivers: {source: }\nexporters: {sink/1: {hold: true}, sink/2: }\n"
          "service: {pipelines: {" PIPELINE("traces", "source", "", "sink/1, sink/2") "}}\n",
          1, false);
    struct watched watched;
    receive_traces(&watched);
    assert_int_equal(watched.settled, 0);
    assert_ptr_equal(sink("sink/1")->last_buffer, sink("sink/2")->last_buffer); /* shared bytes */
    release_held(sink("sink/1"), &verdict_ok);
    assert_int_equal(watched.settled, 1);
    finish();
}

static void nobody_has_to_ask_for_a_receipt(void **state)
{
    (void)state;
    begin(FAN_OUT("", ""), 1, false);
    receive(&sink("source")->node, SIGNAL_TRACES, NULL);
    assert_int_equal(sink("sink/2")->consumed, 2);
    finish();
}

/* ---- drain ---- */

static void all_are_told_at_once_and_the_slowest_counts(void **state)
{
    (void)state;
    begin("receivers: {source/1: {drain_delay: 1s}, source/2: }\n"
          "processors: {pass/slow: {drain_delay: 5s}, pass/fast: }\nexporters: {sink: }\n"
          "service: {pipelines: {" PIPELINE("traces", "source/1", "pass/slow, pass/fast",
                                            "sink") ", " PIPELINE("traces/2", "source/2",
                                                                  "pass/fast", "sink") "}}\n",
          1, false);
    text_clear(&story);
    graph_drain(bench.graph);
    /* The first processors of both pipelines are drained together, although pass/fast is also
     * the second one of the other. */
    assert_story("0:drain source/1, 0:drain source/2, 0:drain pass/slow, 0:drain pass/fast, "
                 "0:drain pass/fast, 0:drain sink");
    worker_advance(&bench.workers[0], START_NS + 5 * SECOND_NS - 1);
    assert_false(graph_is_drained(bench.graph));
    worker_advance(&bench.workers[0], START_NS + 5 * SECOND_NS + POLL_NS);
    assert_true(graph_is_drained(bench.graph));
    graph_stop(bench.graph);
    end();
}

static void workers_drain_on_their_own(void **state)
{
    (void)state;
    begin("receivers: {source: {drain_delay: 1s}}\nexporters: {sink: }\n"
          "service: {pipelines: {" PIPELINE("traces", "source", "", "sink") "}}\n",
          2, false);
    text_clear(&story);
    graph_drain(bench.graph);
    assert_story("0:drain source, 0:drain sink, 1:drain source, 1:drain sink");
    worker_advance(&bench.workers[1], START_NS + SECOND_NS + POLL_NS);
    assert_false(graph_is_drained(bench.graph));
    assert_false(graph_wait_drained(bench.graph, 1000000));
    worker_advance(&bench.workers[0], START_NS + SECOND_NS + POLL_NS);
    assert_true(graph_wait_drained(bench.graph, 0));
    graph_stop(bench.graph);
    end();
}

/* ---- failing starts ---- */

static void a_failing_init_undoes_the_others(void **state)
{
    (void)state;
    struct error err = {0};
    init_workers(1, false);
    load("receivers: {source: }\nprocessors: {pass: }\n"
         "exporters: {sink/1: , sink/2: {fail_init: true}, sink/3: }\n"
         "service: {pipelines: {" PIPELINE("traces", "source", "pass",
                                           "sink/1, sink/2, sink/3") "}}\n");
    bench.graph = graph_new(bench.config, &bench.process, &err);
    assert_null(bench.graph);
    assert_string_equal(err.text, "exporter sink/2: told to");
    assert_story("init sink/1, init sink/2, deinit sink/1");
    end();
}

static void a_failing_start_stops_what_had_started(void **state)
{
    (void)state;
    struct error err = {0};
    init_workers(2, false);
    load("receivers: {source: }\nprocessors: {pass: {fail_start: 1}}\nexporters: {sink: }\n"
         "service: {pipelines: {" PIPELINE("traces", "source", "pass", "sink") "}}\n");
    bench.graph = graph_new(bench.config, &bench.process, &err);
    assert_non_null(bench.graph);
    text_clear(&story);
    assert_false(graph_start(bench.graph, &err));
    assert_string_equal(err.text, "processor pass: told to");
    assert_story("0:start sink, 0:start pass, 0:start source, 1:start sink, 1:start pass, "
                 "1:stop sink, 0:stop sink, 0:stop pass, 0:stop source");
    end();
}

/* ---- what can be read of it ---- */

static void expect_status(const char *id, enum status_kind wanted, const char *error)
{
    struct status_event event;
    struct component *component = graph_node(bench.graph, 0, id, NULL, SIGNAL_TRACES)->component;
    component_status_read(&component->status, STATUS_ALL_SIGNALS, &event);
    assert_string_equal(status_name(event.status), status_name(wanted));
    assert_string_equal(event.error, error);
}

static void components_have_a_status(void **state)
{
    (void)state;
    struct error err = {0};
    init_workers(1, false);
    load("receivers: {source: }\nexporters: {sink: }\n"
         "service: {pipelines: {" PIPELINE("traces", "source", "", "sink") "}}\n");
    bench.graph = graph_new(bench.config, &bench.process, &err);
    expect_status("sink", STATUS_STARTING, "");
    assert_true(graph_start(bench.graph, &err));
    expect_status("sink", STATUS_OK, "");
    graph_drain(bench.graph);
    expect_status("source", STATUS_STOPPING, "");
    graph_stop(bench.graph);
    expect_status("source", STATUS_STOPPED, "");
    end();
}

static void what_cannot_start_has_a_fatal_error(void **state)
{
    (void)state;
    struct error err = {0};
    init_workers(2, false);
    load("receivers: {source: {fail_start: 1}}\nexporters: {sink: }\n"
         "service: {pipelines: {" PIPELINE("traces", "source", "", "sink") "}}\n");
    bench.graph = graph_new(bench.config, &bench.process, &err);
    assert_false(graph_start(bench.graph, &err));
    expect_status("source", STATUS_FATAL_ERROR, "told to");
    expect_status("sink", STATUS_STOPPED, "");
    end();
}

static struct graph_items items_of(const char *id, const char *pipeline)
{
    struct node *node = graph_node(bench.graph, 0, id, pipeline, SIGNAL_TRACES);
    return graph_read_items(bench.graph, node->component, pipeline, SIGNAL_TRACES);
}

static void items_are_counted_where_they_pass(void **state)
{
    (void)state;
    begin("receivers: {source: }\nprocessors: {pass: }\nexporters: {sink: , sink/2: }\n"
          "service: {pipelines: {" PIPELINE("traces", "source", "pass",
                                            "sink, sink/2") ", " PIPELINE("traces/b", "source",
                                                                          "pass", "sink") "}}\n",
          1, false);
    struct watched watched;
    receive_traces(&watched);
    receive_traces(&watched);
    uint64_t one = items_of("source", NULL).out / 2;
    assert_true(one > 0);
    assert_int_equal(items_of("source", NULL).in, 0);
    assert_int_equal(items_of("pass", "traces").in, 2 * one);
    assert_int_equal(items_of("pass", "traces").out, 2 * one);
    assert_int_equal(items_of("pass", "traces/b").in, 2 * one);
    assert_int_equal(items_of("sink", NULL).in, 4 * one);
    assert_int_equal(items_of("sink/2", NULL).in, 2 * one);
    assert_int_equal(items_of("sink", NULL).out, 0);
    graph_drain(bench.graph);
    graph_stop(bench.graph);
    end();
}

/* ---- stopping without a drain ---- */

static void what_is_held_is_given_up_with_its_receipt(void **state)
{
    (void)state;
    begin("receivers: {source: }\nexporters: {sink: {hold: true, never_drain: true}}\n"
          "service: {pipelines: {" PIPELINE("traces", "source", "", "sink") "}}\n",
          1, false);
    struct watched watched;
    receive_traces(&watched);
    graph_drain(bench.graph);
    assert_false(graph_wait_drained(bench.graph, 1000000));
    assert_int_equal(watched.settled, 0);
    graph_stop(bench.graph);
    assert_int_equal(watched.settled, 1);
    assert_string_equal(watched.verdict.text, "stopped");
    end();
}

/* Exporters stop first, so that their receipts settle while processors still exist. What
 * processors then offer again is refused. */
static void receipts_settle_into_living_nodes(void **state)
{
    (void)state;
    begin("receivers: {source: }\nprocessors: {pass: {offer_again: true, never_drain: true}}\n"
          "exporters: {sink: {hold: true, never_drain: true}}\n"
          "service: {pipelines: {" PIPELINE("traces", "source", "pass", "sink") "}}\n",
          1, false);
    struct watched watched;
    receive_traces(&watched);
    assert_int_equal(watched.settled, 1); /* by the processor, which holds the batch now */
    text_clear(&story);
    graph_drain(bench.graph);
    worker_advance(&bench.workers[0], START_NS);
    graph_stop(bench.graph);
    assert_story("0:drain source, 0:drain pass, 0:drain sink, 0:stop sink, 0:stopped pass, "
                 "0:shutting down pass, 0:shutting down pass, 0:stop pass, 0:stop source");
    end();
}

/* A node whose drain ends while it is stopped must not start the drain of others, which are
 * stopped already. */
static void a_drain_that_ends_in_stop_starts_nothing(void **state)
{
    (void)state;
    begin("receivers: {source: {drain_in_stop: true}}\nprocessors: {pass: }\nexporters: {sink: }\n"
          "service: {pipelines: {" PIPELINE("traces", "source", "pass", "sink") "}}\n",
          1, false);
    graph_drain(bench.graph);
    assert_false(graph_is_drained(bench.graph));
    text_clear(&story);
    graph_stop(bench.graph);
    assert_story("0:stop sink, 0:stop pass, 0:stop source");
    assert_false(graph_is_drained(bench.graph)); /* the drain did not end */
    end();
}

/* ---- reload ---- */

#define TRACES(PASS, SINK)                                                                         \
    "receivers: {source: }\nprocessors: {pass: {" PASS "}}\nexporters: {sink: {" SINK "}}\n"       \
    "extensions: {helper: }\n"                                                                     \
    "service: {extensions: [helper], pipelines: {" PIPELINE("traces", "source", "pass",            \
                                                            "sink") "}}\n"

/* Frees the configurations that nothing uses any more. */
static void free_unused(void)
{
    for (size_t i = 0; i < OLDER_MAX; i++)
        if (bench.older[i] && !graph_uses(bench.graph, bench.older[i])) {
            config_free(bench.older[i]);
            bench.older[i] = NULL;
        }
}

static void remember(struct config *config)
{
    size_t i = 0;
    while (bench.older[i])
        i++;
    assert_true(i < OLDER_MAX);
    bench.older[i] = config;
}

/* Returns whether the graph could be replaced. */
static bool reload(const char *yaml, struct error *err)
{
    struct config *before = bench.config;
    struct arena arena = {0};
    load(yaml);
    struct graph *next =
        graph_reload(bench.graph, config_diff_new(&arena, before, bench.config), err);
    arena_deinit(&arena);
    if (next) {
        bench.graph = next;
        remember(before);
        return true;
    }
    config_free(bench.config);
    bench.config = before;
    return false;
}

static void what_is_equal_goes_on(void **state)
{
    (void)state;
    struct error err = {0};
    struct watched watched;
    begin(TRACES("", ""), 1, false);
    struct test_node *source = sink("source"), *first = sink("sink");
    receive_traces(&watched);
    text_clear(&story);
    assert_true(reload(TRACES("drain_delay: 1ms", ""), &err));
    assert_story("init pass, 0:start pass, 0:drain pass");
    assert_ptr_equal(sink("source"), source);
    assert_ptr_equal(sink("sink"), first);
    receive_traces(&watched);
    assert_int_equal(watched.settled, 1);
    assert_int_equal(first->consumed, 2);
    assert_int_equal(find(0, "pass", "traces", SIGNAL_TRACES)->consumed, 1);
    assert_false(graph_reap(bench.graph));
    assert_story("0:stop pass, deinit pass");
    free_unused();
    assert_non_null(bench.older[0]); /* of source, sink and helper */
    finish();
}

static void what_a_retired_node_holds_takes_its_old_path(void **state)
{
    (void)state;
    struct error err = {0};
    struct watched first, second;
    begin(TRACES("offer_again: true", "hold: true, never_drain: true"), 1, false);
    receive_traces(&first);
    struct test_node *held = sink("sink");
    assert_true(reload(TRACES("offer_again: true", ""), &err));
    assert_ptr_not_equal(sink("sink"), held);
    text_clear(&story);
    /* The processor is the same; what it passed on is at the old exporter. */
    assert_true(graph_reap(bench.graph));
    assert_int_equal(graph_count_retired(bench.graph), 1);
    release_held(held, &verdict_ok);
    assert_story("0:done pass");
    node_drained(&held->node);
    assert_false(graph_reap(bench.graph));
    assert_story("0:stop sink, deinit sink");
    receive_traces(&second);
    assert_int_equal(second.settled, 1);
    assert_int_equal(sink("sink")->consumed, 1);
    finish();
}

static void what_cannot_start_changes_nothing(void **state)
{
    (void)state;
    struct error err = {0};
    struct watched watched;
    begin(TRACES("", ""), 1, false);
    text_clear(&story);
    assert_false(reload(TRACES("fail_init: true", "drain_delay: 1ms"), &err));
    assert_string_equal(err.text, "processor pass: told to");
    assert_story("init sink, init pass, deinit sink");
    assert_false(reload(TRACES("fail_start: 0", "drain_delay: 1ms"), &err));
    assert_string_equal(err.text, "processor pass: told to");
    assert_story("init sink, init pass, 0:start sink, 0:start pass, 0:stop sink, deinit pass, "
                 "deinit sink");
    assert_ptr_equal(bench.process.graph, bench.graph);
    assert_int_equal(bench.process.extension_count, 1);
    assert_ptr_equal(bench.process.extensions[0],
                     graph_component(bench.graph, bench.config->extensions[0]));
    receive_traces(&watched);
    assert_int_equal(watched.settled, 1);
    assert_false(graph_reap(bench.graph));
    finish();
}

static void the_end_stops_what_is_retired(void **state)
{
    (void)state;
    struct error err = {0};
    struct watched first, second;
    begin(TRACES("", "hold: true, never_drain: true"), 1, false);
    receive_traces(&first);
    assert_true(reload(TRACES("drain_delay: 1ms", "hold: true, drain_delay: 1ms"), &err));
    receive_traces(&second);
    assert_true(graph_reap(bench.graph));
    graph_drain(bench.graph);
    worker_advance(&bench.workers[0], START_NS + SECOND_NS);
    assert_int_equal(second.settled, 1);
    assert_true(verdict_is_ok(&second.verdict));
    assert_false(graph_is_drained(bench.graph)); /* the first is still held */
    assert_int_equal(first.settled, 0);
    graph_stop(bench.graph);
    assert_int_equal(first.settled, 1);
    assert_string_equal(first.verdict.text, "stopped");
    end();
}

static const struct share *traces_share(const char *id)
{
    return &sink(id)->node.component->held[SIGNAL_TRACES];
}

/* What is lent stays lent when there are more exporters, and the shares become smaller. */
static void shares_of_memory_follow(void **state)
{
    (void)state;
    struct error err = {0};
    size_t lent;
    init_workers(1, false);
    bench.budget.limit_bytes = 4096;
    load(TRACES("", ""));
    bench.graph = graph_new(bench.config, &bench.process, &err);
    assert_true(graph_start(bench.graph, &err));
    struct component *first = sink("sink")->node.component;
    assert_int_equal(traces_share("sink")->own.limit_bytes, 1024);
    assert_int_equal(share_limit(traces_share("sink")), 2048); /* it is the only one */
    assert_true(share_reserve(&first->held[SIGNAL_TRACES], 2000, &lent));
    assert_int_equal(lent, 976);
    assert_true(
        reload("receivers: {source: }\nprocessors: {pass: }\nexporters: {sink: , sink/b: }\n"
               "service: {pipelines: {" PIPELINE("traces", "source", "pass", "sink, sink/b") "}}\n",
               &err));
    assert_ptr_equal(sink("sink")->node.component, first);
    assert_int_equal(traces_share("sink")->own.limit_bytes, 512);
    assert_int_equal(share_limit(traces_share("sink")), 512 + 976); /* more than two thirds */
    assert_int_equal(share_used(traces_share("sink")), 2000);
    assert_int_equal(share_limit(traces_share("sink/b")), 512 + 48 * 2 / 3);
    share_release(&first->held[SIGNAL_TRACES], 2000, lent);
    assert_int_equal(share_limit(traces_share("sink/b")), 512 + 1024 * 2 / 3);
    assert_false(graph_reap(bench.graph)); /* the extension */
    assert_int_equal(bench.process.extension_count, 0);
    finish();
}

/* ---- threads ---- */

enum { REQUESTS = 500 };

struct feeder {
    struct post post; /* first */
    struct node *receiver;
    unsigned left;
    struct watched watched;
    uv_sem_t done;
};

static void on_feed(struct worker *worker, struct post *post)
{
    struct feeder *feeder = (struct feeder *)post;
    receive(feeder->receiver, SIGNAL_TRACES, &feeder->watched);
    if (--feeder->left > 0)
        worker_post(worker, post);
    else
        uv_sem_post(&feeder->done);
}

static void two_workers_run_side_by_side(void **state)
{
    (void)state;
    begin("receivers: {source: {drain_delay: 5ms}}\nprocessors: {pass/a: {drain_delay: 3ms}, "
          "pass/b: }\n"
          "exporters: {sink/1: , sink/2: {drain_delay: 1ms}}\n"
          "service: {pipelines: {" PIPELINE("traces", "source", "pass/a, pass/b",
                                            "sink/1, sink/2") "}}\n",
          2, true);
    struct feeder feeders[2];
    for (unsigned i = 0; i < 2; i++) {
        feeders[i] = (struct feeder){.post.on_post = on_feed, .left = REQUESTS};
        feeders[i].receiver = &find(i, "source", NULL, SIGNAL_TRACES)->node;
        uv_sem_init(&feeders[i].done, 0);
        worker_post(&bench.workers[i], &feeders[i].post);
    }
    for (unsigned i = 0; i < 2; i++) {
        uv_sem_wait(&feeders[i].done);
        uv_sem_destroy(&feeders[i].done);
        assert_int_equal(feeders[i].watched.settled, REQUESTS);
    }
    graph_drain(bench.graph);
    assert_true(graph_wait_drained(bench.graph, 10 * SECOND_NS));
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(find(i, "sink/1", NULL, SIGNAL_TRACES)->consumed, REQUESTS);
        assert_int_equal(find(i, "sink/2", NULL, SIGNAL_TRACES)->consumed, REQUESTS);
    }
    graph_stop(bench.graph);
    end();
}

enum { RELOADS = 60 };

static void reloads_beside_requests(void **state)
{
    (void)state;
    struct error err = {0};
    static const char *const texts[] = {TRACES("", ""), TRACES("", "drain_delay: 1ms"),
                                        TRACES("drain_delay: 1ms", "drain_delay: 1ms"),
                                        TRACES("drain_delay: 1ms", "")};
    begin(texts[0], 2, true);
    struct feeder feeders[2];
    for (unsigned i = 0; i < 2; i++) {
        feeders[i] = (struct feeder){.post.on_post = on_feed, .left = 20 * REQUESTS};
        feeders[i].receiver = &find(i, "source", NULL, SIGNAL_TRACES)->node;
        uv_sem_init(&feeders[i].done, 0);
        worker_post(&bench.workers[i], &feeders[i].post);
    }
    for (unsigned i = 1; i <= RELOADS; i++) {
        assert_true(reload(texts[i % 4], &err));
        while (graph_reap(bench.graph))
            sched_yield();
        free_unused();
    }
    for (unsigned i = 0; i < 2; i++) {
        uv_sem_wait(&feeders[i].done);
        uv_sem_destroy(&feeders[i].done);
        assert_int_equal(feeders[i].watched.settled, 20 * REQUESTS);
        assert_true(verdict_is_ok(&feeders[i].watched.verdict));
    }
    finish();
}

static void waiting_for_the_drain_ends_in_time(void **state)
{
    (void)state;
    begin("receivers: {source: }\nexporters: {sink: {never_drain: true}}\n"
          "service: {pipelines: {" PIPELINE("traces", "source", "", "sink") "}}\n",
          2, true);
    graph_drain(bench.graph);
    uint64_t before_ns = clock_monotonic_ns();
    assert_false(graph_wait_drained(bench.graph, 20000000));
    assert_true(clock_monotonic_ns() - before_ns >= 20000000);
    assert_false(graph_is_drained(bench.graph));
    graph_stop(bench.graph);
    end();
}

static void a_failing_start_on_a_thread_is_reported(void **state)
{
    (void)state;
    struct error err = {0};
    init_workers(2, true);
    load("receivers: {source: {fail_start: 1}}\nexporters: {sink: }\n"
         "service: {pipelines: {" PIPELINE("traces", "source", "", "sink") "}}\n");
    bench.graph = graph_new(bench.config, &bench.process, &err);
    assert_false(graph_start(bench.graph, &err));
    assert_string_equal(err.text, "receiver source: told to");
    end();
}

static int begin_all(void **state)
{
    (void)state;
    hash_init();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_live_and_end_in_order),
        cmocka_unit_test(nodes_are_shared_where_the_graph_says_so),
        cmocka_unit_test(a_component_may_leave_out_what_it_does_not_need),
        cmocka_unit_test(fan_out_gives_clones_and_one_receipt),
        cmocka_unit_test(one_branch_that_takes_it_is_enough),
        cmocka_unit_test(the_receipt_waits_for_the_last),
        cmocka_unit_test(nobody_has_to_ask_for_a_receipt),
        cmocka_unit_test(all_are_told_at_once_and_the_slowest_counts),
        cmocka_unit_test(workers_drain_on_their_own),
        cmocka_unit_test(a_failing_init_undoes_the_others),
        cmocka_unit_test(a_failing_start_stops_what_had_started),
        cmocka_unit_test(components_have_a_status),
        cmocka_unit_test(what_cannot_start_has_a_fatal_error),
        cmocka_unit_test(items_are_counted_where_they_pass),
        cmocka_unit_test(what_is_held_is_given_up_with_its_receipt),
        cmocka_unit_test(receipts_settle_into_living_nodes),
        cmocka_unit_test(a_drain_that_ends_in_stop_starts_nothing),
        cmocka_unit_test(what_is_equal_goes_on),
        cmocka_unit_test(what_a_retired_node_holds_takes_its_old_path),
        cmocka_unit_test(what_cannot_start_changes_nothing),
        cmocka_unit_test(the_end_stops_what_is_retired),
        cmocka_unit_test(shares_of_memory_follow),
        cmocka_unit_test(two_workers_run_side_by_side),
        cmocka_unit_test(reloads_beside_requests),
        cmocka_unit_test(waiting_for_the_drain_ends_in_time),
        cmocka_unit_test(a_failing_start_on_a_thread_is_reported),
    };
    return cmocka_run_group_tests(tests, begin_all, NULL);
}
