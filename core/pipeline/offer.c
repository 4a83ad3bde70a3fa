#include "core/pipeline/offer.h"

#include "core/base/container_of.h"
#include "core/pipeline/component.h"
#include "core/pipeline/reservation.h"

#include <assert.h>

int64_t retry_after_of(const struct verdict *verdict)
{
    if (verdict->retry_after_ns <= 0)
        return 0;
    return verdict->retry_after_ns < RETRY_AFTER_MAX_NS ? verdict->retry_after_ns
                                                        : RETRY_AFTER_MAX_NS;
}

int64_t backoff_next(struct backoff *backoff, int64_t min_ns, int64_t max_ns, int64_t asked_ns)
{
    assert(min_ns > 0 && min_ns <= max_ns);
    int64_t delay = backoff->next_ns < min_ns ? min_ns : backoff->next_ns;
    backoff->next_ns = delay < max_ns / 2 ? delay * 2 : max_ns;
    return delay > asked_ns ? delay : asked_ns;
}

void backoff_reset(struct backoff *backoff)
{
    backoff->next_ns = 0;
}

static void on_timer(struct timer *timer)
{
    offers_pump(container_of(timer, struct offers, timer));
}

void offers_init(struct offers *offers, struct node *node, bool (*next)(struct offers *offers))
{
    *offers = (struct offers){.node = node, .next = next, .timer.on_timer = on_timer};
}

/* Whether one more may be handed on in this turn of the loop; else the next turn is waited for. */
static bool has_share(struct offers *offers)
{
    struct worker *worker = offers->node->worker;
    if (offers->turn != worker->turn) {
        offers->turn = worker->turn;
        offers->in_turn = 0;
    }
    if (offers->in_turn < OFFERS_PER_TURN)
        return true;
    worker_set_timer(worker, &offers->timer, 0);
    return false;
}

void offers_pump(struct offers *offers)
{
    if (offers->pumping)
        return;
    offers->pumping = true;
    while (!timer_is_set(&offers->timer) && has_share(offers) && offers->next(offers))
        offers->in_turn++;
    offers->pumping = false;
}

void offers_pause(struct offers *offers, int64_t delay_ns)
{
    assert(delay_ns >= 0);
    worker_set_timer(offers->node->worker, &offers->timer, (uint64_t)delay_ns);
}

bool offers_are_paused(const struct offers *offers)
{
    return timer_is_set(&offers->timer);
}

void offers_resume(struct offers *offers)
{
    worker_cancel_timer(offers->node->worker, &offers->timer);
    offers_pump(offers);
}

void offers_count_work(struct offers *offers, size_t bytes)
{
    offers->in_turn += bytes / (OFFER_BYTES / 4);
}

void offers_stop(struct offers *offers)
{
    assert(offers->under_way == 0);
    if (offers->node)
        worker_cancel_timer(offers->node->worker, &offers->timer);
}

static void on_receipt_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct offer *offer = container_of(receipt, struct offer, receipt);
    assert(offer->offers->under_way > 0);
    offer->offers->under_way--;
    offer->on_settled(offer, verdict);
}

static bool is_offer_abandoned(const struct receipt *receipt)
{
    return receipt_is_abandoned(container_of(receipt, struct offer, receipt)->senders);
}

void offer_send(struct offer *offer, struct offers *offers, struct batch *batch, bool acknowledged,
                void (*on_settled)(struct offer *offer, const struct verdict *verdict))
{
    assert(!batch->receipt);
    receipt_init(&offer->receipt, on_receipt_settled);
    offer->receipt.is_abandoned = is_offer_abandoned;
    offer->offers = offers;
    offer->on_settled = on_settled;
    offers->under_way++;
    offers->in_turn += batch_memory(batch) / OFFER_BYTES;
    reservation_unref(batch->reservation); /* what it came with led here, and no further */
    batch->reservation = NULL;
    batch->refused_ns = 0;
    batch->backoff_ns = 0;
    batch->receipt = &offer->receipt;
    batch->acknowledged = acknowledged;
    node_forward(offers->node, batch); /* may settle at once: the offer may be gone now */
}
