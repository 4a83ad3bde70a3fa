#include "receivers/pprof/scrape.h"

#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/otlp_sender.h"
#include "receivers/pprof/profile_intake.h"
#include "receivers/pprof/static_labels.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#define IDLE_TIMEOUT_NS (INT64_C(90) * 1000000000)

enum outcome { OUTCOME_OK, OUTCOME_FAILED, OUTCOME_REFUSED, OUTCOME_SKIPPED, OUTCOME_COUNT };
static const char *const outcome_names[] = {"ok", "failed", "refused", "skipped"};

/* As Pyroscope calls them. */
static const char *const metric_names[SCRAPE_KIND_COUNT] = {
    [SCRAPE_CPU] = "process_cpu", [SCRAPE_HEAP] = "memory",          [SCRAPE_ALLOCS] = "memory",
    [SCRAPE_MUTEX] = "mutex",     [SCRAPE_GOROUTINE] = "goroutines", [SCRAPE_BLOCK] = "block",
};

struct target;

/* One profile of a target, asked for every interval. */
struct job {
    struct client_request request;
    struct receipt receipt;
    struct timer timer;
    struct target *target;
    enum scrape_kind kind;
    const char *path;
    uint64_t due_ns; /* monotonic */
    enum { JOB_RESTS, JOB_ASKS, JOB_FORWARDS } state;
    struct pprof_delta *delta;  /* NULL: profiles are sent as they are */
    uint64_t began_ns, kept_ns; /* wall clock; of the scrape, and of the one that delta kept */
    uint32_t samples;
    uint64_t failures; /* since it worked last */
    struct counter *counters[OUTCOME_COUNT];
};

struct target {
    struct scraper *scraper;
    const struct scrape_target *settings;
    struct series series;
    struct client *client;
    struct job jobs[SCRAPE_KIND_COUNT]; /* path is NULL for what is not wanted */
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
    size_t forwarding; /* jobs in that state */
    bool draining;
    void (*on_drained)(void *context);
    void *drain_context;
};

static struct scraper *scraper_of(const struct job *job)
{
    return job->target->scraper;
}

/* ---- what came of it ---- */

static void count(struct job *job, enum outcome outcome)
{
    counter_add(job->counters[outcome], scraper_of(job)->node->worker->index, 1);
}

static void fail(struct job *job, enum outcome outcome, const char *why)
{
    const struct endpoint *place = &job->target->settings->place;
    count(job, outcome);
    if (job->failures++ == 0)
        log_warn(scraper_of(job)->node->component->label,
                 "the profile %s of %s: %s; further failures are not logged until it works again",
                 scrape_kind_names[job->kind], place->url, why);
}

static void succeed(struct job *job)
{
    const struct endpoint *place = &job->target->settings->place;
    count(job, OUTCOME_OK);
    if (job->failures > 0)
        log_info(scraper_of(job)->node->component->label,
                 "the profile %s of %s works again after %" PRIu64 " failures",
                 scrape_kind_names[job->kind], place->url, job->failures);
    job->failures = 0;
    if (!job->delta)
        return;
    pprof_delta_keep(job->delta);
    job->kept_ns = job->began_ns;
}

static void check_drained(struct scraper *scraper)
{
    if (scraper->draining && scraper->forwarding == 0 && scraper->on_drained) {
        void (*on_drained)(void *) = scraper->on_drained;
        scraper->on_drained = NULL;
        on_drained(scraper->drain_context);
    }
}

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct job *job = container_of(receipt, struct job, receipt);
    struct scraper *scraper = scraper_of(job);
    const struct received_counters *counters = scraper->counters;
    bool is_ok = verdict_is_ok(verdict);
    counter_add(is_ok ? counters->accepted : counters->refused, scraper->node->worker->index,
                job->samples);
    job->state = JOB_RESTS;
    scraper->forwarding--;
    if (is_ok)
        succeed(job);
    else
        fail(job, OUTCOME_REFUSED, verdict->text);
    check_drained(scraper);
}

static void forward(struct job *job, struct buffer *profiles)
{
    struct node *node = scraper_of(job)->node;
    job->state = JOB_FORWARDS;
    scraper_of(job)->forwarding++;
    receipt_init(&job->receipt, on_settled);
    node_forward(node, batch_new(node->worker, SIGNAL_PROFILES, profiles, job->samples,
                                 &job->receipt, NULL));
}

static void take_profile(struct job *job, struct slice body)
{
    struct scraper *scraper = scraper_of(job);
    struct verdict why;
    struct profile_intake intake = {
        .bytes = body,
        .series = &job->target->series,
        .name = slice_of_string(metric_names[job->kind]),
        .max_size = (size_t)scraper->settings->max_body_size,
        .time_unix_nano = job->began_ns,
        .delta = job->delta,
        .delta_base_ns = job->kept_ns,
        .budget = scraper->node->component->process->budget,
    };
    struct buffer *profiles = profile_intake_read(&intake, &job->samples, &why);
    if (!profiles) {
        if (why.code == GRPC_INVALID_ARGUMENT)
            counter_add(scraper->counters->invalid, scraper->node->worker->index, 1);
        fail(job, OUTCOME_FAILED, why.text);
    } else if (job->samples == 0) {
        buffer_unref(profiles);
        succeed(job);
    } else {
        forward(job, profiles);
    }
}

static void on_done(struct client_request *request, const struct client_answer *answer)
{
    struct job *job = container_of(request, struct job, request);
    char why[160];
    job->state = JOB_RESTS;
    if (answer->failure != CLIENT_OK) {
        fail(job, OUTCOME_FAILED, answer->failure_text);
    } else if (answer->status != 200) {
        snprintf(why, sizeof why, "answered %d: %.*s", answer->status,
                 (int)(answer->body.size < 100 ? answer->body.size : 100),
                 (const char *)answer->body.data);
        fail(job, OUTCOME_FAILED, why);
    } else if (answer->body_cut) {
        snprintf(why, sizeof why, "has more than %zu bytes, or than there is memory for",
                 answer->body.size);
        fail(job, OUTCOME_FAILED, why);
    } else {
        take_profile(job, answer->body);
    }
}

/* ---- asking ---- */

static void ask(struct job *job)
{
    struct scraper *scraper = scraper_of(job);
    int64_t seconds = job->kind == SCRAPE_CPU ? (int64_t)scrape_cpu_seconds(scraper->settings) : 0;
    job->state = JOB_ASKS;
    job->began_ns = clock_wall_ns();
    job->request = (struct client_request){
        .method = "GET",
        .path = job->path,
        .headers = scraper->headers,
        .header_count = scraper->header_count,
        .body_max = (size_t)scraper->settings->max_body_size,
        .budget = scraper->node->component->process->budget,
        .timeout_ns = scraper->settings->timeout + seconds * 1000000000,
        .on_done = on_done,
    };
    client_send(job->target->client, &job->request);
}

static void on_turn(struct timer *timer)
{
    struct job *job = container_of(timer, struct job, timer);
    struct worker *worker = scraper_of(job)->node->worker;
    uint64_t interval = (uint64_t)scraper_of(job)->settings->interval;
    do
        job->due_ns += interval;
    while (job->due_ns <= worker->now_ns);
    worker_set_timer(worker, timer, job->due_ns - worker->now_ns);
    if (job->state == JOB_RESTS)
        ask(job);
    else
        count(job, OUTCOME_SKIPPED);
}

/* ---- life ---- */

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

/* heap and allocs have the same sample types; each is sent once. */
static struct pprof_delta *delta_for(const struct job *job)
{
    const struct scrape_profiles *profiles = &scraper_of(job)->settings->profiles;
    struct budget *budget = scraper_of(job)->node->component->process->budget;
    bool delta = scrape_profile_of(profiles, job->kind)->delta;
    bool both = profiles->heap.enabled && profiles->allocs.enabled;
    if (both && job->kind == SCRAPE_HEAP)
        return pprof_delta_new(budget, without_allocations);
    if (both && job->kind == SCRAPE_ALLOCS)
        return pprof_delta_new(budget, delta ? only_new_allocations : only_allocations);
    return delta ? pprof_delta_new(budget, pprof_delta_usual) : NULL;
}

static const char *path_of(struct job *job)
{
    struct scraper *scraper = scraper_of(job);
    const char *base = job->target->settings->place.path;
    const char *path = scrape_profile_of(&scraper->settings->profiles, job->kind)->path;
    size_t size = strlen(base);
    while (size > 0 && base[size - 1] == '/')
        size--;
    if (job->kind != SCRAPE_CPU)
        return arena_printf(&scraper->arena, "%.*s%s", (int)size, base, path);
    return arena_printf(&scraper->arena, "%.*s%s%cseconds=%" PRIu64, (int)size, base, path,
                        strchr(path, '?') ? '&' : '?', scrape_cpu_seconds(scraper->settings));
}

static void make_counters(struct job *job)
{
    const struct component *component = scraper_of(job)->node->component;
    for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
        struct text labels = {0};
        metrics_label(&labels, "receiver", component->id);
        metrics_label(&labels, "target", job->target->settings->place.url);
        metrics_label(&labels, "profile", scrape_kind_names[job->kind]);
        metrics_label(&labels, "result", outcome_names[outcome]);
        job->counters[outcome] =
            metrics_counter(component->process->metrics, "profcol_receiver_scrapes",
                            "Profiles asked for; skipped: the one before was still under way.",
                            text_string(&labels));
        text_deinit(&labels);
    }
}

static void start_job(struct target *target, enum scrape_kind kind, uint64_t delay_ns)
{
    struct worker *worker = target->scraper->node->worker;
    struct job *job = &target->jobs[kind];
    *job = (struct job){.target = target, .kind = kind, .timer = {.on_timer = on_turn}};
    job->path = path_of(job);
    job->delta = delta_for(job);
    make_counters(job);
    job->due_ns = worker->now_ns + delay_ns;
    worker_set_timer(worker, &job->timer, delay_ns);
}

static bool start_target(struct target *target, uint64_t delay_ns, struct error *err)
{
    struct scraper *scraper = target->scraper;
    const struct scrape_settings *settings = scraper->settings;
    const struct endpoint *place = &target->settings->place;
    struct client_options options = otlp_client_options(place, scraper->node->component->label);
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
            start_job(target, (enum scrape_kind)kind, delay_ns);
    return target->client != NULL;
}

static void add_header(struct scraper *scraper, const char *name, const char *value)
{
    char *lower = arena_strdup(&scraper->arena, name);
    for (char *c = lower; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    scraper->headers[scraper->header_count++] =
        (struct http_header){slice_of_string(lower), slice_of_string(value)};
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
        target->scraper = scraper;
        target->settings = &targets[i];
        if (!start_target(target, (uint64_t)settings->interval / count * i, err)) {
            scraper_free(scraper);
            return NULL;
        }
    }
    return scraper;
}

static void stop_asking(struct job *job)
{
    worker_cancel_timer(scraper_of(job)->node->worker, &job->timer);
    if (job->state == JOB_ASKS)
        client_cancel(&job->request);
    if (job->state == JOB_ASKS)
        job->state = JOB_RESTS;
}

static void each_job(struct scraper *scraper, void (*run)(struct job *job))
{
    for (size_t i = 0; i < scraper->target_count; i++)
        for (int kind = 0; kind < SCRAPE_KIND_COUNT; kind++)
            if (scraper->targets[i].jobs[kind].path)
                run(&scraper->targets[i].jobs[kind]);
}

void scraper_drain(struct scraper *scraper, void (*on_drained)(void *context), void *context)
{
    scraper->draining = true;
    scraper->on_drained = on_drained;
    scraper->drain_context = context;
    each_job(scraper, stop_asking);
    check_drained(scraper);
}

static void free_job(struct job *job)
{
    stop_asking(job);
    assert(job->state == JOB_RESTS);
    pprof_delta_free(job->delta);
}

void scraper_free(struct scraper *scraper)
{
    if (!scraper)
        return;
    each_job(scraper, free_job);
    for (size_t i = 0; i < scraper->target_count; i++)
        client_free(scraper->targets[i].client);
    arena_deinit(&scraper->arena);
    free(scraper);
}
