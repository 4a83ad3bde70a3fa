#include "processors/spanjoin/left_upload.h"

#include "core/base/memory.h"
#include "core/data/span_index.h"
#include "processors/spanjoin/sample_totals.h"

#include <assert.h>
#include <stdlib.h>

struct left_upload *left_upload_new(const struct sample_plan *plan, struct span_index *index,
                                    uint64_t request)
{
    struct left_upload *upload = memory_zalloc(sizeof *upload);
    uint16_t last = 0;
    arena_init(&upload->arena, plan->batch->arena.budget);
    upload->index = index;
    upload->request = request;
    upload->arrived_ns = plan->arrived_ns;
    upload->watched = arena_array(&upload->arena, plan->profile_count, sizeof *upload->watched);
    for (uint32_t i = 0; i < plan->profile_count; i++) {
        if (plan->profiles[i].process != last && plan->profiles[i].process != 0) {
            upload->watched[upload->watched_count++] = plan->profiles[i].process;
            left_samples_watch(span_index_left(index), plan->profiles[i].process);
        }
        last = plan->profiles[i].process;
    }
    return upload;
}

static uint64_t unwatch(struct left_upload *upload)
{
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < upload->watched_count; i++) {
        uint64_t from_ns = left_samples_unwatch(span_index_left(upload->index), upload->watched[i]);
        first_ns = from_ns < first_ns ? from_ns : first_ns;
    }
    upload->watched_count = 0;
    return first_ns;
}

void left_upload_free(struct left_upload *upload)
{
    if (!upload)
        return;
    unwatch(upload);
    arena_deinit(&upload->arena);
    free(upload);
}

static uint32_t new_thread(struct left_upload *upload, const struct thread_ask *ask)
{
    upload->threads = arena_grow(&upload->arena, upload->threads, upload->thread_count,
                                 &upload->thread_capacity, sizeof *upload->threads);
    struct left_thread *thread = &upload->threads[upload->thread_count];
    thread->source = upload->profile->source;
    thread->thread = *ask->thread;
    thread->thread.name = arena_copy(&upload->arena, thread_name_compared(ask->thread->name));
    thread->has_spans = ask->has_spans;
    thread->offset_ns =
        thread_spans_offset(span_index_threads(upload->index), ask->thread->instance);
    return upload->thread_count++;
}

static inline struct left_thread *thread_of(struct left_upload *upload,
                                            const struct thread_ask *ask)
{
    size_t slot = sample_thread_slot(ask->thread, LEFT_THREADS_REMEMBERED);
    if (upload->known[slot].thread != ask->thread) {
        upload->known[slot].number = new_thread(upload, ask);
        upload->known[slot].thread = ask->thread;
    }
    return &upload->threads[upload->known[slot].number];
}

enum { RUN_TIMES_FIRST = 8 };

static struct left_run *new_run(struct left_upload *upload, struct left_thread *thread)
{
    struct left_run *run = arena_zalloc(&upload->arena, sizeof *run);
    run->sums = upload->sums;
    if (thread->last)
        thread->last->next = run;
    else
        thread->runs = run;
    thread->last = run;
    return run;
}

static void grow_run(struct left_upload *upload, struct left_run *run)
{
    run->capacity = run->capacity ? run->capacity * 2 : RUN_TIMES_FIRST;
    struct left_time *times = arena_alloc(&upload->arena, run->capacity * sizeof *times);
    if (run->count > 0)
        memcpy(times, run->times, run->count * sizeof *times);
    run->times = times;
}

/* Notes a time of a sample. is_next: the time before it is of the same sample. */
static inline void note_time(struct left_upload *upload, const struct thread_ask *ask,
                             uint64_t value, bool is_next)
{
    struct left_thread *thread = thread_of(upload, ask);
    struct left_run *run = thread->last;
    if (!run || run->sums != upload->sums)
        run = new_run(upload, thread);
    if (run->count == run->capacity)
        grow_run(upload, run);
    run->times[run->count++] = left_time_of(ask->time_ns, value, is_next);
}

/* Notes the times without a span of a sample that has a value for each time, or none. */
static void note_paired(struct left_upload *upload, const struct timed_sample *sample,
                        const struct thread_ask *asks)
{
    struct slice values = sample_list(sample->raw, SAMPLE_VALUES, &upload->arena);
    struct wire_cursor cursor = wire_cursor(values);
    bool any = false;
    for (uint32_t i = 0; i < sample->ask_count; i++) {
        uint64_t value = 1;
        if (values.size > 0)
            wire_packed_varint(&cursor, &value);
        if (asks[i].answer != THREAD_NO_SPAN)
            continue;
        note_time(upload, &asks[i], value, any);
        any = true;
    }
}

/* Of values that are not those of the times, it is not known which ones a span may own. */
static void note_lost(struct left_upload *upload, const struct timed_sample *sample,
                      const struct thread_ask *asks)
{
    struct left_thread *thread = thread_of(upload, asks);
    for (uint32_t i = 0; i < sample->ask_count; i++)
        if (asks[i].answer == THREAD_NO_SPAN && asks[i].time_ns > thread->lost_ns)
            thread->lost_ns = asks[i].time_ns;
}

static bool has_answer(const struct thread_ask *asks, uint32_t count, enum thread_answer answer)
{
    for (uint32_t i = 0; i < count; i++)
        if (asks[i].answer == answer)
            return true;
    return false;
}

/* ---- doubts ---- */

/* Notes a time that a span may own, which does not get it. */
static void note_doubt(struct left_upload *upload, const struct thread_ask *ask)
{
    struct left_thread *thread = thread_of(upload, ask);
    struct time_range doubt = {ask->time_ns, ask->time_ns};
    struct time_range *last =
        thread->doubt_count > 0 ? &thread->doubts[thread->doubt_count - 1] : NULL;
    thread->doubts_name |= ask->by_name;
    if (last && doubt.start_ns >= last->start_ns && doubted_ranges_touch(*last, doubt)) {
        last->end_ns = doubt.end_ns > last->end_ns ? doubt.end_ns : last->end_ns;
        return;
    }
    thread->doubts = arena_grow(&upload->arena, thread->doubts, thread->doubt_count,
                                &thread->doubt_capacity, sizeof *thread->doubts);
    thread->doubts[thread->doubt_count++] = doubt;
}

/* Notes a time for another process, too, of which the thread may be. */
static void note_other_doubt(struct left_upload *upload, const struct thread_ask *ask,
                             uint16_t other)
{
    struct thread_ask same = *ask;
    if (upload->doubted != ask->thread || upload->other->instance != other) {
        struct sample_thread *copy = arena_alloc(&upload->arena, sizeof *copy);
        *copy = *ask->thread;
        copy->instance = other;
        upload->doubted = ask->thread;
        upload->other = copy;
    }
    same.thread = upload->other;
    note_doubt(upload, &same);
}

/* Notes the times of a sample that may be of several spans, and if it is not split, so that it gets
 * no span, those whose spans are known, too. */
static void note_doubts(struct left_upload *upload, const struct timed_sample *sample,
                        const struct thread_ask *asks, uint16_t other)
{
    bool is_whole = sample->pieces == 0;
    for (uint32_t i = 0; i < sample->ask_count; i++) {
        if (asks[i].answer == THREAD_AMBIGUOUS || (is_whole && asks[i].answer == THREAD_SPAN))
            note_doubt(upload, &asks[i]);
        if (asks[i].answer == THREAD_AMBIGUOUS && other != 0)
            note_other_doubt(upload, &asks[i], other);
    }
}

static bool is_of(const struct profile_plan *profile, uint32_t sample)
{
    return sample < profile->first_sample + profile->sample_count;
}

/* Goes on to the profile of a sample, which come in their order. */
static void begin_profile(struct left_upload *upload, const struct sample_plan *plan,
                          uint32_t sample)
{
    const struct profile_plan *before = upload->profile;
    const struct profile_plan *profile = before ? before : plan->profiles;
    while (!is_of(profile, sample))
        profile++;
    assert(profile < plan->profiles + plan->profile_count);
    if (before && (profile->process != before->process ||
                   !span_source_equal(&profile->source, &before->source)))
        memset(upload->known, 0, sizeof upload->known);
    upload->profile = profile;
    upload->sums = NULL;
    if (profile_is_repeated(plan, profile, upload->index, upload->request))
        return;
    struct profile_sums *sums = arena_alloc(&upload->arena, sizeof *sums);
    *sums = profile->sums;
    upload->sums = sums;
}

void left_upload_note(struct left_upload *upload, const struct sample_plan *plan,
                      const struct timed_sample *sample, const struct thread_ask *asks,
                      uint16_t other)
{
    if (!upload->profile || !is_of(upload->profile, sample->sample))
        begin_profile(upload, plan, sample->sample);
    if (!upload->sums)
        return;
    if (sample->ask_count == 1 && asks->answer == THREAD_NO_SPAN) {
        note_time(upload, asks, sample->amount.sum, false);
        return;
    }
    note_doubts(upload, sample, asks, other);
    if (!has_answer(asks, sample->ask_count, THREAD_NO_SPAN))
        return;
    if (sample->is_paired)
        note_paired(upload, sample, asks);
    else
        note_lost(upload, sample, asks);
}

/* Notes how far the clocks of the processes differ, as was found out with this upload. */
static void note_offsets(const struct left_upload *upload, uint64_t now_ns)
{
    struct thread_spans *threads = span_index_threads(upload->index);
    for (uint32_t i = 0; i < upload->watched_count; i++)
        left_samples_note_offset(span_index_left(upload->index), upload->watched[i],
                                 thread_spans_offset(threads, upload->watched[i]),
                                 upload->arrived_ns, now_ns);
}

uint64_t left_upload_keep(struct left_upload *upload, uint64_t now_ns)
{
    note_offsets(upload, now_ns);
    if (upload->thread_count > 0)
        left_samples_add(span_index_left(upload->index), upload->threads, upload->thread_count,
                         upload->arrived_ns, now_ns, span_index_window(upload->index));
    uint64_t from_ns = unwatch(upload);
    return upload->thread_count > 0 ? from_ns : UINT64_MAX;
}
