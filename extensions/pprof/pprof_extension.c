/*
 * pprof_extension: serves profiles of the process itself, at the Collector's address and paths.
 *
 * GET /debug/pprof/profile?seconds=N samples processor time for N seconds. Allocations are sampled
 * while the extension is configured (/debug/pprof/heap, /allocs), waits for mutexes with
 * mutex_profile_fraction (/debug/pprof/mutex); with seconds=N only those of N seconds.
 * docs/profiling.md is for users.
 *
 * Owner: the component owns its server and one request for each path; a second one is refused.
 *
 * Thread: made on main; a request belongs to the worker of its exchange until it is released; its
 * pprof is written in a job.
 */
#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/cpu_sampler.h"
#include "core/base/heap_sampler.h"
#include "core/base/job.h"
#include "core/base/mutex_sampler.h"
#include "core/net/own_host.h"
#include "core/net/url_query.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/probe_server.h"
#include "extensions/pprof/own_profile.h"
#include "extensions/pprof/profile_kinds.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECONDS_DEFAULT = 30, SECONDS_MAX = 300, CONNECTIONS_MAX = 16 };
#define SECOND_NS UINT64_C(1000000000)

struct pprof_extension_settings {
    const char *endpoint;
    int64_t block_profile_fraction, mutex_profile_fraction;
    const char *save_to_file;
    const struct config_node *dialer;
};

static const struct field pprof_extension_fields[] = {
    FIELD_STRING(pprof_extension_settings, endpoint, "Address to listen on.",
                 .fallback = "localhost:1777"),
    FIELD_INT(pprof_extension_settings, block_profile_fraction,
              "How often blocking is recorded, in Go.", .fallback = "0", .ignored = true),
    FIELD_INT(pprof_extension_settings, mutex_profile_fraction,
              "One of so many waits for a mutex is recorded, at random, for /debug/pprof/mutex; 0: "
              "none.",
              .fallback = "0", .min = "0", .max = "1000000"),
    FIELD_STRING(
        pprof_extension_settings, save_to_file,
        "A file that the CPU profile of the whole run is written to at the end. Until then "
        "/debug/pprof/profile answers 500."),
    FIELD_NODE(pprof_extension_settings, dialer, "Settings of outgoing sockets.", .ignored = true),
    FIELD_END,
};

/* ---- what is served ---- */

enum { PATH_CPU, PATH_HEAP, PATH_ALLOCS, PATH_MUTEX, PATHS };
static const struct {
    struct slice path;
    const struct own_profile_kind *kind;
} paths[PATHS] = {
    [PATH_CPU] = {SLICE("/debug/pprof/profile"), &profile_kind_cpu},
    [PATH_HEAP] = {SLICE("/debug/pprof/heap"), &profile_kind_heap},
    [PATH_ALLOCS] = {SLICE("/debug/pprof/allocs"), &profile_kind_allocs},
    [PATH_MUTEX] = {SLICE("/debug/pprof/mutex"), &profile_kind_mutex},
};

/* ---- state ---- */

/* A profile that somebody waits for. */
struct profile_request {
    const struct own_profile_kind *kind;
    bool is_empty;                   /* nothing is sampled for it */
    _Atomic(struct worker *) worker; /* of the exchange; NULL: nobody waits. Only the worker itself
                                        writes itself, and NULL afterwards */
    struct exchange *exchange;
    struct timer timer;         /* set: the time of `seconds` is not over */
    uint64_t began_ns, ends_ns; /* monotonic */
    uint64_t began_wall_ns;     /* since 1970 */
    struct stack_table *stacks; /* of the others, for the job */
    struct stack_table *before; /* at the start of `seconds`; NULL: all counts since the start */
    struct job job;
    struct buffer *pprof;
};

/* The profile of the whole run. */
struct saved_profile {
    struct timer timer; /* on the last worker, every second */
    bool is_sampling;
    uint64_t began_ns, began_wall_ns, ended_ns;
};

struct pprof_extension {
    struct component component;
    struct probe_server http;
    char host[256];
    bool samples_heap, samples_mutexes;
    struct profile_request requests[PATHS];
    struct saved_profile saved;
};

extern const struct component_type pprof_extension_type;

static struct pprof_extension *extension_of(struct component *component)
{
    return component_as(struct pprof_extension, component, &pprof_extension_type);
}

/* ---- the pprof ---- */

static void add_sample(void *context, const char *thread, const struct stack_entry *entry)
{
    own_profile_add(context, entry, thread);
}

static struct buffer *write_cpu(const struct own_profile_times *times)
{
    struct own_profile *profile = own_profile_new(&profile_kind_cpu);
    struct own_profile_times all = *times;
    all.lost = cpu_sampler_visit(add_sample, profile);
    return own_profile_finish(profile, &all);
}

static struct buffer *write_stacks(const struct own_profile_kind *kind,
                                   const struct stack_table *stacks,
                                   const struct own_profile_times *times)
{
    struct own_profile *profile = own_profile_new(kind);
    struct own_profile_times all = *times;
    const struct stack_entry *entry = stacks ? stack_table_first(stacks) : NULL;
    for (; entry; entry = stack_table_next(stacks, entry))
        own_profile_add(profile, entry, NULL);
    all.lost = stacks ? stacks->lost : 0;
    return own_profile_finish(profile, &all);
}

static void write_pprof(struct job *job)
{
    struct profile_request *request = container_of(job, struct profile_request, job);
    const struct own_profile_times times = {.time_unix_nano = request->began_wall_ns,
                                            .duration_nano = request->ends_ns - request->began_ns};
    if (request->stacks && request->before)
        stack_table_subtract(request->stacks, request->before);
    request->pprof = request->kind == &profile_kind_cpu
                         ? write_cpu(&times)
                         : write_stacks(request->kind, request->stacks, &times);
}

/* ---- answers ---- */

static const struct http_header safety[] = {
    {SLICE("x-content-type-options"), SLICE("nosniff")},
    {SLICE("cache-control"), SLICE("no-store")},
};
enum { SAFETY = sizeof safety / sizeof safety[0] };

/* Always returns false, for on_head. */
static bool respond_text(struct exchange *exchange, int status, struct slice text)
{
    exchange_respond(exchange, status, "text/plain; charset=utf-8", text, safety, SAFETY);
    return false;
}

static void respond_pprof(struct exchange *exchange, const struct buffer *pprof)
{
    const struct http_header headers[] = {
        safety[0],
        safety[1],
        {SLICE("content-disposition"), SLICE("attachment; filename=\"profile.pb.gz\"")},
    };
    exchange_respond(exchange, 200, "application/octet-stream", slice_of(pprof->data, pprof->size),
                     headers, SAFETY + 1);
}

/* Frees what the request holds, and lets the next one begin, perhaps on another worker. Whoever has
 * the sampler finds the request free, so the sampler comes last. */
static void release(struct profile_request *request)
{
    bool is_cpu = request->kind == &profile_kind_cpu;
    assert(!timer_is_set(&request->timer));
    stack_table_free(request->stacks);
    stack_table_free(request->before);
    request->stacks = request->before = NULL;
    if (request->pprof)
        buffer_unref(request->pprof);
    request->pprof = NULL;
    request->exchange = NULL;
    atomic_store(&request->worker, NULL);
    if (is_cpu)
        cpu_sampler_release();
}

static void on_written(struct job *job, bool did_run)
{
    struct profile_request *request = container_of(job, struct profile_request, job);
    assert(did_run && request->pprof);
    (void)did_run;
    respond_pprof(request->exchange, request->pprof);
    release(request);
}

static void begin_writing(struct profile_request *request)
{
    request->job = (struct job){.run = write_pprof, .on_done = on_written};
    job_start(atomic_load(&request->worker), &request->job);
}

/* Every second, so that threads that start meanwhile are sampled, too; then at the end. */
static void on_look(struct timer *timer)
{
    struct profile_request *request = container_of(timer, struct profile_request, timer);
    struct worker *worker = atomic_load(&request->worker);
    uint64_t now_ns = worker_now(worker);
    if (now_ns >= request->ends_ns) {
        cpu_sampler_stop();
        begin_writing(request);
        return;
    }
    uint64_t rest_ns = request->ends_ns - now_ns;
    cpu_sampler_look();
    worker_set_timer(worker, timer, rest_ns < SECOND_NS ? rest_ns : SECOND_NS);
}

/* Returns 0 if there is no such number. */
static uint64_t read_seconds(struct slice query, bool *is_given_out)
{
    char text[16], *end;
    *is_given_out = url_query_get(query, "seconds", text, sizeof text) && text[0];
    if (!*is_given_out)
        return 0;
    long seconds = strtol(text, &end, 10);
    return *end == '\0' && seconds > 0 ? (uint64_t)seconds : 0;
}

static bool refuse_long(struct exchange *exchange, uint64_t seconds)
{
    if (seconds > SECONDS_MAX)
        respond_text(exchange, 400, SLICE("seconds must be at most 300\n"));
    return seconds > SECONDS_MAX;
}

/* Returns false if another request of this path is in progress. */
static bool take(struct profile_request *request, struct exchange *exchange)
{
    struct worker *worker = exchange_worker(exchange), *nobody = NULL;
    if (!atomic_compare_exchange_strong(&request->worker, &nobody, worker))
        return false;
    request->exchange = exchange;
    request->began_ns = request->ends_ns = worker_now(worker);
    request->began_wall_ns = clock_wall_ns();
    request->timer.on_timer = on_look;
    return true;
}

static void begin_cpu(struct profile_request *request, struct exchange *exchange)
{
    bool is_given;
    uint64_t seconds = read_seconds(exchange_query(exchange), &is_given);
    if (seconds == 0)
        seconds = SECONDS_DEFAULT; /* as in Go, also if it is not a number */
    if (refuse_long(exchange, seconds))
        return;
    if (!cpu_sampler_start()) {
        respond_text(exchange, 500,
                     SLICE("Could not enable CPU profiling: cpu profiling already in use\n"));
    } else {
        bool is_free = take(request, exchange);
        assert(is_free); /* a request holds the sampler as long as itself */
        (void)is_free;
        request->ends_ns = request->began_ns + seconds * SECOND_NS;
        worker_set_timer(exchange_worker(exchange), &request->timer, SECOND_NS);
    }
}

static struct stack_table *copy_stacks(const struct profile_request *request)
{
    if (request->kind != &profile_kind_mutex)
        return heap_sampler_copy();
    return request->is_empty ? NULL : mutex_sampler_copy();
}

static void on_seconds_over(struct timer *timer)
{
    struct profile_request *request = container_of(timer, struct profile_request, timer);
    request->stacks = copy_stacks(request);
    begin_writing(request);
}

static void begin_delta(struct profile_request *request, uint64_t seconds)
{
    request->before = copy_stacks(request);
    request->ends_ns = request->began_ns + seconds * SECOND_NS;
    request->timer.on_timer = on_seconds_over;
    worker_set_timer(atomic_load(&request->worker), &request->timer, seconds * SECOND_NS);
}

static void begin_copy(struct pprof_extension *self, struct profile_request *request,
                       struct exchange *exchange)
{
    bool is_heap = request->kind != &profile_kind_mutex, is_given;
    uint64_t seconds = read_seconds(exchange_query(exchange), &is_given);
    if (is_given && seconds == 0) {
        respond_text(exchange, 400,
                     SLICE("invalid value for \"seconds\" - must be a positive integer\n"));
    } else if (refuse_long(exchange, seconds)) {
        return;
    } else if (is_heap && !self->samples_heap) {
        respond_text(exchange, 500, SLICE("Allocations cannot be sampled here; see the log\n"));
    } else if (!take(request, exchange)) {
        respond_text(exchange, 500, SLICE("Another client is served this profile; try again\n"));
    } else if (seconds > 0) {
        begin_delta(request, seconds);
    } else {
        request->stacks = copy_stacks(request);
        begin_writing(request);
    }
}

/* ---- requests ---- */

static int path_index(struct slice path)
{
    int i = 0;
    while (i < PATHS && !slice_equal(path, paths[i].path))
        i++;
    return i;
}

static bool is_index(struct slice path)
{
    return slice_is(path, "/debug/pprof/") || slice_is(path, "/debug/pprof");
}

static bool is_cmdline(struct slice path)
{
    return slice_is(path, "/debug/pprof/cmdline");
}

static bool on_head(void *context, struct exchange *exchange)
{
    const struct pprof_extension *self = context;
    struct slice path = exchange_path(exchange);
    char debug[8];
    if (!own_host_is(self->host, http_header_get(exchange_headers(exchange), "host")))
        return respond_text(exchange, 403, SLICE("The Host header does not name this server\n"));
    if (!is_index(path) && !is_cmdline(path) && path_index(path) == PATHS)
        return respond_text(exchange, 404, SLICE("Unknown profile; see /debug/pprof/\n"));
    if (!slice_is(exchange_method(exchange), "GET"))
        return respond_text(exchange, 405, SLICE("405 method not allowed, supported: [GET]\n"));
    if (url_query_get(exchange_query(exchange), "debug", debug, sizeof debug) &&
        strcmp(debug, "0") != 0)
        return respond_text(exchange, 400, SLICE("profcol has no text form; leave out debug\n"));
    return true;
}

/* Only the program: its arguments may hold secrets. */
static void respond_cmdline(struct exchange *exchange)
{
    char path[1024];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path);
    respond_text(exchange, 200, slice_of(path, size > 0 ? (size_t)size : 0));
}

static void on_request(void *context, struct exchange *exchange)
{
    struct pprof_extension *self = context;
    struct slice path = exchange_path(exchange);
    buffer_unref(exchange_take_body(exchange));
    if (is_index(path))
        respond_text(exchange, 200, slice_of_string(profile_kinds_page));
    else if (is_cmdline(path))
        respond_cmdline(exchange);
    else if (path_index(path) == PATH_CPU)
        begin_cpu(&self->requests[PATH_CPU], exchange);
    else
        begin_copy(self, &self->requests[path_index(path)], exchange);
}

/* Ends the wait for the end of `seconds`. */
static void cancel_wait(struct profile_request *request, struct worker *worker)
{
    worker_cancel_timer(worker, &request->timer);
    if (request->kind == &profile_kind_cpu)
        cpu_sampler_stop();
}

/* The client has gone away: there is no reason to wait any longer. A job goes on, and its answer
 * only frees the exchange. */
static void on_gone(void *context, struct exchange *exchange)
{
    struct pprof_extension *self = context;
    for (int i = 0; i < PATHS; i++) {
        struct profile_request *request = &self->requests[i];
        if (atomic_load(&request->worker) != exchange_worker(exchange) ||
            request->exchange != exchange || !timer_is_set(&request->timer))
            continue;
        cancel_wait(request, exchange_worker(exchange));
        release(request);
        respond_text(exchange, 503, SLICE(""));
        return;
    }
}

static const struct server_handler handler = {
    .on_head = on_head, .on_request = on_request, .on_gone = on_gone};

/* ---- save_to_file ---- */

/* "": not wanted. */
static const char *saved_path(const struct pprof_extension *self)
{
    const struct pprof_extension_settings *settings = self->component.settings;
    return settings->save_to_file ? settings->save_to_file : "";
}

static bool saves(const struct pprof_extension *self)
{
    return saved_path(self)[0] != '\0';
}

static int open_saved(const struct pprof_extension *self, int flags)
{
    return open(saved_path(self), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
}

/* Fails at the start rather than at the end. An older extension may still write to the file after
 * a reload, so it is not emptied yet. */
static bool check_saved(const struct pprof_extension *self, struct error *err)
{
    if (!saves(self))
        return true;
    int file = open_saved(self, 0);
    if (file >= 0) {
        close(file);
        return true;
    }
    error_set_system(err, errno);
    return error_prefix(err, "save_to_file %s", saved_path(self));
}

/* Begins as soon as nobody else samples: after a reload that is the extension before. */
static void on_save_look(struct timer *timer)
{
    struct saved_profile *saved = container_of(timer, struct saved_profile, timer);
    struct pprof_extension *self = container_of(saved, struct pprof_extension, saved);
    struct process *process = self->component.process;
    struct worker *worker = &process->workers[process->worker_count - 1];
    if (saved->is_sampling) {
        cpu_sampler_look();
    } else if (cpu_sampler_start()) {
        saved->is_sampling = true;
        saved->began_ns = worker_now(worker);
        saved->began_wall_ns = clock_wall_ns();
    }
    worker_set_timer(worker, timer, SECOND_NS);
}

static void stop_saving(struct pprof_extension *self, struct worker *worker)
{
    worker_cancel_timer(worker, &self->saved.timer);
    if (self->saved.is_sampling)
        cpu_sampler_stop();
    self->saved.ended_ns = worker_now(worker);
}

static void save(struct pprof_extension *self)
{
    const struct saved_profile *saved = &self->saved;
    const struct own_profile_times times = {.time_unix_nano = saved->began_wall_ns,
                                            .duration_nano = saved->ended_ns - saved->began_ns};
    struct buffer *pprof = write_cpu(&times);
    int file = open_saved(self, O_TRUNC);
    if (file < 0 || write(file, pprof->data, pprof->size) != (ssize_t)pprof->size)
        log_error(log_component(self->component.label), "Cannot write save_to_file",
                  LOG_TEXT("path", saved_path(self)), LOG_TEXT("error", strerror(errno)));
    if (file >= 0)
        close(file);
    buffer_unref(pprof);
    cpu_sampler_release();
}

/* ---- life ---- */

static void start_samplers(struct pprof_extension *self)
{
    const struct pprof_extension_settings *settings = self->component.settings;
    struct error err;
    self->samples_heap = heap_sampler_start(&err);
    if (!self->samples_heap)
        log_warn(log_component(self->component.label), "Allocations are not sampled",
                 LOG_TEXT("error", err.text));
    if (settings->mutex_profile_fraction <= 0)
        return;
    self->samples_mutexes = mutex_sampler_start((uint32_t)settings->mutex_profile_fraction, &err);
    if (!self->samples_mutexes)
        log_warn(log_component(self->component.label), "Waits for mutexes are not sampled",
                 LOG_TEXT("error", err.text));
}

static void pprof_deinit(struct component *component)
{
    struct pprof_extension *self = extension_of(component);
    probe_server_close(&self->http);
    if (self->samples_heap)
        heap_sampler_stop();
    if (self->samples_mutexes)
        mutex_sampler_stop();
    if (self->saved.is_sampling)
        save(self);
}

static bool pprof_init(struct component *component, struct error *err)
{
    struct pprof_extension *self = extension_of(component);
    const struct pprof_extension_settings *settings = component->settings;
    const struct server_options options = {
        .endpoint = settings->endpoint,
        .transport = "tcp",
        .accept_http = true,
        .max_body_bytes = 1024,
        .max_connections = CONNECTIONS_MAX,
        .label = component->label,
        .metrics = component->process->metrics,
    };
    for (int i = 0; i < PATHS; i++)
        self->requests[i].kind = paths[i].kind;
    probe_server_host(&options, self->host, sizeof self->host);
    if (!check_saved(self, err) ||
        !probe_server_open(&self->http, component, &options, &handler, self, err))
        return false;
    start_samplers(self);
    self->requests[PATH_MUTEX].is_empty = !self->samples_mutexes;
    return true;
}

static bool pprof_node_start(struct node *node, struct error *err)
{
    struct pprof_extension *self = extension_of(node->component);
    (void)err;
    probe_server_start(&self->http, node);
    if (saves(self) && node->worker->index + 1 == node->component->process->worker_count) {
        self->saved.timer.on_timer = on_save_look;
        on_save_look(&self->saved.timer);
    }
    return true;
}

/* The client is told, if its connection still takes the answer. */
static void stop_request(struct profile_request *request, struct worker *worker)
{
    if (timer_is_set(&request->timer))
        cancel_wait(request, worker);
    else
        job_cancel(&request->job);
    respond_text(request->exchange, 503, SLICE("profcol ends, or is configured anew\n"));
    release(request);
}

static void pprof_node_stop(struct node *node)
{
    struct pprof_extension *self = extension_of(node->component);
    for (int i = 0; i < PATHS; i++)
        if (atomic_load(&self->requests[i].worker) == node->worker)
            stop_request(&self->requests[i], node->worker);
    if (saves(self) && node->worker->index + 1 == node->component->process->worker_count)
        stop_saving(self, node->worker);
    probe_server_stop(&self->http, node);
}

const struct component_type pprof_extension_type = {
    .config = {.name = "pprof",
               .section = CONFIG_EXTENSIONS,
               .stability = {STABILITY_BETA},
               .help = "Profiles of profcol itself for `go tool pprof` and Pyroscope, at "
                       "/debug/pprof/: processor time (`profile?seconds=30`, at most 300), "
                       "allocations (`heap`, `allocs`), waits for mutexes (`mutex`). "
                       "docs/profiling.md. Keep the endpoint local.",
               .fields = pprof_extension_fields,
               .config_size = sizeof(struct pprof_extension_settings)},
    .component_size = sizeof(struct pprof_extension),
    .init = pprof_init,
    .deinit = pprof_deinit,
    .node_start = pprof_node_start,
    .node_stop = pprof_node_stop,
};
