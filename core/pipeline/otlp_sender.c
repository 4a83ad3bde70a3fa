#include "core/pipeline/otlp_sender.h"

#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/job.h"
#include "core/base/memory.h"
#include "core/net/cookie_jar.h"
#include "core/pipeline/auth.h"
#include "core/pipeline/otlp_answer.h"
#include "core/pipeline/packing.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

enum {
    GRPC_PREFIX_BYTES = 5,
    HEADERS_MAX = 40,
    OWN_HEADERS = 8, /* headers besides the user's */
    HEADER_VALUE_MAX = 8192,
    JSON_PER_BYTE = 4, /* approximate bytes of JSON for a byte of protobuf, for spans; messages of
                          only counters and flags have 8 */
};

const char *const otlp_compression_names[] = {
    "none", "gzip", "zlib", "deflate", "snappy", "x-snappy-framed", "zstd", "lz4", "", NULL,
};

enum compression otlp_compression(int setting)
{
    return setting >= COMPRESSION_COUNT ? COMPRESSION_NONE : (enum compression)setting;
}

/* ---- headers ---- */

static bool is_printable(struct slice value)
{
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < 0x20 || value.data[i] > 0x7e)
            return false;
    return true;
}

/* HTTP allows more than gRPC (RFC 9110, section 5.5; gRPC over HTTP2, ASCII-Value). Blanks at the
 * ends do not belong to a value, and are not sent. */
static bool is_value(const char *text, bool grpc)
{
    struct slice value = slice_trim(slice_of_string(text), SLICE_BLANKS);
    return value.size <= HEADER_VALUE_MAX &&
           (grpc ? is_printable(value) : http_is_field_value(value));
}

static bool is_ours(const char *name, bool grpc)
{
    static const char *const framing[] = {"content-length",   "transfer-encoding",
                                          "connection",       "upgrade",
                                          "keep-alive",       "te",
                                          "content-encoding", NULL};
    for (size_t i = 0; framing[i]; i++)
        if (strcasecmp(name, framing[i]) == 0)
            return true;
    return grpc && (strncasecmp(name, "grpc-", 5) == 0 || strcasecmp(name, "content-type") == 0 ||
                    strcasecmp(name, "host") == 0);
}

bool otlp_header_check(const struct config_pair *pair, bool grpc, struct error *err)
{
    if (!http_is_field_name(slice_of_string(pair->name)))
        return error_set(err, "\"%s\" cannot be the name of a header", pair->name);
    if (is_ours(pair->name, grpc))
        return error_set(err, "the header \"%s\" is set by the exporter", pair->name);
    if (pair->value && !is_value(pair->value, grpc))
        return error_set(err, "the value of the header \"%s\" must be %s of at most %d bytes",
                         pair->name, grpc ? "printable ASCII" : "text without control characters",
                         HEADER_VALUE_MAX);
    return true;
}

void otlp_headers_check(const struct config_pairs *headers, bool grpc, struct config_check *check,
                        const char *key)
{
    struct error err;
    if (headers->count > HEADERS_MAX)
        config_check_error(check, key, "more than %d headers", HEADERS_MAX);
    for (size_t i = 0; i < headers->count; i++)
        if (!otlp_header_check(&headers->items[i], grpc, &err))
            config_check_error(check, key, "%s", err.text);
}

/* Sets a header, and replaces an earlier one with the same name. */
static void set_header(struct otlp_target *target, struct arena *arena, const char *name,
                       const char *value)
{
    char *lower = arena_strdup(arena, name);
    for (char *c = lower; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    struct http_header header = {
        slice_of_string(lower),
        slice_trim(slice_of_string(arena_strdup(arena, value)), SLICE_BLANKS)};
    for (size_t i = 0; i < target->header_count; i++) {
        if (!slice_is(target->headers[i].name, lower))
            continue;
        target->headers[i] = header;
        return;
    }
    target->headers[target->header_count++] = header;
}

/* Prints at most 8 digits and a unit. */
static const char *print_grpc_timeout(struct arena *arena, int64_t timeout_ns)
{
    static const struct {
        char letter;
        int64_t ns;
    } units[] = {{'u', 1000}, {'m', 1000000}, {'S', 1000000000}};
    for (size_t i = 0; i < 3; i++)
        if (timeout_ns / units[i].ns < 100000000)
            return arena_printf(arena, "%lld%c", (long long)(timeout_ns / units[i].ns),
                                units[i].letter);
    return "99999999S";
}

static void set_grpc_headers(struct otlp_target *target, struct arena *arena)
{
    set_header(target, arena, "content-type", "application/grpc");
    set_header(target, arena, "te", "trailers");
    set_header(target, arena, "grpc-accept-encoding", "gzip,snappy,zstd");
    if (target->compression != COMPRESSION_NONE)
        set_header(target, arena, "grpc-encoding", compression_names[target->compression]);
    if (target->timeout_ns > 0)
        set_header(target, arena, "grpc-timeout", print_grpc_timeout(arena, target->timeout_ns));
}

static void set_http_headers(struct otlp_target *target, struct arena *arena)
{
    set_header(target, arena, "content-type",
               target->json ? "application/json" : "application/x-protobuf");
    if (target->compression != COMPRESSION_NONE)
        set_header(target, arena, "content-encoding", compression_names[target->compression]);
}

void otlp_target_set_headers(struct otlp_target *target, struct arena *arena,
                             const char *user_agent, const struct config_pairs *user)
{
    target->headers = arena_array(arena, user->count + OWN_HEADERS, sizeof *target->headers);
    target->header_count = 0;
    if (target->grpc)
        set_grpc_headers(target, arena);
    else
        set_http_headers(target, arena);
    set_header(target, arena, "user-agent", user_agent);
    for (size_t i = 0; i < user->count; i++)
        set_header(target, arena, user->items[i].name,
                   user->items[i].value ? user->items[i].value : "");
    if (target->signal == SIGNAL_PROFILES)
        set_header(target, arena, "otlp-profiles-development-version", "1");
    assert(target->header_count <= user->count + OWN_HEADERS);
}

/* Unlike in the environment, where Go lets the scheme be absent. */
static bool parse_setting(struct arena *arena, const char *url, struct proxy *out,
                          struct error *err)
{
    if (!strstr(url, "://"))
        return error_set(err, "the URL of the proxy must start with http://");
    return proxy_parse(arena, url, out, err);
}

bool otlp_proxy_check(const struct endpoint *endpoint, bool is_https, const char *url,
                      struct config_check *check, const char *key, struct proxy *out)
{
    struct error err;
    *out = (struct proxy){0};
    if (!endpoint->host || endpoint->unix_socket)
        return true; /* an error that was reported, or nothing for a proxy */
    bool is_valid = url && url[0]
                        ? parse_setting(config_check_arena(check), url, out, &err)
                        : proxy_from_environment(config_check_arena(check), is_https,
                                                 endpoint->host, endpoint->port, out, &err);
    if (!is_valid)
        config_check_error(check, key, "%s", err.text);
    return is_valid;
}

struct client_options otlp_client_options(const struct endpoint *endpoint,
                                          const struct component *component)
{
    struct metrics *metrics = component->process->metrics;
    return (struct client_options){
        .host = endpoint->host,
        .port = endpoint->port,
        .unix_socket = endpoint->unix_socket,
        .authority = endpoint->authority,
        .label = component->label,
        .metrics = metrics_are_detailed(metrics) ? metrics : NULL,
    };
}

/* Brings a size of a buffer within bounds; 0 stays. */
static size_t bound_buffer(uint64_t size)
{
    enum { LEAST = 4096, MOST = 1 << 20 };
    return size == 0 ? 0 : size < LEAST ? LEAST : size > MOST ? MOST : (size_t)size;
}

void otlp_set_buffers(struct client_options *options, uint64_t read_bytes, uint64_t write_bytes)
{
    options->read_bytes = bound_buffer(read_bytes);
    options->write_bytes = bound_buffer(write_bytes);
}

void otlp_place_labels(const struct endpoint *endpoint, struct text *labels)
{
    char port[8];
    metrics_label(labels, "server_address", endpoint->host);
    if (endpoint->unix_socket)
        return;
    snprintf(port, sizeof port, "%u", endpoint->port);
    metrics_label(labels, "server_port", port);
}

/* ---- one request and its attempts ---- */

struct attempt {
    struct client_request request;
    struct shipment *shipment;
    struct slice_list message; /* encoded message of the batch */
    struct buffer *packed;     /* NULL: the bytes of the batch are sent */
    size_t content_bytes;      /* of the body before compression */
    struct job job;            /* packs a large message */
    bool is_packing;
    bool is_packed; /* `request` is complete */
    struct slice_list body;
    struct auth_headers headers; /* of a target with `auth`, or with cookies */
    bool is_redirected;
    struct arena arena;   /* for the path of a redirect */
    uint64_t deadline_ns; /* of this attempt; 0: none */
    struct timer refusal; /* reports `why` */
    struct verdict why;
    uint8_t prefix[GRPC_PREFIX_BYTES];
};

static void send_shipment(struct node *node, struct shipment *shipment);

/* A delivery is one of ours if it sends with our function. */
static const struct otlp_sender *sender_of(const struct delivery *delivery)
{
    assert(delivery->send == send_shipment);
    return container_of(delivery, const struct otlp_sender, delivery);
}

static void send_request(struct attempt *attempt);

/* Sends the request to the address of a redirect, if it may be followed. */
static bool follow_redirect(struct attempt *attempt, const struct client_answer *answer)
{
    const struct otlp_sender *sender = sender_of(attempt->shipment->delivery);
    const struct endpoint *place = sender->target->place;
    uint64_t now = sender->delivery.node->worker->now_ns;
    if (!place || answer->failure != CLIENT_OK || attempt->is_redirected ||
        (answer->status != 307 && answer->status != 308) ||
        (attempt->deadline_ns > 0 && attempt->deadline_ns <= now))
        return false;
    const char *path = endpoint_redirect(&attempt->arena, place, attempt->request.path,
                                         http_header_get(&answer->headers, "location"));
    if (!path)
        return false;
    attempt->is_redirected = true;
    attempt->request.path = path;
    if (attempt->deadline_ns > 0)
        attempt->request.timeout_ns = (int64_t)(attempt->deadline_ns - now);
    send_request(attempt);
    return true;
}

static void keep_cookies(const struct attempt *attempt, const struct client_answer *answer)
{
    const struct otlp_sender *sender = sender_of(attempt->shipment->delivery);
    for (size_t i = 0; sender->cookies && i < answer->headers.count; i++)
        if (slice_is(answer->headers.items[i].name, "set-cookie"))
            cookie_jar_store(sender->cookies, answer->headers.items[i].value,
                             sender->target->place->host, attempt->request.path, clock_wall_ns());
}

static void on_answer(struct client_request *request, const struct client_answer *answer)
{
    struct attempt *attempt = container_of(request, struct attempt, request);
    struct shipment *shipment = attempt->shipment;
    assert(shipment->exporter_data == attempt && !attempt->is_packing);
    const struct otlp_target *target = sender_of(shipment->delivery)->target;
    struct otlp_answer meaning;
    keep_cookies(attempt, answer);
    if (follow_redirect(attempt, answer))
        return;
    if (target->grpc)
        otlp_answer_grpc(answer, &meaning);
    else
        otlp_answer_http(answer, target->signal, target->url, clock_wall_ns(), &meaning);
    otlp_answer_warn(&meaning, target->signal, shipment->delivery->node->origin);
    delivery_done(shipment, &meaning.verdict);
}

static struct buffer *make_json(const struct otlp_target *target, const struct slice_list *list,
                                struct budget *budget)
{
    struct text text = {0};
    packing_print_json(target->signal, list->items, list->count, budget, &text);
    return buffer_adopt(text.data, text.size, text.capacity, budget);
}

/* Converts the message to its final form, in attempt->packed, unless the bytes of the batch can be
 * sent unchanged. Any thread. */
static void pack(struct attempt *attempt, const struct otlp_target *target)
{
    assert(!attempt->packed); /* done once for all attempts */
    const struct slice_list *list = &attempt->message;
    /* Room was reserved for a large message. */
    const struct shipment *shipment = attempt->shipment;
    struct budget *budget = shipment->encoding_bytes > 0 ? NULL : shipment->batch->arena.budget;
    attempt->content_bytes = list->size;
    if (target->json) {
        struct buffer *json = attempt->packed = make_json(target, list, budget);
        attempt->content_bytes = json->size;
        struct slice text = buffer_slice(json);
        if (target->compression == COMPRESSION_NONE)
            return;
        attempt->packed =
            compress_slices(target->compression, target->level, false, &text, 1, budget);
        buffer_unref(json);
    } else if (target->compression != COMPRESSION_NONE) {
        attempt->packed = compress_slices(target->compression, target->level, target->grpc,
                                          list->items, list->count, budget);
    }
}

static void write_prefix(struct attempt *attempt, bool compressed, size_t size)
{
    assert(size <= UINT32_MAX);
    attempt->prefix[0] = compressed;
    for (int i = 0; i < 4; i++)
        attempt->prefix[1 + i] = (uint8_t)(size >> (24 - 8 * i));
}

static void make_body(struct attempt *attempt, const struct otlp_target *target)
{
    assert(attempt->body.count == 0);
    struct batch *batch = attempt->shipment->batch;
    const struct slice_list *message = &attempt->message;
    size_t size = attempt->packed ? attempt->packed->size : message->size;
    if (target->grpc) {
        write_prefix(attempt, target->compression != COMPRESSION_NONE, size);
        slice_list_add(&attempt->body, &batch->arena, slice_of(attempt->prefix, GRPC_PREFIX_BYTES));
    }
    if (attempt->packed)
        slice_list_add(&attempt->body, &batch->arena, buffer_slice(attempt->packed));
    for (size_t i = 0; !attempt->packed && i < message->count; i++)
        slice_list_add(&attempt->body, &batch->arena, message->items[i]);
    assert(attempt->body.size == size + (target->grpc ? GRPC_PREFIX_BYTES : 0));
}

static void make_request(struct attempt *attempt)
{
    const struct otlp_target *target = sender_of(attempt->shipment->delivery)->target;
    assert(!attempt->is_packed);
    attempt->is_packed = true;
    make_body(attempt, target);
    attempt->request = (struct client_request){
        .method = "POST",
        .path = target->path,
        .headers = target->headers,
        .header_count = target->header_count,
        .body = attempt->body.items,
        .body_count = attempt->body.count,
        .body_size = attempt->body.size,
        .content_bytes = attempt->content_bytes,
        .timeout_ns = target->timeout_ns,
        .on_done = on_answer,
    };
}

static void on_refusal(struct timer *timer)
{
    struct attempt *attempt = container_of(timer, struct attempt, refusal);
    const struct verdict why = attempt->why; /* a copy: the attempt is freed before it is read */
    delivery_done(attempt->shipment, &why);
}

/* Adds the cookies for this request, unless the user sets the header. */
static void add_cookies(struct attempt *attempt, const struct otlp_sender *sender)
{
    struct text value = {0};
    struct verdict why;            /* a cookie that cannot be sent is left out */
    assert(sender->target->place); /* see otlp_sender_start */
    bool is_tls = sender->target->place->scheme == ENDPOINT_HTTPS;
    cookie_jar_print(sender->cookies, attempt->request.path, is_tls, clock_wall_ns(), &value);
    if (value.size > 0 && !auth_headers_get(&attempt->headers, "cookie").data)
        auth_headers_set(&attempt->headers, "cookie", text_string(&value), &why);
    text_deinit(&value);
}

/* Sends the request, with the headers that its authenticator sets for this attempt. */
static void send_request(struct attempt *attempt)
{
    const struct otlp_sender *sender = sender_of(attempt->shipment->delivery);
    const struct otlp_target *target = sender->target;
    struct worker *worker = sender->delivery.node->worker;
    if (target->auth || sender->cookies) {
        if (!auth_apply(target->auth, worker, attempt->shipment->batch->context, target->headers,
                        target->header_count, &attempt->headers, &attempt->why)) {
            attempt->refusal.on_timer = on_refusal;
            worker_set_timer(worker, &attempt->refusal, 0);
            return;
        }
        if (sender->cookies)
            add_cookies(attempt, sender);
        attempt->request.headers = attempt->headers.items;
        attempt->request.header_count = attempt->headers.count;
    }
    client_send(sender->client, &attempt->request);
}

/* Begins an attempt, whose request is complete. */
static void begin_request(struct attempt *attempt)
{
    const struct otlp_sender *sender = sender_of(attempt->shipment->delivery);
    const struct otlp_target *target = sender->target;
    if (target->place) {
        attempt->request.path = target->path;
        attempt->request.timeout_ns = target->timeout_ns;
        attempt->is_redirected = false;
        arena_deinit(&attempt->arena); /* the last attempt's path */
        arena_init(&attempt->arena, NULL);
        attempt->deadline_ns = 0;
        if (target->timeout_ns > 0)
            attempt->deadline_ns =
                worker_now(sender->delivery.node->worker) + (uint64_t)target->timeout_ns;
    }
    send_request(attempt);
}

static void pack_beside_loop(struct job *job)
{
    struct attempt *attempt = container_of(job, struct attempt, job);
    pack(attempt, sender_of(attempt->shipment->delivery)->target);
}

static void on_packed(struct job *job, bool did_run)
{
    struct attempt *attempt = container_of(job, struct attempt, job);
    assert(did_run && attempt->is_packing);
    attempt->is_packing = false;
    make_request(attempt);
    begin_request(attempt);
}

/* Returns the size of the encoded form of a batch; for a large one, from its buffers, without
 * reading its messages. */
static size_t encoded_size(const struct delivery *delivery, const struct batch *batch)
{
    enum { SMALL_BYTES = 16 * 1024 };
    const struct otlp_target *target = sender_of(delivery)->target;
    size_t size = batch_memory(batch);
    bool is_packed = target->json || target->compression != COMPRESSION_NONE;
    if (!is_packed || size < SMALL_BYTES)
        return 0;
    size_t joined = batch->part_count > 1 || batch_is_changed(batch) ? size : 0;
    return joined + size * (target->json ? JSON_PER_BYTE : 1);
}

static struct attempt *new_attempt(struct shipment *shipment)
{
    struct attempt *attempt = memory_zalloc(sizeof *attempt);
    attempt->shipment = shipment;
    arena_init(&attempt->arena, NULL);
    batch_gather(shipment->batch, &attempt->message);
    return attempt;
}

static void start_packing(struct node *node, struct shipment *shipment)
{
    const struct otlp_target *target = sender_of(shipment->delivery)->target;
    struct attempt *attempt = shipment->exporter_data;
    if (packing_takes_long(target->json, target->compression, attempt->message.size)) {
        attempt->is_packing = true;
        attempt->job = (struct job){.run = pack_beside_loop, .on_done = on_packed};
        job_start(node->worker, &attempt->job);
        return;
    }
    pack(attempt, target);
    make_request(attempt);
    begin_request(attempt);
}

static void send_shipment(struct node *node, struct shipment *shipment)
{
    struct attempt *attempt = shipment->exporter_data;
    assert(!attempt || (!attempt->is_packing && !attempt->request.exchange));
    if (attempt && attempt->is_packed) {
        begin_request(attempt);
        return;
    }
    if (!attempt)
        shipment->exporter_data = new_attempt(shipment);
    start_packing(node, shipment);
}

static void drop_encoded(struct shipment *shipment)
{
    struct attempt *attempt = shipment->exporter_data;
    assert(attempt->is_packed);
    buffer_unref(attempt->packed);
    attempt->packed = NULL;
    attempt->is_packed = false;
    attempt->body.count = attempt->body.size = 0;
}

static void abort_shipment(struct node *node, struct shipment *shipment)
{
    struct attempt *attempt = shipment->exporter_data;
    if (attempt->is_packing)
        job_cancel(&attempt->job);
    else if (timer_is_set(&attempt->refusal))
        worker_cancel_timer(node->worker, &attempt->refusal);
    else
        client_cancel(&attempt->request);
}

static void release_shipment(struct node *node, struct shipment *shipment)
{
    struct attempt *attempt = shipment->exporter_data;
    assert(!attempt->request.exchange); /* answered or cancelled */
    assert(!timer_is_set(&attempt->refusal));
    (void)node;
    auth_headers_deinit(&attempt->headers);
    arena_deinit(&attempt->arena);
    buffer_unref(attempt->packed);
    free(attempt);
}

/* ---- the sender ---- */

void otlp_sender_start(struct otlp_sender *sender, struct node *node, struct otlp_target *target,
                       struct client *client)
{
    *sender = (struct otlp_sender){
        .delivery = {.node = node,
                     .queue = target->queue,
                     .retry = target->retry,
                     .shared = &target->shared,
                     .auth = target->auth,
                     .send = send_shipment,
                     .abort = abort_shipment,
                     .release = release_shipment,
                     .encoded_size = encoded_size,
                     .drop_encoded = drop_encoded},
        .target = target,
        .client = client,
    };
    assert(!target->keeps_cookies || target->place);
    if (target->keeps_cookies)
        sender->cookies = memory_zalloc(sizeof *sender->cookies);
    delivery_start(&sender->delivery);
}

void otlp_sender_consume(struct otlp_sender *sender, struct batch *batch)
{
    delivery_consume(&sender->delivery, batch);
}

void otlp_sender_drain(struct otlp_sender *sender)
{
    delivery_drain(&sender->delivery);
}

void otlp_sender_stop(struct otlp_sender *sender)
{
    delivery_stop(&sender->delivery);
    if (sender->cookies)
        cookie_jar_deinit(sender->cookies);
    free(sender->cookies);
    sender->cookies = NULL;
}
