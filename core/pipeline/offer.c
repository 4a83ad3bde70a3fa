#include "core/pipeline/offer.h"

#include "core/base/container_of.h"
#include "core/base/worker.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/node.h"
#include "core/pipeline/outlet.h"
#include "core/pipeline/reservation.h"

#include <assert.h>

static bool next_of(struct pace *pace)
{
    struct offers *offers = container_of(pace, struct offers, pace);
    return offers->next(offers);
}

void offers_init(struct offers *offers, struct node *node, bool (*next)(struct offers *offers))
{
    *offers = (struct offers){.node = node, .next = next};
    pace_init(&offers->pace, node->worker, next_of);
}

void offers_pump(struct offers *offers)
{
    pace_pump(&offers->pace);
}

void offers_count_work(struct offers *offers, size_t bytes)
{
    pace_count_work(&offers->pace, bytes);
}

void offers_stop(struct offers *offers)
{
    assert(offers->under_way == 0);
    pace_stop(&offers->pace);
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
    assert(batch->owner == offers->node->worker);
    receipt_init(&offer->receipt, on_receipt_settled);
    offer->receipt.is_abandoned = is_offer_abandoned;
    offer->offers = offers;
    offer->on_settled = on_settled;
    offers->under_way++;
    pace_count_bytes(&offers->pace, batch_memory(batch));
    reservation_unref(batch->reservation); /* its reservation ends at this holder */
    batch->reservation = NULL;
    batch->refused_ns = 0;
    batch->backoff_ns = 0;
    batch->receipt = &offer->receipt;
    batch->acknowledged = acknowledged;
    node_forward(offers->node, batch); /* may settle at once and free the offer */
}
