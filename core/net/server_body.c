#include "core/base/budget.h"
#include "core/base/container_of.h"
#include "core/base/job.h"
#include "core/base/memory.h"
#include "core/net/grpc_status.h"
#include "core/net/server_private.h"

#include <assert.h>

enum {
    /* The most that an announced length reserves at first: the first value while most of the
     * memory is free, the second otherwise. Growing a body later copies it. */
    BODY_START_BYTES = 1024 * 1024,
    BODY_START_SHORT_BYTES = 256 * 1024,
    BODY_GRACE_S = 5,
    BODY_PACE_BYTES = 1024, /* minimum rate per second, after the grace period */
    GRPC_PREFIX_BYTES = 5,
    /* Bodies of this size or more, compressed or decompressed, are decompressed by a job. */
    DECOMPRESS_LARGE_BYTES = 256 * 1024,
    DECOMPRESS_PLAIN_BYTES = 1024 * 1024,
    DECOMPRESS_TIMED_BYTES = 4096, /* compressed size from which its time on the loop counts */
    LIGHT_BYTES = 4096,
    LIGHT_PLAIN_BYTES = 64 * 1024, /* decompressed */
};

static void refuse_over_budget(struct exchange *exchange)
{
    server_count_over_budget(exchange->part);
    server_exchange_refuse(exchange, verdict_http_status(&verdict_over_budget),
                           &verdict_over_budget);
}

void exchange_count_over_budget(const struct exchange *exchange)
{
    server_count_over_budget(exchange->part);
}

static size_t body_limit(const struct exchange *exchange)
{
    const struct server_options *options = &exchange->part->server->options;
    return exchange->dialect == SERVER_GRPC ? options->max_message_bytes : options->max_body_bytes;
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
    server_exchange_refuse(exchange, 413, &verdict);
}

void server_exchange_begin_body(struct exchange *exchange, int64_t length)
{
    assert(exchange->state == EXCHANGE_HEAD);
    if (exchange->dialect == SERVER_HTTP && length >= 0) {
        if ((uint64_t)length > body_limit(exchange)) {
            refuse_too_large(exchange, (uint64_t)length);
            return;
        }
        exchange->body_expected = length;
    }
    exchange->state = EXCHANGE_BODY;
}

/* How many bytes to reserve when a body begins. An announced length is not reserved as a whole,
 * because a few idle connections could use up the budget. */
static size_t body_start(const struct exchange *exchange)
{
    if (exchange->body_expected < 0)
        return 4096;
    size_t announced = (size_t)exchange->body_expected;
    if (announced <= BODY_START_SHORT_BYTES)
        return announced;
    size_t start = announced < BODY_START_BYTES ? announced : BODY_START_BYTES;
    return budget_is_mostly_free(exchange->budget, start) ? start : BODY_START_SHORT_BYTES;
}

/* Makes room for `more` bytes. Returns false after refusing the request. */
static bool reserve_body(struct exchange *exchange, size_t more)
{
    assert(more > 0 && exchange->state == EXCHANGE_BODY);
    size_t limit = body_limit(exchange);
    if (exchange->body_expected >= 0)
        limit = (size_t)exchange->body_expected;
    if (!exchange->body) {
        size_t start = body_start(exchange);
        exchange->body = buffer_new(start > more ? start : more, exchange->budget);
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
    server_exchange_refuse(exchange, 400, &verdict);
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
    server_exchange_refuse(exchange, 400, &verdict);
}

static void refuse_decompressed_too_large(struct exchange *exchange)
{
    struct verdict verdict =
        exchange->dialect == SERVER_GRPC
            ? verdict_of(GRPC_RESOURCE_EXHAUSTED,
                         "grpc: received message after decompression larger than max %zu",
                         body_limit(exchange))
            : verdict_of(GRPC_INVALID_ARGUMENT, "http: request body too large");
    server_exchange_refuse(exchange, 413, &verdict);
}

static void refuse_too_dense(struct exchange *exchange, const char *why)
{
    bool is_grpc = exchange->dialect == SERVER_GRPC;
    struct verdict verdict = verdict_of(
        is_grpc ? GRPC_RESOURCE_EXHAUSTED : GRPC_INVALID_ARGUMENT, "%s%s",
        is_grpc ? "grpc: received message after decompression larger than allowed: " : "", why);
    server_exchange_refuse(exchange, 413, &verdict);
}

struct decompression {
    struct job job; /* for a large body */
    struct exchange *exchange;
    size_t max_size; /* limit of the decompressed size in bytes */
    struct buffer *plain;
    enum decompress_result result;
    struct error err;
};

/* Decompresses the body, on any thread. */
static void decompress_body(struct decompression *decompression)
{
    const struct exchange *exchange = decompression->exchange;
    assert(exchange->body && exchange->compression != COMPRESSION_NONE);
    decompression->result = decompress(
        (enum compression)exchange->compression, buffer_slice(exchange->body),
        decompression->max_size, exchange->budget, &decompression->plain, &decompression->err);
}

/* Uses the decompressed body. Returns false after answering with an error. */
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

/* Delivers the request, unless its deadline passed during decompression. */
static void hand_over(struct exchange *exchange)
{
    assert(exchange->connection && exchange->body && !exchange->held);
    const struct server *server = exchange->part->server;
    const struct server_user *user = exchange->user;
    if (exchange->deadline_ns != UINT64_MAX) {
        worker_now(exchange->part->worker);
        if (server_exchange_has_expired(exchange)) {
            server_exchange_expire(exchange);
            return;
        }
    }
    struct worker *worker = exchange->part->worker;
    struct worker_piece piece;
    bool is_large = exchange->body->size >= WORKER_PIECE_BYTES;
    exchange->state = EXCHANGE_WAITING;
    exchange->held = true;
    worker_begin_piece(worker, &piece, is_large ? server->label : NULL);
    user->handler->on_request(user->context, exchange);
    worker_end_piece(worker, &piece);
}

/* ---- a job decompresses a large body, because 12 bytes may be a whole block of deflate ---- */

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
            server_turn_count(exchange->part, exchange->body->size);
            hand_over(exchange);
        }
    } else {
        buffer_unref(decompression->plain);
        if (exchange->connection)
            server_exchange_release_body(exchange); /* the deadline has passed */
        else
            server_exchange_free(exchange);
    }
    free(decompression);
}

static void start_decompression(struct exchange *exchange)
{
    assert(exchange->state == EXCHANGE_BODY || exchange->state == EXCHANGE_READY);
    assert(exchange->body_complete && !exchange->held);
    struct decompression *decompression = memory_zalloc(sizeof *decompression);
    decompression->exchange = exchange;
    decompression->max_size = body_limit(exchange);
    decompression->job = (struct job){
        .run = run_decompression, .on_done = on_decompressed, .is_wanted = is_decompression_wanted};
    exchange->state = EXCHANGE_DECOMPRESSING;
    exchange->held = true;
    job_start(exchange->part->worker, &decompression->job);
}

/* Returns the decompressed size that the body itself states, which may be false. */
static size_t plain_claim(const struct exchange *exchange)
{
    return decompress_claim((enum compression)exchange->compression, buffer_slice(exchange->body));
}

/* Decompresses a small body on the loop. Many may arrive in one turn, so each has a low limit.
 * Returns false if the exchange was answered, or if a job continues. */
static bool decompress_at_once(struct exchange *exchange)
{
    struct worker *worker = exchange->part->worker;
    struct decompression decompression = {.exchange = exchange, .max_size = body_limit(exchange)};
    size_t most = exchange->state == EXCHANGE_READY || !server_turn_is_over(exchange->part)
                      ? DECOMPRESS_PLAIN_BYTES
                      : LIGHT_PLAIN_BYTES;
    bool is_tried = decompression.max_size > most;
    if (is_tried)
        decompression.max_size = most;
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

/* Checks that the message is complete. Returns false after answering with an error. */
static bool check_grpc_end(struct exchange *exchange)
{
    assert(exchange->dialect == SERVER_GRPC);
    if (exchange->prefix_size == GRPC_PREFIX_BYTES &&
        exchange->body->size >= (size_t)exchange->body_expected) {
        assert(exchange->body->size == (size_t)exchange->body_expected);
        return true;
    }
    refuse_grpc_framing(exchange, "unexpected EOF");
    return false;
}

static bool is_compressed(const struct exchange *exchange)
{
    return exchange->compression != COMPRESSION_NONE &&
           (exchange->dialect != SERVER_GRPC || exchange->prefix[0] == 1);
}

/* Whether the request is so small that it does not wait for its turn. */
static bool is_light(const struct exchange *exchange)
{
    return exchange->body->size <= LIGHT_BYTES &&
           (!is_compressed(exchange) || plain_claim(exchange) <= LIGHT_PLAIN_BYTES);
}

void server_exchange_deliver(struct exchange *exchange)
{
    assert(exchange->state == EXCHANGE_BODY || exchange->state == EXCHANGE_READY);
    if (is_compressed(exchange) && !decompress_at_once(exchange))
        return;
    buffer_trim(exchange->body);
    server_turn_count(exchange->part, exchange->body->size);
    hand_over(exchange);
}

void server_exchange_finish(struct exchange *exchange)
{
    assert(exchange->state == EXCHANGE_BODY);
    exchange->body_complete = true;
    if (!exchange->body)
        exchange->body = buffer_new_charged(0, exchange->budget);
    if (exchange->dialect == SERVER_GRPC && !check_grpc_end(exchange))
        return;
    if (exchange->auth_waits)
        exchange->state = EXCHANGE_AUTHENTICATING;
    else
        server_exchange_finish_authenticated(exchange);
}

void server_exchange_finish_authenticated(struct exchange *exchange)
{
    assert(exchange->state == EXCHANGE_BODY && exchange->body_complete && !exchange->auth_waits);
    if (is_compressed(exchange) && (exchange->body->size >= DECOMPRESS_LARGE_BYTES ||
                                    plain_claim(exchange) > DECOMPRESS_PLAIN_BYTES))
        start_decompression(exchange);
    else if (server_turn_is_over(exchange->part) && !is_light(exchange))
        server_turn_wait(exchange);
    else
        server_exchange_deliver(exchange);
}

uint64_t server_exchange_body_deadline(const struct exchange *exchange)
{
    int64_t limit = exchange->part->server->options.read_timeout_ns;
    uint64_t by_pace = exchange->since_ns + BODY_GRACE_S * SECOND_NS +
                       exchange->body_received * (SECOND_NS / BODY_PACE_BYTES);
    uint64_t by_limit = limit > 0 ? exchange->since_ns + (uint64_t)limit : UINT64_MAX;
    return by_pace < by_limit ? by_pace : by_limit;
}
