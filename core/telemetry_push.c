#include "core/telemetry_push.h"

#include "config/decode.h"
#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/signals.h"
#include "core/metrics_encode.h"
#include "core/pipeline/component.h"
#include "core/pipeline/otlp_answer.h"
#include "core/pipeline/otlp_sender.h"

#include <assert.h>

enum { GRPC_PREFIX_BYTES = 5 };
static const char *const label = "telemetry";

struct telemetry_push {
    struct config_push settings;
    struct process *process;
    struct config_pairs resource;
    uint64_t start_ns;
    struct arena arena;
    struct endpoint place;
    struct tls_client_settings tls;
    struct otlp_target target; /* path, headers, compression; no queue */
    struct client *client;     /* NULL: not started, or stopped */
    struct timer timer;        /* of the next push */
    struct client_request request;
    struct metrics_delta *delta; /* NULL: cumulative, or not started */
    uint64_t sent_ns;            /* the time of `message` */
    struct wire_writer message;
    struct buffer *packed; /* the compressed message; NULL: none */
    uint8_t prefix[GRPC_PREFIX_BYTES];
    struct slice body[2];
    struct counter *succeeded;
    struct counter *failed;
    bool is_failing; /* the last push failed, and the log says so */
    bool is_last;
    uv_sem_t done; /* posted when the last push is done */
};

/* ---- settings ---- */

static const char *copy_text(struct arena *arena, const char *text)
{
    return text ? arena_strdup(arena, text) : NULL;
}

static struct config_pairs copy_pairs(struct arena *arena, const struct config_pairs *pairs)
{
    struct config_pairs copy = {arena_array(arena, pairs->count + 1, sizeof *copy.items),
                                pairs->count};
    for (size_t i = 0; i < pairs->count; i++)
        copy.items[i] = (struct config_pair){copy_text(arena, pairs->items[i].name),
                                             copy_text(arena, pairs->items[i].value)};
    return copy;
}

static struct config_push copy_settings(struct arena *arena, const struct config_push *settings)
{
    struct config_push copy = *settings;
    copy.endpoint = copy_text(arena, settings->endpoint);
    copy.headers = copy_pairs(arena, &settings->headers);
    copy.headers_list = copy_text(arena, settings->headers_list);
    copy.certificate = copy_text(arena, settings->certificate);
    copy.client_certificate = copy_text(arena, settings->client_certificate);
    copy.client_key = copy_text(arena, settings->client_key);
    return copy;
}

static bool is_same_text(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

static bool are_same_pairs(const struct config_pairs *one, const struct config_pairs *other)
{
    if (one->count != other->count)
        return false;
    for (size_t i = 0; i < one->count; i++)
        if (!is_same_text(one->items[i].name, other->items[i].name) ||
            !is_same_text(one->items[i].value, other->items[i].value))
            return false;
    return true;
}

bool telemetry_push_has(const struct telemetry_push *push, const struct config_push *settings)
{
    const struct config_push *own = &push->settings;
    return own->uses_grpc == settings->uses_grpc && own->uses_gzip == settings->uses_gzip &&
           own->interval_ns == settings->interval_ns && own->timeout_ns == settings->timeout_ns &&
           own->insecure == settings->insecure && own->temporality == settings->temporality &&
           is_same_text(own->endpoint, settings->endpoint) &&
           are_same_pairs(&own->headers, &settings->headers) &&
           is_same_text(own->headers_list, settings->headers_list) &&
           is_same_text(own->certificate, settings->certificate) &&
           is_same_text(own->client_certificate, settings->client_certificate) &&
           is_same_text(own->client_key, settings->client_key);
}

/* Decodes %XX in place. */
static void decode_percent(char *text)
{
    size_t size;
    text_decode_percent(slice_of_string(text), TEXT_PERCENT_KEEP_BROKEN, (uint8_t *)text,
                        strlen(text), &size);
    text[size] = '\0';
}

/* Adds a header unless `headers` has one of this name. */
static void add_header(struct config_pairs *headers, const char *name, const char *value)
{
    for (size_t i = 0; i < headers->count; i++)
        if (strcasecmp(headers->items[i].name, name) == 0)
            return;
    headers->items[headers->count++] = (struct config_pair){name, value};
}

/* Adds the headers of "a=b,c=d". */
static bool add_list(struct arena *arena, const char *list, struct config_pairs *headers,
                     struct error *err)
{
    char *rest = arena_strdup(arena, list), *item;
    while ((item = strsep(&rest, ",")) != NULL) {
        char *value = strchr(item, '=');
        if (!value)
            return error_set(err, "headers_list must have the form a=b,c=d");
        *value++ = '\0';
        decode_percent(value);
        add_header(headers, arena_string(arena, slice_trim(slice_of_string(item), SLICE_BLANKS)),
                   arena_string(arena, slice_trim(slice_of_string(value), SLICE_BLANKS)));
    }
    return true;
}

static size_t count_commas(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == ',';
    return count;
}

static bool make_headers(struct telemetry_push *push, struct error *err)
{
    const struct config_push *settings = &push->settings;
    const char *list = settings->headers_list ? settings->headers_list : "";
    struct config_pairs headers = {0};
    headers.items = arena_array(&push->arena, settings->headers.count + count_commas(list) + 1,
                                sizeof *headers.items);
    for (size_t i = 0; i < settings->headers.count; i++)
        headers.items[headers.count++] = settings->headers.items[i];
    if (list[0] && !add_list(&push->arena, list, &headers, err))
        return false;
    for (size_t i = 0; i < headers.count; i++)
        if (!otlp_header_check(&headers.items[i], settings->uses_grpc, err))
            return false;
    otlp_target_set_headers(&push->target, &push->arena,
                            arena_printf(&push->arena, "profcol/%s", push->process->version),
                            &headers);
    return true;
}

/* The defaults are the Collector's; so is the path of a URL that has none. */
static bool find_place(struct telemetry_push *push, struct error *err)
{
    const char *endpoint = push->settings.endpoint;
    const struct signal_traits *traits = signal_traits(SIGNAL_METRICS);
    if (push->settings.uses_grpc) {
        push->target.path = arena_printf(&push->arena, "%sExport", traits->grpc_service);
        return endpoint_parse_grpc(&push->arena, endpoint ? endpoint : "localhost:4317",
                                   &push->place, err);
    }
    if (!endpoint_parse_url(&push->arena, endpoint ? endpoint : "https://localhost:4318",
                            &push->place, err))
        return false;
    bool has_path = strcmp(push->place.path, "/") != 0;
    push->target.path = has_path ? push->place.path : traits->url_path;
    return true;
}

static bool uses_tls(const struct telemetry_push *push)
{
    if (push->place.unix_socket || push->place.scheme == ENDPOINT_HTTP)
        return false;
    return push->place.scheme == ENDPOINT_HTTPS || !push->settings.insecure;
}

static void set_tls(struct telemetry_push *push)
{
    const struct config_push *settings = &push->settings;
    config_decode_defaults(&push->arena, tls_client_fields, &push->tls);
    push->tls.ca_file = settings->certificate;
    push->tls.cert_file = settings->client_certificate;
    push->tls.key_file = settings->client_key;
}

static bool make_target(struct telemetry_push *push, struct error *err)
{
    const struct config_push *settings = &push->settings;
    push->target = (struct otlp_target){
        .signal = SIGNAL_METRICS,
        .grpc = settings->uses_grpc,
        .compression = settings->uses_gzip ? COMPRESSION_GZIP : COMPRESSION_NONE,
        .timeout_ns = settings->timeout_ns,
    };
    if (!find_place(push, err))
        return false;
    push->target.url = push->place.url ? push->place.url : push->place.authority;
    set_tls(push);
    return make_headers(push, err);
}

static bool make_client(struct telemetry_push *push, struct error *err)
{
    struct client_options options = {
        .host = push->place.host,
        .port = push->place.port,
        .unix_socket = push->place.unix_socket,
        .authority = push->place.authority,
        .label = label,
    };
    bool is_secure = uses_tls(push);
    options.protocol = push->settings.uses_grpc ? CLIENT_H2 : CLIENT_HTTP1;
    options.allow_h2 = true;
    options.max_connections = 1;
    options.tls = is_secure ? &push->tls : NULL;
    if (!push->place.unix_socket &&
        !proxy_from_environment(&push->arena, is_secure || push->settings.uses_grpc,
                                push->place.host, push->place.port, &options.proxy, err))
        return false;
    push->client = client_new(&push->process->workers[0], &options, err);
    return push->client != NULL;
}

static struct counter *make_counter(const struct telemetry_push *push, const char *result)
{
    struct text labels = {0};
    const struct endpoint *place = &push->place;
    metrics_label(&labels, "endpoint", place->authority ? place->authority : place->host);
    metrics_label(&labels, "result", result);
    struct counter *counter =
        metrics_counter(push->process->metrics, METRICS_OWN "telemetry_pushes",
                        "Pushes of profcol's own metrics.", text_string(&labels));
    text_deinit(&labels);
    return counter;
}

/* ---- one push ---- */

static void schedule(struct telemetry_push *push, uint64_t delay_ns)
{
    worker_set_timer(&push->process->workers[0], &push->timer, delay_ns);
}

static void forget_body(struct telemetry_push *push)
{
    buffer_unref(push->packed);
    push->packed = NULL;
    wire_writer_clear(&push->message);
}

/* The log has one line when pushes begin to fail, and one when they work again. */
static void report(struct telemetry_push *push, const struct verdict *verdict)
{
    bool succeeded = verdict_is_ok(verdict);
    counter_add(succeeded ? push->succeeded : push->failed, 0, 1);
    if (!succeeded && !push->is_failing)
        log_warn(LOG_PROCESS, "Cannot push profcol's own metrics. Will try again after interval.",
                 LOG_TEXT("endpoint", push->target.url), LOG_TEXT("error", verdict->text),
                 LOG_DURATION("interval", push->settings.interval_ns));
    else if (succeeded && push->is_failing)
        log_info(LOG_PROCESS, "Pushing profcol's own metrics works again",
                 LOG_TEXT("endpoint", push->target.url));
    push->is_failing = !succeeded;
}

static void on_answer(struct client_request *request, const struct client_answer *answer)
{
    struct telemetry_push *push = container_of(request, struct telemetry_push, request);
    struct otlp_answer meaning;
    if (push->target.grpc)
        otlp_answer_grpc(answer, &meaning);
    else
        otlp_answer_http(answer, SIGNAL_METRICS, push->target.url, clock_wall_ns(), &meaning);
    otlp_answer_warn(&meaning, SIGNAL_METRICS, LOG_PROCESS);
    if (push->delta && verdict_is_ok(&meaning.verdict))
        metrics_delta_commit(push->delta, push->sent_ns);
    report(push, &meaning.verdict);
    forget_body(push);
    if (push->is_last)
        uv_sem_post(&push->done);
}

static void make_body(struct telemetry_push *push)
{
    size_t count = 0;
    bool is_packed = push->target.compression != COMPRESSION_NONE;
    struct slice message = wire_writer_slice(&push->message);
    if (is_packed) {
        push->packed =
            compress_slices(push->target.compression, 0, push->target.grpc, &message, 1, NULL);
        message = buffer_slice(push->packed);
    }
    if (push->target.grpc) {
        push->prefix[0] = is_packed;
        for (int i = 0; i < 4; i++)
            push->prefix[1 + i] = (uint8_t)(message.size >> (24 - 8 * i));
        push->body[count++] = slice_of(push->prefix, GRPC_PREFIX_BYTES);
    }
    push->body[count++] = message;
    push->request = (struct client_request){
        .method = "POST",
        .path = push->target.path,
        .headers = push->target.headers,
        .header_count = push->target.header_count,
        .body = push->body,
        .body_count = count,
        .body_size = message.size + (push->target.grpc ? GRPC_PREFIX_BYTES : 0),
        .timeout_ns = push->target.timeout_ns,
        .on_done = on_answer,
    };
}

static void send_metrics(struct telemetry_push *push)
{
    assert(!push->request.exchange && push->message.size == 0);
    uint64_t now_ns = clock_wall_ns();
    uint64_t since_ns = push->delta ? metrics_delta_since(push->delta) : push->start_ns;
    push->sent_ns = now_ns < since_ns ? since_ns : now_ns; /* the clock was set back */
    metrics_encode(push->process->metrics, &push->resource, push->start_ns, push->sent_ns,
                   push->delta, &push->message);
    make_body(push);
    client_send(push->client, &push->request);
}

static void on_interval(struct timer *timer)
{
    struct telemetry_push *push = container_of(timer, struct telemetry_push, timer);
    schedule(push, (uint64_t)push->settings.interval_ns);
    if (!push->request.exchange)
        send_metrics(push);
}

/* ---- start and stop ---- */

struct telemetry_push *telemetry_push_new(const struct config_push *settings,
                                          struct process *process,
                                          const struct config_pairs *resource, uint64_t start_ns,
                                          struct error *err)
{
    struct telemetry_push *push = memory_zalloc(sizeof *push);
    arena_init(&push->arena, NULL);
    push->settings = copy_settings(&push->arena, settings);
    push->process = process;
    push->resource = copy_pairs(&push->arena, resource);
    push->start_ns = start_ns;
    push->timer.on_timer = on_interval;
    uv_sem_init(&push->done, 0);
    if (!make_target(push, err) || !make_client(push, err)) {
        telemetry_push_free(push);
        return NULL;
    }
    push->succeeded = make_counter(push, "ok");
    push->failed = make_counter(push, "failed");
    return push;
}

void telemetry_push_start(struct telemetry_push *push)
{
    const struct config_push *settings = &push->settings;
    assert(push->client && settings->interval_ns > 0 && !push->delta);
    uint64_t now_ns = clock_wall_ns();
    if (settings->temporality != PUSH_CUMULATIVE)
        push->delta =
            metrics_delta_new(push->process->metrics, settings->temporality == PUSH_LOWMEMORY,
                              now_ns < push->start_ns ? push->start_ns : now_ns);
    schedule(push, (uint64_t)settings->interval_ns);
}

void telemetry_push_last(struct telemetry_push *push)
{
    assert(!push->is_last);
    worker_cancel_timer(&push->process->workers[0], &push->timer);
    if (push->request.exchange) {
        client_cancel(&push->request);
        forget_body(push);
    }
    push->is_last = true;
    send_metrics(push);
}

void telemetry_push_wait(struct telemetry_push *push)
{
    assert(push->settings.timeout_ns > 0); /* the request ends by then */
    uv_sem_wait(&push->done);
}

bool telemetry_push_is_done(struct telemetry_push *push)
{
    if (uv_sem_trywait(&push->done) != 0)
        return false;
    uv_sem_post(&push->done); /* for telemetry_push_wait */
    return true;
}

void telemetry_push_stop(struct telemetry_push *push)
{
    assert(!push->request.exchange);
    worker_cancel_timer(&push->process->workers[0], &push->timer);
    client_free(push->client);
    push->client = NULL;
}

void telemetry_push_free(struct telemetry_push *push)
{
    assert(!push->client);
    forget_body(push);
    wire_writer_deinit(&push->message);
    metrics_delta_free(push->delta);
    uv_sem_destroy(&push->done);
    arena_deinit(&push->arena);
    free(push);
}
