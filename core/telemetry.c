#include "core/telemetry.h"

#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/list.h"
#include "core/base/memory.h"
#include "core/net/own_host.h"
#include "core/net/server.h"
#include "core/process_log.h"
#include "core/process_metrics.h"
#include "core/telemetry_push.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const label = "telemetry";

/* Serves metrics to Prometheus at one address. */
struct pull_reader {
    struct list_link link; /* of those that are retired */
    struct process *process;
    struct server *server;
    char *host;
    uint64_t port;
    unsigned form; /* enum metrics_form; of worker 0 */
    atomic_bool is_drained;
};

/* A periodic reader. */
struct push_reader {
    struct list_link link;
    struct telemetry_push *push;
    bool is_kept; /* while a change is prepared: the new settings have it, too */
};

struct telemetry {
    struct process *process;
    struct process_resource *resource;
    struct process_metrics *own;
    uint64_t start_ns;              /* since 1970: when counting began */
    struct telemetry_change *first; /* until telemetry_start */
    struct pull_reader *reader;     /* NULL: switched off */
    struct list pushes;
    struct list retired_readers;
    struct list retired_pushes;
};

struct telemetry_change {
    struct telemetry *telemetry;
    struct log_setup *log;             /* NULL: as it is */
    struct process_resource *resource; /* NULL: as it is */
    struct pull_reader *reader;        /* as it is, a new one, or NULL: switched off */
    unsigned form;                     /* of the reader */
    struct list pushes;                /* new ones */
    enum metrics_level level_before;
};

/* ---- pull reader ---- */

static bool on_head(void *context, struct exchange *exchange)
{
    static const char *const text = "text/plain; charset=utf-8";
    const struct pull_reader *reader = context;
    if (!own_host_is(reader->host, http_header_get(exchange_headers(exchange), "host")))
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
    const struct pull_reader *reader = context;
    assert(worker_is_current(exchange_worker(exchange)));
    struct http_header no_sniff = {SLICE("x-content-type-options"), SLICE("nosniff")};
    struct text page = {0};
    metrics_write(reader->process->metrics, reader->form, &page);
    buffer_unref(exchange_take_body(exchange));
    exchange_respond(exchange, 200, "text/plain; version=0.0.4; charset=utf-8",
                     slice_of(page.data, page.size), &no_sniff, 1);
    text_deinit(&page);
}

static const struct server_handler handler = {.on_head = on_head, .on_request = on_request};

static bool open_server(struct pull_reader *reader, struct error *err)
{
    char endpoint[300];
    snprintf(endpoint, sizeof endpoint, strchr(reader->host, ':') ? "[%s]:%u" : "%s:%u",
             reader->host, (unsigned)reader->port);
    struct server_options options = {
        .endpoint = endpoint,
        .transport = "tcp",
        .accept_http = true,
        .max_body_bytes = 1024,
        .compression_mask = 1u << COMPRESSION_NONE,
        .max_connections = 64,
        .makes_room = true,
        .label = label,
        .budget = NULL, /* none, because metrics are needed most when memory is short */
        .uses_reserve = true,
        .metrics = reader->process->metrics,
    };
    server_offer_addresses(label); /* of the reader that this one replaces, if there is one */
    reader->server = server_new(&options, &handler, reader, reader->process->workers, 1, err);
    server_withdraw_addresses();
    return reader->server || error_prefix(err, "service::telemetry::metrics");
}

static void stop_server(void *context)
{
    struct pull_reader *reader = context;
    server_stop(reader->server, &reader->process->workers[0]);
}

static void do_nothing(void *context)
{
    (void)context;
}

/* Delivers what has been posted on the worker, and what that has posted. */
static void flush_posts(struct worker *worker)
{
    worker_call(worker, do_nothing, NULL);
    worker_call(worker, do_nothing, NULL);
}

/* Of a reader whose server is stopped, or was not made. */
static void reader_free(struct pull_reader *reader)
{
    server_free(reader->server);
    free(reader->host);
    free(reader);
}

/* Returns NULL, with err set, if the address cannot be used. */
static struct pull_reader *reader_new(const struct config_telemetry *settings,
                                      struct process *process, struct error *err)
{
    struct pull_reader *reader = memory_zalloc(sizeof *reader);
    reader->process = process;
    reader->host = memory_strdup(settings->metrics_host);
    reader->port = settings->metrics_port;
    reader->form = form_of(settings);
    if (open_server(reader, err))
        return reader;
    reader_free(reader);
    return NULL;
}

static void on_reader_drained(void *context)
{
    struct pull_reader *reader = context;
    atomic_store_explicit(&reader->is_drained, true, memory_order_release);
}

/* Whether the reader listens where the settings say. */
static bool reader_is_at(const struct pull_reader *reader, const struct config_telemetry *settings)
{
    return reader && reader->port == settings->metrics_port &&
           strcmp(reader->host, settings->metrics_host) == 0;
}

/* ---- periodic readers ---- */

static struct push_reader *push_of(struct list_link *link)
{
    return container_of(link, struct push_reader, link);
}

/* Keeps a running push with these settings, once. Returns false if there is none. */
static bool keep_push(struct telemetry_change *change, const struct config_push *settings)
{
    if (change->resource)
        return false;
    for (struct list_link *link = change->telemetry->pushes.first; link; link = link->next) {
        struct push_reader *each = push_of(link);
        if (each->is_kept || !telemetry_push_has(each->push, settings))
            continue;
        each->is_kept = true;
        return true;
    }
    return false;
}

static bool make_push(struct telemetry_change *change, const struct config_push *settings,
                      struct error *err)
{
    const struct telemetry *telemetry = change->telemetry;
    const struct process_resource *resource =
        change->resource ? change->resource : telemetry->resource;
    struct telemetry_push *push = telemetry_push_new(settings, telemetry->process, &resource->pairs,
                                                     telemetry->start_ns, err);
    if (!push)
        return error_prefix(err, "service::telemetry::metrics::readers");
    struct push_reader *reader = memory_zalloc(sizeof *reader);
    reader->push = push;
    list_append(&change->pushes, &reader->link);
    return true;
}

static bool make_pushes(struct telemetry_change *change, const struct config_telemetry *settings,
                        struct error *err)
{
    for (size_t i = 0; i < settings->push_count; i++)
        if (!keep_push(change, &settings->pushes[i]) &&
            !make_push(change, &settings->pushes[i], err))
            return false;
    return true;
}

static void stop_pushes(void *context)
{
    const struct list *pushes = context;
    for (struct list_link *link = pushes->first; link; link = link->next)
        telemetry_push_stop(push_of(link)->push);
}

/* Of pushes that are stopped. */
static void free_pushes(struct list *pushes)
{
    struct list_link *link;
    while ((link = list_pop(pushes)) != NULL) {
        struct push_reader *reader = push_of(link);
        telemetry_push_free(reader->push);
        free(reader);
    }
}

/* ---- a change ---- */

static void prepare_resource(struct telemetry_change *change,
                             const struct config_telemetry *settings)
{
    const struct telemetry *telemetry = change->telemetry;
    change->resource = process_resource_new(&settings->resource, telemetry->process->version,
                                            telemetry->resource->instance_id);
    if (!process_resource_equal(change->resource, telemetry->resource))
        return;
    process_resource_free(change->resource);
    change->resource = NULL;
}

static bool prepare_reader(struct telemetry_change *change, const struct config_telemetry *settings,
                           struct error *err)
{
    struct telemetry *telemetry = change->telemetry;
    if (!settings->metrics_enabled)
        return true;
    change->form = form_of(settings);
    change->reader = reader_is_at(telemetry->reader, settings)
                         ? telemetry->reader
                         : reader_new(settings, telemetry->process, err);
    return change->reader;
}

static struct telemetry_change *change_new(struct telemetry *telemetry,
                                           const struct config_telemetry *settings)
{
    struct telemetry_change *change = memory_zalloc(sizeof *change);
    change->telemetry = telemetry;
    change->level_before = metrics_get_level(telemetry->process->metrics);
    metrics_set_level(telemetry->process->metrics, (enum metrics_level)settings->metrics_level);
    prepare_resource(change, settings);
    return change;
}

static bool prepare_log(struct telemetry_change *change, const struct config_telemetry *settings,
                        struct error *err)
{
    change->log = process_log_new(
        settings, change->resource ? change->resource : change->telemetry->resource, err);
    return change->log || error_prefix(err, "service::telemetry::logs");
}

struct telemetry_change *telemetry_prepare(struct telemetry *telemetry,
                                           const struct config_telemetry *settings,
                                           struct error *err)
{
    struct telemetry_change *change = change_new(telemetry, settings);
    if (prepare_log(change, settings, err) && prepare_reader(change, settings, err) &&
        make_pushes(change, settings, err))
        return change;
    telemetry_discard(change);
    return NULL;
}

void telemetry_offer_address(const struct telemetry_change *change)
{
    if (change->telemetry->reader && change->reader != change->telemetry->reader)
        server_offer_addresses(label);
}

void telemetry_discard(struct telemetry_change *change)
{
    struct telemetry *telemetry = change->telemetry;
    struct worker *worker = &telemetry->process->workers[0];
    metrics_set_level(telemetry->process->metrics, change->level_before);
    log_setup_free(change->log);
    process_resource_free(change->resource);
    worker_call(worker, stop_pushes, &change->pushes);
    if (change->reader && change->reader != telemetry->reader) {
        worker_call(worker, stop_server, change->reader);
        flush_posts(worker);
        reader_free(change->reader);
    }
    free_pushes(&change->pushes);
    for (struct list_link *link = telemetry->pushes.first; link; link = link->next)
        push_of(link)->is_kept = false;
    free(change);
}

/* Moves the pushes that the new settings lack to those that are retired. */
static void retire_pushes(struct telemetry *telemetry)
{
    for (struct list_link *link = telemetry->pushes.first, *next; link; link = next) {
        struct push_reader *each = push_of(link);
        next = link->next;
        if (!each->is_kept) {
            list_remove(&telemetry->pushes, link);
            list_append(&telemetry->retired_pushes, link);
            telemetry_push_last(each->push);
        }
        each->is_kept = false;
    }
}

static void switch_reader(struct telemetry_change *change)
{
    struct telemetry *telemetry = change->telemetry;
    struct pull_reader *older = telemetry->reader;
    if (change->reader)
        change->reader->form = change->form;
    if (older == change->reader)
        return;
    telemetry->reader = change->reader;
    if (!older)
        return;
    list_append(&telemetry->retired_readers, &older->link);
    server_retire(older->server, &telemetry->process->workers[0], on_reader_drained, older);
}

/* On worker 0, between two scrapes. */
static void run_apply(void *context)
{
    struct telemetry_change *change = context;
    struct telemetry *telemetry = change->telemetry;
    retire_pushes(telemetry);
    if (change->resource)
        process_metrics_show_resource(telemetry->own, &change->resource->pairs);
    switch_reader(change);
    struct list_link *link;
    while ((link = list_pop(&change->pushes)) != NULL) {
        list_append(&telemetry->pushes, link);
        telemetry_push_start(push_of(link)->push);
    }
}

void telemetry_apply(struct telemetry_change *change)
{
    struct telemetry *telemetry = change->telemetry;
    if (change->log)
        log_use(change->log);
    if (change->reader && change->reader != telemetry->reader)
        server_start(change->reader->server); /* before the older one ends */
    worker_call(&telemetry->process->workers[0], run_apply, change);
    if (change->resource) {
        process_resource_free(telemetry->resource);
        telemetry->resource = change->resource;
    }
    free(change);
}

/* ---- what is retired ---- */

static void reap_readers(struct telemetry *telemetry)
{
    struct worker *worker = &telemetry->process->workers[0];
    for (struct list_link *link = telemetry->retired_readers.first, *next; link; link = next) {
        struct pull_reader *reader = container_of(link, struct pull_reader, link);
        next = link->next;
        if (!atomic_load_explicit(&reader->is_drained, memory_order_acquire))
            continue;
        list_remove(&telemetry->retired_readers, link);
        worker_call(worker, stop_server, reader);
        flush_posts(worker);
        reader_free(reader);
    }
}

static void reap_pushes(struct telemetry *telemetry)
{
    struct worker *worker = &telemetry->process->workers[0];
    struct list done = {0};
    for (struct list_link *link = telemetry->retired_pushes.first, *next; link; link = next) {
        next = link->next;
        if (!telemetry_push_is_done(push_of(link)->push))
            continue;
        list_remove(&telemetry->retired_pushes, link);
        list_append(&done, link);
    }
    if (done.count == 0)
        return;
    worker_call(worker, stop_pushes, &done);
    flush_posts(worker);
    free_pushes(&done);
}

bool telemetry_reap(struct telemetry *telemetry)
{
    reap_readers(telemetry);
    reap_pushes(telemetry);
    return telemetry->retired_readers.count > 0 || telemetry->retired_pushes.count > 0;
}

/* ---- the telemetry ---- */

struct telemetry *telemetry_new(const struct config_telemetry *settings,
                                struct process_resource *resource, struct process *process,
                                struct error *err)
{
    assert(process->metrics && process->worker_count > 0);
    struct telemetry *telemetry = memory_zalloc(sizeof *telemetry);
    telemetry->process = process;
    telemetry->resource = resource;
    telemetry->start_ns = clock_wall_ns();
    telemetry->own = process_metrics_new(process);
    process_metrics_show_resource(telemetry->own, &resource->pairs);
    struct telemetry_change *change = change_new(telemetry, settings);
    if (make_pushes(change, settings, err) && prepare_reader(change, settings, err)) {
        telemetry->first = change;
        return telemetry;
    }
    telemetry_discard(change);
    telemetry_free(telemetry);
    return NULL;
}

void telemetry_start(struct telemetry *telemetry)
{
    assert(telemetry->first);
    struct telemetry_change *change = telemetry->first;
    telemetry->first = NULL;
    telemetry_apply(change);
}

static void push_last(void *context)
{
    retire_pushes(context);
}

static void stop_serving(void *context)
{
    struct telemetry *telemetry = context;
    stop_pushes(&telemetry->retired_pushes);
    if (telemetry->reader)
        list_append(&telemetry->retired_readers, &telemetry->reader->link);
    telemetry->reader = NULL;
    for (struct list_link *link = telemetry->retired_readers.first; link; link = link->next)
        stop_server(container_of(link, struct pull_reader, link));
}

void telemetry_stop(struct telemetry *telemetry)
{
    struct worker *worker = &telemetry->process->workers[0];
    if (telemetry->first)
        telemetry_discard(telemetry->first);
    telemetry->first = NULL;
    worker_call(worker, push_last, telemetry);
    for (struct list_link *link = telemetry->retired_pushes.first; link; link = link->next)
        telemetry_push_wait(push_of(link)->push);
    worker_call(worker, stop_serving, telemetry);
}

void telemetry_free(struct telemetry *telemetry)
{
    struct list_link *link;
    assert(!telemetry->reader && telemetry->pushes.count == 0);
    process_metrics_free(telemetry->own);
    free_pushes(&telemetry->retired_pushes);
    while ((link = list_pop(&telemetry->retired_readers)) != NULL)
        reader_free(container_of(link, struct pull_reader, link));
    process_resource_free(telemetry->resource);
    free(telemetry);
}
