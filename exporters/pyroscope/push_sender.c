#include "exporters/pyroscope/push_sender.h"

#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "exporters/pyroscope/push_answer.h"

enum push_state { PUSH_WAITS, PUSH_UNDER_WAY, PUSH_TAKEN, PUSH_REFUSED };

struct push {
    struct client_request request; /* first */
    struct attempt *attempt;
    struct slice body;
    enum push_state state;
};

/* All requests of a batch, kept from attempt to attempt. */
struct attempt {
    struct shipment *shipment;
    struct pushes requests;
    struct push *pushes;
    struct http_header *headers;
    size_t header_count;
    size_t next; /* no push before it waits */
    unsigned under_way;
    bool unreachable;       /* the backend did not answer: the rest waits for the next attempt */
    struct verdict later;   /* why something is to be sent again; OK: nothing is */
    struct verdict refused; /* the first refusal for good; OK: none */
    struct timer done;      /* for an attempt without requests */
};

static struct push_sender *sender_of(const struct shipment *shipment)
{
    return (struct push_sender *)shipment->delivery; /* its first member */
}

static void finish(struct attempt *attempt)
{
    const struct verdict *verdict =
        !verdict_is_ok(&attempt->later) ? &attempt->later : &attempt->refused;
    delivery_done(attempt->shipment, verdict);
}

static void on_timer(struct timer *timer)
{
    finish(container_of(timer, struct attempt, done));
}

/* Sends until enough are under way. */
static void send_next(struct attempt *attempt)
{
    const struct push_sender *sender = sender_of(attempt->shipment);
    for (; attempt->next < attempt->requests.count &&
           attempt->under_way < sender->target->max_requests;
         attempt->next++) {
        struct push *push = &attempt->pushes[attempt->next];
        if (push->state != PUSH_WAITS)
            continue;
        push->state = PUSH_UNDER_WAY;
        attempt->under_way++;
        client_send(sender->client, &push->request);
    }
}

static void note(struct attempt *attempt, struct push *push, const struct verdict *verdict)
{
    if (verdict_is_ok(verdict)) {
        push->state = PUSH_TAKEN;
    } else if (verdict_is_retryable(verdict)) {
        push->state = PUSH_WAITS;
        if (verdict_is_ok(&attempt->later) ||
            verdict->retry_after_ns > attempt->later.retry_after_ns)
            attempt->later = *verdict;
    } else {
        push->state = PUSH_REFUSED;
        log_error(attempt->shipment->delivery->node->component->label, "a profile was refused: %s",
                  verdict->text);
        if (verdict_is_ok(&attempt->refused))
            attempt->refused = *verdict;
    }
}

static void on_answer(struct client_request *request, const struct client_answer *answer)
{
    struct push *push = (struct push *)request;
    struct attempt *attempt = push->attempt;
    struct verdict verdict =
        push_answer(answer, sender_of(attempt->shipment)->target->url, clock_wall_ns());
    note(attempt, push, &verdict);
    attempt->under_way--;
    attempt->unreachable |= answer->failure != CLIENT_OK;
    if (!attempt->unreachable)
        send_next(attempt);
    if (attempt->under_way == 0)
        finish(attempt);
}

/* ---- making one ---- */

/* The tenant that came with the data goes before the configured one. */
static void set_headers(struct attempt *attempt, const struct push_target *target)
{
    struct batch *batch = attempt->shipment->batch;
    const char *tenant = target->forward_tenant && batch->context
                             ? context_get(batch->context, "x-scope-orgid")
                             : NULL;
    attempt->headers =
        arena_array(&batch->arena, target->header_count + 1, sizeof *attempt->headers);
    for (size_t i = 0; i < target->header_count; i++)
        if (!tenant || !slice_is(target->headers[i].name, "x-scope-orgid"))
            attempt->headers[attempt->header_count++] = target->headers[i];
    if (tenant)
        attempt->headers[attempt->header_count++] =
            (struct http_header){SLICE("x-scope-orgid"), slice_of_string(tenant)};
}

static void set_request(struct push *push, struct attempt *attempt, struct buffer *body,
                        const struct push_target *target)
{
    push->attempt = attempt;
    push->body = buffer_slice(body);
    push->request = (struct client_request){
        .method = "POST",
        .path = target->path,
        .headers = attempt->headers,
        .header_count = attempt->header_count,
        .body = &push->body,
        .body_count = 1,
        .body_size = push->body.size,
        .timeout_ns = target->timeout_ns,
        .on_done = on_answer,
    };
}

static struct attempt *make_attempt(struct shipment *shipment)
{
    const struct push_target *target = sender_of(shipment)->target;
    struct push_options options = target->options;
    struct attempt *attempt = memory_zalloc(sizeof *attempt);
    options.now_ns = worker_now(shipment->batch->owner);
    attempt->shipment = shipment;
    attempt->refused = verdict_ok;
    attempt->done.on_timer = on_timer;
    pushes_make(&attempt->requests, shipment->batch, &options);
    attempt->pushes = memory_zalloc((attempt->requests.count + 1) * sizeof *attempt->pushes);
    set_headers(attempt, target);
    for (size_t i = 0; i < attempt->requests.count; i++)
        set_request(&attempt->pushes[i], attempt, attempt->requests.requests[i], target);
    return attempt;
}

/* ---- the delivery's ---- */

static void send_shipment(struct node *node, struct shipment *shipment)
{
    if (!shipment->exporter_data)
        shipment->exporter_data = make_attempt(shipment);
    struct attempt *attempt = shipment->exporter_data;
    attempt->next = 0;
    attempt->unreachable = false;
    attempt->later = verdict_ok;
    send_next(attempt);
    if (attempt->under_way == 0) /* nothing in it that Pyroscope would keep */
        worker_set_timer(node->worker, &attempt->done, 0);
}

static void abort_shipment(struct node *node, struct shipment *shipment)
{
    struct attempt *attempt = shipment->exporter_data;
    worker_cancel_timer(node->worker, &attempt->done);
    for (size_t i = 0; i < attempt->requests.count; i++)
        if (attempt->pushes[i].state == PUSH_UNDER_WAY)
            client_cancel(&attempt->pushes[i].request);
}

static void release_shipment(struct node *node, struct shipment *shipment)
{
    struct attempt *attempt = shipment->exporter_data;
    (void)node;
    pushes_deinit(&attempt->requests);
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
                     .release = release_shipment},
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
