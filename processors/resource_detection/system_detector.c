/*
 * system_detector: the host's name, from the kernel or from the name service, and its facts
 * (host_facts.h).
 *
 * Names are looked up on libuv's pool. A look-up that has begun cannot be stopped, so it is a
 * struct of its own, which a cancelled attempt leaves behind.
 *
 * Owner: the look-up frees itself; it has the run until it is abandoned.
 *
 * Thread: the worker.
 */
#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "processors/resource_detection/detector.h"
#include "processors/resource_detection/host_facts.h"

#include <assert.h>
#include <netdb.h>
#include <stdio.h>
#include <unistd.h>

/* The look-ups of one source. */
struct look_up {
    struct detector_run *run; /* NULL: abandoned */
    struct worker *worker;
    struct timer limit; /* then the next source is tried */
    size_t source;      /* index of hostname_sources */
    char host[256];
    bool by_address; /* source "lookup" */
    uv_getaddrinfo_t addresses;
    uv_getnameinfo_t name;
    struct addrinfo *list;
    const struct addrinfo *at; /* whose name is looked up */
};

static void try_source(struct detector_run *run, size_t source);

static struct config_strings sources_of(const struct detector_run *run)
{
    static const char *names[] = {"dns", "os"};
    const struct config_strings *given = &run->settings->system.hostname_sources;
    return given->count > 0 ? *given : (struct config_strings){names, 2};
}

static void found_name(struct detector_run *run, const char *name)
{
    size_t size = strlen(name);
    if (size > 0 && name[size - 1] == '.')
        size--;
    detector_set(run, "host.name", slice_of(name, size));
    host_facts_set(run);
    run->found->has_schema = true;
    detector_succeeded(run);
}

/* ---- the name service ---- */

/* Ends the look-up. name: NULL if there is none. */
static void end_look_up(struct look_up *look_up, const char *name)
{
    char copy[NI_MAXHOST];
    struct detector_run *run = look_up->run;
    size_t source = look_up->source;
    assert(!run || run->state == look_up);
    snprintf(copy, sizeof copy, "%s", name ? name : "");
    worker_cancel_timer(look_up->worker, &look_up->limit);
    uv_freeaddrinfo(look_up->list);
    free(look_up);
    if (!run)
        return;
    run->state = NULL;
    if (copy[0])
        found_name(run, copy);
    else
        try_source(run, source + 1);
}

static void look_up_next_name(struct look_up *look_up);

static void on_name(uv_getnameinfo_t *request, int status, const char *name, const char *service)
{
    struct look_up *look_up = request->data;
    (void)service;
    if (status == 0 || !look_up->run) {
        end_look_up(look_up, status == 0 ? name : NULL);
        return;
    }
    assert(look_up->at && look_up->by_address);
    look_up->at = look_up->at->ai_next;
    look_up_next_name(look_up);
}

static void look_up_next_name(struct look_up *look_up)
{
    if (!look_up->at || uv_getnameinfo(&look_up->worker->loop, &look_up->name, on_name,
                                       look_up->at->ai_addr, NI_NAMEREQD) != 0)
        end_look_up(look_up, NULL);
}

static void on_addresses(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct look_up *look_up = request->data;
    look_up->list = list;
    look_up->at = list;
    if (status != 0 || !list || !look_up->run)
        end_look_up(look_up, NULL);
    else if (look_up->by_address)
        look_up_next_name(look_up);
    else
        end_look_up(look_up, list->ai_canonname);
}

/* Leaves the look-up to its end. */
static void abandon(struct look_up *look_up)
{
    worker_cancel_timer(look_up->worker, &look_up->limit);
    assert(look_up->run && look_up->run->state == look_up);
    look_up->run->state = NULL;
    look_up->run = NULL;
}

static void on_limit(struct timer *timer)
{
    struct look_up *look_up = container_of(timer, struct look_up, limit);
    struct detector_run *run = look_up->run;
    abandon(look_up);
    try_source(run, look_up->source + 1);
}

static void start_look_up(struct detector_run *run, size_t source, const char *host,
                          bool by_address)
{
    static const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_CANONNAME};
    struct look_up *look_up = memory_zalloc(sizeof *look_up);
    assert(source < sources_of(run).count && strlen(host) < sizeof look_up->host);
    look_up->run = run;
    look_up->worker = run->worker;
    look_up->limit.on_timer = on_limit;
    look_up->source = source;
    look_up->by_address = by_address;
    look_up->addresses.data = look_up->name.data = look_up;
    snprintf(look_up->host, sizeof look_up->host, "%s", host);
    run->state = look_up;
    int rc = uv_getaddrinfo(&run->worker->loop, &look_up->addresses, on_addresses, look_up->host,
                            NULL, &hints);
    if (rc != 0) {
        end_look_up(look_up, NULL);
        return;
    }
    /* A name service that hangs leaves time for the other sources. */
    uint64_t limit_ns = (uint64_t)run->settings->timeout / sources_of(run).count;
    worker_set_timer(run->worker, &look_up->limit, limit_ns);
}

/* ---- sources ---- */

static void try_source(struct detector_run *run, size_t source)
{
    struct config_strings sources = sources_of(run);
    struct error err;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    assert(!run->state);
    if (source >= sources.count || !host[0]) {
        error_set(&err, "all hostname sources failed to get hostname");
        detector_failed(run, &err);
    } else if (strcmp(sources.items[source], "os") == 0) {
        found_name(run, host);
    } else {
        start_look_up(run, source, host, strcmp(sources.items[source], "lookup") == 0);
    }
}

static void system_start(struct detector_run *run)
{
    try_source(run, 0);
}

static void system_stop(struct detector_run *run)
{
    if (run->state)
        abandon(run->state);
}

const struct detector_type system_detector = {
    .name = "system",
    .attributes = system_attribute_fields,
    .switches_offset = offsetof(struct resource_detection_settings, system.resource_attributes),
    .start = system_start,
    .stop = system_stop,
};
