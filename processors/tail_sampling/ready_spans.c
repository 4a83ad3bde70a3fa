#include "processors/tail_sampling/ready_spans.h"

#include "core/base/memory.h"
#include "core/pipeline/outlet.h"
#include "processors/tail_sampling/held_spans.h"

#include <assert.h>

enum {
    REQUEST_SPANS = 8192,    /* a request that is sent has about as many at most */
    REQUEST_BYTES = 1 << 20, /* or as many bytes */
    REPEATED_PART = 4,       /* but then has four times the bytes that are repeated */
};
#define GATHER_NS UINT64_C(50000000)

/* A request that was sent on and is not accepted yet. */
struct sent_spans {
    struct offer offer; /* first */
    struct tail_node *node;
    size_t charged;
    uint32_t items;
};

static void on_sent(struct offer *offer, const struct verdict *verdict)
{
    struct sent_spans *sent = container_of(offer, struct sent_spans, offer);
    struct tail *tail = sent->node->tail;
    if (!verdict_is_ok(verdict))
        tail_count_refused(sent->node, verdict, sent->items);
    budget_release(&tail->held[SIGNAL_TRACES], sent->charged);
    budget_release(&tail->leaving, sent->charged);
    free(sent);
}

/* Bytes that the request of a span and the next one both have if they are divided there. */
static size_t repeated_bytes(const struct held_request *request, const struct held_span *span)
{
    const struct held_scope *scope = &request->scopes[span->scope];
    return request->groups[scope->group].size + scope->header.size;
}

/* Returns how many of the spans that are ready leave in the next request, and their bytes. A large
 * resource is not repeated for a few spans. */
static uint32_t spans_of_next(const struct ready_spans *ready, size_t *bytes_out)
{
    uint32_t spans = 0;
    *bytes_out = 0;
    for (const struct piece *piece = ready->first; piece; piece = piece->next)
        for (uint32_t i = 0; i < piece->count; i++) {
            const struct held_span *span = &piece->request->spans[piece->first + i];
            if ((spans >= REQUEST_SPANS || *bytes_out >= REQUEST_BYTES) &&
                *bytes_out >= REPEATED_PART * repeated_bytes(piece->request, span))
                return spans;
            *bytes_out += span->size;
            spans++;
        }
    return spans;
}

/* Makes a request of spans that are ready. */
static struct buffer *take_ready(struct tail_node *node, uint32_t *spans_out)
{
    struct ready_spans *ready = &node->ready;
    size_t bytes;
    *spans_out = spans_of_next(ready, &bytes);
    struct buffer *buffer =
        pieces_join(&ready->first, *spans_out, node->node.component->process->budget);
    if (!ready->first)
        ready->last = NULL;
    assert(ready->spans >= *spans_out && ready->bytes >= bytes);
    ready->spans -= *spans_out;
    ready->bytes -= bytes;
    budget_release(&node->tail->leaving, bytes);
    return buffer;
}

static bool send_next(struct offers *offers)
{
    struct ready_spans *ready = container_of(offers, struct ready_spans, offers);
    struct tail_node *node = container_of(ready, struct tail_node, ready);
    struct tail *tail = node->tail;
    if (!ready->first ||
        !(ready->is_due || ready->spans >= REQUEST_SPANS || ready->bytes >= REQUEST_BYTES))
        return false;
    struct sent_spans *sent = memory_zalloc(sizeof *sent);
    struct buffer *buffer = take_ready(node, &sent->items);
    struct batch *batch =
        batch_new(node->node.worker, SIGNAL_TRACES, buffer, sent->items, NULL, NULL);
    ready->is_due &= ready->first != NULL;
    sent->node = node;
    sent->charged = batch_memory(batch);
    budget_charge(&tail->held[SIGNAL_TRACES], sent->charged);
    budget_charge(&tail->leaving, sent->charged);
    offers_count_work(offers, sent->charged);
    offer_send(&sent->offer, offers, batch, true, on_sent);
    return true;
}

static void on_gathered(struct timer *timer)
{
    struct ready_spans *ready = container_of(timer, struct ready_spans, gather);
    ready->is_due = true;
    offers_pump(&ready->offers);
}

void ready_spans_schedule(struct tail_node *node)
{
    struct ready_spans *ready = &node->ready;
    if (!ready->first)
        return;
    if (node->node.draining) {
        ready->is_due = true;
    } else if (!timer_is_set(&ready->gather)) {
        worker_set_timer(node->node.worker, &ready->gather, GATHER_NS);
    }
    offers_pump(&ready->offers);
}

void ready_spans_add(struct tail_node *node, struct piece *piece)
{
    struct ready_spans *ready = &node->ready;
    size_t bytes = 0;
    for (uint32_t i = 0; i < piece->count; i++)
        bytes += piece->request->spans[piece->first + i].size;
    piece->next = NULL;
    if (ready->last)
        ready->last->next = piece;
    else
        ready->first = piece;
    ready->last = piece;
    ready->spans += piece->count;
    ready->bytes += bytes;
    budget_charge(&node->tail->leaving, bytes);
}

void ready_spans_send(struct tail_node *node)
{
    node->ready.is_due = node->ready.first != NULL;
    offers_pump(&node->ready.offers);
}

void ready_spans_init(struct tail_node *node)
{
    offers_init(&node->ready.offers, &node->node, send_next);
    node->ready.gather.on_timer = on_gathered;
}

bool ready_spans_go_on(const struct tail_node *node)
{
    return node->ready.first && node->ready.offers.under_way == 0;
}

bool ready_spans_are_idle(const struct tail_node *node)
{
    return !node->ready.first && node->ready.offers.under_way == 0;
}

uint64_t ready_spans_stop(struct tail_node *node)
{
    struct ready_spans *ready = &node->ready;
    uint64_t lost = ready->spans;
    offers_stop(&ready->offers);
    worker_cancel_timer(node->node.worker, &ready->gather);
    budget_release(&node->tail->leaving, ready->bytes);
    pieces_drop(ready->first);
    *ready = (struct ready_spans){.offers = ready->offers};
    return lost;
}
