#include "exporters/pyroscope/push_sender.h"

#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/auth.h"
#include "exporters/pyroscope/push_answer.h"

#include <assert.h>

enum push_state {
    PUSH_FREE,
    PUSH_WAITS,
    PUSH_UNDER_WAY,
    PUSH_LATER, /* waits for the next attempt */
};

/* A request in progress, or one that will be sent again. */
struct push {
    struct client_request request;
    struct attempt *attempt;
    struct buffer *buffer; /* NULL: free */
    struct slice body;
    bool is_gzip;
    enum push_state state;
};

/* The requests of a batch, over all its attempts. There are as many slots as requests may be in
 * progress at once; a new request is created in the slot of one with a final answer. */
struct attempt {
    struct shipment *shipment;
    struct pushes *requests;
    struct push *pushes;      /* target->max_requests */
    struct http_header *base; /* headers of all attempts: the target's, with the tenant */
    size_t base_count;
    struct auth_headers headers; /* of this attempt; the last is content-encoding */
    unsigned under_way;
    bool begins; /* the timer has not run yet */
    bool all_made;
    bool pauses;            /* the timer will continue */
    bool unreachable;       /* the backend did not answer, so the rest waits for the next attempt */
    struct verdict later;   /* why a request is sent again; OK: none is */
    struct verdict refused; /* the first permanent refusal; OK: none */
    struct timer timer;
};

static void send_shipment(struct node *node, struct shipment *shipment);

/* Returns the sender of a delivery, which is ours if it sends with our function. */
static struct push_sender *sender_of(const struct shipment *shipment)
{
    assert(shipment->delivery->send == send_shipment);
    return container_of(shipment->delivery, struct push_sender, delivery);
}

static const struct push_target *target_of(const struct attempt *attempt)
{
    return sender_of(attempt->shipment)->target;
}

static void finish(struct attempt *attempt)
{
    assert(attempt->under_way == 0 && !attempt->pauses);
    /* A copy: the attempt may be freed before the verdict is read. */
    const struct verdict verdict =
        !verdict_is_ok(&attempt->later) ? attempt->later : attempt->refused;
    delivery_done(attempt->shipment, &verdict);
}

static void free_push(struct push *push)
{
    buffer_unref(push->buffer);
    push->buffer = NULL;
    push->state = PUSH_FREE;
}

static void on_answer(struct client_request *request, const struct client_answer *answer);

/* Creates the next request in a free slot. Returns false if there are no more. */
static bool make_push(struct attempt *attempt, struct push *push)
{
    const struct push_target *target = target_of(attempt);
    assert(push->state == PUSH_FREE && !push->buffer);
    push->is_gzip = false;
    push->buffer = attempt->all_made ? NULL : pushes_next(attempt->requests, &push->is_gzip);
    attempt->all_made = !push->buffer;
    if (!push->buffer)
        return false;
    push->attempt = attempt;
    push->state = PUSH_WAITS;
    push->body = buffer_slice(push->buffer);
    push->request = (struct client_request){
        .method = "POST",
        .path = target->path,
        .body = &push->body,
        .body_count = 1,
        .body_size = push->body.size,
        .timeout_ns = target->timeout_ns,
        .on_done = on_answer,
    };
    return true;
}

static bool make_push_in_turn(struct attempt *attempt, struct push *push)
{
    struct node *node = attempt->shipment->delivery->node;
    struct worker_piece piece;
    node_begin_piece(node, attempt->shipment->batch, &piece);
    bool made = make_push(attempt, push);
    worker_end_piece(node->worker, &piece);
    return made;
}

/* Sends waiting requests, and creates one if a slot is free. Creating one may take about 10 ms, so
 * the loop serves others before the next one. */
static void go_on(struct attempt *attempt)
{
    bool made = false;
    attempt->pauses = false;
    for (unsigned i = 0; i < target_of(attempt)->max_requests && !attempt->unreachable; i++) {
        struct push *push = &attempt->pushes[i];
        if (push->state == PUSH_FREE && made && !attempt->all_made) {
            attempt->pauses = true;
            worker_set_timer(attempt->shipment->delivery->node->worker, &attempt->timer, 0);
            return;
        }
        if (push->state == PUSH_FREE)
            made = make_push_in_turn(attempt, push);
        if (push->state != PUSH_WAITS)
            continue;
        push->state = PUSH_UNDER_WAY;
        push->request.headers = attempt->headers.items;
        push->request.header_count = attempt->headers.count - !push->is_gzip;
        attempt->under_way++;
        client_send(sender_of(attempt->shipment)->client, &push->request);
    }
    if (attempt->under_way == 0)
        finish(attempt);
}

/* Sets the headers of this attempt. Returns false if the attempt ends with a refusal. */
static bool begin(struct attempt *attempt)
{
    static const struct http_header gzip = {{(const uint8_t *)"content-encoding", 16},
                                            {(const uint8_t *)"gzip", 4}};
    const struct shipment *shipment = attempt->shipment;
    struct auth_headers *headers = &attempt->headers;
    struct verdict why;
    if (!auth_apply(target_of(attempt)->auth, shipment->delivery->node->worker,
                    shipment->batch->context, attempt->base, attempt->base_count, headers, &why)) {
        attempt->later = why;
        return false;
    }
    headers->items = arena_grow(&headers->arena, headers->items, headers->count, &headers->capacity,
                                sizeof *headers->items);
    headers->items[headers->count++] = gzip;
    return true;
}

static void on_timer(struct timer *timer)
{
    struct attempt *attempt = container_of(timer, struct attempt, timer);
    if (attempt->begins && !begin(attempt)) {
        attempt->begins = false;
        finish(attempt);
        return;
    }
    attempt->begins = false;
    go_on(attempt);
}

static void note(struct attempt *attempt, struct push *push, const struct verdict *verdict)
{
    if (!verdict_is_ok(verdict) && verdict_is_retryable(verdict)) {
        push->state = PUSH_LATER;
        if (verdict_is_ok(&attempt->later) ||
            verdict->retry_after_ns > attempt->later.retry_after_ns)
            attempt->later = *verdict;
        return;
    }
    free_push(push);
    if (verdict_is_ok(verdict))
        return;
    log_error(attempt->shipment->delivery->node->origin, "Pyroscope refused a profile",
              LOG_TEXT("error", verdict->text));
    if (verdict_is_ok(&attempt->refused))
        attempt->refused = *verdict;
}

static void on_answer(struct client_request *request, const struct client_answer *answer)
{
    struct push *push = container_of(request, struct push, request);
    struct attempt *attempt = push->attempt;
    assert(push->state == PUSH_UNDER_WAY && attempt->under_way > 0);
    struct verdict verdict = push_answer(answer, target_of(attempt)->url, clock_wall_ns());
    note(attempt, push, &verdict);
    attempt->under_way--;
    attempt->unreachable |= answer->failure != CLIENT_OK;
    if (!attempt->pauses)
        go_on(attempt);
}

/* ---- creating an attempt ---- */

#define TENANT "x-scope-orgid"

/* The tenant of the data takes precedence over the configured one. */
static void set_headers(struct attempt *attempt, const struct push_target *target)
{
    struct batch *batch = attempt->shipment->batch;
    const char *tenant =
        target->forward_tenant && batch->context ? context_get(batch->context, TENANT) : NULL;
    attempt->base = arena_array(&batch->arena, target->header_count + 1, sizeof *attempt->base);
    for (size_t i = 0; i < target->header_count; i++)
        if (!tenant || !slice_is(target->headers[i].name, TENANT))
            attempt->base[attempt->base_count++] = target->headers[i];
    if (tenant)
        attempt->base[attempt->base_count++] =
            (struct http_header){SLICE(TENANT), slice_of_string(tenant)};
    assert(attempt->base_count <= target->header_count + 1);
}

static struct attempt *make_attempt(struct shipment *shipment)
{
    const struct push_target *target = sender_of(shipment)->target;
    struct push_options options = target->options;
    struct attempt *attempt = memory_zalloc(sizeof *attempt);
    options.now_ns = worker_now(shipment->batch->owner);
    attempt->shipment = shipment;
    attempt->refused = verdict_ok;
    attempt->timer.on_timer = on_timer;
    attempt->requests = pushes_new(shipment->batch, &options);
    attempt->pushes = memory_zalloc(target->max_requests * sizeof *attempt->pushes);
    set_headers(attempt, target);
    return attempt;
}

/* ---- the delivery's ---- */

static void send_shipment(struct node *node, struct shipment *shipment)
{
    if (!shipment->exporter_data)
        shipment->exporter_data = make_attempt(shipment);
    struct attempt *attempt = shipment->exporter_data;
    assert(attempt->under_way == 0 && !attempt->pauses); /* the last attempt has ended */
    attempt->begins = true;
    attempt->unreachable = false;
    attempt->later = verdict_ok;
    for (unsigned i = 0; i < target_of(attempt)->max_requests; i++)
        if (attempt->pushes[i].state == PUSH_LATER)
            attempt->pushes[i].state = PUSH_WAITS;
    worker_set_timer(node->worker, &attempt->timer, 0); /* there may be nothing to send */
}

static void abort_shipment(struct node *node, struct shipment *shipment)
{
    struct attempt *attempt = shipment->exporter_data;
    worker_cancel_timer(node->worker, &attempt->timer);
    for (unsigned i = 0; i < target_of(attempt)->max_requests; i++)
        if (attempt->pushes[i].state == PUSH_UNDER_WAY)
            client_cancel(&attempt->pushes[i].request);
}

static void release_shipment(struct node *node, struct shipment *shipment)
{
    struct attempt *attempt = shipment->exporter_data;
    assert(!timer_is_set(&attempt->timer));
    (void)node;
    for (unsigned i = 0; i < target_of(attempt)->max_requests; i++)
        buffer_unref(attempt->pushes[i].buffer);
    pushes_free(attempt->requests);
    auth_headers_deinit(&attempt->headers);
    free(attempt->pushes);
    free(attempt);
}

void push_sender_start(struct push_sender *sender, struct node *node,
                       const struct push_target *target, const struct sending_queue_settings *queue,
                       const struct retry_settings *retry, struct delivery_shared *shared,
                       struct client *client)
{
    *sender = (struct push_sender){
        .delivery = {.node = node,
                     .queue = queue,
                     .retry = retry,
                     .shared = shared,
                     .send = send_shipment,
                     .abort = abort_shipment,
                     .release = release_shipment,
                     .sent_by = target->forward_tenant ? TENANT : NULL,
                     .auth = target->auth},
        .target = target,
        .client = client,
    };
    delivery_start(&sender->delivery);
}

void push_sender_stop(struct push_sender *sender)
{
    delivery_stop(&sender->delivery);
    client_free(sender->client);
    sender->client = NULL;
}
