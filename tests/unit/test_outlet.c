#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/delivery.h"
#include "core/pipeline/offer.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/graph_bench.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

extern const struct component_type batch_processor_type, spanjoin_processor_type,
    forward_connector_type;

#define MILLISECOND UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static struct graph_bench bench;

/* ---- sink: an exporter that answers at once with a given verdict ---- */

enum { OFFERS_MAX = 64 };

struct sink {
    struct node node;      /* first */
    struct verdict answer; /* all-zero: OK */
    enum refusal refusal;
    uint64_t refuses_span; /* refuses only this span; 0: all, if the answer is not OK */
    struct offered {
        uint64_t span; /* first span of the batch */
        uint64_t at_ns;
        bool was_taken;
    } offers[OFFERS_MAX];
    size_t count;
};

static void sink_consume(struct node *node, struct batch *batch)
{
    struct sink *self = (struct sink *)node;
    assert(self->count < OFFERS_MAX);
    struct offered *offered = &self->offers[self->count++];
    *offered = (struct offered){.span = batch_first_span(batch), .at_ns = node->worker->now_ns};
    bool refuses = !verdict_is_ok(&self->answer) &&
                   (self->refuses_span == 0 || self->refuses_span == offered->span);
    offered->was_taken = !refuses;
    if (refuses)
        node_refuse(node, batch, self->refusal, &self->answer);
    else
        batch_drop(batch, &verdict_ok);
}

static const struct field no_fields[] = {FIELD_END};

#define CONFIG_TYPE(NAME, SECTION)                                                                 \
    {                                                                                              \
        .name = (NAME), .section = (SECTION), .stability = {STABILITY_STABLE, STABILITY_STABLE},   \
        .help = "Of a test.", .fields = no_fields                                                  \
    }

static const struct component_type sink_type = {.config = CONFIG_TYPE("sink", CONFIG_EXPORTERS),
                                                .node_size = sizeof(struct sink),
                                                .consume = sink_consume};

/* ---- pass: a processor that passes batches on ---- */

static void pass_consume(struct node *node, struct batch *batch)
{
    node_forward(node, batch);
}

static const struct component_type pass_type = {.config = CONFIG_TYPE("pass", CONFIG_PROCESSORS),
                                                .consume = pass_consume};

/* ---- holder: a processor that acknowledges and holds batches ---- */

struct holder {
    struct node node; /* first */
    struct offers offers;
    bool is_patient;     /* passes on the next batch when the last one is settled */
    struct batch *first; /* the first of the waiting ones */
    unsigned settled;
    unsigned taken;
    unsigned lost; /* "try later" at the stop, or refused permanently */
};

struct held_offer {
    struct offer offer; /* first */
    struct holder *holder;
};

static void on_held_settled(struct offer *offer, const struct verdict *verdict)
{
    struct holder *self = ((struct held_offer *)offer)->holder;
    self->settled++;
    if (verdict_is_ok(verdict))
        self->taken++;
    else
        self->lost++;
    free(offer);
    offers_pump(&self->offers);
}

static bool hand_on(struct offers *offers)
{
    struct holder *self = container_of(offers, struct holder, offers);
    struct batch *batch = self->first;
    if (!batch || (self->is_patient && offers->under_way > 0))
        return false;
    struct held_offer *held = memory_zalloc(sizeof *held);
    self->first = batch->next;
    batch->next = NULL;
    held->holder = self;
    offer_send(&held->offer, offers, batch, true, on_held_settled);
    return true;
}

static void holder_consume(struct node *node, struct batch *batch)
{
    struct holder *self = (struct holder *)node;
    struct batch **last = &self->first;
    while (*last)
        last = &(*last)->next;
    *last = batch;
    batch_settle(batch, &verdict_ok);
    offers_pump(&self->offers);
}

static bool holder_start(struct node *node, struct error *err)
{
    (void)err;
    offers_init(&((struct holder *)node)->offers, node, hand_on);
    return true;
}

static bool holder_is_idle(const struct node *node)
{
    const struct holder *self = (const struct holder *)node;
    return !self->first && self->offers.under_way == 0;
}

static void holder_stop(struct node *node)
{
    struct holder *self = (struct holder *)node;
    assert(!self->first);
    offers_stop(&self->offers);
}

static const struct component_type holder_type = {.config =
                                                      CONFIG_TYPE("holder", CONFIG_PROCESSORS),
                                                  .node_size = sizeof(struct holder),
                                                  .node_start = holder_start,
                                                  .consume = holder_consume,
                                                  .holds = true,
                                                  .is_idle = holder_is_idle,
                                                  .node_stop = holder_stop};

/* ---- backend: an exporter with a delivery, whose attempts the test answers ---- */

struct backend_settings {
    struct sending_queue_settings sending_queue;
    struct retry_settings retry_on_failure;
};

static const struct field backend_fields[] = {
    FIELD_OPTIONAL(backend_settings, sending_queue, sending_queue_settings, sending_queue_fields,
                   "What waits to be sent.", .fallback = "true"),
    FIELD_OPTIONAL(backend_settings, retry_on_failure, retry_settings, retry_fields,
                   "Sending again.", .fallback = "true"),
    FIELD_END,
};

struct backend_component {
    struct component component;
    struct delivery_shared shared;
};

struct backend {
    struct node node; /* first */
    struct delivery delivery;
    struct shipment *under_way[OFFERS_MAX]; /* current attempts, oldest first */
    size_t under_way_count;
    uint64_t spans[OFFERS_MAX]; /* first span of each attempt's batch */
    size_t attempts;
};

static void backend_send(struct node *node, struct shipment *shipment)
{
    struct backend *self = (struct backend *)node;
    assert(self->attempts < OFFERS_MAX);
    self->under_way[self->under_way_count++] = shipment;
    self->spans[self->attempts++] = batch_first_span(shipment->batch);
}

static void take_attempt(struct backend *self, const struct shipment *shipment)
{
    size_t i = 0;
    while (self->under_way[i] != shipment)
        i++;
    assert(i < self->under_way_count);
    for (self->under_way_count--; i < self->under_way_count; i++)
        self->under_way[i] = self->under_way[i + 1];
}

static void backend_abort(struct node *node, struct shipment *shipment)
{
    take_attempt((struct backend *)node, shipment);
}

static void answer(struct backend *self, struct verdict verdict)
{
    assert_true(self->under_way_count > 0);
    struct shipment *shipment = self->under_way[0];
    take_attempt(self, shipment);
    delivery_done(shipment, &verdict);
}

static bool backend_init(struct component *component, struct error *err)
{
    (void)err;
    const struct backend_settings *settings = component->settings;
    delivery_shared_init(&((struct backend_component *)component)->shared, component, SIGNAL_TRACES,
                         &settings->sending_queue, "");
    return true;
}

static void backend_deinit(struct component *component)
{
    struct delivery_shared *shared = &((struct backend_component *)component)->shared;
    assert(atomic_load(&shared->queue.queued) == 0 && budget_used(&shared->queue.waiting) == 0);
    assert(share_used(shared->queue.held) == 0);
    delivery_shared_deinit(shared);
}

static bool backend_start(struct node *node, struct error *err)
{
    (void)err;
    struct backend *self = (struct backend *)node;
    const struct backend_settings *settings = node->component->settings;
    self->delivery =
        (struct delivery){.node = node,
                          .queue = &settings->sending_queue,
                          .retry = &settings->retry_on_failure,
                          .shared = &((struct backend_component *)node->component)->shared,
                          .send = backend_send,
                          .abort = backend_abort};
    delivery_start(&self->delivery);
    return true;
}

static void backend_consume(struct node *node, struct batch *batch)
{
    delivery_consume(&((struct backend *)node)->delivery, batch);
}

static void backend_drain(struct node *node)
{
    delivery_drain(&((struct backend *)node)->delivery);
}

static void backend_stop(struct node *node)
{
    delivery_stop(&((struct backend *)node)->delivery);
}

static const struct component_type backend_type = {
    .config = {.name = "backend",
               .section = CONFIG_EXPORTERS,
               .stability = {STABILITY_STABLE, STABILITY_STABLE},
               .help = "Of a test.",
               .fields = backend_fields,
               .config_size = sizeof(struct backend_settings)},
    .component_size = sizeof(struct backend_component),
    .init = backend_init,
    .deinit = backend_deinit,
    .node_size = sizeof(struct backend),
    .node_start = backend_start,
    .consume = backend_consume,
    .node_drain = backend_drain,
    .is_idle = delivery_is_idle,
    .node_stop = backend_stop,
};

/* ---- the bench ---- */

#define COMPONENTS                                                                                 \
    "receivers: {source: }\n"                                                                      \
    "processors: {holder: , pass: , batch: {timeout: 0s, ack: delivered}}\n"
#define PIPELINE(ID, PROCESSORS, EXPORTERS)                                                        \
    ID ": {receivers: [source], processors: [" PROCESSORS "], exporters: [" EXPORTERS "]}"
#define ONE_PIPELINE(PROCESSORS, EXPORTERS)                                                        \
    "service: {pipelines: {" PIPELINE("traces", PROCESSORS, EXPORTERS) "}}\n"
#define TWO_SINKS "exporters: {sink/a: , sink/b: }\n"
/* A queue that is full with one request. */
#define BLOCKING                                                                                   \
    "{sending_queue: {queue_size: 1, block_on_overflow: true}, retry_on_failure: {enabled: "       \
    "false}}"
#define TWO_BLOCKING "exporters: {backend/a: " BLOCKING ", backend/b: " BLOCKING "}\n"

static const struct verdict later = {
    .code = GRPC_UNAVAILABLE, .retry_after_ns = -1, .text = "later"};
static const struct verdict never = {
    .code = GRPC_INVALID_ARGUMENT, .retry_after_ns = -1, .text = "never"};

/* budget: of the process, in bytes; 0: no limit. */
static void begin_within(size_t budget, const char *yaml)
{
    static const struct config_type *const types[] = {&graph_bench_source_type.config,
                                                      &pass_type.config,
                                                      &holder_type.config,
                                                      &batch_processor_type.config,
                                                      &spanjoin_processor_type.config,
                                                      &backend_type.config,
                                                      &forward_connector_type.config,
                                                      &sink_type.config,
                                                      NULL};
    graph_bench_init(&bench, 1, false);
    bench.budget.limit_bytes = budget;
    graph_bench_begin(&bench, types, yaml);
}

static void begin(const char *yaml)
{
    begin_within(0, yaml);
}

static void end(void)
{
    graph_bench_stop(&bench);
    graph_bench_end(&bench);
}

static uint64_t lost_items(void)
{
    return atomic_load(&bench.process.lost_items);
}

static void finish(void)
{
    assert_true(graph_bench_drain(&bench, 60 * SECOND));
    graph_bench_stop(&bench);
    assert_int_equal(lost_items(), 0);
    graph_bench_end(&bench);
}

static void advance(uint64_t ns)
{
    graph_bench_advance(&bench, ns);
}

static struct sink *sink(const char *id)
{
    return (struct sink *)graph_bench_node(&bench, 0, id, NULL);
}

static struct backend *backend(const char *id)
{
    return (struct backend *)graph_bench_node(&bench, 0, id, NULL);
}

static struct holder *holder(void)
{
    return (struct holder *)graph_bench_node(&bench, 0, "holder", "traces");
}

static void refuse_with(struct sink *self, enum refusal refusal, struct verdict verdict)
{
    self->refusal = refusal;
    self->answer = verdict;
}

static void take_all(struct sink *self)
{
    self->answer = verdict_ok;
}

/* Sends a request of two spans, `first` and the next one. */
static void send_two(uint64_t first, struct sender *sender)
{
    struct numbered_request request = {.first = first, .count = 2};
    graph_bench_send(&bench, 0, &request, sender);
}

/* Sends requests of two spans each, with first spans 10, 20, 30... */
static void send_some(unsigned count)
{
    for (unsigned i = 1; i <= count; i++)
        send_two(UINT64_C(10) * i, NULL);
}

static void assert_offers(const struct sink *self, size_t count, const uint64_t *spans)
{
    assert_int_equal(self->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(self->offers[i].span, spans[i]);
}

static double lost_by(const char *from, const char *to)
{
    char labels[120];
    snprintf(labels, sizeof labels, "from=\"%s\",to=\"%s\"", from, to);
    return graph_bench_metric(&bench, "profcol_branch_lost_spans", labels);
}

static double overflow_of(const char *id)
{
    char labels[120];
    snprintf(labels, sizeof labels, "exporter=\"%s\"", id);
    return graph_bench_metric(&bench, "otelcol_exporter_enqueue_failed_spans", labels);
}

static double items_of(const char *id, const char *direction)
{
    char name[80], labels[120];
    snprintf(name, sizeof name, "otelcol_processor_%s_items", direction);
    snprintf(labels, sizeof labels, "processor=\"%s\",otel_signal=\"traces\"", id);
    return graph_bench_metric(&bench, name, labels);
}

static size_t held_bytes(const char *id)
{
    return share_used(&backend(id)->node.component->held[SIGNAL_TRACES]);
}

/* ---- the items of processors ---- */

/* Several nodes of one processor count together. What the next component refuses has passed the
 * processor; what a processor holds has not. */
static void items_of_processors_are_counted(void **state)
{
    (void)state;
    begin(COMPONENTS
          "exporters: {sink: }\n"
          "service: {pipelines: {" PIPELINE("traces", "pass, holder", "sink") ", " PIPELINE(
              "traces/b", "pass", "sink") "}}\n");
    assert_int_equal(items_of("pass", "incoming"), 0);
    holder()->is_patient = true;
    refuse_with(sink("sink"), REFUSED_FULL, later);
    send_some(3);
    assert_int_equal(items_of("pass", "incoming"), 12);
    assert_int_equal(items_of("pass", "outgoing"), 12);
    assert_int_equal(items_of("holder", "incoming"), 6);
    assert_int_equal(items_of("holder", "outgoing"), 2);
    take_all(sink("sink"));
    advance(10 * SECOND);
    assert_int_equal(items_of("holder", "outgoing"), 6);
    finish();
}

/* ---- order and waiting ---- */

static void what_finds_no_room_keeps_its_place(void **state)
{
    (void)state;
    begin(COMPONENTS TWO_SINKS ONE_PIPELINE("holder", "sink/a"));
    refuse_with(sink("sink/a"), REFUSED_FULL, later);
    send_some(3);
    assert_offers(sink("sink/a"), 1, (uint64_t[]){10});
    take_all(sink("sink/a"));
    advance(20 * MILLISECOND);
    assert_offers(sink("sink/a"), 4, (uint64_t[]){10, 10, 20, 30});
    assert_int_equal(holder()->taken, 3);
    finish();
}

static void what_failed_is_overtaken(void **state)
{
    (void)state;
    begin(COMPONENTS TWO_SINKS ONE_PIPELINE("holder", "sink/a"));
    refuse_with(sink("sink/a"), REFUSED_FAILED, later);
    sink("sink/a")->refuses_span = 10;
    send_some(3);
    assert_offers(sink("sink/a"), 3, (uint64_t[]){10, 20, 30});
    take_all(sink("sink/a"));
    advance(99 * MILLISECOND);
    assert_int_equal(sink("sink/a")->count, 3);
    advance(MILLISECOND);
    assert_offers(sink("sink/a"), 4, (uint64_t[]){10, 20, 30, 10});
    finish();
}

/* b does not answer yet, so the outcome is open. */
static void what_one_branch_refuses_the_others_get(void **state)
{
    (void)state;
    begin(COMPONENTS
          "exporters: {sink/a: , backend/b: }\n" ONE_PIPELINE("holder", "sink/a, backend/b"));
    refuse_with(sink("sink/a"), REFUSED_FAILED, later);
    send_some(3);
    assert_int_equal(backend("backend/b")->attempts, 3);
    assert_int_equal(holder()->taken, 3);
    take_all(sink("sink/a"));
    advance(SECOND);
    assert_int_equal(sink("sink/a")->count, 6);
    for (int i = 0; i < 3; i++)
        answer(backend("backend/b"), verdict_ok);
    assert_int_equal(backend("backend/b")->attempts, 3);
    assert_int_equal(lost_by("processor holder", "exporter sink/a"), 0);
    finish();
}

static void assert_waits(const struct sink *self, const uint64_t *waits_ms, size_t count)
{
    assert_int_equal(self->count, count + 1);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(self->offers[i + 1].at_ns - self->offers[i].at_ns,
                         waits_ms[i] * MILLISECOND);
}

static void waits_double_up_to_a_bound(void **state)
{
    (void)state;
    static const struct {
        enum refusal refusal;
        uint64_t total_ms;
        uint64_t waits_ms[9];
        size_t count;
    } cases[] = {
        {REFUSED_FULL, 700, {20, 40, 80, 160, 200, 200}, 6},
        {REFUSED_BLOCKED, 500, {20, 40, 80, 160, 200}, 5},
        {REFUSED_FAILED, 21300, {100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000}, 9},
    };
    for (size_t i = 0; i < 3; i++) {
        begin(COMPONENTS TWO_SINKS ONE_PIPELINE("holder", "sink/a"));
        refuse_with(sink("sink/a"), cases[i].refusal, later);
        send_some(1);
        advance(cases[i].total_ms * MILLISECOND);
        assert_waits(sink("sink/a"), cases[i].waits_ms, cases[i].count);
        take_all(sink("sink/a"));
        finish();
    }
}

static void a_taken_one_begins_the_waits_anew(void **state)
{
    (void)state;
    begin(COMPONENTS TWO_SINKS ONE_PIPELINE("holder", "sink/a"));
    refuse_with(sink("sink/a"), REFUSED_FULL, later);
    send_some(1);
    advance(60 * MILLISECOND);
    take_all(sink("sink/a"));
    advance(80 * MILLISECOND);
    refuse_with(sink("sink/a"), REFUSED_FULL, later);
    send_two(20, NULL);
    advance(20 * MILLISECOND);
    assert_offers(sink("sink/a"), 6, (uint64_t[]){10, 10, 10, 10, 20, 20});
    take_all(sink("sink/a"));
    finish();
}

static void retry_after_is_a_floor(void **state)
{
    (void)state;
    static const struct {
        uint64_t asked_s, wait_s;
    } cases[] = {{7, 7}, {300, 300}, {3600, 300}};
    for (size_t i = 0; i < 3; i++) {
        begin(COMPONENTS TWO_SINKS ONE_PIPELINE("holder", "sink/a"));
        refuse_with(
            sink("sink/a"), REFUSED_FAILED,
            verdict_try_later(GRPC_UNAVAILABLE, (int64_t)(cases[i].asked_s * SECOND), "busy"));
        send_some(1);
        take_all(sink("sink/a"));
        advance(cases[i].wait_s * SECOND - 1);
        assert_int_equal(sink("sink/a")->count, 1);
        advance(1);
        assert_int_equal(sink("sink/a")->count, 2);
        finish();
    }
}

/* ---- several branches ---- */

static void who_took_it_is_not_asked_again(void **state)
{
    (void)state;
    begin(COMPONENTS TWO_SINKS ONE_PIPELINE("holder", "sink/a, sink/b"));
    refuse_with(sink("sink/b"), REFUSED_FAILED, later);
    send_some(1);
    assert_int_equal(holder()->taken, 1);
    advance(10 * SECOND);
    assert_true(sink("sink/b")->count > 5);
    assert_int_equal(sink("sink/a")->count, 1);
    take_all(sink("sink/b"));
    advance(10 * SECOND);
    assert_true(sink("sink/b")->offers[sink("sink/b")->count - 1].was_taken);
    assert_int_equal(holder()->settled, 1);
    assert_int_equal(lost_by("processor holder", "exporter sink/b"), 0);
    finish();
}

static void a_full_one_loses_what_another_took(void **state)
{
    (void)state;
    begin(COMPONENTS
          "exporters: {sink/a: , backend/b: {sending_queue: {queue_size: 1}}}\n" ONE_PIPELINE(
              "holder", "sink/a, backend/b"));
    send_some(3);
    assert_int_equal(sink("sink/a")->count, 3);
    assert_int_equal(backend("backend/b")->attempts, 1);
    assert_int_equal(holder()->taken, 3);
    assert_int_equal(lost_by("processor holder", "exporter backend/b"), 4);
    assert_int_equal(overflow_of("backend/b"), 4);
    assert_int_equal(lost_by("processor holder", "exporter sink/a"), 0);
    answer(backend("backend/b"), verdict_ok);
    advance(SECOND);
    assert_int_equal(backend("backend/b")->attempts, 1);
    finish();
}

static void what_none_takes_is_kept_for_all(void **state)
{
    (void)state;
    begin(COMPONENTS TWO_SINKS ONE_PIPELINE("holder", "sink/a, sink/b"));
    refuse_with(sink("sink/a"), REFUSED_FULL, later);
    refuse_with(sink("sink/b"), REFUSED_FAILED, later);
    send_some(1);
    advance(10 * SECOND);
    assert_int_equal(holder()->settled, 0);
    assert_true(sink("sink/a")->count > 20 && sink("sink/b")->count > 5);
    take_all(sink("sink/b"));
    advance(5 * SECOND);
    assert_int_equal(holder()->taken, 1);
    assert_int_equal(lost_by("processor holder", "exporter sink/a"), 2); /* sink/a is full */
    size_t offers = sink("sink/a")->count;
    advance(SECOND);
    assert_int_equal(sink("sink/a")->count, offers);
    finish();
}

static void what_failed_is_kept_for_five_minutes(void **state)
{
    (void)state;
    begin(COMPONENTS
          "exporters: {sink/a: , backend/b: {sending_queue: {enabled: false}, "
          "retry_on_failure: {enabled: false}}}\n" ONE_PIPELINE("holder", "sink/a, backend/b"));
    send_some(1);
    uint64_t began_ns = graph_bench_now(&bench);
    while (lost_by("processor holder", "exporter backend/b") == 0) {
        assert_true(graph_bench_now(&bench) - began_ns < BRANCH_AGE_MAX_NS + 10 * SECOND);
        if (backend("backend/b")->under_way_count > 0) {
            backend("backend/b")->attempts = 0;
            answer(backend("backend/b"), later);
        }
        advance(100 * MILLISECOND);
    }
    assert_true(graph_bench_now(&bench) - began_ns > BRANCH_AGE_MAX_NS);
    assert_int_equal(lost_by("processor holder", "exporter backend/b"), 2);
    assert_int_equal(held_bytes("backend/b"), 0);
    finish();
}

/* Each of the two exporters has 1,275 bytes, and one can borrow 1,700: enough for two requests. */
static void what_failed_is_kept_within_a_bound(void **state)
{
    (void)state;
    begin_within(
        10200, COMPONENTS
        "exporters: {sink/a: , backend/b: {sending_queue: {enabled: false}, "
        "retry_on_failure: {enabled: false}}}\n" ONE_PIPELINE("holder", "sink/a, backend/b"));
    for (unsigned i = 1; i <= 4; i++) {
        send_two(UINT64_C(10) * i, NULL);
        answer(backend("backend/b"), later);
        assert_true(held_bytes("backend/b") <= 2975);
    }
    assert_int_equal(holder()->taken, 4);
    assert_int_equal(lost_by("processor holder", "exporter backend/b"), 4);
    advance(SECOND);
    assert_int_equal(backend("backend/b")->under_way_count, 2);
    answer(backend("backend/b"), verdict_ok);
    answer(backend("backend/b"), verdict_ok);
    finish();
}

/* ---- refusals ---- */

static void refusals_of_several_branches(void **state)
{
    (void)state;
    static const struct {
        const struct verdict *a, *b;
        const char *told;
        double lost_by_a, lost_by_b;
    } cases[] = {
        {&verdict_ok, &verdict_ok, "", 0, 0}, {&never, &verdict_ok, "", 2, 0},
        {&verdict_ok, &later, "", 0, 2},      {&never, &never, "never", 0, 0},
        {&never, &later, "later", 0, 0},      {&later, &never, "later", 0, 0},
        {&later, &later, "later", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sender sender;
        begin(COMPONENTS TWO_SINKS ONE_PIPELINE("pass", "sink/a, sink/b"));
        refuse_with(sink("sink/a"), REFUSED_FAILED, *cases[i].a);
        refuse_with(sink("sink/b"), REFUSED_FAILED, *cases[i].b);
        send_two(10, &sender);
        assert_int_equal(sender.settled, 1);
        assert_string_equal(sender.verdict.text, cases[i].told);
        assert_int_equal(lost_by("processor pass", "exporter sink/a"), cases[i].lost_by_a);
        assert_int_equal(lost_by("processor pass", "exporter sink/b"), cases[i].lost_by_b);
        advance(10 * SECOND);
        assert_int_equal(sink("sink/a")->count, 1); /* only the sender sends it again */
        assert_int_equal(sink("sink/b")->count, 1);
        finish();
    }
}

static void what_all_refuse_for_good_is_given_up(void **state)
{
    (void)state;
    begin(COMPONENTS TWO_SINKS ONE_PIPELINE("holder", "sink/a, sink/b"));
    refuse_with(sink("sink/a"), REFUSED_FAILED, never);
    refuse_with(sink("sink/b"), REFUSED_FAILED, never);
    send_some(1);
    assert_int_equal(holder()->lost, 1);
    assert_int_equal(lost_by("processor holder", "exporter sink/a"), 0); /* the holder counts it */
    finish();
}

/* One branch refuses permanently, the other temporarily. The batch is kept for the other. */
static void a_refusal_for_good_is_not_the_last_word(void **state)
{
    (void)state;
    begin(COMPONENTS TWO_SINKS ONE_PIPELINE("holder", "sink/a, sink/b"));
    refuse_with(sink("sink/a"), REFUSED_FAILED, never);
    refuse_with(sink("sink/b"), REFUSED_FAILED, later);
    send_some(1);
    assert_int_equal(holder()->settled, 0);
    take_all(sink("sink/b"));
    advance(SECOND);
    assert_int_equal(holder()->taken, 1);
    assert_int_equal(sink("sink/a")->count, 1);
    assert_int_equal(lost_by("processor holder", "exporter sink/a"), 2);
    finish();
}

static void nobody_has_to_wait_for_an_answer(void **state)
{
    (void)state;
    begin(COMPONENTS TWO_SINKS ONE_PIPELINE("pass", "sink/a, sink/b"));
    refuse_with(sink("sink/a"), REFUSED_FULL, later);
    send_two(10, NULL);
    assert_int_equal(lost_by("processor pass", "exporter sink/a"), 2);
    refuse_with(sink("sink/b"), REFUSED_FAILED, later);
    send_two(20, NULL);
    advance(10 * SECOND);
    assert_int_equal(sink("sink/b")->count, 2);
    finish();
}

/* ---- the same node twice, and fan-outs in a chain ---- */

static void a_node_that_stands_twice_gets_it_twice(void **state)
{
    (void)state;
    struct sender sender;
    begin(COMPONENTS "exporters: {sink/a: }\n"
                     "service: {pipelines: {" PIPELINE("traces", "", "sink/a") ", " PIPELINE(
                         "traces/2", "", "sink/a") "}}\n");
    send_two(10, &sender);
    assert_offers(sink("sink/a"), 2, (uint64_t[]){10, 10});
    assert_int_equal(sender.settled, 1);
    refuse_with(sink("sink/a"), REFUSED_FAILED, later);
    send_two(20, &sender);
    assert_offers(sink("sink/a"), 4, (uint64_t[]){10, 10, 20, 20});
    assert_string_equal(sender.verdict.text, "later");
    finish();
}

#define TWO_FANOUTS                                                                                \
    COMPONENTS                                                                                     \
    "exporters: {sink/a: , sink/b: , sink/c: , sink/d: }\n"                                        \
    "service: {pipelines: {" PIPELINE("traces", "pass", "sink/a, sink/b") ", " PIPELINE(           \
        "traces/2", "pass", "sink/c, sink/d") "}}\n"

static void fan_outs_stand_one_behind_the_other(void **state)
{
    (void)state;
    static const struct {
        const char *refusing;
        const char *told;
        double lost_by_pipeline, lost_by_b, lost_by_d;
    } cases[] = {
        {"", "", 0, 0, 0},   {"b", "", 0, 2, 0},   {"bd", "", 0, 2, 2},
        {"ab", "", 2, 0, 0}, {"abd", "", 2, 0, 2}, {"abcd", "later", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sender sender;
        begin(TWO_FANOUTS);
        for (const char *c = cases[i].refusing; *c; c++)
            refuse_with(sink((char[]){'s', 'i', 'n', 'k', '/', *c, 0}), REFUSED_FAILED, later);
        send_two(10, &sender);
        assert_int_equal(sender.settled, 1);
        assert_string_equal(sender.verdict.text, cases[i].told);
        for (const char *c = "abcd"; *c; c++)
            assert_int_equal(sink((char[]){'s', 'i', 'n', 'k', '/', *c, 0})->count, 1);
        assert_int_equal(graph_bench_metric(&bench, "profcol_branch_lost_spans",
                                            "from=\"receiver source\",to=\"processor pass\","
                                            "pipeline=\"traces\""),
                         cases[i].lost_by_pipeline);
        assert_int_equal(lost_by("processor pass", "exporter sink/b"), cases[i].lost_by_b);
        assert_int_equal(lost_by("processor pass", "exporter sink/d"), cases[i].lost_by_d);
        finish();
    }
}

/* ---- behind a connector ---- */

/* PIPELINES: those behind `forward`, which is a branch beside sink/a. */
#define BEHIND_FORWARD(BRANCHES, PIPELINES)                                                        \
    COMPONENTS                                                                                     \
    "exporters: {sink/a: , sink/b: , sink/c: }\nconnectors: {forward: , forward/2: }\n"            \
    "service: {pipelines: {" PIPELINE("traces", "holder", BRANCHES) ", " PIPELINES "}}\n"
#define BEHIND(ID, CONNECTOR, EXPORTERS)                                                           \
    ID ": {receivers: [" CONNECTOR "], exporters: [" EXPORTERS "]}"

static const char *const behind_forward[] = {
    BEHIND_FORWARD("sink/a, forward", BEHIND("traces/b", "forward", "sink/b") ", " BEHIND(
                                          "traces/c", "forward", "sink/c")),
    BEHIND_FORWARD("forward, sink/a", BEHIND("traces/b", "forward", "forward/2") ", " BEHIND(
                                          "traces/c", "forward/2", "sink/b, sink/c")),
    BEHIND_FORWARD("forward, sink/a",
                   BEHIND("traces/b", "forward",
                          "forward/2, sink/c") ", " BEHIND("traces/c", "forward/2", "sink/b")),
};

static double kept_requests(void)
{
    static const char *const labels[] = {
        "from=\"connector forward\",to=\"exporter sink/b\"",
        "from=\"connector forward\",to=\"exporter sink/c\"",
        "from=\"connector forward/2\",to=\"exporter sink/b\"",
        "from=\"connector forward/2\",to=\"exporter sink/c\"",
    };
    double kept = 0;
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        kept += graph_bench_metric(&bench, "profcol_branch_kept_requests", labels[i]);
    return kept;
}

/* What is full behind forward loses what a branch beside forward accepted. */
static void a_full_one_behind_forward_loses_what_another_took(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof behind_forward / sizeof behind_forward[0]; i++) {
        begin(behind_forward[i]);
        refuse_with(sink("sink/b"), REFUSED_FULL, later);
        refuse_with(sink("sink/c"), REFUSED_FULL, later);
        send_some(3);
        assert_int_equal(holder()->taken, 3);
        assert_int_equal(kept_requests(), 0);
        assert_int_equal(lost_by("processor holder", "connector forward"), 6);
        finish();
    }
}

/* It is kept while no branch accepted it, and lost as soon as one does. */
static void what_none_takes_is_kept_behind_forward(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof behind_forward / sizeof behind_forward[0]; i++) {
        begin(behind_forward[i]);
        refuse_with(sink("sink/a"), REFUSED_FULL, later);
        refuse_with(sink("sink/b"), REFUSED_FULL, later);
        refuse_with(sink("sink/c"), REFUSED_FULL, later);
        send_some(3);
        advance(SECOND);
        assert_int_equal(holder()->settled, 0);
        assert_int_equal(kept_requests(), 6);
        take_all(sink("sink/a"));
        advance(SECOND);
        assert_int_equal(holder()->taken, 3);
        assert_int_equal(kept_requests(), 0);
        assert_int_equal(lost_by("processor holder", "connector forward"), 6);
        finish();
    }
}

/* While one behind forward has block_on_overflow, nothing is settled. */
static void a_blocked_one_behind_forward_is_waited_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof behind_forward / sizeof behind_forward[0]; i++) {
        begin(behind_forward[i]);
        refuse_with(sink("sink/b"), REFUSED_BLOCKED, later);
        refuse_with(sink("sink/c"), REFUSED_FAILED, later);
        send_some(1);
        advance(SECOND);
        assert_int_equal(holder()->settled, 0);
        refuse_with(sink("sink/b"), REFUSED_FULL, never);
        advance(SECOND);
        assert_int_equal(holder()->taken, 1);
        assert_int_equal(kept_requests(), 1); /* sink/c, charged to it */
        assert_true(share_used(&sink("sink/c")->node.component->held[SIGNAL_TRACES]) > 0);
        take_all(sink("sink/c"));
        advance(10 * SECOND);
        assert_int_equal(kept_requests(), 0);
        finish();
    }
}

/* What was accepted elsewhere and is still kept behind forward at the stop is lost. */
static void what_the_stop_finds_behind_forward_is_counted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof behind_forward / sizeof behind_forward[0]; i++) {
        begin(behind_forward[i]);
        refuse_with(sink("sink/b"), REFUSED_FAILED, later);
        send_some(3);
        assert_int_equal(holder()->taken, 3);
        assert_int_equal(kept_requests(), 3);
        graph_bench_stop(&bench);
        assert_int_equal(lost_items(), 6);
        graph_bench_end(&bench);
    }
}

/* ---- block_on_overflow ---- */

static void nobody_gets_it_before_all_have_room(void **state)
{
    (void)state;
    struct sender first, second;
    begin(COMPONENTS TWO_BLOCKING ONE_PIPELINE("pass", "backend/a, backend/b"));
    send_two(10, &first);
    assert_int_equal(first.settled, 1);
    answer(backend("backend/a"), verdict_ok); /* b is full */
    send_two(20, &second);
    advance(4 * SECOND);
    assert_int_equal(second.settled, 0);
    assert_int_equal(backend("backend/a")->attempts, 1);
    answer(backend("backend/b"), verdict_ok);
    advance(20 * MILLISECOND);
    assert_int_equal(second.verdict.code, GRPC_OK);
    assert_int_equal(backend("backend/a")->attempts, 2);
    assert_int_equal(backend("backend/b")->attempts, 2);
    answer(backend("backend/a"), verdict_ok);
    answer(backend("backend/b"), verdict_ok);
    finish();
}

/* spanjoin passes a large request on later, and keeps its reservation until then. */
static void room_is_kept_for_what_a_job_works_on(void **state)
{
    (void)state;
    struct sender first, second;
    spanjoin_set_large_bytes(0);
    begin("receivers: {source: }\nprocessors: {spanjoin: }\n" TWO_BLOCKING ONE_PIPELINE(
        "spanjoin", "backend/a, backend/b"));
    send_two(10, &first);
    send_two(20, &second); /* waits for room, after the one in the job */
    assert_int_equal(first.settled, 0);
    advance(SECOND);
    assert_int_equal(first.verdict.code, GRPC_OK);
    assert_int_equal(second.settled, 0);
    assert_int_equal(backend("backend/b")->attempts, 1);
    answer(backend("backend/a"), verdict_ok);
    answer(backend("backend/b"), verdict_ok);
    advance(20 * MILLISECOND);
    assert_int_equal(second.settled, 1);
    assert_int_equal(second.verdict.code, GRPC_OK);
    answer(backend("backend/a"), verdict_ok);
    answer(backend("backend/b"), verdict_ok);
    finish();
}

static void a_sender_waits_five_seconds(void **state)
{
    (void)state;
    struct sender first, second;
    begin(COMPONENTS TWO_BLOCKING ONE_PIPELINE("pass", "backend/a, backend/b"));
    send_two(10, &first);
    answer(backend("backend/a"), verdict_ok);
    send_two(20, &second);
    uint64_t sent_ns = graph_bench_now(&bench);
    advance(6 * SECOND);
    assert_int_equal(second.settled, 1);
    assert_int_equal(second.at_ns - sent_ns, ROOM_WAIT_NS);
    assert_int_equal(second.verdict.code, GRPC_UNAVAILABLE);
    assert_string_equal(second.verdict.text, "sending queue is full");
    assert_true(verdict_is_retryable(&second.verdict));
    answer(backend("backend/b"), verdict_ok);
    advance(SECOND);
    assert_int_equal(backend("backend/a")->attempts, 1);
    assert_int_equal(backend("backend/b")->attempts, 1);
    assert_int_equal(lost_by("processor pass", "exporter backend/b"), 0);
    finish();
}

static void what_is_acknowledged_waits_on(void **state)
{
    (void)state;
    begin(COMPONENTS TWO_BLOCKING ONE_PIPELINE("holder", "backend/a, backend/b"));
    send_some(3);
    answer(backend("backend/a"), verdict_ok);
    advance(600 * SECOND);
    assert_int_equal(holder()->settled, 1);
    assert_int_equal(backend("backend/a")->attempts, 1);
    for (size_t i = 2; i <= 3; i++) {
        answer(backend("backend/b"), verdict_ok);
        advance(20 * MILLISECOND);
        assert_int_equal(backend("backend/a")->attempts, i);
        assert_int_equal(backend("backend/a")->spans[i - 1], i * 10);
        answer(backend("backend/a"), verdict_ok);
    }
    answer(backend("backend/b"), verdict_ok);
    assert_int_equal(holder()->taken, 3);
    finish();
}

/* Half of the exporter's 2,500 bytes: one request. */
static void what_waits_for_room_is_bounded(void **state)
{
    (void)state;
    struct sender first, second, third;
    begin_within(20000, COMPONENTS TWO_BLOCKING ONE_PIPELINE("pass", "backend/a, backend/b"));
    send_two(10, &first);
    send_two(20, &second);
    send_two(30, &third);
    assert_int_equal(second.settled, 0);
    assert_int_equal(third.settled, 1);
    assert_string_equal(third.verdict.text, "sending queue is full");
    answer(backend("backend/a"), verdict_ok);
    answer(backend("backend/b"), verdict_ok);
    advance(20 * MILLISECOND);
    assert_int_equal(second.verdict.code, GRPC_OK);
    answer(backend("backend/a"), verdict_ok);
    answer(backend("backend/b"), verdict_ok);
    finish();
}

static void who_gave_up_does_not_wait(void **state)
{
    (void)state;
    struct sender first, second;
    begin(COMPONENTS TWO_BLOCKING ONE_PIPELINE("pass", "backend/a, backend/b"));
    send_two(10, &first);
    send_two(20, &second);
    second.has_given_up = true;
    advance(20 * MILLISECOND);
    assert_int_equal(second.settled, 1);
    assert_int_equal(second.verdict.code, GRPC_CANCELLED);
    answer(backend("backend/a"), verdict_ok);
    answer(backend("backend/b"), verdict_ok);
    advance(SECOND);
    assert_int_equal(backend("backend/a")->attempts, 1);
    finish();
}

/* A batch that one branch accepted goes to all, whether its sender still waits or not. */
static void what_one_has_taken_is_not_given_up(void **state)
{
    (void)state;
    struct sender sender;
    begin(COMPONENTS
          "exporters: {backend/a: {sending_queue: {enabled: false}}, backend/b: "
          "{sending_queue: {enabled: false}}}\n" ONE_PIPELINE("pass", "backend/a, backend/b"));
    send_two(10, &sender);
    answer(backend("backend/a"), later);
    answer(backend("backend/b"), verdict_ok);
    sender.has_given_up = true;
    advance(10 * SECOND);
    assert_int_equal(backend("backend/a")->attempts, 2);
    answer(backend("backend/a"), verdict_ok);
    assert_int_equal(sender.verdict.code, GRPC_OK);
    finish();
}

static void what_none_has_taken_is_given_up(void **state)
{
    (void)state;
    struct sender sender;
    begin(COMPONENTS
          "exporters: {backend/a: {sending_queue: {enabled: false}}, backend/b: "
          "{sending_queue: {enabled: false}}}\n" ONE_PIPELINE("pass", "backend/a, backend/b"));
    send_two(10, &sender);
    answer(backend("backend/a"), later);
    sender.has_given_up = true;
    advance(10 * SECOND);
    assert_int_equal(backend("backend/a")->attempts, 1);
    answer(backend("backend/b"), never);
    assert_int_equal(sender.verdict.code, GRPC_CANCELLED);
    finish();
}

/* --- drain and stop --- */

static void a_full_branch_does_not_hold_up_the_drain(void **state)
{
    (void)state;
    begin(COMPONENTS TWO_BLOCKING ONE_PIPELINE("holder", "backend/a, backend/b"));
    send_some(3);
    answer(backend("backend/a"), verdict_ok);
    assert_false(graph_bench_drain(&bench, SECOND));
    assert_int_equal(backend("backend/a")->attempts, 2); /* b has received one */
    answer(backend("backend/a"), verdict_ok);
    advance(SECOND);
    assert_int_equal(backend("backend/a")->attempts, 3);
    answer(backend("backend/a"), verdict_ok);
    for (int i = 0; i < 3; i++) {
        answer(backend("backend/b"), verdict_ok);
        advance(SECOND);
    }
    assert_true(graph_is_drained(bench.graph));
    assert_int_equal(holder()->taken, 3);
    assert_int_equal(lost_items(), 0);
    end();
}

/* Before the drain, a full branch loses what another one accepted, because nobody knows when it
 * will have room. */
static void a_full_branch_is_waited_for_at_the_end(void **state)
{
    (void)state;
    begin(COMPONENTS
          "exporters: {sink/a: , backend/b: {sending_queue: {queue_size: 1}}}\n" ONE_PIPELINE(
              "holder", "sink/a, backend/b"));
    send_two(10, NULL);
    assert_false(graph_bench_drain(&bench, 0));
    send_two(20, NULL); /* a late request */
    send_two(30, NULL);
    assert_int_equal(sink("sink/a")->count, 3);
    for (int i = 0; i < 3; i++) {
        assert_false(graph_is_drained(bench.graph));
        answer(backend("backend/b"), verdict_ok);
        advance(SECOND);
    }
    assert_int_equal(backend("backend/b")->attempts, 3);
    assert_int_equal(sink("sink/a")->count, 3);
    assert_int_equal(lost_by("processor holder", "exporter backend/b"), 0);
    assert_true(graph_is_drained(bench.graph));
    assert_int_equal(lost_items(), 0);
    end();
}

static void the_drain_tries_again_at_once(void **state)
{
    (void)state;
    begin(COMPONENTS TWO_SINKS ONE_PIPELINE("holder", "sink/a"));
    refuse_with(sink("sink/a"), REFUSED_FAILED,
                verdict_try_later(GRPC_UNAVAILABLE, 100 * (int64_t)SECOND, "busy"));
    send_some(1);
    assert_false(graph_bench_drain(&bench, 0));
    assert_int_equal(sink("sink/a")->count, 2);
    advance(10 * SECOND);
    assert_int_equal(sink("sink/a")->count, 12); /* one each second */
    take_all(sink("sink/a"));
    advance(SECOND);
    assert_true(graph_is_drained(bench.graph));
    end();
}

static void what_the_stop_finds_is_counted_once(void **state)
{
    (void)state;
    static const struct {
        const char *exporters;
        const struct verdict *answer_of_b;
        unsigned settled, told_lost;
        uint64_t lost_items;
    } cases[] = {
        /* The holder is responsible for batches that no branch accepted, the outlet for those
         * that another branch accepted. */
        {"sink/a", &verdict_ok, 1, 1, 0},
        {"sink/a, sink/b", &later, 1, 1, 0},
        {"sink/a, sink/b", &verdict_ok, 1, 0, 2},
    };
    for (size_t i = 0; i < 3; i++) {
        begin(i == 0 ? COMPONENTS TWO_SINKS ONE_PIPELINE("holder", "sink/a")
                     : COMPONENTS TWO_SINKS ONE_PIPELINE("holder", "sink/a, sink/b"));
        refuse_with(sink("sink/a"), REFUSED_FAILED, later);
        if (i > 0)
            refuse_with(sink("sink/b"), REFUSED_FAILED, *cases[i].answer_of_b);
        struct holder *self = holder();
        send_some(1);
        graph_bench_stop(&bench);
        assert_int_equal(self->settled, cases[i].settled);
        assert_int_equal(self->lost, cases[i].told_lost);
        assert_int_equal(lost_items(), cases[i].lost_items);
        graph_bench_end(&bench);
    }
}

static void what_its_sender_is_told_is_not_lost(void **state)
{
    (void)state;
    struct sender first, second;
    begin(COMPONENTS TWO_BLOCKING ONE_PIPELINE("pass", "backend/a, backend/b"));
    send_two(10, &first); /* acknowledged: in both queues */
    send_two(20, &second);
    graph_bench_stop(&bench);
    assert_int_equal(first.settled, 1);
    assert_int_equal(second.settled, 1);
    assert_string_equal(second.verdict.text, "shutting down");
    assert_int_equal(lost_items(), 4); /* both queues lose the first */
    graph_bench_end(&bench);
}

/* --- what random schedules found --- */

/* Batches that wait for another attempt use up the limit, while nothing is being sent. */
static void what_is_kept_does_not_shut_out_the_next(void **state)
{
    (void)state;
    begin_within(10200, COMPONENTS
                 "exporters: {sink/a: , backend/b: {sending_queue: {queue_size: 5, "
                 "wait_for_result: true}, retry_on_failure: {enabled: false}}}\n" ONE_PIPELINE(
                     "holder", "sink/a, backend/b"));
    for (unsigned i = 1; i <= 2; i++) {
        send_two(UINT64_C(10) * i, NULL);
        answer(backend("backend/b"),
               verdict_try_later(GRPC_UNAVAILABLE, 200 * (int64_t)SECOND, "busy"));
    }
    send_two(30, NULL);
    assert_int_equal(backend("backend/b")->attempts, 3);
    answer(backend("backend/b"), verdict_ok);
    assert_int_equal(lost_by("processor holder", "exporter backend/b"), 0);
    advance(200 * SECOND);
    answer(backend("backend/b"), verdict_ok);
    answer(backend("backend/b"), verdict_ok);
    finish();
}

/* b has room for one request, and bytes for two. */
static void what_stands_behind_a_blocked_one_waits_too(void **state)
{
    (void)state;
    begin_within(10200, COMPONENTS "exporters: {sink/a: , backend/b: " BLOCKING
                                   "}\n" ONE_PIPELINE("holder", "sink/a, backend/b"));
    send_some(6);
    assert_int_equal(sink("sink/a")->count, 1);
    assert_false(graph_bench_drain(&bench, SECOND));
    assert_int_equal(sink("sink/a")->count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(backend("backend/b")->spans[i], (i + 1) * 10);
        answer(backend("backend/b"), verdict_ok);
        advance(SECOND);
    }
    assert_int_equal(lost_by("processor holder", "exporter backend/b"), 0);
    assert_true(graph_is_drained(bench.graph));
    end();
}

/* With ack: delivered, the receipts of the senders are part of the receipt of the merged batch. */
static void who_gave_up_is_seen_through_a_holder(void **state)
{
    (void)state;
    struct sender first, second;
    begin(COMPONENTS "exporters: {backend/a: {sending_queue: {num_consumers: 1, wait_for_result: "
                     "true}}}\n" ONE_PIPELINE("batch", "backend/a"));
    send_two(10, &first);
    send_two(20, &second);
    second.has_given_up = true;
    answer(backend("backend/a"), verdict_ok);
    assert_int_equal(backend("backend/a")->attempts, 1);
    assert_int_equal(second.settled, 1);
    assert_int_equal(second.verdict.code, GRPC_CANCELLED);
    finish();
}

#define JOINING                                                                                    \
    "{sending_queue: {queue_size: 2, num_consumers: 1, wait_for_result: true, "                    \
    "batch: {min_size: 4, flush_timeout: 1s}}, retry_on_failure: {enabled: false}}"

/* Two pipelines lead to the backend. Their batches are not merged, because an acknowledged one
 * must be handed back to its own pipeline. */
static void what_is_joined_goes_back_one_way(void **state)
{
    (void)state;
    struct sender sender;
    begin(COMPONENTS
          "exporters: {backend/a: " JOINING "}\n"
          "service: {pipelines: {" PIPELINE("traces", "holder", "backend/a") ", " PIPELINE(
              "traces/2", "pass", "backend/a") "}}\n");
    struct holder *self = holder();
    send_two(10, &sender);
    advance(SECOND);
    assert_int_equal(backend("backend/a")->under_way_count, 1);
    assert_int_equal(backend("backend/a")->under_way[0]->batch->items, 2);
    answer(backend("backend/a"), later);
    answer(backend("backend/a"), later);
    assert_int_equal(sender.verdict.code, GRPC_OK); /* the holder has it */
    graph_bench_stop(&bench);
    assert_int_equal(self->lost, 1);
    assert_int_equal(sender.settled, 1);
    graph_bench_end(&bench);
}

/* The merged batch finds no room the second time, and no other branch has accepted it. */
static void what_is_joined_is_kept_while_none_takes_it(void **state)
{
    (void)state;
    begin(COMPONENTS "exporters: {sink/a: , backend/b: " JOINING
                     "}\n" ONE_PIPELINE("holder", "sink/a, backend/b"));
    refuse_with(sink("sink/a"), REFUSED_FAILED, later);
    send_some(2);
    assert_int_equal(backend("backend/b")->under_way[0]->batch->items, 4);
    answer(backend("backend/b"), later);
    send_two(30, NULL);
    send_two(40, NULL); /* its queue is full */
    advance(SECOND);
    assert_int_equal(holder()->settled, 0);
    assert_int_equal(lost_by("processor holder", "exporter backend/b"), 0);
    answer(backend("backend/b"), verdict_ok);
    advance(SECOND);
    answer(backend("backend/b"), verdict_ok);
    assert_int_equal(holder()->taken, 4);
    take_all(sink("sink/a"));
    advance(10 * SECOND);
    finish();
}

/* The holder passes on the next batch when it gets a verdict, which is during the stop. */
static void nothing_is_handed_on_after_the_stop(void **state)
{
    (void)state;
    begin(COMPONENTS "exporters: {sink/a: , backend/b: " BLOCKING
                     "}\n" ONE_PIPELINE("holder", "sink/a, backend/b"));
    struct holder *self = holder();
    send_some(1);
    assert_false(graph_bench_drain(&bench, SECOND));
    self->is_patient = true;
    for (unsigned i = 2; i <= 5; i++)
        send_two(UINT64_C(10) * i, NULL);
    assert_int_equal(sink("sink/a")->count, 2);
    graph_bench_stop(&bench);
    assert_int_equal(self->settled, 5);
    assert_int_equal(self->taken, 2);
    assert_int_equal(self->lost, 3);
    assert_int_equal(lost_items(), 4); /* one in b's queue, and one that waited for it */
    graph_bench_end(&bench);
}

/* b's 1,250 bytes and 1,666 borrowed ones are enough for two requests. So at the stop, the request
 * being sent cannot be kept in addition to two waiting ones. The stop loses all three. */
static void what_the_stop_finds_no_room_for_is_lost_too(void **state)
{
    (void)state;
    begin_within(10000, COMPONENTS "exporters: {sink/a: , backend/b: {sending_queue: {enabled: "
                                   "false}, retry_on_failure: {enabled: false}}}\n" ONE_PIPELINE(
                                       "holder", "sink/a, backend/b"));
    struct holder *self = holder();
    for (unsigned i = 1; i <= 2; i++) {
        send_two(UINT64_C(10) * i, NULL);
        answer(backend("backend/b"),
               verdict_try_later(GRPC_UNAVAILABLE, 200 * (int64_t)SECOND, "busy"));
    }
    send_two(30, NULL);
    assert_int_equal(backend("backend/b")->under_way_count, 1);
    graph_bench_stop(&bench);
    assert_int_equal(self->taken, 3);
    assert_int_equal(lost_items(), 6);
    graph_bench_end(&bench);
}

static void who_waited_in_vain_is_counted(void **state)
{
    (void)state;
    struct sender first, second, third;
    begin_within(20000, COMPONENTS TWO_BLOCKING ONE_PIPELINE("pass", "backend/a, backend/b"));
    send_two(10, &first);
    answer(backend("backend/a"), verdict_ok);
    send_two(20, &second);
    send_two(30, &third); /* one request may wait */
    assert_int_equal(third.settled, 1);
    assert_int_equal(overflow_of("backend/b"), 2);
    advance(5 * SECOND);
    assert_int_equal(second.settled, 1);
    assert_int_equal(overflow_of("backend/b"), 4);
    assert_int_equal(overflow_of("backend/a"), 0);
    answer(backend("backend/b"), verdict_ok);
    finish();
}

/* The queue at the end of two pipelines never has room for both copies at once. */
static void a_batch_does_not_wait_for_itself(void **state)
{
    (void)state;
    struct sender sender;
    begin(COMPONENTS "exporters: {backend/a: " BLOCKING "}\n"
                     "service: {pipelines: {" PIPELINE("traces", "", "backend/a") ", " PIPELINE(
                         "traces/2", "pass", "backend/a") "}}\n");
    send_two(10, &sender);
    assert_int_equal(sender.settled, 1);
    assert_int_equal(sender.verdict.code, GRPC_OK);
    assert_int_equal(backend("backend/a")->attempts, 1);
    answer(backend("backend/a"), verdict_ok);
    finish();
}

static int set_up(void **state)
{
    (void)state;
    log_init(LOG_ERROR + 1, LOG_CONSOLE);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_of_processors_are_counted),
        cmocka_unit_test(what_finds_no_room_keeps_its_place),
        cmocka_unit_test(what_failed_is_overtaken),
        cmocka_unit_test(what_one_branch_refuses_the_others_get),
        cmocka_unit_test(waits_double_up_to_a_bound),
        cmocka_unit_test(a_taken_one_begins_the_waits_anew),
        cmocka_unit_test(retry_after_is_a_floor),
        cmocka_unit_test(who_took_it_is_not_asked_again),
        cmocka_unit_test(a_full_one_loses_what_another_took),
        cmocka_unit_test(what_none_takes_is_kept_for_all),
        cmocka_unit_test(what_failed_is_kept_for_five_minutes),
        cmocka_unit_test(what_failed_is_kept_within_a_bound),
        cmocka_unit_test(refusals_of_several_branches),
        cmocka_unit_test(what_all_refuse_for_good_is_given_up),
        cmocka_unit_test(a_refusal_for_good_is_not_the_last_word),
        cmocka_unit_test(nobody_has_to_wait_for_an_answer),
        cmocka_unit_test(a_node_that_stands_twice_gets_it_twice),
        cmocka_unit_test(fan_outs_stand_one_behind_the_other),
        cmocka_unit_test(a_full_one_behind_forward_loses_what_another_took),
        cmocka_unit_test(what_none_takes_is_kept_behind_forward),
        cmocka_unit_test(a_blocked_one_behind_forward_is_waited_for),
        cmocka_unit_test(what_the_stop_finds_behind_forward_is_counted),
        cmocka_unit_test(nobody_gets_it_before_all_have_room),
        cmocka_unit_test(room_is_kept_for_what_a_job_works_on),
        cmocka_unit_test(a_sender_waits_five_seconds),
        cmocka_unit_test(what_is_acknowledged_waits_on),
        cmocka_unit_test(what_waits_for_room_is_bounded),
        cmocka_unit_test(who_gave_up_does_not_wait),
        cmocka_unit_test(what_one_has_taken_is_not_given_up),
        cmocka_unit_test(what_none_has_taken_is_given_up),
        cmocka_unit_test(a_full_branch_does_not_hold_up_the_drain),
        cmocka_unit_test(a_full_branch_is_waited_for_at_the_end),
        cmocka_unit_test(the_drain_tries_again_at_once),
        cmocka_unit_test(what_the_stop_finds_is_counted_once),
        cmocka_unit_test(what_its_sender_is_told_is_not_lost),
        cmocka_unit_test(what_is_kept_does_not_shut_out_the_next),
        cmocka_unit_test(what_stands_behind_a_blocked_one_waits_too),
        cmocka_unit_test(who_gave_up_is_seen_through_a_holder),
        cmocka_unit_test(what_is_joined_goes_back_one_way),
        cmocka_unit_test(what_is_joined_is_kept_while_none_takes_it),
        cmocka_unit_test(nothing_is_handed_on_after_the_stop),
        cmocka_unit_test(what_the_stop_finds_no_room_for_is_lost_too),
        cmocka_unit_test(who_waited_in_vain_is_counted),
        cmocka_unit_test(a_batch_does_not_wait_for_itself),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
