/*
 * Random schedules of requests, time and backends that refuse, die, hang and return. A simple model
 * checks the results.
 *
 * A receiver is in one or two pipelines with three backends (exporters with the real `delivery`).
 * Each pipeline has a counting processor, and some have the real `batch`. Every span has a unique
 * number. The test checks of each schedule:
 *
 * - A span is not sent to a backend again if the backend has accepted it, has refused it
 *   permanently, or is about to receive it (once for each pipeline that leads there). A backend may
 *   get a second copy only after an attempt with an unknown outcome.
 * - The first attempts at a backend are made in the order in which the requests were sent.
 * - No attempt is made before its Retry-After is over, unless the process drains.
 * - No attempt is begun for a sender that gave up before any backend had the data.
 * - At the end, each backend has accepted exactly the acknowledged spans, minus those that the
 *   counters report as lost on the way to it. (If requests are split, it may have fewer lost ones,
 *   because the counters count whole requests.) So a working backend with room gets everything.
 * - If everything is acknowledged and a backend has unlimited room, nothing is lost but what it
 *   refuses permanently, however often it fails.
 * - With block_on_overflow everywhere, either all backends get a request or none: a request that
 *   was refused to its sender was never attempted, and no branch lost what another one accepted.
 * - queue_size, component->held, the bytes of requests that wait for room and all memory together
 *   stay within their limits after every step, and so do the batches that branches keep.
 * - Every receipt settles once, and the counting processor sees every span once.
 * - When all backends return, everything drains and lost_items is 0. Otherwise lost_items counts
 *   the acknowledged spans that a backend still lacked.
 *
 * A second test, meant for the thread sanitizer, runs a few schedules on two workers with threads
 * and checks the same at the end. PROFCOL_SEED, PROFCOL_SCHEDULES and PROFCOL_THREADED_SCHEDULES
 * replace the defaults; PROFCOL_SHOW=1 prints each configuration.
 */
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/pipeline/delivery.h"
#include "tests/unit/graph_bench.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct component_type batch_processor_type;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SCHEDULES = 4000, THREADED_SCHEDULES = 6 };
#else
enum { SCHEDULES = 10000, THREADED_SCHEDULES = 6 };
#endif
enum { BACKENDS = 3, PIPELINES = 2, WORKERS = 2, REQUESTS_MAX = 64, SPANS_MAX = 5 };
/* REQUEST_BYTES_MAX limits a batch that `batch` makes, including what its holders add.
 * KEPT_BYTES is what they add. */
enum { BALLAST_MAX = 500, REQUEST_BYTES_MAX = 7000, KEPT_BYTES = 1024 };
#define MILLISECOND UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

/* ---- the model ---- */

/* A span at a backend. */
struct span_at_backend {
    uint8_t taken;
    uint8_t under_way;
    uint8_t unknown; /* accepted in attempts with unknown outcome */
    bool was_attempted;
    bool was_refused; /* permanently */
    uint64_t not_before_ns;
};

struct model_span {
    uint8_t counted[PIPELINES];
    struct span_at_backend at[BACKENDS];
};

struct model_request {
    struct sender sender;
    uint32_t count;
    struct model_span spans[SPANS_MAX];
};

/* What happened on one worker. */
struct lane {
    struct model_request requests[REQUESTS_MAX];
    unsigned request_count;
    uint64_t newest[BACKENDS]; /* number of the last span first attempted, plus 1 */
    uint64_t taken[BACKENDS];
    bool has_refused[BACKENDS]; /* some span permanently */
    uint64_t random;            /* for decisions on the worker */
};

enum mood { MOOD_WELL, MOOD_MOODY, MOOD_DEAD, MOOD_SILENT, MOODS };

struct backend_model {
    _Atomic(enum mood) mood;
    bool is_reliable; /* always in MOOD_WELL */
    bool has_queue;
    bool acknowledges; /* on entry to its queue */
    bool blocks;
    bool cuts;            /* splits requests whose senders wait */
    bool is_roomy;        /* never full */
    bool counts_requests; /* queue_size is in requests */
    unsigned ways;        /* number of pipelines that lead to it */
    struct component *component;
};

struct pipeline_model {
    bool has[BACKENDS];
    bool has_batch;
    bool batch_is_first; /* before the counting processor */
    bool acknowledges;
    bool cuts;
};

struct schedule {
    struct graph_bench bench;
    uint64_t random;
    uint64_t unit_ns; /* nanoseconds of one step of time */
    unsigned workers;
    unsigned pipeline_count;
    struct pipeline_model pipelines[PIPELINES];
    struct backend_model backends[BACKENDS];
    struct lane lanes[WORKERS];
    bool acknowledges; /* a node does, before a backend has the data */
    bool cuts;         /* a node splits requests whose senders wait */
    bool is_stopping;
};

static struct schedule schedule;
static char seed_text[100];

/* Fails on any thread, and prints the seed. */
#define check(CONDITION)                                                                           \
    do {                                                                                           \
        if (!(CONDITION)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #CONDITION);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static uint64_t draw(uint64_t *random, uint64_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % below;
}

static uint64_t roll(uint64_t below)
{
    return draw(&schedule.random, below);
}

/* The number of a span says where it is in the model. */
static uint64_t number_of(unsigned worker, unsigned request)
{
    return (uint64_t)worker << 32 | (uint64_t)request << 8;
}

static struct model_request *request_of(uint64_t span)
{
    struct lane *lane = &schedule.lanes[span >> 32];
    unsigned request = (unsigned)(span >> 8 & 0xffffff);
    check(span >> 32 < WORKERS && request < lane->request_count);
    return &lane->requests[request];
}

static struct model_span *span_of(uint64_t span)
{
    struct model_request *request = request_of(span);
    check((span & 0xff) < request->count);
    return &request->spans[span & 0xff];
}

/* ---- the counting processor ---- */

static void count_span(void *context, uint64_t span)
{
    const struct node *node = context;
    unsigned pipeline = strcmp(node->pipeline, "traces") != 0;
    check(span >> 32 == node->worker->index);
    check(++span_of(span)->counted[pipeline] == 1);
}

static void count_consume(struct node *node, struct batch *batch)
{
    batch_visit_spans(batch, count_span, node);
    node_forward(node, batch);
}

static const struct field no_fields[] = {FIELD_END};
static const struct component_type count_type = {
    .config = {.name = "count",
               .section = CONFIG_PROCESSORS,
               .stability = {STABILITY_STABLE, STABILITY_STABLE},
               .help = "Counts what passes.",
               .fields = no_fields},
    .consume = count_consume,
};

/* ---- backends ---- */

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

struct backend {
    struct component component;
    struct delivery_shared shared;
};

struct backend_node {
    struct node node; /* first */
    struct delivery delivery;
    unsigned number;
};

enum fate { FATE_TAKEN, FATE_LATER, FATE_REFUSED, FATE_SILENCE };

/* The exporter_data of a shipment: its attempt, and the next one. */
struct attempt {
    struct timer timer;
    struct shipment *shipment;
    struct backend_node *node;
    enum fate fate;
    int64_t retry_after_ns;
};

static unsigned number_of_backend(const char *id)
{
    return (unsigned)(id[strlen("backend/")] - '0');
}

static struct lane *lane_of(const struct backend_node *self)
{
    return &schedule.lanes[self->node.worker->index];
}

/* Whether neither the pipeline nor a backend has the request. A queue or processor that
 * acknowledges may have it. If requests are split, a part of one may be sent with a part of
 * another. */
static bool nobody_has(const struct model_request *request)
{
    if (request->sender.settled > 0 || schedule.acknowledges || schedule.cuts)
        return false;
    for (unsigned i = 0; i < BACKENDS; i++)
        for (uint32_t k = 0; k < request->count; k++)
            if (request->spans[k].at[i].taken > 0)
                return false;
    return true;
}

/* Checks the begin of an attempt for one span. */
static void judge_begin(void *context, uint64_t span)
{
    struct backend_node *self = context;
    const struct backend_model *model = &schedule.backends[self->number];
    struct span_at_backend *state = &span_of(span)->at[self->number];
    check(span >> 32 == self->node.worker->index);
    check(state->taken + state->under_way < (int)model->ways);
    if (model->ways == 1) {
        check(!state->was_refused);
        check(self->node.draining || self->node.worker->now_ns >= state->not_before_ns);
        check(state->was_attempted || span >= lane_of(self)->newest[self->number]);
        if (!state->was_attempted)
            lane_of(self)->newest[self->number] = span + 1;
    }
    state->was_attempted = true;
    state->under_way++;
}

struct abandonment {
    bool is_alive; /* a sender waits, or some node has data of it */
};

static void look_for_sender(void *context, uint64_t span)
{
    struct abandonment *all = context;
    const struct model_request *request = request_of(span);
    all->is_alive |= !request->sender.has_given_up || !nobody_has(request);
}

static void judge_end(void *context, uint64_t span)
{
    const struct attempt *attempt = context;
    struct backend_node *self = attempt->node;
    struct span_at_backend *state = &span_of(span)->at[self->number];
    check(state->under_way > 0);
    state->under_way--;
    if (attempt->fate == FATE_TAKEN) {
        state->taken++;
        lane_of(self)->taken[self->number]++;
    }
    if (attempt->fate == FATE_REFUSED)
        state->was_refused = lane_of(self)->has_refused[self->number] = true;
    if (attempt->fate == FATE_SILENCE && draw(&lane_of(self)->random, 2))
        state->unknown++;
    if (attempt->fate == FATE_LATER && attempt->retry_after_ns > 0)
        state->not_before_ns = self->node.worker->now_ns + (uint64_t)attempt->retry_after_ns;
    check(state->taken <= schedule.backends[self->number].ways);
}

static struct verdict verdict_of_fate(const struct attempt *attempt)
{
    switch (attempt->fate) {
    case FATE_TAKEN:
        return verdict_ok;
    case FATE_LATER:
        return verdict_try_later(GRPC_UNAVAILABLE, attempt->retry_after_ns, "busy");
    case FATE_REFUSED:
        return verdict_of(GRPC_INVALID_ARGUMENT, "no");
    case FATE_SILENCE:
        break;
    }
    return verdict_try_later(GRPC_DEADLINE_EXCEEDED, -1, "no answer");
}

static void on_answer(struct timer *timer)
{
    struct attempt *attempt = container_of(timer, struct attempt, timer);
    struct verdict verdict = verdict_of_fate(attempt);
    batch_visit_spans(attempt->shipment->batch, judge_end, attempt);
    delivery_done(attempt->shipment, &verdict);
}

static enum fate choose_fate(struct backend_node *self)
{
    uint64_t dice = draw(&lane_of(self)->random, 100);
    switch (atomic_load(&schedule.backends[self->number].mood)) {
    case MOOD_DEAD:
        return FATE_LATER;
    case MOOD_SILENT:
        return FATE_SILENCE;
    case MOOD_MOODY:
        return dice < 45   ? FATE_TAKEN
               : dice < 80 ? FATE_LATER
               : dice < 88 ? FATE_REFUSED
                           : FATE_SILENCE;
    case MOOD_WELL:
    case MOODS:
        break;
    }
    return FATE_TAKEN;
}

/* Chooses the outcome, Retry-After and the time of the answer. */
static void begin_attempt(struct attempt *attempt)
{
    struct backend_node *self = attempt->node;
    uint64_t *random = &lane_of(self)->random;
    uint64_t delay = draw(random, 2) ? draw(random, 30) : 0;
    attempt->fate = choose_fate(self);
    attempt->retry_after_ns = -1;
    if (attempt->fate == FATE_LATER && draw(random, 4) == 0)
        attempt->retry_after_ns = (int64_t)(draw(random, 2000) * schedule.unit_ns);
    if (attempt->fate == FATE_SILENCE)
        delay = 1000;
    worker_set_timer(self->node.worker, &attempt->timer, delay * schedule.unit_ns);
}

static void backend_send(struct node *node, struct shipment *shipment)
{
    struct backend_node *self = (struct backend_node *)node;
    struct attempt *attempt = shipment->exporter_data;
    struct abandonment senders = {false};
    if (!attempt) {
        attempt = memory_zalloc(sizeof *attempt);
        *attempt =
            (struct attempt){.timer.on_timer = on_answer, .shipment = shipment, .node = self};
        shipment->exporter_data = attempt;
    }
    check(!timer_is_set(&attempt->timer));
    batch_visit_spans(shipment->batch, look_for_sender, &senders);
    check(senders.is_alive);
    batch_visit_spans(shipment->batch, judge_begin, self);
    begin_attempt(attempt);
}

static void backend_abort(struct node *node, struct shipment *shipment)
{
    struct attempt *attempt = shipment->exporter_data;
    worker_cancel_timer(node->worker, &attempt->timer);
    attempt->fate = FATE_SILENCE;
    batch_visit_spans(shipment->batch, judge_end, attempt);
}

static void backend_release(struct node *node, struct shipment *shipment)
{
    (void)node;
    check(!timer_is_set(&((struct attempt *)shipment->exporter_data)->timer));
    free(shipment->exporter_data);
}

static bool backend_init(struct component *component, struct error *err)
{
    (void)err;
    struct backend *backend = (struct backend *)component;
    const struct backend_settings *settings = component->settings;
    delivery_shared_init(&backend->shared, component, SIGNAL_TRACES, &settings->sending_queue, "");
    schedule.backends[number_of_backend(component->id)].component = component;
    return true;
}

static void backend_deinit(struct component *component)
{
    struct backend *backend = (struct backend *)component;
    check(atomic_load(&backend->shared.queue.queued) == 0);
    check(budget_used(&backend->shared.queue.waiting) == 0);
    check(share_used(&component->held[SIGNAL_TRACES]) == 0);
    delivery_shared_deinit(&backend->shared);
}

/* State of the jitter of back-off, equal in each run. */
static _Thread_local uint64_t spread;

static uint64_t spread_bits(void)
{
    return draw(&spread, UINT32_MAX) << 32;
}

static bool backend_start(struct node *node, struct error *err)
{
    (void)err;
    struct backend_node *self = (struct backend_node *)node;
    const struct backend_settings *settings = node->component->settings;
    self->number = number_of_backend(node->component->id);
    self->delivery = (struct delivery){.node = node,
                                       .queue = &settings->sending_queue,
                                       .retry = &settings->retry_on_failure,
                                       .shared = &((struct backend *)node->component)->shared,
                                       .send = backend_send,
                                       .abort = backend_abort,
                                       .release = backend_release,
                                       .random = spread_bits};
    delivery_start(&self->delivery);
    return true;
}

static void backend_consume(struct node *node, struct batch *batch)
{
    delivery_consume(&((struct backend_node *)node)->delivery, batch);
}

static void backend_drain(struct node *node)
{
    delivery_drain(&((struct backend_node *)node)->delivery);
}

static void backend_stop(struct node *node)
{
    delivery_stop(&((struct backend_node *)node)->delivery);
}

static void backend_check(void *config, struct config_check *check)
{
    struct backend_settings *settings = config;
    sending_queue_check(&settings->sending_queue, check, "sending_queue");
    retry_check(&settings->retry_on_failure, check, "retry_on_failure");
}

static const struct component_type backend_type = {
    .config = {.name = "backend",
               .section = CONFIG_EXPORTERS,
               .stability = {STABILITY_STABLE, STABILITY_STABLE},
               .help = "Answers as the schedule says.",
               .fields = backend_fields,
               .config_size = sizeof(struct backend_settings),
               .check = backend_check},
    .component_size = sizeof(struct backend),
    .init = backend_init,
    .deinit = backend_deinit,
    .node_size = sizeof(struct backend_node),
    .node_start = backend_start,
    .consume = backend_consume,
    .node_drain = backend_drain,
    .is_idle = delivery_is_idle,
    .node_stop = backend_stop,
};

/* ---- settings ---- */

static uint64_t microseconds(uint64_t milliseconds)
{
    return milliseconds * schedule.unit_ns / 1000;
}

static const char *yes_or_no(bool value)
{
    return value ? "true" : "false";
}

static void write_queue_batch(struct text *yaml, struct backend_model *model, bool in_bytes,
                              uint64_t queue_size)
{
    uint64_t least = 1 + roll(in_bytes ? 150 : 6);
    bool has_max = roll(2);
    uint64_t most = has_max ? least + roll(in_bytes ? 200 : 4) : 0;
    if (least > queue_size)
        least = queue_size;
    model->cuts = has_max && !model->acknowledges;
    text_printf(yaml,
                ", batch: {flush_timeout: %" PRIu64 "us, min_size: %" PRIu64 ", max_size: %" PRIu64
                "}",
                microseconds(1 + roll(50)), least, most);
}

static void write_queue(struct text *yaml, struct backend_model *model)
{
    static const char *const sizers[] = {"requests", "items", "bytes"};
    unsigned sizer = roll(2) ? 0 : (unsigned)roll(3);
    uint64_t size = 1 + roll(8);
    if (sizer == 1)
        size += SPANS_MAX - roll(2);
    if (sizer == 2)
        size = 100 + roll(4000);
    if (model->is_roomy)
        size = 1000000;
    bool waits = roll(3) == 0;
    model->has_queue = model->is_roomy || roll(4) > 0;
    if (!model->has_queue) {
        text_append(yaml, "sending_queue: {enabled: false}");
        return;
    }
    model->acknowledges = !waits;
    model->blocks = roll(2);
    model->counts_requests = sizer == 0;
    text_printf(yaml,
                "sending_queue: {num_consumers: %u, queue_size: %" PRIu64
                ", sizer: %s, wait_for_result: %s, block_on_overflow: %s",
                1 + (unsigned)roll(3), size, sizers[sizer], yes_or_no(waits),
                yes_or_no(model->blocks));
    if (roll(4) == 0)
        write_queue_batch(yaml, model, sizer == 2, size);
    text_append(yaml, "}");
}

static void write_retry(struct text *yaml)
{
    uint64_t first = 10 + roll(400), most = first + roll(500);
    if (roll(3) == 0)
        text_append(yaml, ", retry_on_failure: {enabled: false}");
    else
        text_printf(yaml,
                    ", retry_on_failure: {initial_interval: %" PRIu64 "us, max_interval: %" PRIu64
                    "us, max_elapsed_time: %" PRIu64 "us}",
                    microseconds(first), microseconds(most),
                    roll(4) ? microseconds(most + roll(3000)) : 0);
}

static void write_backends(struct text *yaml, bool all_block)
{
    for (unsigned i = 0; i < BACKENDS; i++) {
        struct backend_model *model = &schedule.backends[i];
        model->is_reliable = roll(4) == 0;
        model->is_roomy = !all_block && schedule.bench.budget.limit_bytes == 0 && roll(3) == 0;
        atomic_store(&model->mood, model->is_reliable ? MOOD_WELL : (enum mood)roll(MOODS));
        text_printf(yaml, "%sbackend/%u: {", i > 0 ? ", " : "", i);
        if (all_block) {
            model->has_queue = model->acknowledges = model->blocks = model->counts_requests = true;
            text_printf(
                yaml, "sending_queue: {queue_size: %u, num_consumers: 1, block_on_overflow: true}",
                1 + (unsigned)roll(4));
        } else {
            write_queue(yaml, model);
        }
        write_retry(yaml);
        text_append(yaml, "}");
    }
}

static void write_batch(struct text *yaml, unsigned number)
{
    struct pipeline_model *pipeline = &schedule.pipelines[number];
    uint64_t size = 1 + roll(8), max = roll(3) == 0 ? size + roll(3) : 0;
    pipeline->has_batch = true;
    pipeline->batch_is_first = roll(2);
    pipeline->acknowledges = roll(3) > 0;
    pipeline->cuts = max > 0 && !pipeline->acknowledges;
    text_printf(yaml,
                ", batch/%u: {timeout: %" PRIu64 "us, send_batch_size: %" PRIu64
                ", send_batch_max_size: %" PRIu64 ", max_held_mib: 1, ack: %s}",
                number, microseconds(roll(50)), size, max,
                pipeline->acknowledges ? "admitted" : "delivered");
}

/* Chooses pipelines, so that each backend is in at least one. */
static void choose_ways(void)
{
    for (unsigned i = 0; i < BACKENDS; i++) {
        uint64_t where = schedule.pipeline_count == 1 ? 0 : roll(3);
        schedule.pipelines[0].has[i] = where != 1;
        schedule.pipelines[1].has[i] = where != 0;
    }
    if (schedule.pipeline_count == 1)
        return;
    schedule.pipelines[0].has[0] = true;
    schedule.pipelines[1].has[BACKENDS - 1] = true;
}

static void count_ways(void)
{
    for (unsigned i = 0; i < BACKENDS; i++)
        for (unsigned p = 0; p < schedule.pipeline_count; p++)
            schedule.backends[i].ways += schedule.pipelines[p].has[i];
}

static void write_pipeline(struct text *yaml, unsigned number)
{
    const struct pipeline_model *pipeline = &schedule.pipelines[number];
    bool is_first = true;
    text_printf(yaml, "%s: {receivers: [source], processors: [", number ? ", traces/2" : "traces");
    if (pipeline->has_batch && pipeline->batch_is_first)
        text_printf(yaml, "batch/%u, ", number);
    text_printf(yaml, "count/%u", number);
    if (pipeline->has_batch && !pipeline->batch_is_first)
        text_printf(yaml, ", batch/%u", number);
    text_append(yaml, "], exporters: [");
    for (unsigned i = 0; i < BACKENDS; i++) {
        if (!pipeline->has[i])
            continue;
        text_printf(yaml, "%sbackend/%u", is_first ? "" : ", ", i);
        is_first = false;
    }
    text_append(yaml, "]}");
}

static void write_yaml(struct text *yaml, bool all_block)
{
    text_append(yaml, "receivers: {source: }\nprocessors: {count/0: , count/1: ");
    for (unsigned p = 0; p < schedule.pipeline_count; p++)
        if (!all_block && roll(3) > 0)
            write_batch(yaml, p);
    text_append(yaml, "}\nexporters: {");
    write_backends(yaml, all_block);
    text_append(yaml, "}\nservice: {pipelines: {");
    for (unsigned p = 0; p < schedule.pipeline_count; p++)
        write_pipeline(yaml, p);
    text_append(yaml, "}}\n");
}

static void note_settings(void)
{
    for (unsigned p = 0; p < schedule.pipeline_count; p++) {
        schedule.acknowledges |= schedule.pipelines[p].acknowledges;
        schedule.cuts |= schedule.pipelines[p].cuts;
    }
    for (unsigned i = 0; i < BACKENDS; i++) {
        schedule.acknowledges |= schedule.backends[i].acknowledges;
        schedule.cuts |= schedule.backends[i].cuts;
    }
}

static void begin(uint64_t seed, bool is_real)
{
    static const struct config_type *const types[] = {
        &graph_bench_source_type.config, &count_type.config, &batch_processor_type.config,
        &backend_type.config, NULL};
    struct text yaml = {0};
    snprintf(seed_text, sizeof seed_text,
             "last schedule: PROFCOL_SEED=%" PRIu64 " PROFCOL_%sSCHEDULES=1\n", seed,
             is_real ? "THREADED_" : "");
    memset(&schedule, 0, sizeof schedule);
    schedule.random = seed * 2654435761u + 1;
    spread = seed;
    schedule.unit_ns = is_real ? MILLISECOND / 20 : MILLISECOND;
    schedule.workers = is_real ? 2 : 1 + (unsigned)roll(2);
    schedule.pipeline_count = 1 + (unsigned)roll(2);
    for (unsigned i = 0; i < WORKERS; i++)
        schedule.lanes[i].random = roll(UINT32_MAX);
    graph_bench_init(&schedule.bench, schedule.workers, is_real);
    if (roll(2))
        schedule.bench.budget.limit_bytes = (2000 + roll(16000)) * 2 * BACKENDS;
    choose_ways();
    count_ways();
    write_yaml(&yaml, roll(6) == 0);
    note_settings();
    if (getenv("PROFCOL_SHOW"))
        fprintf(stderr, "%s\n", text_string(&yaml));
    graph_bench_begin(&schedule.bench, types, text_string(&yaml));
    text_deinit(&yaml);
}

/* ---- events ---- */

/* Runs on the worker. */
static void send_request(unsigned worker)
{
    struct lane *lane = &schedule.lanes[worker];
    check(lane->request_count < REQUESTS_MAX);
    struct model_request *model = &lane->requests[lane->request_count];
    struct numbered_request request = {.first = number_of(worker, lane->request_count++)};
    model->count = request.count = 1 + (uint32_t)draw(&lane->random, SPANS_MAX);
    request.ballast = draw(&lane->random, 3) ? 0 : draw(&lane->random, BALLAST_MAX);
    graph_bench_send(&schedule.bench, worker, &request, &model->sender);
    check(model->sender.settled <= 1);
}

static void give_up(struct lane *lane, uint64_t random)
{
    if (lane->request_count == 0)
        return;
    struct sender *sender = &lane->requests[random % lane->request_count].sender;
    if (sender->settled == 0)
        sender->has_given_up = true;
}

static void change_mood(void)
{
    struct backend_model *model = &schedule.backends[roll(BACKENDS)];
    if (!model->is_reliable)
        atomic_store(&model->mood, (enum mood)roll(MOODS));
}

/* ---- limits ---- */

static double metric(const char *name, const char *labels)
{
    return graph_bench_metric(&schedule.bench, name, labels);
}

/* label: what="id/number", for example exporter="backend/1". */
static double metric_of(const char *name, const char *what, const char *id, unsigned number)
{
    char labels[60];
    snprintf(labels, sizeof labels, "%s=\"%s/%u\"", what, id, number);
    return metric(name, labels);
}

static const char *first_of(unsigned pipeline)
{
    const struct pipeline_model *model = &schedule.pipelines[pipeline];
    return model->has_batch && model->batch_is_first ? "batch" : "count";
}

static const char *last_of(unsigned pipeline)
{
    const struct pipeline_model *model = &schedule.pipelines[pipeline];
    return model->has_batch && !model->batch_is_first ? "batch" : "count";
}

static double lost_before(unsigned pipeline)
{
    char labels[120];
    snprintf(labels, sizeof labels,
             "from=\"receiver source\",to=\"processor %s/%u\",pipeline=\"%s\"", first_of(pipeline),
             pipeline, pipeline ? "traces/2" : "traces");
    return metric("profcol_branch_lost_spans", labels);
}

static double metric_behind(const char *name, unsigned pipeline, unsigned backend)
{
    char labels[120];
    snprintf(labels, sizeof labels, "from=\"processor %s/%u\",to=\"exporter backend/%u\"",
             last_of(pipeline), pipeline, backend);
    return metric(name, labels);
}

static double lost_behind(unsigned pipeline, unsigned backend)
{
    return metric_behind("profcol_branch_lost_spans", pipeline, backend);
}

/* Checks the limits of kept batches. While `batch` holds nothing, each kept batch counts within
 * the limit of its branch. */
static size_t pool_limit(void)
{
    return schedule.bench.budget.limit_bytes / 4;
}

static size_t own_limit(void)
{
    return pool_limit() / BACKENDS;
}

static void judge_kept(void)
{
    double kept[BACKENDS] = {0};
    for (unsigned p = 0; p < schedule.pipeline_count; p++) {
        if (metric_of("profcol_processor_batch_held_bytes", "processor", "batch", p) > 0)
            return;
        for (unsigned i = 0; i < BACKENDS; i++)
            kept[i] += metric_behind("profcol_branch_kept_requests", p, i);
    }
    for (unsigned i = 0; i < BACKENDS; i++)
        check(kept[i] * KEPT_BYTES <= (double)(own_limit() + pool_limit()));
}

static void judge_bounds(void)
{
    size_t all = 0, lent = 0, limit = schedule.bench.budget.limit_bytes;
    for (unsigned i = 0; i < BACKENDS; i++) {
        const struct component *component = schedule.backends[i].component;
        const struct delivery_shared *shared = &((const struct backend *)component)->shared;
        const struct share *held = &component->held[SIGNAL_TRACES];
        check(atomic_load(&shared->queue.queued) <= shared->queue.capacity);
        if (limit == 0)
            continue;
        check(held->own.limit_bytes == own_limit());
        check(budget_used(&held->own) <= own_limit() + REQUEST_BYTES_MAX);
        check(share_used(held) - budget_used(&held->own) <= pool_limit() * 2 / 3);
        check(budget_used(&shared->queue.waiting) <= own_limit() / 2);
        all += own_limit() + REQUEST_BYTES_MAX + own_limit() / 2;
        lent += share_used(held) - budget_used(&held->own);
    }
    check(lent <= pool_limit() && lent == atomic_load(&schedule.bench.process.loans.lent_bytes));
    all += pool_limit();
    for (unsigned p = 0; p < schedule.pipeline_count; p++)
        all += schedule.pipelines[p].has_batch ? limit / 2 + (size_t)4 * REQUEST_BYTES_MAX : 0;
    check(limit == 0 || budget_used(&schedule.bench.budget) <= all);
    if (limit > 0)
        judge_kept();
}

static void step(void)
{
    static const uint64_t longest[] = {1, 10, 100, 3000};
    uint64_t dice = roll(20);
    if (dice < 12)
        send_request((unsigned)roll(schedule.workers));
    else if (dice < 17)
        graph_bench_advance(&schedule.bench, roll(longest[roll(4)]) * MILLISECOND);
    else if (dice < 19)
        change_mood();
    else
        give_up(&schedule.lanes[roll(schedule.workers)], roll(REQUESTS_MAX));
    judge_bounds();
}

/* ---- stop ---- */

static double told_safe(void)
{
    double spans = 0;
    for (unsigned w = 0; w < schedule.workers; w++)
        for (unsigned i = 0; i < schedule.lanes[w].request_count; i++) {
            const struct model_request *request = &schedule.lanes[w].requests[i];
            if (request->sender.settled > 0 && verdict_is_ok(&request->sender.verdict))
                spans += request->count;
        }
    return spans;
}

static bool all_are_settled(void)
{
    for (unsigned w = 0; w < schedule.workers; w++)
        for (unsigned i = 0; i < schedule.lanes[w].request_count; i++)
            if (schedule.lanes[w].requests[i].sender.settled == 0)
                return false;
    return true;
}

static double taken_by(unsigned backend)
{
    double taken = 0;
    for (unsigned w = 0; w < schedule.workers; w++)
        taken += (double)schedule.lanes[w].taken[backend];
    return taken;
}

/* Returns the number of acknowledged spans that the backend lacks and no counter reports as
 * lost. */
static double missing_at(unsigned backend)
{
    double missing = -taken_by(backend);
    for (unsigned p = 0; p < schedule.pipeline_count; p++)
        if (schedule.pipelines[p].has[backend])
            missing += told_safe() - lost_before(p) - lost_behind(p, backend) -
                       metric_of("profcol_processor_batch_dropped_spans", "processor", "batch", p);
    if (schedule.backends[backend].acknowledges)
        missing -= metric_of("otelcol_exporter_send_failed_spans", "exporter", "backend", backend);
    return missing;
}

static bool all_block(void)
{
    for (unsigned p = 0; p < schedule.pipeline_count; p++)
        if (schedule.pipelines[p].has_batch)
            return false;
    for (unsigned i = 0; i < BACKENDS; i++)
        if (!schedule.backends[i].blocks || !schedule.backends[i].acknowledges ||
            !schedule.backends[i].counts_requests)
            return false;
    return true;
}

/* Checks that no backend got a request that was refused to its sender. */
static void judge_refused(const struct model_request *request)
{
    for (uint32_t k = 0; k < request->count; k++)
        for (unsigned i = 0; i < BACKENDS; i++)
            check(!request->spans[k].at[i].was_attempted);
}

static void judge_request(const struct model_request *request, bool blocks)
{
    check(request->sender.settled == 1);
    if (blocks && !verdict_is_ok(&request->sender.verdict))
        judge_refused(request);
    for (uint32_t k = 0; k < request->count; k++)
        for (unsigned i = 0; i < BACKENDS; i++) {
            const struct span_at_backend *state = &request->spans[k].at[i];
            check(state->under_way == 0);
            for (unsigned p = 0; p < schedule.pipeline_count; p++)
                if (schedule.pipelines[p].has[i] && schedule.backends[i].ways == 1)
                    check(!state->was_attempted || request->spans[k].counted[p] == 1);
        }
}

/* Whether the backend must get everything that another one accepted. */
static bool has_to_get_all(unsigned i)
{
    const struct backend_model *model = &schedule.backends[i];
    bool has_room =
        schedule.bench.budget.limit_bytes == 0 && (model->is_roomy || !model->has_queue);
    for (unsigned w = 0; w < schedule.workers; w++)
        has_room &= !schedule.lanes[w].has_refused[i];
    for (unsigned p = 0; p < schedule.pipeline_count; p++)
        has_room &= !schedule.pipelines[p].has[i] || schedule.pipelines[p].acknowledges;
    return has_room && !schedule.is_stopping;
}

static void judge_backend(unsigned i)
{
    const struct backend_model *model = &schedule.backends[i];
    double missing = missing_at(i);
    if (!schedule.cuts && missing != 0) {
        fprintf(stderr, "backend/%u: %g missing\n", i, missing);
        check(missing == 0);
    }
    check(metric_of("otelcol_exporter_sent_spans", "exporter", "backend", i) == taken_by(i));
    for (unsigned p = 0; p < schedule.pipeline_count; p++)
        check(lost_behind(p, i) == 0 || !has_to_get_all(i));
    for (unsigned p = 0; p < schedule.pipeline_count; p++)
        check(!all_block() || model->ways > 1 || schedule.is_stopping || lost_behind(p, i) == 0);
    /* Without a queue that acknowledges, a sender that gives up may be the reason. */
    if (!model->is_reliable || !model->is_roomy || !model->acknowledges || schedule.is_stopping)
        return;
    for (unsigned p = 0; p < schedule.pipeline_count; p++)
        check(lost_behind(p, i) == 0);
    check(metric_of("otelcol_exporter_enqueue_failed_spans", "exporter", "backend", i) == 0);
}

static void judge_all(void)
{
    bool blocks = all_block();
    for (unsigned w = 0; w < schedule.workers; w++)
        for (unsigned i = 0; i < schedule.lanes[w].request_count; i++)
            judge_request(&schedule.lanes[w].requests[i], blocks);
    for (unsigned i = 0; i < BACKENDS; i++)
        judge_backend(i);
}

/* Checks that lost_items at the stop is what backends lacked before it. */
static void judge_lost(const double *missing, bool all_settled)
{
    double lost = (double)atomic_load(&schedule.bench.process.lost_items), sum = 0;
    check(schedule.acknowledges || lost == 0);
    if (!all_settled || schedule.cuts)
        return;
    for (unsigned i = 0; i < BACKENDS; i++) {
        check(schedule.backends[i].ways > 1 || lost >= missing[i]);
        sum += missing[i];
    }
    check(lost <= sum);
}

static void stop_and_judge(bool is_drained)
{
    double missing[BACKENDS];
    bool all_settled = all_are_settled();
    schedule.is_stopping = !is_drained;
    for (unsigned i = 0; i < BACKENDS; i++)
        missing[i] = missing_at(i);
    graph_bench_stop(&schedule.bench);
    judge_lost(missing, all_settled);
    if (is_drained) {
        check(all_settled);
        check(atomic_load(&schedule.bench.process.lost_items) == 0);
    }
    judge_all();
    graph_bench_end(&schedule.bench);
}

static void heal_all(void)
{
    for (unsigned i = 0; i < BACKENDS; i++)
        atomic_store(&schedule.backends[i].mood, MOOD_WELL);
}

/* Ends the schedule: the backends return and everything drains, or the drain deadline passes
 * first, or there is no drain. */
static void finish(void)
{
    uint64_t dice = roll(10);
    bool is_drained = false;
    if (dice < 7) {
        heal_all();
        is_drained = graph_bench_drain(&schedule.bench, 60 * SECOND);
        check(is_drained);
    } else if (dice < 9) {
        is_drained = graph_bench_drain(&schedule.bench, roll(8) * SECOND);
    }
    judge_bounds();
    stop_and_judge(is_drained);
}

static uint64_t number_from(const char *variable, uint64_t fallback)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : fallback;
}

static void test_schedules(void **state)
{
    (void)state;
    uint64_t seed = number_from("PROFCOL_SEED", 1);
    uint64_t count = number_from("PROFCOL_SCHEDULES", SCHEDULES);
    for (uint64_t i = 0; i < count; i++) {
        begin(seed + i, false);
        uint64_t steps = 10 + roll(50);
        for (uint64_t k = 0; k < steps; k++)
            step();
        finish();
    }
}

/* ---- with threads ---- */

enum { THREADED_REQUESTS = 60 };

struct feeder {
    struct post post; /* first */
    struct timer timer;
    unsigned worker;
    uv_sem_t done;
};

static void feed(struct feeder *feeder)
{
    struct lane *lane = &schedule.lanes[feeder->worker];
    send_request(feeder->worker);
    if (draw(&lane->random, 10) == 0)
        give_up(lane, draw(&lane->random, REQUESTS_MAX));
    if (lane->request_count == THREADED_REQUESTS)
        uv_sem_post(&feeder->done);
    else
        worker_set_timer(&schedule.bench.workers[feeder->worker], &feeder->timer,
                         draw(&lane->random, 20) * schedule.unit_ns);
}

static void on_feed_timer(struct timer *timer)
{
    feed(container_of(timer, struct feeder, timer));
}

static void on_feed(struct worker *worker, struct post *post)
{
    (void)worker;
    feed((struct feeder *)post);
}

static void run_feeders(void)
{
    static struct feeder feeders[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
        feeders[i] =
            (struct feeder){.post.on_post = on_feed, .timer.on_timer = on_feed_timer, .worker = i};
        uv_sem_init(&feeders[i].done, 0);
        worker_post(&schedule.bench.workers[i], &feeders[i].post);
    }
    for (unsigned i = 0; i < 40; i++) {
        change_mood();
        usleep(500);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        uv_sem_wait(&feeders[i].done);
        uv_sem_destroy(&feeders[i].done);
    }
}

static void test_threads(void **state)
{
    (void)state;
    uint64_t seed = number_from("PROFCOL_SEED", 1);
    uint64_t count = number_from("PROFCOL_THREADED_SCHEDULES", THREADED_SCHEDULES);
    for (uint64_t i = 0; i < count; i++) {
        begin(seed + i, true);
        run_feeders();
        heal_all();
        check(graph_bench_drain(&schedule.bench, 60 * SECOND));
        stop_and_judge(true);
    }
}

/* Prints the schedule when an assert fails. */
static void on_abort(int number)
{
    (void)number;
    if (write(STDERR_FILENO, seed_text, strlen(seed_text)) < 0)
        _exit(1);
}

int main(void)
{
    log_init(LOG_ERROR + 1, LOG_CONSOLE);
    signal(SIGABRT, on_abort);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
