#include "processors/spanjoin/thread_samples.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/data/span_index.h"
#include "processors/spanjoin/left_upload.h"
#include "processors/spanjoin/upload_times.h"

#include <assert.h>

struct thread_source {
    struct link_source source;
    struct sample_plan *plan;
    const struct resource_upload *leaving; /* that of the last sample that left without a span */
};

/* Returns the upload of a sample, which is this one or a later one. */
static const struct resource_upload *upload_of(const struct resource_upload *upload,
                                               const struct timed_sample *sample)
{
    while (sample->sample >= upload->first_sample + upload->sample_count)
        upload++;
    return upload;
}

/* Several processes that count as one have threads with the same ids: which of them the span ran in
 * is not known. */
static void doubt_several(const struct sample_plan *plan, const struct timed_sample *samples,
                          uint32_t sample_count, struct thread_ask *asks)
{
    const struct resource_upload *upload = plan->uploads;
    for (uint32_t i = 0; i < sample_count; i++) {
        upload = upload_of(upload, &samples[i]);
        struct thread_ask *of_sample = &asks[samples[i].first_ask];
        for (uint32_t k = 0; upload->is_of_several && k < samples[i].ask_count; k++)
            if (of_sample[k].answer == THREAD_SPAN)
                of_sample[k].answer = THREAD_AMBIGUOUS;
    }
}

/* Asks about samples of uploads that may be of several processes, one after the other. */
struct asking {
    struct sample_plan *plan;
    struct thread_ask *asked; /* in the order of the asks, without those that need no search */
    size_t count;
    const struct sample_thread *thread; /* the last one that was asked for the process before */
    const struct sample_thread *before; /* the same of that process */
};

static const struct sample_thread *
thread_of_before(struct asking *asking, const struct sample_thread *thread, uint16_t before)
{
    if (asking->before && asking->thread == thread && asking->before->instance == before)
        return asking->before;
    struct sample_thread *same = arena_alloc(&asking->plan->arena, sizeof *same);
    *same = *thread;
    same->instance = before;
    asking->thread = thread;
    return asking->before = same;
}

static bool is_of_before(const struct resource_upload *upload, const struct thread_ask *ask)
{
    return upload->before != 0 && ask->time_ns < upload->since_ns;
}

static void add_asked(struct asking *asking, const struct resource_upload *upload,
                      struct thread_ask *ask)
{
    bool is_before = is_of_before(upload, ask);
    ask->answer = THREAD_AMBIGUOUS;
    if (upload->is_doubted && !is_before)
        return;
    struct thread_ask *asked = &asking->asked[asking->count++];
    *asked = *ask;
    asked->answer = THREAD_NO_SPAN;
    if (is_before)
        asked->thread = thread_of_before(asking, ask->thread, upload->before);
}

static void add_all_asked(struct asking *asking, const struct timed_sample *samples,
                          uint32_t sample_count, struct thread_ask *asks)
{
    const struct resource_upload *upload = asking->plan->uploads;
    for (uint32_t i = 0; i < sample_count; i++) {
        upload = upload_of(upload, &samples[i]);
        for (uint32_t k = 0; k < samples[i].ask_count; k++)
            add_asked(asking, upload, &asks[samples[i].first_ask + k]);
    }
}

static void take_answers(const struct asking *asking, const struct timed_sample *samples,
                         uint32_t sample_count, struct thread_ask *asks)
{
    const struct resource_upload *upload = asking->plan->uploads;
    const struct thread_ask *asked = asking->asked;
    for (uint32_t i = 0; i < sample_count; i++) {
        upload = upload_of(upload, &samples[i]);
        struct thread_ask *ask = &asks[samples[i].first_ask];
        for (const struct thread_ask *end = ask + samples[i].ask_count; ask < end; ask++) {
            if (upload->is_doubted && !is_of_before(upload, ask))
                continue;
            ask->thread = asked->thread;
            ask->answer = asked->answer;
            ask->has_spans = asked->has_spans;
            ask->by_name = asked->by_name;
            ask->key = asked->key;
            asked++;
        }
    }
    assert(asked == asking->asked + asking->count);
}

static bool any_may_be_of_before(const struct sample_plan *plan)
{
    for (uint32_t i = 0; i < plan->upload_count; i++)
        if (plan->uploads[i].is_doubted || plan->uploads[i].before != 0)
            return true;
    return false;
}

static void find_by_thread(struct link_source *source, const struct timed_sample *samples,
                           uint32_t sample_count, struct thread_ask *asks, size_t ask_count)
{
    struct sample_plan *plan = container_of(source, struct thread_source, source)->plan;
    struct thread_spans *threads = span_index_threads(source->totals.index);
    if (any_may_be_of_before(plan)) {
        struct asking asking = {.plan = plan,
                                .asked = arena_array(&plan->arena, ask_count, sizeof *asks)};
        add_all_asked(&asking, samples, sample_count, asks);
        thread_spans_find(threads, asking.asked, asking.count, plan->arrived_ns, plan->now_ns);
        take_answers(&asking, samples, sample_count, asks);
    } else {
        thread_spans_find(threads, asks, ask_count, plan->arrived_ns, plan->now_ns);
    }
    doubt_several(plan, samples, sample_count, asks);
}

static void leave_by_thread(struct link_source *source, const struct timed_sample *sample,
                            const struct thread_ask *asks)
{
    struct thread_source *by_thread = container_of(source, struct thread_source, source);
    const struct sample_plan *plan = by_thread->plan;
    by_thread->leaving = upload_of(by_thread->leaving, sample);
    uint16_t other = by_thread->leaving->is_doubted ? by_thread->leaving->before : 0;
    left_upload_note(plan->left, plan, sample, asks, other);
}

/* Returns what is known of samples that are not asked for, because the plan may become another
 * one. */
static struct unnamed_samples *copy_unnamed(const struct sample_plan *plan)
{
    struct unnamed_samples *copy = memory_zalloc(plan->upload_count * sizeof *copy);
    for (uint32_t i = 0; i < plan->upload_count; i++)
        copy[i] = plan->uploads[i].unnamed;
    return copy;
}

bool thread_samples_link(struct sample_plan *plan, const struct plan_totals *totals,
                         struct thread_links *links_out)
{
    struct thread_source by_thread = {
        .source =
            {
                .find = find_by_thread,
                .leaves = plan->left ? leave_by_thread : NULL,
                .sample_count = plan->with_thread,
                /* child_samples.h reads the Links of the request */
                .writes = plan->settings->attribute_children,
                .unnamed_of = copy_unnamed(plan),
                .totals = *totals,
            },
        .plan = plan,
        .leaving = plan->uploads,
    };
    return timed_samples_link(plan, &by_thread.source, links_out);
}
