#include "core/pipeline/join_feed.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/base/worker.h"
#include "core/pipeline/batch.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

struct join_feed {
    atomic_bool is_open;
    pthread_mutex_t lock; /* of all below; held for some instructions only */
    struct join_subscriber subscriber;
    struct join_offer *first, *last;
    struct join_feed_stats stats;
};

/* ---- offers ---- */

static size_t report_bytes(struct join_report_size size)
{
    return sizeof(struct join_report) + size.keys * sizeof(struct join_key) +
           size.spans * sizeof(struct join_span) + size.doubts * sizeof(struct join_doubt) +
           size.resources * sizeof(struct unnamed_samples) + size.condition_bytes;
}

struct join_report *join_report_new(struct join_report_size size)
{
    struct join_report *report = memory_zalloc(report_bytes(size));
    report->size = size;
    report->spans = (void *)&report->keys[size.keys];
    report->doubts = (void *)&report->spans[size.spans];
    report->unnamed_of = (void *)&report->doubts[size.doubts];
    report->conditions = (void *)&report->unnamed_of[size.resources];
    return report;
}

void join_offer_free(struct join_offer *offer)
{
    for (size_t i = 0; i < offer->part_count; i++)
        buffer_unref(offer->parts[i]);
    buffer_unref(offer->changed);
    free(offer->pieces);
    free(offer->report);
    free(offer);
}

static bool is_within(const struct buffer *buffer, struct slice bytes)
{
    return bytes.data >= buffer->data && bytes.data < buffer->data + buffer->size;
}

/* Copies what is not of the received bytes: the loop does no more than necessary. */
static void take_pieces(struct join_offer *offer, struct batch *batch)
{
    const struct buffer *received = batch->parts[0].buffer;
    struct slice_list list = {.items = NULL};
    size_t copied = 0;
    assert(batch->part_count == 1); /* each has a dictionary, so profiles are not appended */
    batch_gather(batch, &list);
    for (size_t i = 0; i < list.count; i++)
        copied += is_within(received, list.items[i]) ? 0 : list.items[i].size;
    offer->changed = buffer_new_charged(copied, received->budget);
    offer->pieces = memory_array(list.count + 1, sizeof *offer->pieces);
    offer->piece_count = list.count;
    for (size_t i = 0; i < list.count; i++) {
        struct slice piece = list.items[i];
        if (!is_within(received, piece)) {
            uint8_t *copy = offer->changed->data + offer->changed->size;
            memcpy(copy, piece.data, piece.size);
            offer->changed->size += piece.size;
            piece = slice_of(copy, piece.size);
        }
        offer->pieces[i] = piece;
    }
    offer->bytes += copied + list.count * sizeof *offer->pieces;
}

/* Writes the pieces out. */
static void join_pieces(struct join_offer *offer)
{
    struct buffer *received = offer->parts[0];
    size_t size = 0;
    for (size_t i = 0; i < offer->piece_count; i++)
        size += offer->pieces[i].size;
    struct buffer *flat = buffer_new_charged(size, received->budget);
    for (size_t i = 0; i < offer->piece_count; i++) {
        memcpy(flat->data + flat->size, offer->pieces[i].data, offer->pieces[i].size);
        flat->size += offer->pieces[i].size;
    }
    offer->parts[0] = flat;
    buffer_unref(received);
    buffer_unref(offer->changed);
    free(offer->pieces);
    offer->changed = NULL;
    offer->pieces = NULL;
}

static struct join_offer *offer_new(struct batch *batch, const char *component, uint64_t tenant,
                                    struct join_report *report)
{
    size_t parts = batch->part_count;
    assert(parts > 0);
    struct join_offer *offer = memory_zalloc(sizeof *offer + parts * sizeof(struct buffer *));
    offer->signal = batch->signal;
    offer->items = batch->items;
    strncpy(offer->component, component, sizeof offer->component - 1);
    offer->tenant = tenant;
    offer->arrived_ns = batch->arrived_ns;
    offer->offered_ns = batch->owner->now_ns;
    offer->report = report;
    offer->bytes = sizeof *offer;
    offer->bytes += report ? report_bytes(report->size) : 0;
    offer->part_count = parts;
    for (size_t i = 0; i < parts; i++) {
        offer->parts[i] = buffer_ref(batch->parts[i].buffer);
        offer->bytes += offer->parts[i]->capacity;
    }
    /* Spans have only gained what the subscriber knows. */
    if (batch->signal == SIGNAL_PROFILES && batch_is_changed(batch))
        take_pieces(offer, batch);
    return offer;
}

/* ---- the join's side ---- */

bool join_feed_is_open(const struct join_feed *feed)
{
    return feed && atomic_load_explicit(&feed->is_open, memory_order_relaxed);
}

/* Whether an offer of this size fits. It is counted either way. The feed is locked. */
static bool admit(struct join_feed *feed, size_t bytes)
{
    const struct join_subscriber *subscriber = &feed->subscriber;
    bool fits = feed->stats.bytes == 0 || (feed->stats.bytes < subscriber->limit_bytes &&
                                           bytes <= subscriber->limit_bytes - feed->stats.bytes);
    feed->stats.offers++;
    feed->stats.dropped += !fits;
    return fits;
}

static void append(struct join_feed *feed, struct join_offer *offer)
{
    bool was_empty = !feed->first;
    assert(!offer->next && feed->stats.bytes >= offer->bytes);
    if (was_empty)
        feed->first = offer;
    else
        feed->last->next = offer;
    feed->last = offer;
    if (was_empty)
        feed->subscriber.wake(feed->subscriber.context);
}

/* Does not flatten a request only to drop it. */
static bool is_full(struct join_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    bool full = feed->stats.bytes >= feed->subscriber.limit_bytes && !admit(feed, 1);
    pthread_mutex_unlock(&feed->lock);
    return full;
}

/* Ends the wait for the verdict. */
static void publish(struct join_feed *feed, struct join_offer *offer, bool is_wanted)
{
    pthread_mutex_lock(&feed->lock);
    is_wanted = is_wanted && join_feed_is_open(feed);
    if (is_wanted)
        append(feed, offer);
    else
        feed->stats.bytes -= offer->bytes;
    pthread_mutex_unlock(&feed->lock);
    if (!is_wanted)
        join_offer_free(offer);
}

static void on_verdict(struct receipt_watch *watch, const struct verdict *verdict)
{
    struct join_offer *offer = container_of(watch, struct join_offer, watch);
    publish(offer->feed, offer, !verdict_is_retryable(verdict));
}

void join_feed_offer(struct join_feed *feed, struct batch *batch, const char *component,
                     uint64_t tenant, struct join_report *report)
{
    if (!join_feed_is_open(feed) || is_full(feed)) {
        free(report);
        return;
    }
    struct join_offer *offer = offer_new(batch, component, tenant, report);
    pthread_mutex_lock(&feed->lock);
    bool is_wanted = join_feed_is_open(feed) && admit(feed, offer->bytes);
    feed->stats.bytes += is_wanted ? offer->bytes : 0;
    pthread_mutex_unlock(&feed->lock);
    if (!is_wanted) {
        join_offer_free(offer);
    } else if (batch->receipt) {
        offer->feed = feed;
        offer->watch.on_verdict = on_verdict;
        receipt_add_watch(batch->receipt, &offer->watch);
    } else {
        publish(feed, offer, true);
    }
}

/* ---- the subscriber's side ---- */

struct join_feed *join_feed_new(void)
{
    struct join_feed *feed = memory_zalloc(sizeof *feed);
    pthread_mutex_init(&feed->lock, NULL);
    return feed;
}

void join_feed_free(struct join_feed *feed)
{
    if (!feed)
        return;
    assert(!join_feed_is_open(feed) && !feed->first);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}

bool join_feed_open(struct join_feed *feed, const struct join_subscriber *subscriber)
{
    assert(subscriber->limit_bytes > 0 && subscriber->wake);
    pthread_mutex_lock(&feed->lock);
    bool is_free = !join_feed_is_open(feed);
    if (is_free)
        feed->subscriber = *subscriber;
    atomic_store_explicit(&feed->is_open, true, memory_order_relaxed);
    pthread_mutex_unlock(&feed->lock);
    return is_free;
}

struct join_offer *join_feed_take(struct join_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    struct join_offer *offer = feed->first;
    if (offer) {
        assert(feed->stats.bytes >= offer->bytes);
        feed->first = offer->next;
        feed->stats.bytes -= offer->bytes;
        offer->next = NULL;
    }
    pthread_mutex_unlock(&feed->lock);
    if (offer && offer->pieces)
        join_pieces(offer);
    return offer;
}

void join_feed_close(struct join_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    assert(join_feed_is_open(feed));
    atomic_store_explicit(&feed->is_open, false, memory_order_relaxed);
    pthread_mutex_unlock(&feed->lock);
    for (struct join_offer *offer; (offer = join_feed_take(feed));)
        join_offer_free(offer);
}

struct join_feed_stats join_feed_stats(struct join_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    struct join_feed_stats stats = feed->stats;
    pthread_mutex_unlock(&feed->lock);
    return stats;
}
