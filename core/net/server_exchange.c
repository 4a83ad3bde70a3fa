#include "core/base/budget.h"
#include "core/base/container_of.h"
#include "core/base/job.h"
#include "core/base/memory.h"
#include "core/net/grpc_status.h"
#include "core/net/peer_key.h"
#include "core/net/server_private.h"

#include <assert.h>
#include <stdio.h>

enum {
    EXCHANGE_COST_BYTES = sizeof(struct exchange) + 1024, /* with what nghttp2 keeps of a stream */
    BODY_START_BYTES = 256 * 1024, /* a length that was only promised reserves no more */
    BODY_GRACE_S = 5,
    BODY_PACE_BYTES = 1024, /* per second, after the grace */
    GRPC_PREFIX_BYTES = 5,
    /* What is larger is decompressed beside the loop: compressed, or as it becomes. */
    DECOMPRESS_LARGE_BYTES = 256 * 1024,
    DECOMPRESS_PLAIN_BYTES = 1024 * 1024,
    DECOMPRESS_TIMED_BYTES = 4096, /* compressed: counts for who held the loop */
};

static const struct verdict deadline_exceeded = {
    .code = GRPC_DEADLINE_EXCEEDED, .retry_after_ns = -1, .text = "context deadline exceeded"};

struct exchange_store {
    struct exchange_store *next;
    uint8_t data[];
};

static void on_deadline(struct timer *timer);

struct exchange *server_exchange_new(struct connection *connection)
{
    assert(connection->phase == CONNECTION_OPEN);
    struct server_part *part = connection->part;
    if (!budget_reserve(connection->budget, EXCHANGE_COST_BYTES))
        return NULL;
    struct exchange *exchange = memory_alloc(sizeof(*exchange));
    memset(exchange, 0, offsetof(struct exchange, answer_inline));
    exchange->part = part;
    exchange->connection = connection;
    exchange->budget = connection->budget;
    exchange->headers.items = exchange->inline_items;
    exchange->header_capacity = EXCHANGE_INLINE_HEADERS;
    exchange->store = exchange->inline_store;
    exchange->store_capacity = sizeof(exchange->inline_store);
    exchange->body_expected = -1;
    exchange->since_ns = part->worker->now_ns;
    exchange->deadline_ns = UINT64_MAX;
    exchange->deadline.on_timer = on_deadline;
    exchange->charged_bytes = EXCHANGE_COST_BYTES;
    part->live++;
    return exchange;
}

static void cancel_deadline(struct exchange *exchange)
{
    if (timer_is_set(&exchange->deadline))
        worker_cancel_timer(exchange->part->worker, &exchange->deadline);
}

static void free_store(struct exchange *exchange)
{
    while (exchange->more_store) {
        struct exchange_store *first = exchange->more_store;
        exchange->more_store = first->next;
        free(first);
    }
}

void server_exchange_free(struct exchange *exchange)
{
    struct server_part *part = exchange->part;
    assert(!exchange->held);
    cancel_deadline(exchange);
    budget_release(exchange->budget, exchange->charged_bytes);
    buffer_unref(exchange->body);
    if (exchange->headers.items != exchange->inline_items)
        free(exchange->headers.items);
    free_store(exchange);
    if (exchange->answer != exchange->answer_inline)
        free(exchange->answer);
    free(exchange);
    assert(part->live > 0);
    part->live--;
    server_part_unlive(part);
}

/* May respond, which releases the exchange. */
static void tell_gone(struct exchange *exchange)
{
    struct server *server = exchange->part->server;
    assert(exchange->held);
    if (server->handler->on_gone)
        server->handler->on_gone(server->context, exchange);
}

void server_exchange_gone(struct exchange *exchange)
{
    assert(exchange->connection); /* told once */
    exchange->connection = NULL;
    cancel_deadline(exchange);
    if (!exchange->held)
        server_exchange_free(exchange);
    else if (exchange->state == EXCHANGE_WAITING) /* else the handler knows: its deadline passed */
        tell_gone(exchange);
}

static bool charge(struct exchange *exchange, size_t size)
{
    if (!budget_reserve(exchange->budget, size))
        return false;
    exchange->charged_bytes += size;
    return true;
}

/* What is there stays where it is: slices point into it. */
static bool grow_store(struct exchange *exchange, size_t size)
{
    assert(size <= HTTP_HEAD_MAX_BYTES);
    if (!charge(exchange, sizeof(struct exchange_store) + size))
        return false;
    struct exchange_store *more = memory_alloc(sizeof(*more) + size);
    more->next = exchange->more_store;
    exchange->more_store = more;
    exchange->store = more->data;
    exchange->store_capacity = size;
    exchange->store_used = 0;
    return true;
}

uint8_t *server_exchange_head_room(struct exchange *exchange, size_t size)
{
    assert(exchange->store_used == 0);
    if (size > exchange->store_capacity && !grow_store(exchange, size))
        return NULL;
    exchange->store_used = size;
    return exchange->store;
}

bool server_exchange_store(struct exchange *exchange, struct slice bytes, struct slice *out)
{
    enum { STORE_BYTES = 4 * 1024 };
    if (bytes.size > exchange->store_capacity - exchange->store_used &&
        !grow_store(exchange, bytes.size > STORE_BYTES ? bytes.size : STORE_BYTES))
        return false;
    uint8_t *to = exchange->store + exchange->store_used;
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    exchange->store_used += bytes.size;
    *out = slice_of(to, bytes.size);
    return true;
}

static bool grow_headers(struct exchange *exchange, size_t capacity)
{
    struct http_headers *headers = &exchange->headers;
    assert(headers->items == exchange->inline_items && headers->count < capacity);
    if (!charge(exchange, capacity * sizeof(struct http_header)))
        return false;
    headers->items = memory_array(capacity, sizeof(struct http_header));
    memcpy(headers->items, exchange->inline_items, sizeof(exchange->inline_items));
    exchange->header_capacity = capacity;
    return true;
}

bool server_exchange_headers_room(struct exchange *exchange, size_t count)
{
    assert(exchange->headers.count == 0);
    return count <= exchange->header_capacity || grow_headers(exchange, count);
}

bool server_exchange_add_header(struct exchange *exchange, struct slice name, struct slice value)
{
    struct http_headers *headers = &exchange->headers;
    if (headers->count == exchange->header_capacity) {
        enum { MORE_HEADERS = HTTP_FIELDS_MAX + 2 }; /* :authority, content-type */
        if (headers->items != exchange->inline_items || !grow_headers(exchange, MORE_HEADERS))
            return false;
    }
    assert(headers->count < exchange->header_capacity);
    struct http_header *header = &headers->items[headers->count];
    if (!server_exchange_store(exchange, name, &header->name) ||
        !server_exchange_store(exchange, value, &header->value))
        return false;
    headers->count++;
    return true;
}

static void mark_answered(struct exchange *exchange)
{
    assert(exchange->connection && exchange->state != EXCHANGE_ANSWERED);
    cancel_deadline(exchange);
    exchange->state = EXCHANGE_ANSWERED;
    exchange->since_ns = exchange->part->worker->now_ns;
}

/* False: there is nobody to answer any more. */
static bool begin_answer(struct exchange *exchange)
{
    bool was_answered = exchange->state == EXCHANGE_ANSWERED; /* by expire */
    assert(exchange->held || !was_answered);
    exchange->held = false;
    if (!exchange->connection) {
        server_exchange_free(exchange);
        return false;
    }
    if (!was_answered)
        mark_answered(exchange);
    return !was_answered;
}

/* After the answer was written: it may point into the body. */
static void release_body(struct exchange *exchange)
{
    buffer_unref(exchange->body);
    exchange->body = NULL;
}

static void respond_grpc(struct exchange *exchange, int http_status, const struct verdict *verdict,
                         struct slice message)
{
    assert(exchange->dialect == SERVER_GRPC);
    if (!begin_answer(exchange))
        return;
    exchange->connection->protocol->answer_grpc(exchange, http_status, verdict, message);
    release_body(exchange);
}

/* Answers for the server itself. */
static void refuse(struct exchange *exchange, int status, const struct verdict *verdict)
{
    assert(exchange->connection && exchange->state != EXCHANGE_ANSWERED);
    struct server *server = exchange->part->server;
    if (exchange->dialect == SERVER_GRPC) {
        exchange_respond_grpc(exchange, verdict, (struct slice){NULL, 0});
    } else if (server->handler->on_error) {
        server->handler->on_error(server->context, exchange, status, verdict);
        assert(exchange->state == EXCHANGE_ANSWERED);
    } else {
        struct http_header retry = {SLICE("retry-after"), SLICE("1")};
        exchange_respond(exchange, status, "text/plain; charset=utf-8",
                         slice_of_string(verdict->text), &retry, verdict->retry_after_ns >= 0);
    }
}

static void refuse_over_budget(struct exchange *exchange)
{
    struct verdict verdict = verdict_try_later(GRPC_RESOURCE_EXHAUSTED, (int64_t)SECOND_NS,
                                               "data refused due to high memory usage");
    server_count_over_budget(exchange->part);
    refuse(exchange, 503, &verdict);
}

static void refuse_too_large(struct exchange *exchange, uint64_t size)
{
    size_t max = exchange->part->server->options.max_message_bytes;
    struct verdict verdict =
        exchange->dialect == SERVER_GRPC
            ? verdict_of(GRPC_RESOURCE_EXHAUSTED,
                         "grpc: received message larger than max (%llu vs. %zu)",
                         (unsigned long long)size, max)
            : verdict_of(GRPC_INVALID_ARGUMENT, "http: request body too large");
    refuse(exchange, 413, &verdict);
}

static bool is_grpc_content_type(struct slice type)
{
    static const char name[] = "application/grpc";
    size_t size = sizeof(name) - 1;
    if (type.size < size || memcmp(type.data, name, size) != 0)
        return false;
    struct slice rest = slice_of(type.data + size, type.size - size);
    return rest.size == 0 || rest.data[0] == ';' || slice_is(rest, "+proto") ||
           (rest.size > 6 && memcmp(rest.data, "+proto;", 7) == 0);
}

/* A deadline counts from here. As in gRPC-Go the last of several headers sets it, and all have to
 * be well formed. False after having answered. */
static bool read_grpc_timeout(struct exchange *exchange)
{
    const struct http_headers *headers = &exchange->headers;
    int64_t timeout_ns = -1;
    for (size_t i = 0; i < headers->count; i++) {
        struct error err;
        if (!slice_is(headers->items[i].name, "grpc-timeout") ||
            grpc_parse_timeout(headers->items[i].value, &timeout_ns, &err))
            continue;
        struct verdict verdict = verdict_of(GRPC_INTERNAL, "malformed grpc-timeout: %s", err.text);
        respond_grpc(exchange, 400, &verdict, (struct slice){NULL, 0});
        return false;
    }
    if (timeout_ns >= 0)
        exchange->deadline_ns = worker_now(exchange->part->worker) + (uint64_t)timeout_ns;
    return true;
}

static bool has_expired(const struct exchange *exchange)
{
    return exchange->part->worker->now_ns >= exchange->deadline_ns;
}

/* Tells the client; what the handler says later is only a release. */
static void expire(struct exchange *exchange)
{
    assert(exchange->dialect == SERVER_GRPC && exchange->connection);
    bool is_handlers = exchange->state == EXCHANGE_WAITING;
    mark_answered(exchange);
    exchange->connection->protocol->answer_grpc(exchange, 200, &deadline_exceeded,
                                                (struct slice){NULL, 0});
    if (is_handlers)
        tell_gone(exchange);
    else if (!exchange->held)
        release_body(exchange);
}

static void on_deadline(struct timer *timer)
{
    expire(container_of(timer, struct exchange, deadline));
}

/* False after having answered. */
static bool start_deadline(struct exchange *exchange)
{
    if (exchange->deadline_ns == UINT64_MAX)
        return true;
    if (has_expired(exchange)) {
        expire(exchange);
        return false;
    }
    worker_set_timer(exchange->part->worker, &exchange->deadline,
                     exchange->deadline_ns - exchange->part->worker->now_ns);
    return true;
}

static bool is_grpc(const struct exchange *exchange)
{
    return exchange->part->server->options.accept_grpc &&
           exchange->connection->protocol == &h2_protocol &&
           is_grpc_content_type(http_header_get(&exchange->headers, "content-type"));
}

/* What gRPC-Go answers; false after having answered. */
static bool check_grpc_encoding(struct exchange *exchange)
{
    struct slice name = http_header_get(&exchange->headers, "grpc-encoding");
    int compression =
        slice_is(name, compression_names[COMPRESSION_NONE]) ? -1 : compression_by_name(name);
    if (compression >= 0 && compression_in_grpc((enum compression)compression)) {
        exchange->compression = (uint8_t)compression;
        return true;
    }
    struct verdict verdict = verdict_of(
        GRPC_UNIMPLEMENTED, "grpc: Decompressor is not installed for grpc-encoding \"%.*s\"",
        SLICE_ARG(name));
    refuse(exchange, 415, &verdict);
    return false;
}

/* As the Collector: "identity" is not among the names, "" has to be to allow a plain body. */
static bool check_content_encoding(struct exchange *exchange)
{
    struct slice name = http_header_get(&exchange->headers, "content-encoding");
    int compression = compression_by_name(name);
    if (name.size > 0 && compression == COMPRESSION_NONE)
        compression = -1;
    bool one = http_header_count(&exchange->headers, "content-encoding") <= 1;
    if (one && compression >= 0 &&
        (exchange->part->server->options.compression_mask & 1u << compression)) {
        exchange->compression = (uint8_t)compression;
        return true;
    }
    struct verdict verdict =
        verdict_of(GRPC_INVALID_ARGUMENT, "unsupported Content-Encoding: %.*s", SLICE_ARG(name));
    refuse(exchange, 400, &verdict);
    return false;
}

void server_exchange_refuse_head(struct exchange *exchange, int status,
                                 const struct verdict *verdict)
{
    assert(exchange->state == EXCHANGE_HEAD || exchange->state == EXCHANGE_BODY);
    exchange->method_is_head = slice_is(exchange->method, "HEAD");
    exchange->dialect = is_grpc(exchange) ? SERVER_GRPC : SERVER_HTTP;
    if (exchange->dialect == SERVER_GRPC)
        exchange_respond_grpc(exchange, verdict, (struct slice){NULL, 0});
    else
        exchange_respond(exchange, status, "text/plain; charset=utf-8",
                         slice_of_string(verdict->text), NULL, 0);
}

/* A listener that speaks only one of the two says so. */
static bool check_dialect(struct exchange *exchange)
{
    const struct server_options *options = &exchange->part->server->options;
    if (is_grpc(exchange)) {
        exchange->dialect = SERVER_GRPC;
        if (!read_grpc_timeout(exchange))
            return false;
        if (slice_is(exchange->method, "POST"))
            return start_deadline(exchange);
        struct verdict verdict = verdict_of(
            GRPC_INTERNAL, "Received a HEADERS frame with :method \"%.*s\" which should be POST",
            SLICE_ARG(exchange->method));
        refuse(exchange, 405, &verdict);
        return false;
    }
    exchange->dialect = SERVER_HTTP;
    if (options->accept_http)
        return true;
    struct slice type = http_header_get(&exchange->headers, "content-type");
    bool is_h2 = exchange->connection->protocol == &h2_protocol;
    char text[192];
    int size = snprintf(text, sizeof(text), "invalid gRPC request content-type \"%.*s\"%s\n",
                        (int)(type.size > 64 ? 64 : type.size), (const char *)type.data,
                        is_h2 ? "" : ": this endpoint speaks gRPC, which needs HTTP/2");
    exchange_respond(exchange, 415, "text/plain; charset=utf-8", slice_of(text, (size_t)size), NULL,
                     0);
    return false;
}

static size_t body_limit(const struct exchange *exchange)
{
    const struct server_options *options = &exchange->part->server->options;
    return exchange->dialect == SERVER_GRPC ? options->max_message_bytes : options->max_body_bytes;
}

void server_exchange_head_done(struct exchange *exchange, int64_t length)
{
    assert(exchange->connection && exchange->state == EXCHANGE_HEAD);
    struct server *server = exchange->part->server;
    exchange->method_is_head = slice_is(exchange->method, "HEAD");
    exchange->since_ns = exchange->part->worker->now_ns;
    if (!check_dialect(exchange))
        return;
    if (!server->handler->on_head(server->context, exchange)) {
        assert(exchange->state == EXCHANGE_ANSWERED);
        return;
    }
    assert(exchange->state == EXCHANGE_HEAD);
    if (exchange->dialect == SERVER_GRPC ? !check_grpc_encoding(exchange)
                                         : !check_content_encoding(exchange))
        return;
    if (exchange->dialect == SERVER_HTTP && length >= 0) {
        if ((uint64_t)length > body_limit(exchange)) {
            refuse_too_large(exchange, (uint64_t)length);
            return;
        }
        exchange->body_expected = length;
    }
    exchange->state = EXCHANGE_BODY;
}

/* Room for `more` bytes. A length that the client only promised is not reserved at once, or a few
 * idle connections would use up the budget. */
static bool reserve_body(struct exchange *exchange, size_t more)
{
    assert(more > 0 && exchange->state == EXCHANGE_BODY);
    size_t limit = body_limit(exchange);
    if (exchange->body_expected >= 0)
        limit = (size_t)exchange->body_expected;
    if (!exchange->body) {
        size_t start = exchange->body_expected < 0 ? 4096
                       : limit < BODY_START_BYTES  ? limit
                                                   : BODY_START_BYTES;
        if (start < more)
            start = more;
        exchange->body = buffer_new(start, exchange->budget);
        if (exchange->body)
            return true;
    } else if (buffer_reserve(exchange->body, more, limit)) {
        return true;
    }
    refuse_over_budget(exchange);
    return false;
}

static void append_body(struct exchange *exchange, struct slice data)
{
    size_t have = exchange->body ? exchange->body->size : 0;
    assert(have <= body_limit(exchange));
    if (data.size > body_limit(exchange) - have) {
        refuse_too_large(exchange, (uint64_t)have + data.size);
        return;
    }
    if (data.size == 0 || !reserve_body(exchange, data.size))
        return;
    memcpy(exchange->body->data + have, data.data, data.size);
    exchange->body->size += data.size;
}

static void refuse_grpc_framing(struct exchange *exchange, const char *text)
{
    struct verdict verdict = verdict_of(GRPC_INTERNAL, "%s", text);
    refuse(exchange, 400, &verdict);
}

static void on_grpc_prefix(struct exchange *exchange)
{
    const uint8_t *prefix = exchange->prefix;
    uint32_t size = (uint32_t)prefix[1] << 24 | (uint32_t)prefix[2] << 16 |
                    (uint32_t)prefix[3] << 8 | prefix[4];
    if (prefix[0] > 1)
        refuse_grpc_framing(exchange, "grpc: received unexpected payload format");
    else if (prefix[0] == 1 && exchange->compression == COMPRESSION_NONE)
        refuse_grpc_framing(exchange, "grpc: compressed flag set with identity or empty encoding");
    else if (size > body_limit(exchange))
        refuse_too_large(exchange, size);
    else
        exchange->body_expected = size;
}

static struct slice take_grpc_prefix(struct exchange *exchange, struct slice data)
{
    size_t take = GRPC_PREFIX_BYTES - exchange->prefix_size;
    if (take > data.size)
        take = data.size;
    memcpy(exchange->prefix + exchange->prefix_size, data.data, take);
    exchange->prefix_size = (uint8_t)(exchange->prefix_size + take);
    if (exchange->prefix_size == GRPC_PREFIX_BYTES)
        on_grpc_prefix(exchange);
    return slice_of(data.data + take, data.size - take);
}

void server_exchange_body(struct exchange *exchange, struct slice data)
{
    assert(exchange->state == EXCHANGE_BODY);
    exchange->body_received += data.size;
    if (exchange->dialect == SERVER_GRPC && exchange->prefix_size < GRPC_PREFIX_BYTES) {
        data = take_grpc_prefix(exchange, data);
        if (exchange->state != EXCHANGE_BODY)
            return;
    }
    if (data.size == 0)
        return;
    size_t have = exchange->body ? exchange->body->size : 0;
    if (exchange->dialect == SERVER_GRPC && data.size > (uint64_t)exchange->body_expected - have) {
        refuse_grpc_framing(exchange, "grpc: more than one message in a unary call");
        return;
    }
    append_body(exchange, data);
}

size_t server_exchange_body_room(struct exchange *exchange, uint8_t **data_out)
{
    if (exchange->state != EXCHANGE_BODY || exchange->body_expected < 0)
        return 0;
    size_t have = exchange->body ? exchange->body->size : 0;
    size_t missing = (size_t)exchange->body_expected - have;
    if (missing == 0 ||
        !reserve_body(exchange, missing < SERVER_READ_BYTES ? missing : SERVER_READ_BYTES))
        return 0;
    *data_out = exchange->body->data + have;
    size_t room = exchange->body->capacity - have;
    return room < missing ? room : missing;
}

void server_exchange_body_filled(struct exchange *exchange, size_t size)
{
    assert(exchange->state == EXCHANGE_BODY && exchange->body_expected >= 0);
    exchange->body->size += size;
    exchange->body_received += size;
    assert(exchange->body->size <= exchange->body->capacity);
    assert(exchange->body->size <= (size_t)exchange->body_expected);
}

static void refuse_corrupt(struct exchange *exchange, const char *why)
{
    bool is_grpc = exchange->dialect == SERVER_GRPC;
    struct verdict verdict =
        verdict_of(is_grpc ? GRPC_INTERNAL : GRPC_INVALID_ARGUMENT, "%s%s",
                   is_grpc ? "grpc: failed to decompress the received message: " : "", why);
    refuse(exchange, 400, &verdict);
}

static void refuse_decompressed_too_large(struct exchange *exchange)
{
    struct verdict verdict =
        exchange->dialect == SERVER_GRPC
            ? verdict_of(GRPC_RESOURCE_EXHAUSTED,
                         "grpc: received message after decompression larger than max %zu",
                         body_limit(exchange))
            : verdict_of(GRPC_INVALID_ARGUMENT, "http: request body too large");
    refuse(exchange, 413, &verdict);
}

static void refuse_too_dense(struct exchange *exchange, const char *why)
{
    bool is_grpc = exchange->dialect == SERVER_GRPC;
    struct verdict verdict = verdict_of(
        is_grpc ? GRPC_RESOURCE_EXHAUSTED : GRPC_INVALID_ARGUMENT, "%s%s",
        is_grpc ? "grpc: received message after decompression larger than allowed: " : "", why);
    refuse(exchange, 413, &verdict);
}

struct decompression {
    struct job job; /* of a large body */
    struct exchange *exchange;
    size_t max_size; /* bytes that it may become */
    struct buffer *plain;
    enum decompress_result result;
    struct error err;
};

/* On any thread. */
static void decompress_body(struct decompression *decompression)
{
    const struct exchange *exchange = decompression->exchange;
    assert(exchange->body && exchange->compression != COMPRESSION_NONE);
    decompression->result = decompress(
        (enum compression)exchange->compression, buffer_slice(exchange->body),
        decompression->max_size, exchange->budget, &decompression->plain, &decompression->err);
}

/* False after having answered. */
static bool take_decompressed(struct exchange *exchange, const struct decompression *decompression)
{
    assert((decompression->result == DECOMPRESS_OK) == (decompression->plain != NULL));
    switch (decompression->result) {
    case DECOMPRESS_OK:
        buffer_unref(exchange->body);
        exchange->body = decompression->plain;
        return true;
    case DECOMPRESS_TOO_LARGE:
        refuse_decompressed_too_large(exchange);
        break;
    case DECOMPRESS_TOO_DENSE:
        refuse_too_dense(exchange, decompression->err.text);
        break;
    case DECOMPRESS_OVER_BUDGET:
        refuse_over_budget(exchange);
        break;
    case DECOMPRESS_CORRUPT:
        refuse_corrupt(exchange, decompression->err.text);
        break;
    }
    return false;
}

/* Unless it is too late already: decompression takes its time. */
static void hand_over(struct exchange *exchange)
{
    assert(exchange->connection && exchange->body && !exchange->held);
    struct server *server = exchange->part->server;
    if (exchange->deadline_ns != UINT64_MAX) {
        worker_now(exchange->part->worker);
        if (has_expired(exchange)) {
            expire(exchange);
            return;
        }
    }
    struct worker *worker = exchange->part->worker;
    struct worker_piece piece;
    bool is_large = exchange->body->size >= WORKER_PIECE_BYTES;
    exchange->state = EXCHANGE_WAITING;
    exchange->held = true;
    worker_begin_piece(worker, &piece, is_large ? server->label : NULL);
    server->handler->on_request(server->context, exchange);
    worker_end_piece(worker, &piece);
}

/* ---- a large body is decompressed beside the loop: a block of deflate may have 12 bytes ---- */

static void run_decompression(struct job *job)
{
    decompress_body(container_of(job, struct decompression, job));
}

static bool is_decompression_wanted(const struct job *job)
{
    const struct exchange *exchange = container_of(job, const struct decompression, job)->exchange;
    return exchange->connection && exchange->state == EXCHANGE_DECOMPRESSING;
}

static void on_decompressed(struct job *job, bool did_run)
{
    struct decompression *decompression = container_of(job, struct decompression, job);
    struct exchange *exchange = decompression->exchange;
    assert(exchange->held && (did_run || !is_decompression_wanted(job)));
    exchange->held = false;
    if (is_decompression_wanted(job)) {
        if (take_decompressed(exchange, decompression)) {
            buffer_trim(exchange->body);
            hand_over(exchange);
        }
    } else {
        buffer_unref(decompression->plain);
        if (exchange->connection)
            release_body(exchange); /* its deadline has passed */
        else
            server_exchange_free(exchange);
    }
    free(decompression);
}

static void start_decompression(struct exchange *exchange)
{
    assert(exchange->state == EXCHANGE_BODY && !exchange->held);
    struct decompression *decompression = memory_zalloc(sizeof(*decompression));
    decompression->exchange = exchange;
    decompression->max_size = body_limit(exchange);
    decompression->job = (struct job){
        .run = run_decompression, .on_done = on_decompressed, .is_wanted = is_decompression_wanted};
    exchange->state = EXCHANGE_DECOMPRESSING;
    exchange->held = true;
    job_start(exchange->part->worker, &decompression->job);
}

/* Whether it becomes more than DECOMPRESS_PLAIN_BYTES is known for sure when it has. */
static bool is_large(const struct exchange *exchange)
{
    struct slice body = buffer_slice(exchange->body);
    return body.size >= DECOMPRESS_LARGE_BYTES ||
           decompress_claim((enum compression)exchange->compression, body) > DECOMPRESS_PLAIN_BYTES;
}

/* Many small bodies may come in one turn of the loop, so none becomes much in it. False: it was
 * answered, or goes on beside the loop. */
static bool decompress_at_once(struct exchange *exchange)
{
    struct worker *worker = exchange->part->worker;
    struct decompression decompression = {.exchange = exchange, .max_size = body_limit(exchange)};
    bool is_tried = decompression.max_size > DECOMPRESS_PLAIN_BYTES;
    if (is_tried)
        decompression.max_size = DECOMPRESS_PLAIN_BYTES;
    struct worker_piece piece;
    bool is_timed = exchange->body->size >= DECOMPRESS_TIMED_BYTES;
    worker_begin_piece(worker, &piece, is_timed ? exchange->part->server->label : NULL);
    decompress_body(&decompression);
    worker_end_piece(worker, &piece);
    if (is_tried && decompression.result == DECOMPRESS_TOO_LARGE) {
        start_decompression(exchange);
        return false;
    }
    return take_decompressed(exchange, &decompression);
}

void server_exchange_finish(struct exchange *exchange)
{
    assert(exchange->state == EXCHANGE_BODY);
    exchange->body_complete = true;
    if (!exchange->body)
        exchange->body = buffer_new_charged(0, exchange->budget);
    bool is_compressed = exchange->compression != COMPRESSION_NONE;
    if (exchange->dialect == SERVER_GRPC) {
        if (exchange->prefix_size < GRPC_PREFIX_BYTES ||
            exchange->body->size < (size_t)exchange->body_expected) {
            refuse_grpc_framing(exchange, "unexpected EOF");
            return;
        }
        assert(exchange->body->size == (size_t)exchange->body_expected);
        is_compressed = exchange->prefix[0] == 1;
    }
    if (is_compressed && is_large(exchange)) {
        start_decompression(exchange);
        return;
    }
    if (is_compressed && !decompress_at_once(exchange))
        return;
    buffer_trim(exchange->body);
    hand_over(exchange);
}

uint64_t server_exchange_body_deadline(const struct exchange *exchange)
{
    int64_t limit = exchange->part->server->options.read_timeout_ns;
    uint64_t by_pace = exchange->since_ns + BODY_GRACE_S * SECOND_NS +
                       exchange->body_received * (SECOND_NS / BODY_PACE_BYTES);
    uint64_t by_limit = limit > 0 ? exchange->since_ns + (uint64_t)limit : UINT64_MAX;
    return by_pace < by_limit ? by_pace : by_limit;
}

/* The public face. */

enum server_dialect exchange_dialect(const struct exchange *exchange)
{
    return (enum server_dialect)exchange->dialect;
}

struct worker *exchange_worker(const struct exchange *exchange)
{
    return exchange->part->worker;
}

struct slice exchange_method(const struct exchange *exchange)
{
    return exchange->method;
}

struct slice exchange_path(const struct exchange *exchange)
{
    return exchange->path;
}

struct slice exchange_query(const struct exchange *exchange)
{
    return exchange->query;
}

const struct http_headers *exchange_headers(const struct exchange *exchange)
{
    return &exchange->headers;
}

const char *exchange_peer(const struct exchange *exchange)
{
    struct connection *connection = exchange->connection;
    if (!connection)
        return "";
    if (connection->peer[0] == '\0')
        peer_print((const struct sockaddr *)&connection->address, connection->peer);
    return connection->peer;
}

uint64_t exchange_peer_key(const struct exchange *exchange)
{
    return exchange->connection ? exchange->connection->peer_key : 0;
}

struct budget *exchange_budget(const struct exchange *exchange)
{
    return exchange->budget;
}

bool exchange_is_secure(const struct exchange *exchange)
{
    return exchange->part->server->tls != NULL;
}

bool exchange_is_abandoned(const struct exchange *exchange)
{
    assert(exchange->held);
    return !exchange->connection || exchange->state == EXCHANGE_ANSWERED || has_expired(exchange);
}

void exchange_set_data(struct exchange *exchange, void *data)
{
    exchange->data = data;
}

void *exchange_data(const struct exchange *exchange)
{
    return exchange->data;
}

uint64_t exchange_received_bytes(const struct exchange *exchange)
{
    return exchange->body_received;
}

struct buffer *exchange_take_body(struct exchange *exchange)
{
    assert(exchange->body && exchange->held);
    struct buffer *body = exchange->body;
    exchange->body = NULL;
    return body;
}

void exchange_respond(struct exchange *exchange, int status, const char *content_type,
                      struct slice body, const struct http_header *extra, size_t extra_count)
{
    if (!begin_answer(exchange))
        return;
    struct answer answer = {status, content_type, body, extra, extra_count};
    exchange->connection->protocol->answer(exchange, &answer);
    release_body(exchange);
}

void exchange_respond_grpc(struct exchange *exchange, const struct verdict *verdict,
                           struct slice message)
{
    bool is_late = !verdict_is_ok(verdict) && has_expired(exchange);
    respond_grpc(exchange, 200, is_late ? &deadline_exceeded : verdict, message);
}
