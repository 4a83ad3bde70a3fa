#include "receivers/pprof/scrape.h"

#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/empty_profiles.h"
#include "core/pipeline/otlp_sender.h"
#include "core/pipeline/reading.h"
#include "core/pipeline/received.h"
#include "receivers/pprof/profile_intake.h"
#include "receivers/pprof/static_labels.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#define IDLE_TIMEOUT_NS (INT64_C(90) * 1000000000)

enum outcome { OUTCOME_OK, OUTCOME_FAILED, OUTCOME_REFUSED, OUTCOME_SKIPPED, OUTCOME_COUNT };
static const char *const outcome_names[] = {"ok", "failed", "refused", "skipped"};

/* Pyroscope's names. */
static const char *const metric_names[SCRAPE_KIND_COUNT] = {
    [SCRAPE_CPU] = "process_cpu", [SCRAPE_HEAP] = "memory",          [SCRAPE_ALLOCS] = "memory",
    [SCRAPE_MUTEX] = "mutex",     [SCRAPE_GOROUTINE] = "goroutines", [SCRAPE_BLOCK] = "block",
};

struct scrape_reading;
struct target;

/* One profile of a target, requested once per interval. */
struct scrape {
    struct client_request request;
    struct receipt receipt;
    struct timer timer;
    struct target *target;
    enum scrape_kind kind;
    const char *path;
    uint64_t due_ns; /* monotonic */
    enum { SCRAPE_RESTS, SCRAPE_ASKS, SCRAPE_READS, SCRAPE_FORWARDS } state;
    struct scrape_reading *reading; /* of a large profile, in SCRAPE_READS; otherwise NULL */
    struct pprof_delta *delta;      /* NULL: profiles are sent unchanged */
    uint64_t began_ns,
        kept_ns; /* wall clock: begin of this scrape, and of the one that delta kept */
    uint32_t samples;
    uint64_t failures; /* since the last success */
    struct status_source works;
    struct counter *counters[OUTCOME_COUNT];
};

struct target {
    struct scraper *scraper;
    const struct scrape_target *settings;
    struct series series;
    struct client *client;
    struct scrape scrapes[SCRAPE_KIND_COUNT]; /* path NULL: not enabled */
};

struct scraper {
    struct node *node;
    const struct scrape_settings *settings;
    const struct received_counters *counters;
    struct arena arena;
    struct http_header *headers;
    size_t header_count;
    struct target *targets;
    size_t target_count;
    size_t busy; /* number of scrapes that read or forward */
    bool draining;
    void (*on_drained)(void *context);
    void *drain_context;
};

static struct scraper *scraper_of(const struct scrape *scrape)
{
    return scrape->target->scraper;
}

/* ---- the result ---- */

static void count(struct scrape *scrape, enum outcome outcome)
{
    counter_add(scrape->counters[outcome], scraper_of(scrape)->node->worker->index, 1);
}

/* The target works if the pipelines refuse what it answered. */
static void report(struct scrape *scrape, enum outcome outcome, const char *why)
{
    char error[STATUS_ERROR_MAX];
    snprintf(error, sizeof error, "the profile %s of %s: %s", scrape_kind_names[scrape->kind],
             scrape->target->settings->place.url, why);
    if (outcome == OUTCOME_FAILED)
        status_source_fail(&scrape->works, STATUS_RECOVERABLE_ERROR, error);
    else
        status_source_refuse(&scrape->works, error);
}

static void fail(struct scrape *scrape, enum outcome outcome, const char *why)
{
    const struct endpoint *place = &scrape->target->settings->place;
    count(scrape, outcome);
    report(scrape, outcome, why);
    if (scrape->failures++ == 0)
        log_warn(scraper_of(scrape)->node->origin,
                 "Scraping failed. Further failures are not logged until it works again.",
                 LOG_TEXT("profile", scrape_kind_names[scrape->kind]),
                 LOG_TEXT("target", place->url), LOG_TEXT("error", why));
}

static void succeed(struct scrape *scrape)
{
    const struct endpoint *place = &scrape->target->settings->place;
    count(scrape, OUTCOME_OK);
    status_source_succeed(&scrape->works);
    if (scrape->failures > 0)
        log_info(scraper_of(scrape)->node->origin, "Scraping works again.",
                 LOG_TEXT("profile", scrape_kind_names[scrape->kind]),
                 LOG_TEXT("target", place->url), LOG_U64("failed_attempts", scrape->failures));
    scrape->failures = 0;
    if (!scrape->delta)
        return;
    pprof_delta_keep(scrape->delta);
    scrape->kept_ns = scrape->began_ns;
}

static void check_drained(struct scraper *scraper)
{
    if (scraper->draining && scraper->busy == 0 && scraper->on_drained) {
        void (*on_drained)(void *) = scraper->on_drained;
        scraper->on_drained = NULL;
        on_drained(scraper->drain_context);
    }
}

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct scrape *scrape = container_of(receipt, struct scrape, receipt);
    struct scraper *scraper = scraper_of(scrape);
    assert(scrape->state == SCRAPE_FORWARDS && scraper->busy > 0);
    const struct received_counters *counters = scraper->counters;
    bool is_ok = verdict_is_ok(verdict);
    counter_add(is_ok ? counters->accepted : counters->refused, scraper->node->worker->index,
                scrape->samples);
    scrape->state = SCRAPE_RESTS;
    scraper->busy--;
    if (is_ok)
        succeed(scrape);
    else
        fail(scrape, OUTCOME_REFUSED, verdict->text);
    check_drained(scraper);
}

static void forward(struct scrape *scrape, struct buffer *profiles)
{
    assert(scrape->state == SCRAPE_RESTS);
    struct node *node = scraper_of(scrape)->node;
    scrape->state = SCRAPE_FORWARDS;
    scraper_of(scrape)->busy++;
    receipt_init(&scrape->receipt, on_settled);
    struct batch *batch =
        batch_new(node->worker, SIGNAL_PROFILES, profiles, scrape->samples, &scrape->receipt, NULL);
    batch->links_are_labels = true;
    batch->arrived_empty = scrape->samples == 0;
    node_forward(node, batch);
}

/* profiles: the request for the pipelines; NULL: it is refused, see *why. */
static void finish_reading(struct scrape *scrape, struct buffer *profiles,
                           const struct verdict *why)
{
    assert(profiles || !verdict_is_ok(why));
    struct scraper *scraper = scraper_of(scrape);
    scrape->state = SCRAPE_RESTS;
    if (!profiles) {
        if (why->code == GRPC_INVALID_ARGUMENT)
            counter_add(scraper->counters->invalid, scraper->node->worker->index, 1);
        fail(scrape, OUTCOME_FAILED, why->text);
    } else if (profiles_are_wanted(scraper->node, scrape->samples)) {
        forward(scrape, profiles);
    } else {
        buffer_unref(profiles);
        succeed(scrape);
    }
}

static struct profile_intake intake_of(const struct scrape *scrape, struct slice body)
{
    const struct scraper *scraper = scraper_of(scrape);
    return (struct profile_intake){
        .bytes = body,
        .series = &scrape->target->series,
        .name = slice_of_string(metric_names[scrape->kind]),
        .max_size = (size_t)scraper->settings->max_body_size,
        .first_try_bytes = READING_UNPACKED_BYTES,
        .time_unix_nano = scrape->began_ns,
        .delta = scrape->delta,
        .delta_base_ns = scrape->kept_ns,
        .budget = scraper->node->component->process->budget,
    };
}

/* ---- a large profile, which a job reads ---- */

struct scrape_reading {
    struct job job;
    struct scrape *scrape;
    struct buffer *body;
    struct buffer *profiles;
    struct verdict why;
};

static void read_large(struct job *job)
{
    struct scrape_reading *reading = container_of(job, struct scrape_reading, job);
    struct scrape *scrape = reading->scrape;
    struct profile_intake intake = intake_of(scrape, buffer_slice(reading->body));
    reading->profiles = profile_intake_read(&intake, NULL, &scrape->samples, &reading->why);
}

static void on_large_read(struct job *job, bool did_run)
{
    struct scrape_reading *reading = container_of(job, struct scrape_reading, job);
    struct scrape *scrape = reading->scrape;
    struct scraper *scraper = scraper_of(scrape);
    assert(did_run && scrape->state == SCRAPE_READS && scrape->reading == reading);
    scrape->reading = NULL;
    assert(scraper->busy > 0);
    scraper->busy--;
    finish_reading(scrape, reading->profiles, &reading->why);
    buffer_unref(reading->body);
    free(reading);
    check_drained(scraper);
}

/* The client owns the body, so it is copied for the job. */
static void start_reading(struct scrape *scrape, struct slice body)
{
    assert(scrape->state == SCRAPE_RESTS && !scrape->reading);
    struct scraper *scraper = scraper_of(scrape);
    struct buffer *copy = buffer_new(body.size, scraper->node->component->process->budget);
    if (!copy) {
        fail(scrape, OUTCOME_FAILED, verdict_over_budget.text);
        return;
    }
    buffer_append(copy, body.data, body.size, body.size);
    struct scrape_reading *reading = memory_zalloc(sizeof *reading);
    reading->job = (struct job){.run = read_large, .on_done = on_large_read};
    reading->scrape = scrape;
    reading->body = copy;
    scrape->reading = reading;
    scrape->state = SCRAPE_READS;
    scraper->busy++;
    job_start(scraper->node->worker, &reading->job);
}

/* Cancels the job. For the stop, if the drain took too long. */
static void stop_reading(struct scrape *scrape)
{
    struct scrape_reading *reading = scrape->reading;
    if (!reading)
        return;
    job_cancel(&reading->job);
    buffer_unref(reading->profiles);
    buffer_unref(reading->body);
    free(reading);
    scrape->reading = NULL;
    scrape->state = SCRAPE_RESTS;
}

static void take_profile(struct scrape *scrape, struct slice body)
{
    struct profile_intake intake = intake_of(scrape, body);
    struct verdict why;
    struct buffer *profiles = NULL;
    bool is_large = body.size >= READING_PACKED_BYTES;
    if (!is_large)
        profiles = profile_intake_read(&intake, &is_large, &scrape->samples, &why);
    if (is_large)
        start_reading(scrape, body);
    else
        finish_reading(scrape, profiles, &why);
}

static void on_done(struct client_request *request, const struct client_answer *answer)
{
    struct scrape *scrape = container_of(request, struct scrape, request);
    assert(scrape->state == SCRAPE_ASKS);
    char why[160];
    scrape->state = SCRAPE_RESTS;
    if (answer->failure != CLIENT_OK) {
        fail(scrape, OUTCOME_FAILED, answer->failure_text);
    } else if (answer->status != 200) {
        snprintf(why, sizeof why, "answered with status %d: %.*s", answer->status,
                 (int)(answer->body.size < 100 ? answer->body.size : 100),
                 (const char *)answer->body.data);
        fail(scrape, OUTCOME_FAILED, why);
    } else if (answer->body_cut) {
        snprintf(why, sizeof why, "has more than %zu bytes, or more than fit into memory",
                 answer->body.size);
        fail(scrape, OUTCOME_FAILED, why);
    } else {
        take_profile(scrape, answer->body);
    }
}

/* ---- asking ---- */

static void ask(struct scrape *scrape)
{
    struct scraper *scraper = scraper_of(scrape);
    assert(scrape->state == SCRAPE_RESTS && !scraper->draining);
    int64_t seconds =
        scrape->kind == SCRAPE_CPU ? (int64_t)scrape_cpu_seconds(scraper->settings) : 0;
    scrape->state = SCRAPE_ASKS;
    scrape->began_ns = clock_wall_ns();
    scrape->request = (struct client_request){
        .method = "GET",
        .path = scrape->path,
        .headers = scraper->headers,
        .header_count = scraper->header_count,
        .body_max = (size_t)scraper->settings->max_body_size,
        .budget = scraper->node->component->process->budget,
        .timeout_ns = scraper->settings->timeout + seconds * 1000000000,
        .on_done = on_done,
    };
    client_send(scrape->target->client, &scrape->request);
}

static void on_turn(struct timer *timer)
{
    struct scrape *scrape = container_of(timer, struct scrape, timer);
    struct worker *worker = scraper_of(scrape)->node->worker;
    uint64_t interval = (uint64_t)scraper_of(scrape)->settings->interval;
    assert(interval > 0 && !scraper_of(scrape)->draining); /* draining cancels the timer */
    do
        scrape->due_ns += interval;
    while (scrape->due_ns <= worker->now_ns);
    worker_set_timer(worker, timer, scrape->due_ns - worker->now_ns);
    if (scrape->state == SCRAPE_RESTS)
        ask(scrape);
    else
        count(scrape, OUTCOME_SKIPPED);
}

/* ---- start and stop ---- */

static enum pprof_delta_kind without_allocations(struct slice sample_type)
{
    bool allocated = sample_type.size >= 6 && memcmp(sample_type.data, "alloc_", 6) == 0;
    return allocated ? PPROF_DELTA_LEAVE_OUT : PPROF_DELTA_AS_IS;
}

static enum pprof_delta_kind only_allocations(struct slice sample_type)
{
    bool in_use = sample_type.size >= 6 && memcmp(sample_type.data, "inuse_", 6) == 0;
    return in_use ? PPROF_DELTA_LEAVE_OUT : PPROF_DELTA_AS_IS;
}

static enum pprof_delta_kind only_new_allocations(struct slice sample_type)
{
    enum pprof_delta_kind kind = only_allocations(sample_type);
    return kind == PPROF_DELTA_AS_IS ? pprof_delta_usual(sample_type) : kind;
}

/* heap and allocs have the same sample types; each type is sent from one of them only. */
static struct pprof_delta *delta_for(const struct scrape *scrape)
{
    const struct scrape_profiles *profiles = &scraper_of(scrape)->settings->profiles;
    struct budget *budget = scraper_of(scrape)->node->component->process->budget;
    bool delta = scrape_profile_of(profiles, scrape->kind)->delta;
    bool both = profiles->heap.enabled && profiles->allocs.enabled;
    if (both && scrape->kind == SCRAPE_HEAP)
        return pprof_delta_new(budget, without_allocations);
    if (both && scrape->kind == SCRAPE_ALLOCS)
        return pprof_delta_new(budget, delta ? only_new_allocations : only_allocations);
    return delta ? pprof_delta_new(budget, pprof_delta_usual) : NULL;
}

static const char *path_of(struct scrape *scrape)
{
    struct scraper *scraper = scraper_of(scrape);
    const char *base = scrape->target->settings->place.path;
    const char *path = scrape_profile_of(&scraper->settings->profiles, scrape->kind)->path;
    size_t size = strlen(base);
    while (size > 0 && base[size - 1] == '/')
        size--;
    if (scrape->kind != SCRAPE_CPU)
        return arena_printf(&scraper->arena, "%.*s%s", (int)size, base, path);
    return arena_printf(&scraper->arena, "%.*s%s%cseconds=%" PRIu64, (int)size, base, path,
                        strchr(path, '?') ? '&' : '?', scrape_cpu_seconds(scraper->settings));
}

static void make_counters(struct scrape *scrape)
{
    const struct component *component = scraper_of(scrape)->node->component;
    for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
        struct text labels = {0};
        metrics_label(&labels, "receiver", component->id);
        metrics_label(&labels, "target", scrape->target->settings->place.url);
        metrics_label(&labels, "profile", scrape_kind_names[scrape->kind]);
        metrics_label(&labels, "result", outcome_names[outcome]);
        scrape->counters[outcome] =
            metrics_counter(component->process->metrics, "profcol_receiver_scrapes",
                            "Scraped profiles; skipped: the previous scrape was still running.",
                            text_string(&labels));
        text_deinit(&labels);
    }
}

static void start_scrape(struct target *target, enum scrape_kind kind, uint64_t delay_ns)
{
    struct worker *worker = target->scraper->node->worker;
    struct scrape *scrape = &target->scrapes[kind];
    *scrape = (struct scrape){.target = target, .kind = kind, .timer = {.on_timer = on_turn}};
    scrape->path = path_of(scrape);
    scrape->delta = delta_for(scrape);
    make_counters(scrape);
    status_source_add(&scrape->works, &target->scraper->node->component->status,
                      STATUS_ALL_SIGNALS);
    scrape->due_ns = worker->now_ns + delay_ns;
    worker_set_timer(worker, &scrape->timer, delay_ns);
}

static bool start_target(struct target *target, uint64_t delay_ns, struct error *err)
{
    struct scraper *scraper = target->scraper;
    const struct scrape_settings *settings = scraper->settings;
    const struct endpoint *place = &target->settings->place;
    struct client_options options = otlp_client_options(place, scraper->node->component);
    options.protocol = CLIENT_HTTP1;
    options.allow_h2 = true;
    options.tls = place->scheme == ENDPOINT_HTTPS ? &settings->tls : NULL;
    options.max_connections = SCRAPE_KIND_COUNT;
    options.idle_timeout_ns = IDLE_TIMEOUT_NS;
    if (!static_labels_read(&target->settings->labels, &target->series, err))
        return false;
    target->client = client_new(scraper->node->worker, &options, err);
    for (int kind = 0; target->client && kind < SCRAPE_KIND_COUNT; kind++)
        if (scrape_profile_of(&settings->profiles, (enum scrape_kind)kind)->enabled)
            start_scrape(target, (enum scrape_kind)kind, delay_ns);
    return target->client != NULL;
}

static void add_header(struct scraper *scraper, const char *name, const char *value)
{
    char *lower = arena_strdup(&scraper->arena, name);
    for (char *c = lower; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    assert(scraper->header_count <=
           scraper->settings->headers.count); /* the configured headers and one of our own */
    scraper->headers[scraper->header_count++] = (struct http_header){
        slice_of_string(lower), slice_trim(slice_of_string(value), SLICE_BLANKS)};
}

static void set_headers(struct scraper *scraper)
{
    const struct config_pairs *pairs = &scraper->settings->headers;
    scraper->headers = arena_array(&scraper->arena, pairs->count + 1, sizeof *scraper->headers);
    add_header(
        scraper, "user-agent",
        arena_printf(&scraper->arena, "profcol/%s", scraper->node->component->process->version));
    for (size_t i = 0; i < pairs->count; i++)
        add_header(scraper, pairs->items[i].name, pairs->items[i].value);
}

struct scraper *scraper_start(struct node *node, const struct scrape_settings *settings,
                              const struct received_counters *counters, struct error *err)
{
    unsigned workers = node->component->process->worker_count;
    const struct scrape_target *targets = settings->targets.items;
    size_t count = settings->targets.count;
    struct scraper *scraper = memory_zalloc(sizeof *scraper);
    scraper->node = node;
    scraper->settings = settings;
    scraper->counters = counters;
    arena_init(&scraper->arena, NULL);
    set_headers(scraper);
    scraper->targets = arena_array(&scraper->arena, count, sizeof *scraper->targets);
    for (size_t i = node->worker->index; i < count; i += workers) {
        struct target *target = &scraper->targets[scraper->target_count++];
        assert(scraper->target_count <= count);
        target->scraper = scraper;
        target->settings = &targets[i];
        if (!start_target(target, (uint64_t)settings->interval / count * i, err)) {
            scraper_free(scraper);
            return NULL;
        }
    }
    return scraper;
}

static void stop_asking(struct scrape *scrape)
{
    worker_cancel_timer(scraper_of(scrape)->node->worker, &scrape->timer);
    if (scrape->state == SCRAPE_ASKS)
        client_cancel(&scrape->request);
    if (scrape->state == SCRAPE_ASKS)
        scrape->state = SCRAPE_RESTS;
}

static void each_scrape(struct scraper *scraper, void (*run)(struct scrape *scrape))
{
    for (size_t i = 0; i < scraper->target_count; i++)
        for (int kind = 0; kind < SCRAPE_KIND_COUNT; kind++)
            if (scraper->targets[i].scrapes[kind].path)
                run(&scraper->targets[i].scrapes[kind]);
}

void scraper_drain(struct scraper *scraper, void (*on_drained)(void *context), void *context)
{
    assert(!scraper->draining && worker_is_current(scraper->node->worker));
    scraper->draining = true;
    scraper->on_drained = on_drained;
    scraper->drain_context = context;
    each_scrape(scraper, stop_asking);
    check_drained(scraper);
}

static void free_scrape(struct scrape *scrape)
{
    stop_asking(scrape);
    stop_reading(scrape);
    assert(scrape->state == SCRAPE_RESTS);
    pprof_delta_free(scrape->delta);
    status_source_remove(&scrape->works);
}

void scraper_free(struct scraper *scraper)
{
    if (!scraper)
        return;
    each_scrape(scraper, free_scrape);
    for (size_t i = 0; i < scraper->target_count; i++)
        client_free(scraper->targets[i].client);
    arena_deinit(&scraper->arena);
    free(scraper);
}
