#include "processors/spanjoin/left_by_thread.h"

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/data/instances.h"
#include "core/data/left_samples.h"
#include "core/data/span_index.h"
#include "processors/spanjoin/sample_totals.h"

#include <assert.h>
#include <stdlib.h>

/* Times of one span and origin that follow each other. */
struct tally {
    const struct left_origin *origin; /* NULL: none */
    struct sample_amount amount;
    uint64_t samples;
};

/* What goes to the entry of a span. */
struct gift {
    uint64_t samples;
    uint64_t arrived_ns; /* the first of them, since 1970; 0: there are none */
};

struct giving {
    struct span_index *index;
    const struct spanjoin_settings *settings;
    uint64_t now_ns;
    struct arena *arena;
    struct left_taken taken;
    struct span_find *finds;
    uint32_t find_count;
    uint32_t find_capacity;
    struct gift *gifts; /* of the finds */
    uint32_t gift_capacity;
    struct index_table by_key;
    bool doubts;   /* some times may be of several spans */
    uint32_t last; /* the find of the time before */
    struct tally tally;
};

/* Returns the number of the find for a span. source: of the samples. */
static uint32_t find_of(struct giving *giving, const struct span_key *key,
                        const struct span_source *source)
{
    struct {
        struct span_key key;
        uint64_t scope, number;
    } whole = {*key, source->scope, source->number};
    if (index_table_is_full(&giving->by_key))
        index_table_reserve(&giving->by_key, giving->find_count + 1, giving->arena);
    struct index_probe probe =
        index_table_probe(&giving->by_key, (uint32_t)hash_bytes(slice_of(&whole, sizeof whole)));
    for (uint32_t i; index_table_next(&giving->by_key, &probe, &i);)
        if (memcmp(&giving->finds[i].key, key, sizeof *key) == 0 &&
            span_source_equal(&giving->finds[i].source, source))
            return i;
    uint32_t i = giving->find_count;
    giving->finds =
        arena_grow(giving->arena, giving->finds, i, &giving->find_capacity, sizeof *giving->finds);
    giving->gifts =
        arena_grow(giving->arena, giving->gifts, i, &giving->gift_capacity, sizeof *giving->gifts);
    giving->finds[i] = (struct span_find){.key = *key, .source = *source};
    giving->gifts[i] = (struct gift){.samples = 0};
    index_table_add(&giving->by_key, &probe, giving->find_count++);
    return i;
}

/* Adds the tally to the totals of its span. */
static void add_tally(struct giving *giving)
{
    const struct left_origin *origin = giving->tally.origin;
    if (!origin)
        return;
    struct span_find *find = &giving->finds[giving->last];
    struct gift *gift = &giving->gifts[giving->last];
    if (!find->totals)
        find->totals = arena_array(giving->arena, span_totals_count(giving->settings->type_count),
                                   sizeof(uint64_t));
    profile_sums_add(giving->settings, &origin->sums, giving->tally.amount,
                     (uint64_t *)find->totals);
    gift->samples += giving->tally.samples;
    if (gift->arrived_ns == 0 || origin->arrived_ns < gift->arrived_ns)
        gift->arrived_ns = origin->arrived_ns;
    giving->tally = (struct tally){.origin = NULL};
}

static void give_time(struct giving *giving, const struct left_taken_time *time,
                      const struct thread_ask *ask)
{
    struct tally *tally = &giving->tally;
    if (tally->origin != time->origin ||
        memcmp(&giving->finds[giving->last].key, &ask->key, sizeof ask->key) != 0) {
        add_tally(giving);
        giving->last = find_of(giving, &ask->key, &time->origin->source);
        tally->origin = time->origin;
    }
    tally->samples += !(time->time.value & 1) || tally->amount.count == 0;
    tally->amount.count++;
    tally->amount.sum = saturate_sum(tally->amount.sum, left_time_value(&time->time));
}

static void find_and_add(struct giving *giving)
{
    span_index_find_many(giving->index, giving->now_ns, giving->finds, giving->find_count,
                         giving->arena);
    for (uint32_t i = 0; i < giving->find_count; i++) {
        struct span_find *find = &giving->finds[i];
        find->chosen = find->match_count > 0 ? &find->matches[0] : NULL;
        if (find->chosen)
            find->key = find->chosen->key;
        /* with `keep`, the index knows what has detail, and counts other samples there */
        if (find->totals && !giving->settings->keep.enabled)
            find->unlinked = sample_totals_shown(giving->settings, find->totals);
    }
    span_index_add_many(giving->index, giving->now_ns, giving->finds, giving->find_count, NULL);
}

static void count_given(const struct giving *giving, struct left_given *out)
{
    uint64_t wall_ns = clock_wall_ns();
    out->lags = arena_array(giving->arena, giving->find_count, sizeof *out->lags);
    for (uint32_t i = 0; i < giving->find_count; i++) {
        const struct span_find *find = &giving->finds[i];
        const struct gift *gift = &giving->gifts[i];
        if (!find->totals || !find->chosen)
            continue;
        out->samples += gift->samples;
        out->kept_samples += find->chosen->facts.kept_by ? gift->samples : 0;
        if (gift->arrived_ns > 0 && gift->arrived_ns < wall_ns)
            out->lags[out->lag_count++] = -(int64_t)(wall_ns - gift->arrived_ns);
    }
}

/* Samples of several processes that count as one are of none of their spans (upload_times.h), nor
 * are those whose ids turned out to be of another pid namespace. */
static void doubt_several(const struct giving *giving)
{
    struct instances *instances = span_index_instances(giving->index);
    struct instance_clock clock = {.now_ns = giving->now_ns,
                                   .window_ns = span_index_window(giving->index)};
    uint16_t last = 0;
    bool is_several = false;
    uint64_t foreign_until_ns = 0;
    for (uint32_t i = 0; i < giving->taken.count; i++) {
        struct thread_ask *ask = &giving->taken.asks[i];
        if (ask->thread->instance != last) {
            is_several = instances_are_several(instances, ask->thread->instance, &clock);
            foreign_until_ns = instances_foreign_until(instances, ask->thread->instance);
        }
        last = ask->thread->instance;
        bool is_foreign = ask->thread->sampler == 0 && ask->time_ns <= foreign_until_ns;
        if (is_several || is_foreign)
            ask->answer = THREAD_AMBIGUOUS;
    }
}

/* Gives what was taken to the spans that own it, and puts the rest back. */
static void give(struct giving *giving, struct left_given *out)
{
    struct left_samples *left = span_index_left(giving->index);
    struct left_taken *taken = &giving->taken;
    thread_spans_find_again(span_index_threads(giving->index), taken->asks, taken->count);
    doubt_several(giving);
    for (uint32_t i = 0; i < taken->count; i++)
        if (taken->asks[i].answer == THREAD_SPAN)
            give_time(giving, &taken->times[i], &taken->asks[i]);
        else
            giving->doubts |= taken->asks[i].answer == THREAD_AMBIGUOUS;
    add_tally(giving);
    if (giving->find_count > 0)
        find_and_add(giving);
    count_given(giving, out);
    left_samples_put_back(left, taken, giving->now_ns, span_index_window(giving->index));
}

/* ---- when an upload leaves ---- */

static void give_meanwhile(struct left_upload *upload, const struct spanjoin_settings *settings,
                           uint64_t now_ns, uint64_t from_ns, struct left_given *given_out)
{
    struct left_samples *left = span_index_left(upload->index);
    struct giving giving = {
        .index = upload->index, .settings = settings, .now_ns = now_ns, .arena = &upload->arena};
    left_samples_begin_taking(left);
    left_samples_take_threads(left, upload->threads, upload->thread_count, from_ns, &upload->arena,
                              &giving.taken);
    give(&giving, given_out);
    left_samples_end_taking(left);
}

void left_upload_leave(struct left_upload *upload, const struct spanjoin_settings *settings,
                       uint64_t now_ns, struct left_given *given_out)
{
    *given_out = (struct left_given){.samples = 0};
    uint64_t from_ns = left_upload_keep(upload, now_ns);
    if (from_ns < UINT64_MAX)
        give_meanwhile(upload, settings, now_ns, from_ns, given_out);
}

/* ---- when spans arrive ---- */

static struct left_asker *askers_of(struct request_spans *spans,
                                    const struct request_sender *sender)
{
    struct arena *arena = &spans->arena;
    struct left_asker *askers = arena_array(arena, spans->late_count, sizeof *askers);
    struct thread_span *threads = arena_array(arena, spans->late_count, sizeof *threads);
    struct thread_handles *handles = arena_array(arena, spans->late_count, sizeof *handles);
    for (uint32_t i = 0; i < spans->late_count; i++)
        threads[i] = spans->late[i].span;
    thread_spans_handles(span_index_threads(sender->index), threads, spans->late_count, handles);
    for (uint32_t i = 0; i < spans->late_count; i++)
        askers[i] = (struct left_asker){.span = &threads[i], .handles = handles[i]};
    return askers;
}

static void give_to_spans(struct giving *giving, const struct request_spans *spans,
                          struct left_asker *askers, struct left_given *given_out)
{
    struct left_samples *left = span_index_left(giving->index);
    left_samples_begin_taking(left);
    left_samples_take(left, askers, spans->late_count, giving->arena, &giving->taken);
    for (uint32_t i = 0; i < spans->late_count; i++)
        if (askers[i].lacks) {
            uint32_t find = find_of(giving, &spans->late[i].span.key, &spans->late[i].source);
            giving->finds[find].lacks = true;
        }
    give(giving, given_out);
    given_out->changed = giving->find_count > 0 || giving->doubts;
    left_samples_end_taking(left);
}

void left_samples_give(struct request_spans *spans, const struct request_sender *sender,
                       struct left_given *given_out)
{
    *given_out = (struct left_given){.samples = 0};
    if (spans->late_count == 0)
        return;
    struct giving giving = {.index = sender->index,
                            .settings = sender->settings,
                            .now_ns = sender->now_ns,
                            .arena = &spans->arena};
    give_to_spans(&giving, spans, askers_of(spans, sender), given_out);
}
