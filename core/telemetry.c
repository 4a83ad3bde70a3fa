#include "core/telemetry.h"

#include "core/base/budget.h"
#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/source_accounts.h"
#include "core/net/own_host.h"
#include "core/net/server.h"

#include <assert.h>
#include <ctype.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

struct telemetry {
    const struct config_telemetry *settings;
    struct process *process;
    struct server *server; /* NULL: switched off */
    uint64_t started_ns;
};

static double read_uptime(void *context)
{
    const struct telemetry *telemetry = context;
    return (double)(clock_monotonic_ns() - telemetry->started_ns) / 1e9;
}

static double read_cpu_seconds(void *context)
{
    (void)context;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double read_rss(void *context)
{
    (void)context;
    unsigned long total, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%lu %lu", &total, &resident) != 2)
            resident = 0;
        fclose(file);
    }
    return (double)resident * (double)sysconf(_SC_PAGE_SIZE);
}

static double read_heap(void *context)
{
    (void)context;
    struct mallinfo2 info = mallinfo2();
    return (double)info.uordblks + (double)info.hblkhd;
}

static double read_allocated(void *context)
{
    (void)context;
    return (double)memory_allocated();
}

/* What the allocator has of the system: used, free and mapped blocks. */
static double read_system_memory(void *context)
{
    (void)context;
    struct mallinfo2 info = mallinfo2();
    return (double)info.arena + (double)info.hblkhd;
}

static double read_budget(void *context)
{
    const struct telemetry *telemetry = context;
    return (double)budget_used(telemetry->process->budget);
}

static double read_budget_limit(void *context)
{
    const struct telemetry *telemetry = context;
    return (double)telemetry->process->budget->limit_bytes;
}

static double read_most_held(void *context)
{
    const struct telemetry *telemetry = context;
    return (double)source_accounts_most_used(telemetry->process->accounts);
}

static void add_process_metrics(struct telemetry *telemetry)
{
    struct metrics *metrics = telemetry->process->metrics;
    metrics_counter_from(metrics, "otelcol_process_uptime", "Uptime of the process in seconds.", "",
                         read_uptime, telemetry);
    metrics_counter_from(metrics, "otelcol_process_cpu_seconds",
                         "Total CPU user and system time in seconds.", "", read_cpu_seconds,
                         telemetry);
    metrics_gauge_from(metrics, "otelcol_process_memory_rss",
                       "Total physical memory (resident set size).", "", read_rss, telemetry);
    metrics_gauge_from(metrics, "otelcol_process_runtime_heap_alloc_bytes",
                       "Bytes of allocated heap objects.", "", read_heap, telemetry);
    metrics_counter_from(metrics, "otelcol_process_runtime_total_alloc_bytes",
                         "Cumulative bytes allocated by profcol's own code, freed or not.", "",
                         read_allocated, telemetry);
    metrics_gauge_from(metrics, "otelcol_process_runtime_total_sys_memory_bytes",
                       "Bytes of memory that the allocator has from the system.", "",
                       read_system_memory, telemetry);
    metrics_gauge_from(metrics, "profcol_budget_used_bytes", "Memory in use for received data.", "",
                       read_budget, telemetry);
    metrics_gauge_from(metrics, "profcol_budget_limit_bytes",
                       "Most memory that received data may use; beyond it, requests are refused.",
                       "", read_budget_limit, telemetry);
    if (!telemetry->process->accounts)
        return;
    metrics_gauge_from(metrics, "profcol_budget_largest_source_bytes",
                       "Memory in use for the data of the client that uses the most.", "",
                       read_most_held, telemetry);
}

/* ---- target_info: the resource of the process ---- */

static const char *make_instance_id(struct arena *arena)
{
    uint64_t high = random_u64(), low = random_u64();
    return arena_printf(arena, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(high >> 32),
                        (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xfff),
                        (unsigned)(0x8000 | (low >> 48 & 0x3fff)),
                        (unsigned long long)(low & 0xffffffffffff));
}

/* Returns the name of the label for an attribute. */
static const char *label_name(struct arena *arena, const char *attribute)
{
    char *name =
        arena_printf(arena, "%s%s", isdigit((unsigned char)attribute[0]) ? "key_" : "", attribute);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return name;
}

static const struct config_pair *find_pair(const struct config_pair *pairs, size_t count,
                                           const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(pairs[i].name, name) == 0)
            return &pairs[i];
    return NULL;
}

static int compare_names(const void *one, const void *other)
{
    const struct config_pair *left = one, *right = other;
    return strcmp(left->name, right->name);
}

/* Adds labels for the attributes that are not removed, without those that `others` has. */
static size_t add_labels(struct arena *arena, const struct config_pairs *from,
                         const struct config_pairs *others, struct config_pair *labels,
                         size_t count)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct config_pair *pair = &from->items[i];
        if (!pair->value || (others && find_pair(others->items, others->count, pair->name)))
            continue;
        const char *name = label_name(arena, pair->name);
        if (!find_pair(labels, count, name))
            labels[count++] = (struct config_pair){name, pair->value};
    }
    return count;
}

static void add_target_info(const struct telemetry *telemetry)
{
    const struct config_pairs *written = &telemetry->settings->resource;
    struct arena arena;
    struct text text = {0};
    arena_init(&arena, NULL);
    struct config_pair own[] = {{"service.instance.id", make_instance_id(&arena)},
                                {"service.name", "profcol"},
                                {"service.version", telemetry->process->version}};
    const struct config_pairs defaults = {own, sizeof own / sizeof own[0]};
    struct config_pair *labels =
        arena_array(&arena, defaults.count + written->count, sizeof *labels);
    size_t count = add_labels(&arena, written, NULL, labels, 0);
    count = add_labels(&arena, &defaults, written, labels, count);
    qsort(labels, count, sizeof *labels, compare_names);
    for (size_t i = 0; i < count; i++)
        metrics_label(&text, labels[i].name, labels[i].value);
    gauge_set(metrics_gauge(telemetry->process->metrics, "target_info", "Target metadata",
                            text_string(&text)),
              1);
    text_deinit(&text);
    arena_deinit(&arena);
}

static bool on_head(void *context, struct exchange *exchange)
{
    static const char *const text = "text/plain; charset=utf-8";
    const struct telemetry *telemetry = context;
    if (!own_host_is(telemetry->settings->metrics_host,
                     http_header_get(exchange_headers(exchange), "host")))
        exchange_respond(exchange, 403, text,
                         SLICE("403 the Host header does not name this server\n"), NULL, 0);
    else if (!slice_is(exchange_path(exchange), "/metrics"))
        exchange_respond(exchange, 404, text, SLICE("404 page not found\n"), NULL, 0);
    else if (!slice_is(exchange_method(exchange), "GET") &&
             !slice_is(exchange_method(exchange), "HEAD"))
        exchange_respond(exchange, 405, text, SLICE("405 method not allowed, supported: [GET]\n"),
                         NULL, 0);
    else
        return true;
    return false;
}

/* The Collector's names have either both suffixes or none. */
static unsigned form_of(const struct config_telemetry *settings)
{
    bool is_bare = settings->metrics_without_units && settings->metrics_without_type_suffix;
    return (is_bare ? 0 : METRICS_SUFFIXES) |
           (settings->metrics_without_scope_info ? 0 : METRICS_SCOPES);
}

static void on_request(void *context, struct exchange *exchange)
{
    struct telemetry *telemetry = context;
    assert(worker_is_current(exchange_worker(exchange)));
    struct http_header no_sniff = {SLICE("x-content-type-options"), SLICE("nosniff")};
    struct text page = {0};
    metrics_write(telemetry->process->metrics, form_of(telemetry->settings), &page);
    buffer_unref(exchange_take_body(exchange));
    exchange_respond(exchange, 200, "text/plain; version=0.0.4; charset=utf-8",
                     slice_of(page.data, page.size), &no_sniff, 1);
    text_deinit(&page);
}

static const struct server_handler handler = {.on_head = on_head, .on_request = on_request};

static struct server *open_server(struct telemetry *telemetry,
                                  const struct config_telemetry *settings, struct error *err)
{
    char endpoint[300];
    snprintf(endpoint, sizeof endpoint, strchr(settings->metrics_host, ':') ? "[%s]:%u" : "%s:%u",
             settings->metrics_host, (unsigned)settings->metrics_port);
    struct server_options options = {
        .endpoint = endpoint,
        .transport = "tcp",
        .accept_http = true,
        .max_body_bytes = 1024,
        .compression_mask = 1u << COMPRESSION_NONE,
        .max_connections = 64,
        .label = "telemetry",
        .budget = NULL, /* none, because metrics are needed most when memory is short */
        .uses_reserve = true,
        .metrics = telemetry->process->metrics,
    };
    struct server *server =
        server_new(&options, &handler, telemetry, telemetry->process->workers, 1, err);
    if (!server)
        error_prefix(err, "service::telemetry::metrics");
    return server;
}

struct telemetry *telemetry_new(const struct config_telemetry *settings, struct process *process,
                                struct error *err)
{
    assert(process->metrics && process->worker_count > 0);
    struct telemetry *telemetry = memory_zalloc(sizeof *telemetry);
    telemetry->settings = settings;
    telemetry->process = process;
    telemetry->started_ns = clock_monotonic_ns();
    metrics_set_level(process->metrics, (enum metrics_level)settings->metrics_level);
    add_process_metrics(telemetry);
    add_target_info(telemetry);
    if (!settings->metrics_enabled)
        return telemetry;
    telemetry->server = open_server(telemetry, settings, err);
    if (!telemetry->server) {
        telemetry_free(telemetry);
        return NULL;
    }
    server_start(telemetry->server);
    return telemetry;
}

void telemetry_stop(struct telemetry *telemetry)
{
    assert(worker_is_current(&telemetry->process->workers[0]));
    if (telemetry->server)
        server_stop(telemetry->server, &telemetry->process->workers[0]);
}

void telemetry_free(struct telemetry *telemetry)
{
    metrics_forget(telemetry->process->metrics, telemetry);
    if (telemetry->server)
        server_free(telemetry->server);
    free(telemetry);
}
