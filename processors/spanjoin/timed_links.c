#include "processors/spanjoin/timed_links.h"

#include "core/pipeline/items.h"
#include "processors/spanjoin/upload_times.h"

#include <assert.h>
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
    else if (upload->is_presumed)
        unnamed->no_process += upload->is_awaited;
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

/* Names spans in the plan, from the first sample of a profile that has one on. */
struct naming {
    struct linking *linking;
    const struct profile_plan *profile;
    struct sample_naming of_profile; /* if it is not NULL */
};

static void begin_naming(struct naming *naming, const struct profile_plan *profile)
{
    struct sample_plan *plan = naming->linking->plan;
    plan->index = naming->linking->source->totals.index;
    plan->request = naming->linking->source->totals.request;
    naming->profile = profile;
    sample_plan_begin_naming(plan, profile, &naming->of_profile);
}

static void end_naming(struct naming *naming)
{
    if (naming->profile)
        sample_plan_end_naming(&naming->of_profile);
    naming->profile = NULL;
}

static inline bool name_one(struct naming *naming, const struct profile_plan *profile,
                            const struct timed_sample *sample)
{
    if (!naming->profile)
        begin_naming(naming, profile);
    return sample_plan_name(&naming->of_profile, sample,
                            &naming->linking->timed.asks[sample->first_ask].key);
}

/* Decides about a sample that decide_single leaves, and tells the source. */
static void decide_other(struct linking *linking, struct timed_sample *sample)
{
    struct link_source *source = linking->source;
    decide(linking, sample);
    if (sample->pieces != 1 && source->leaves)
        source->leaves(source, sample, &linking->timed.asks[sample->first_ask]);
}

/* Names the spans of samples with one piece, or, if they are single, decides about them first: then
 * each is looked at once. Returns how many have a span. */
static uint64_t name_samples(struct linking *linking, bool are_single)
{
    const struct sample_plan *plan = linking->plan;
    struct timed_sample *next = linking->timed.items, *end = next + linking->timed.count;
    struct naming naming = {.linking = linking, .profile = NULL};
    uint64_t linked = 0;
    for (uint32_t i = 0; i < plan->profile_count && next < end; i++) {
        const struct profile_plan *profile = &plan->profiles[i];
        for (; next < end && next->sample < profile->first_sample + profile->sample_count; next++)
            if (are_single ? decide_single(linking, next) : next->pieces > 0)
                linked += name_one(&naming, profile, next);
            else if (are_single)
                decide_other(linking, next);
        end_naming(&naming);
    }
    assert(next == end);
    return linked;
}

/* ---- both ---- */

/* Returns whether any sample has a span. */
static bool decide_all(struct linking *linking)
{
    bool any = false;
    for (uint32_t i = 0; i < linking->timed.count; i++) {
        struct timed_sample *sample = &linking->timed.items[i];
        if (!decide_single(linking, sample))
            decide_other(linking, sample);
        any |= sample->pieces > 0;
    }
    return any;
}

/* Links samples some of which may have to be written. Returns whether they were. */
static bool link_any(struct linking *linking, struct thread_links *links)
{
    bool any = decide_all(linking);
    bool writes = any && (linking->source->writes || linking->more > 0);
    if (writes)
        write_links(linking, links);
    else if (any)
        links->linked = name_samples(linking, false);
    return writes;
}

bool timed_samples_link(struct sample_plan *plan, struct link_source *source,
                        struct thread_links *links_out)
{
    struct linking linking = {
        .plan = plan, .source = source, .room = items_values_room(plan->batch)};
    struct timed_samples *timed = &linking.timed;
    bool writes = false;
    *links_out = (struct thread_links){.unnamed_of = source->unnamed_of};
    timed_samples_read(plan, source->sample_count, timed);
    source->find(source, timed->items, timed->count, timed->asks, timed->ask_count);
    if (timed->are_single && !source->writes)
        links_out->linked = name_samples(&linking, true);
    else
        writes = link_any(&linking, links_out);
    links_out->not_split = linking.not_split;
    return writes;
}

void thread_links_deinit(struct thread_links *links)
{
    free(links->is_linked);
    free(links->unnamed_of);
    links->is_linked = NULL;
    links->unnamed_of = NULL;
}
