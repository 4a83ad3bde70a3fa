#include "processors/spanjoin/timed_links.h"

#include "core/pipeline/items.h"
#include "processors/spanjoin/upload_times.h"

#include <stdlib.h>

struct linking {
    struct sample_plan *plan;
    struct link_source *source;
    struct timed_samples timed;
    size_t room;       /* bytes by which the request may still grow */
    uint32_t more;     /* samples that the request gains at most */
    uint32_t resource; /* of the last sample that was counted */
    uint64_t not_split;
};

/* ---- deciding ---- */

static bool has_spans_only(const struct linking *linking, const struct timed_sample *threaded)
{
    for (uint32_t i = 0; i < threaded->ask_count; i++)
        if (linking->timed.asks[threaded->first_ask + i].answer != THREAD_SPAN)
            return false;
    return true;
}

static bool has_answer(const struct linking *linking, const struct timed_sample *threaded,
                       enum thread_answer answer)
{
    for (uint32_t i = 0; i < threaded->ask_count; i++)
        if (linking->timed.asks[threaded->first_ask + i].answer == answer)
            return true;
    return false;
}

/* Returns into how many samples it is split at most; fewer if a span comes again. */
static uint32_t count_pieces(const struct linking *linking, const struct timed_sample *threaded)
{
    const struct thread_ask *asks = &linking->timed.asks[threaded->first_ask];
    uint32_t pieces = 1;
    for (uint32_t i = 1; i < threaded->ask_count; i++)
        pieces += !timed_asks_are_of_same_span(&asks[i - 1], &asks[i]);
    return pieces;
}

/* Counts a sample, or the part of one, that gets no span. Samples come in their order. */
static void note_unnamed(struct linking *linking, const struct timed_sample *threaded)
{
    const struct sample_plan *plan = linking->plan;
    const struct resource_upload *upload = &plan->uploads[linking->resource];
    if (!linking->source->unnamed_of)
        return;
    for (; threaded->sample >= upload->first_sample + upload->sample_count; upload++)
        linking->resource++;
    assert(linking->resource < plan->upload_count);
    struct unnamed_samples *unnamed = &linking->source->unnamed_of[linking->resource];
    if (has_answer(linking, threaded, THREAD_AMBIGUOUS))
        unnamed->ambiguous_thread++;
    else
        unnamed->no_span_on_thread++;
}

/* Decides whether the sample is linked. A split repeats its attributes, so that there is a limit on
 * what all splits of a request may add. */
static void decide(struct linking *linking, struct timed_sample *threaded)
{
    if (!has_answer(linking, threaded, THREAD_SPAN)) {
        note_unnamed(linking, threaded);
        return;
    }
    uint32_t pieces = count_pieces(linking, threaded);
    size_t growth = timed_sample_growth(threaded, pieces);
    if ((pieces > 1 && !threaded->is_paired) || growth > linking->room) {
        linking->not_split++;
        return;
    }
    linking->room -= growth;
    linking->more += pieces - 1;
    threaded->pieces = pieces;
    if (pieces > 1 && !has_spans_only(linking, threaded))
        note_unnamed(linking, threaded); /* the part without a span */
}

/* Decides about a sample of one time whose span was found, as most are. Returns false if it is
 * another one. */
static inline bool decide_single(struct linking *linking, struct timed_sample *threaded)
{
    size_t growth = timed_sample_growth(threaded, 1);
    if (threaded->ask_count != 1 || growth > linking->room ||
        linking->timed.asks[threaded->first_ask].answer != THREAD_SPAN)
        return false;
    linking->room -= growth;
    threaded->pieces = 1;
    return true;
}

/* ---- writing ---- */

static void write_links(struct linking *linking, struct thread_links *links)
{
    uint32_t before = linking->plan->sample_count;
    struct timed_written written = timed_samples_write(linking->plan, &linking->timed,
                                                       linking->source->keeps_links, linking->more);
    links->is_linked = written.is_linked;
    links->linked = written.linked;
    links->more = written.samples - before;
}

/* ---- naming, where the request need not be written ---- */

/* Names the spans of the samples of a profile. *next: the first one of them, afterwards the first
 * one that is not. Returns how many have a span. */
static uint64_t name_of_profile(struct linking *linking, const struct profile_plan *profile,
                                const struct timed_sample **next)
{
    const struct timed_sample *threaded = *next;
    uint64_t linked = 0;
    const struct timed_sample *end = linking->timed.items + linking->timed.count;
    uint32_t last = profile->first_sample + profile->sample_count;
    struct sample_naming naming;
    sample_plan_begin_naming(linking->plan, profile, &naming);
    for (; threaded < end && threaded->sample < last; threaded++) {
        if (threaded->pieces > 0)
            linked +=
                sample_plan_name(&naming, threaded, &linking->timed.asks[threaded->first_ask].key);
    }
    sample_plan_end_naming(&naming);
    *next = threaded;
    return linked;
}

static uint64_t name_samples(struct linking *linking)
{
    struct sample_plan *plan = linking->plan;
    uint64_t linked = 0;
    const struct timed_sample *next = linking->timed.items, *end = next + linking->timed.count;
    plan->index = linking->source->totals.index;
    plan->request = linking->source->totals.request;
    for (uint32_t i = 0; i < plan->profile_count && next < end; i++)
        if (next->sample < plan->profiles[i].first_sample + plan->profiles[i].sample_count)
            linked += name_of_profile(linking, &plan->profiles[i], &next);
    assert(next == end);
    return linked;
}

/* ---- both ---- */

/* Returns whether any sample has a span. */
static bool find_spans(struct linking *linking)
{
    struct link_source *source = linking->source;
    bool any = false;
    source->find(source, linking->timed.items, linking->timed.count, linking->timed.asks,
                 linking->timed.ask_count);
    for (uint32_t i = 0; i < linking->timed.count; i++) {
        struct timed_sample *sample = &linking->timed.items[i];
        if (decide_single(linking, sample)) {
            any = true;
            continue;
        }
        decide(linking, sample);
        any |= sample->pieces > 0;
        if (sample->pieces != 1 && source->leaves)
            source->leaves(source, sample, &linking->timed.asks[sample->first_ask]);
    }
    return any;
}

bool timed_samples_link(struct sample_plan *plan, struct link_source *source,
                        struct thread_links *links_out)
{
    struct linking linking = {
        .plan = plan, .source = source, .room = items_values_room(plan->batch)};
    timed_samples_read(plan, source->sample_count, &linking.timed);
    bool any = find_spans(&linking);
    bool writes = any && (source->writes || linking.more > 0);
    *links_out =
        (struct thread_links){.unnamed_of = source->unnamed_of, .not_split = linking.not_split};
    if (writes)
        write_links(&linking, links_out);
    else if (any)
        links_out->linked = name_samples(&linking);
    return writes;
}

void thread_links_deinit(struct thread_links *links)
{
    free(links->is_linked);
    free(links->unnamed_of);
    links->is_linked = NULL;
    links->unnamed_of = NULL;
}
