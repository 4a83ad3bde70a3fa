#include "core/data/thread_spans.h"

#include "core/base/container_of.h"
#include "core/base/index_table.h"
#include "core/base/list.h"
#include "core/base/memory.h"
#include "core/data/process_clocks.h"
#include "core/data/thread_log.h"
#include "core/data/thread_names.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct thread {
    struct list_link link; /* of `recent` */
    uint32_t number;
    struct thread_timeline timeline;
    uint64_t searched_ns; /* the time of the last sample of it that voted in a search */
    uint64_t id;          /* hash of the process and the id */
    uint64_t os_id; /* likewise, of the id in the operating system; 0: not known, or it is `id` */
    uint64_t matched_id; /* likewise, of the id that samples name it by, as their times show; 0: not
                            known */
    uint64_t renamed_ns; /* the start of the first span with its name; 0: it had no other one */
    uint32_t spans;
    uint16_t owner;
};

/* Matching takes some 50 KiB for each name of many threads: of so many names at the same time, and
 * one for so many spans. So many samples of a request vote. */
enum { MATCHES_MAX = 256, SPANS_OF_MATCH = 4096, MATCH_VOTES = 128, MATCH_VOTES_TOGETHER = 16 };

struct thread_spans {
    pthread_mutex_t lock;
    uint64_t turns; /* how often somebody got the lock */
    uint64_t max_spans;
    uint64_t count;
    struct thread **items; /* by number; NULL: it is free */
    uint32_t capacity;
    uint32_t used;
    uint32_t likely_free; /* the first number that may be free */
    struct thread_names names;
    struct index_table by_id; /* also by os_id and matched_id */
    struct process_clocks clocks;
    struct thread_logs logs;
    uint32_t owners;                      /* the largest number of an owner so far, plus 1 */
    uint64_t owned[SPAN_SOURCES_MAX];     /* spans by owner */
    struct list recent[SPAN_SOURCES_MAX]; /* threads by owner, those without new spans first */
    struct list logged[SPAN_SOURCES_MAX]; /* logs with spans by owner, likewise */
};

struct thread_spans *thread_spans_new(uint64_t max_spans)
{
    struct thread_spans *threads = memory_zalloc(sizeof *threads);
    pthread_mutex_init(&threads->lock, NULL);
    threads->max_spans = max_spans;
    process_clocks_init(&threads->clocks, max_spans);
    return threads;
}

void thread_spans_free(struct thread_spans *threads)
{
    if (!threads)
        return;
    thread_spans_sweep(threads, UINT64_MAX, 0);
    uint32_t number = 0;
    for (struct thread_log *log; (log = thread_logs_next(&threads->logs, &number));)
        thread_logs_remove(&threads->logs, log);
    thread_logs_deinit(&threads->logs);
    process_clocks_deinit(&threads->clocks);
    pthread_mutex_destroy(&threads->lock);
    free(threads->by_id.slots);
    free(threads->items);
    thread_names_deinit(&threads->names);
    free(threads);
}

/* ---- the lock ---- */

static void lock(struct thread_spans *threads)
{
    pthread_mutex_lock(&threads->lock);
    threads->turns++;
}

static void unlock(struct thread_spans *threads)
{
    pthread_mutex_unlock(&threads->lock);
}

/* Questions are answered in parts, and logs sorted, because others want the lock, too. Returns
 * whether somebody had it, so that what is known may not be true any more. */
static bool let_others_in(struct thread_spans *threads)
{
    uint64_t turn = threads->turns;
    unlock(threads);
    lock(threads);
    return threads->turns != turn + 1;
}

/* ---- finding threads ---- */

static void add_to(struct index_table *table, uint64_t hash, uint32_t number)
{
    index_table_grow(table, 1);
    index_table_add_new(table, (uint32_t)hash, number);
}

static struct thread *find_thread(struct thread_spans *threads, uint64_t hash)
{
    if (!threads->by_id.slots)
        return NULL;
    struct index_probe probe = index_table_probe(&threads->by_id, (uint32_t)hash);
    for (uint32_t number; index_table_next(&threads->by_id, &probe, &number);) {
        struct thread *thread = threads->items[number];
        if (thread->id == hash || thread->os_id == hash || thread->matched_id == hash)
            return thread;
    }
    return NULL;
}

/* ---- threads ---- */

static uint32_t take_number(struct thread_spans *threads)
{
    while (threads->likely_free < threads->used && threads->items[threads->likely_free])
        threads->likely_free++;
    uint32_t number = threads->likely_free;
    if (number == threads->capacity) {
        threads->capacity = number ? number * 2 : 64;
        threads->items = memory_grow(threads->items, threads->capacity, sizeof(struct thread *));
    }
    if (number == threads->used)
        threads->used++;
    return number;
}

static struct thread *thread_of_number(const struct thread_spans *threads, uint32_t number)
{
    return number != 0 ? threads->items[number - 1] : NULL;
}

static struct thread *new_thread(struct thread_spans *threads, uint64_t id, uint16_t owner)
{
    struct thread *thread = memory_zalloc(sizeof *thread);
    thread->number = take_number(threads);
    thread->id = id;
    thread->owner = owner;
    threads->items[thread->number] = thread;
    add_to(&threads->by_id, id, thread->number);
    list_append(&threads->recent[owner], &thread->link);
    return thread;
}

static void forget_os_id(struct thread_spans *threads, struct thread *thread)
{
    if (thread->os_id != 0)
        index_table_remove(&threads->by_id, (uint32_t)thread->os_id, thread->number);
    thread->os_id = 0;
}

static void forget_matched_id(struct thread_spans *threads, struct thread *thread)
{
    if (thread->matched_id != 0)
        index_table_remove(&threads->by_id, (uint32_t)thread->matched_id, thread->number);
    thread->matched_id = 0;
}

static void free_thread(struct thread_spans *threads, struct thread *thread)
{
    assert(thread->timeline.count == 0 && thread->spans == 0);
    forget_os_id(threads, thread);
    forget_matched_id(threads, thread);
    thread_names_set(&threads->names, thread->number, 0);
    index_table_remove(&threads->by_id, (uint32_t)thread->id, thread->number);
    list_remove(&threads->recent[thread->owner], &thread->link);
    threads->items[thread->number] = NULL;
    if (thread->number < threads->likely_free)
        threads->likely_free = thread->number;
    free(thread);
}

static void count_less(struct thread_spans *threads, uint16_t owner, uint32_t spans)
{
    assert(threads->owned[owner] >= spans && threads->count >= spans);
    threads->owned[owner] -= spans;
    threads->count -= spans;
}

/* Removes the earliest spans of a thread. It stays, even if it has none any more. */
static void drop_earliest(struct thread_spans *threads, struct thread *thread)
{
    uint32_t count = timeline_drop_first(&thread->timeline);
    assert(thread->spans >= count);
    thread->spans -= count;
    count_less(threads, thread->owner, count);
}

/* ---- adding ---- */

static uint16_t owner_of_most(const struct thread_spans *threads)
{
    unsigned most = 0;
    for (unsigned owner = 1; owner < threads->owners; owner++)
        if (threads->owned[owner] > threads->owned[most])
            most = owner;
    return (uint16_t)most;
}

static void count_one_more(struct thread_spans *threads, uint16_t owner)
{
    threads->owned[owner]++;
    threads->count++;
}

/* Takes out the oldest spans of a log, which then count no more; the caller frees them. */
static struct thread_log_block *pop_logged(struct thread_spans *threads, struct thread_log *log)
{
    struct thread_log_block *block = thread_log_pop(log);
    if (block)
        count_less(threads, log->owner, block->count);
    if (log->count == 0 && log->link.list)
        list_remove(&threads->logged[log->owner], &log->link);
    return block;
}

/* Removes some of the earliest spans of an owner. `thread` stays. */
static void drop_some(struct thread_spans *threads, uint16_t owner, const struct thread *thread)
{
    const struct list *logs = &threads->logged[owner], *recent = &threads->recent[owner];
    if (logs->first) {
        free(pop_logged(threads, container_of(logs->first, struct thread_log, link)));
        return;
    }
    struct thread *oldest = container_of(recent->first, struct thread, link);
    drop_earliest(threads, oldest);
    if (oldest->timeline.count == 0 && oldest != thread)
        free_thread(threads, oldest);
}

/* Makes room for a span of this thread (NULL: of none), which stays. */
static void make_room(struct thread_spans *threads, struct thread *thread)
{
    if (thread && thread->timeline.count == TIMELINE_BLOCKS_MAX)
        drop_earliest(threads, thread);
    while (threads->count >= threads->max_spans)
        drop_some(threads, owner_of_most(threads), thread);
}

static struct timeline_span timeline_span_of(const struct logged_span *span)
{
    struct timeline_span out = {
        .key = span->key, .start_ns = span->start_ns, .end_ns = span->end_ns};
    memcpy(out.parent_id, span->parent_id, SPAN_ID_SIZE);
    return out;
}

/* Programs may call a thread by its task, so that names move from thread to thread. */
static void name_thread(struct thread_spans *threads, struct thread *thread,
                        const struct logged_span *span)
{
    const struct thread_name *before = thread_names_of(&threads->names, thread->number);
    if (before && before->hash != span->name)
        thread->renamed_ns = span->start_ns;
    thread_names_set(&threads->names, thread->number, span->name);
}

/* Sorts a span of a process into the timeline of its thread. */
static void sort(struct thread_spans *threads, const struct thread_log *process,
                 const struct logged_span *span, uint64_t now_ns)
{
    uint64_t id =
        thread_hash((enum thread_hash_kind)span->kind, process->instance, (uint64_t)span->id);
    struct thread *thread = find_thread(threads, id);
    if (!thread)
        thread = new_thread(threads, id, process->owner);
    /* First, so that its earlier spans are not the ones that make room. */
    struct list *recent = &threads->recent[thread->owner];
    list_remove(recent, &thread->link);
    list_append(recent, &thread->link);
    make_room(threads, thread);
    name_thread(threads, thread, span);
    struct timeline_span added = timeline_span_of(span);
    if (!timeline_add(&thread->timeline, &added, now_ns))
        return;
    thread->spans++;
    count_one_more(threads, thread->owner);
}

/* Fills in each member where it stays: a copy of the whole would wait for its parts. */
static void note_span(const struct thread_span *span, struct logged_span *out)
{
    memcpy(&out->key, &span->key, sizeof out->key);
    memcpy(out->parent_id, span->parent_id, SPAN_ID_SIZE);
    out->start_ns = span->start_ns;
    out->end_ns = span->end_ns;
    out->id = span->id;
    out->kind = (uint8_t)span->kind;
    out->name = span->name.size > 0 ? thread_hash_name(span->instance, span->name) : 0;
}

/* Returns room for a span in the log of its process. */
static struct logged_span *log_span(struct thread_spans *threads, struct thread_log *log,
                                    uint64_t now_ns)
{
    struct list *logs = &threads->logged[log->owner];
    if (log->link.list && logs->last != &log->link)
        list_remove(logs, &log->link);
    if (log->count > 0 && !log->link.list)
        list_append(logs, &log->link);
    while (log->count >= THREAD_LOG_SPANS_MAX)
        free(pop_logged(threads, log));
    make_room(threads, NULL);
    if (!log->link.list) /* it was empty, or is now */
        list_append(logs, &log->link);
    count_one_more(threads, log->owner);
    return thread_log_add(log, now_ns);
}

static struct thread_log *log_of(struct thread_spans *threads, const struct thread_span *span)
{
    assert(span->instance != 0 && span->owner < SPAN_SOURCES_MAX);
    struct thread_log *log = thread_logs_open(&threads->logs, span->instance, span->owner);
    if (log->owner != span->owner) { /* the number is that of another process now */
        for (struct thread_log_block *block; (block = pop_logged(threads, log));)
            free(block);
        log->owner = span->owner;
        log->lag = (struct clock_lag){.since_ns = 0};
        log->sampler = (struct thread_sampler){.instance = 0};
    }
    if (span->owner >= threads->owners)
        threads->owners = (uint32_t)span->owner + 1;
    return log;
}

void thread_spans_put(struct thread_spans *threads, const struct thread_span *spans, size_t count,
                      uint64_t now_ns, uint64_t arrived_ns)
{
    lock(threads);
    struct thread_log *log = NULL;
    uint64_t newest_ns = 0; /* the latest end of a process's spans */
    for (size_t i = 0; i < count; i++) {
        if (spans[i].start_ns > spans[i].end_ns)
            continue;
        if (!log || log->instance != spans[i].instance || log->owner != spans[i].owner) {
            if (log)
                clock_lag_add(&log->lag, newest_ns, arrived_ns);
            log = log_of(threads, &spans[i]);
            newest_ns = 0;
        }
        newest_ns = spans[i].end_ns > newest_ns ? spans[i].end_ns : newest_ns;
        if (log->is_asked) {
            struct logged_span span;
            note_span(&spans[i], &span);
            sort(threads, log, &span, now_ns);
        } else {
            note_span(&spans[i], log_span(threads, log, now_ns));
        }
    }
    if (log)
        clock_lag_add(&log->lag, newest_ns, arrived_ns);
    unlock(threads);
}

/* Sorts the oldest spans in the log of a process. Returns false if there are none. */
static bool sort_some(struct thread_spans *threads, struct thread_log *log)
{
    struct thread_log_block *block = pop_logged(threads, log);
    for (uint32_t i = 0; block && i < block->count; i++)
        sort(threads, log, &block->spans[i], block->arrived_ns);
    bool any = block != NULL;
    free(block);
    return any;
}

/* Sorts the spans of a process, because somebody asks for them. Others get the lock between. */
static void sort_logged(struct thread_spans *threads, uint16_t instance)
{
    struct thread_log *log;
    while ((log = thread_logs_find(&threads->logs, instance))) {
        log->is_asked = log->is_used = true;
        if (!sort_some(threads, log))
            return;
        let_others_in(threads);
    }
}

/* ---- samplers ---- */

/* Whether it is not sure that these samples are those of the process of the spans. */
static bool may_be_of_others(const struct thread_spans *threads, const struct sample_thread *sample)
{
    if (sample->sampler == 0)
        return false;
    const struct thread_log *log = thread_logs_find(&threads->logs, sample->instance);
    return !log || !thread_sampler_is(&log->sampler, sample->sampler);
}

/* ---- asking ---- */

/* Whether samples with this name are of one thread, as far as is known. */
static bool is_of_one_thread(struct thread_name *name, const struct sample_thread *thread,
                             uint64_t time_ns)
{
    return !thread->has_id[THREAD_ID_OS] ||
           thread_name_note(name, thread->id[THREAD_ID_OS], time_ns);
}

/* The thread of a question. */
struct resolved {
    const struct thread *thread; /* NULL: it has no spans, or it is not known which one it is */
    struct thread_name *name;    /* it was found by this name; NULL: by an id */
    bool is_ambiguous;
    bool is_matched; /* its samples' times show the thread */
};

/* A sample with an id of the runtime is not found by a pair of ids, which is that of another one.
 */
static const struct thread *find_by_id(struct thread_spans *threads,
                                       const struct sample_thread *sample, enum thread_id_kind kind)
{
    uint64_t hash =
        thread_hash((enum thread_hash_kind)kind, sample->instance, (uint64_t)sample->id[kind]);
    const struct thread *thread = find_thread(threads, hash);
    bool is_paired = thread && thread->id != hash;
    return is_paired && sample->has_id[THREAD_ID_RUNTIME] ? NULL : thread;
}

static struct resolved resolve(struct thread_spans *threads, const struct sample_thread *sample)
{
    struct resolved resolved = {.thread = NULL};
    bool has_runtime_id = sample->has_id[THREAD_ID_RUNTIME];
    if (has_runtime_id)
        resolved.thread = find_by_id(threads, sample, THREAD_ID_RUNTIME);
    if (!resolved.thread && sample->has_id[THREAD_ID_OS] && sample->sampler == 0)
        resolved.thread = find_by_id(threads, sample, THREAD_ID_OS);
    if (!resolved.thread && !has_runtime_id && sample->has_id[THREAD_ID_OS]) {
        resolved.thread = find_thread(threads, thread_hash(THREAD_HASH_MATCHED, sample->instance,
                                                           (uint64_t)sample->id[THREAD_ID_OS]));
        resolved.is_matched = resolved.thread != NULL;
    }
    if (resolved.thread || has_runtime_id || sample->name.size == 0)
        return resolved;
    resolved.name =
        thread_names_find(&threads->names, thread_hash_name(sample->instance, sample->name));
    if (resolved.name && resolved.name->threads == 1)
        resolved.thread = thread_of_number(threads, resolved.name->first);
    resolved.is_ambiguous = resolved.name && resolved.name->threads > 1;
    return resolved;
}

enum { ASKS_TOGETHER = 256 };

/* ---- clocks ---- */

/* The samples of one process that vote. */
struct voting {
    struct thread_spans *threads;
    uint64_t arrived_ns;
    uint16_t instance; /* 0: there are none yet */
    struct process_clock *clock;
    uint64_t newest_ns;
    bool has_candidate; /* a clock has an offset to check */
};

static void finish_votes(struct voting *voting)
{
    if (voting->instance == 0)
        return;
    const struct thread_log *log = thread_logs_find(&voting->threads->logs, voting->instance);
    process_clock_end(&voting->threads->clocks, voting->clock, voting->newest_ns,
                      voting->arrived_ns, log ? &log->lag : NULL);
    voting->has_candidate |= clock_offset_find(&voting->clock->offset);
}

static void begin_votes(struct voting *voting, uint16_t instance)
{
    if (voting->instance == instance)
        return;
    finish_votes(voting); /* first: the next clock may replace this one */
    voting->instance = instance;
    voting->clock = process_clocks_open(&voting->threads->clocks, instance);
    voting->newest_ns = 0;
    process_clock_begin(&voting->threads->clocks, voting->clock);
}

/* Of the samples of a request, so many say something about the clock: fewer once it is known. */
enum { VOTES = 1024, LATER_VOTES = 16 };

/* Lets a sample vote for the offset of its process's clock. */
static void vote_one(struct voting *voting, const struct thread_ask *ask,
                     const struct thread *thread)
{
    begin_votes(voting, ask->thread->instance);
    if (ask->time_ns > voting->newest_ns)
        voting->newest_ns = ask->time_ns;
    process_clock_vote(voting->clock, &thread->timeline,
                       &voting->threads->items[thread->number]->searched_ns, ask->time_ns);
}

/* Returns the thread of a sample if it says something about the clock; otherwise NULL. */
static const struct thread *find_voter(struct thread_spans *threads,
                                       const struct sample_thread *sample)
{
    const struct thread *thread = resolve(threads, sample).thread;
    bool votes =
        thread && !timeline_is_loop(&thread->timeline) && !may_be_of_others(threads, sample);
    return votes ? thread : NULL;
}

/* Of the threads of the last samples, those that vote, in slots by the addresses of the former. */
enum { KNOWN_THREADS = 64 };
struct known_voter {
    const struct sample_thread *sample;
    const struct thread *thread; /* NULL: it does not vote */
};

static const struct thread *know_voter(struct thread_spans *threads, struct known_voter *known,
                                       const struct sample_thread *sample)
{
    struct known_voter *slot = &known[sample_thread_slot(sample, KNOWN_THREADS)];
    if (slot->sample != sample)
        *slot = (struct known_voter){sample, find_voter(threads, sample)};
    return slot->thread;
}

/* Returns whether some of them have to check an offset. */
static bool vote(struct thread_spans *threads, const struct thread_ask *asks, size_t count,
                 uint64_t arrived_ns)
{
    struct known_voter voters[KNOWN_THREADS] = {{.sample = NULL}};
    const struct process_clock *known =
        process_clocks_find(&threads->clocks, asks[0].thread->instance);
    size_t votes = known && clock_offset_is_settled(&known->offset) ? LATER_VOTES : VOTES;
    size_t step = count / votes + 1;
    struct voting voting = {.threads = threads, .arrived_ns = arrived_ns};
    for (size_t i = 0; i < count; i += step) {
        const struct thread *thread = know_voter(threads, voters, asks[i].thread);
        if (thread)
            vote_one(&voting, &asks[i], thread);
    }
    finish_votes(&voting);
    return voting.has_candidate;
}

/* Returns the clock of a process if there is an offset to check. */
static struct process_clock *clock_to_check(struct thread_spans *threads, uint16_t instance)
{
    struct process_clock *clock = process_clocks_find(&threads->clocks, instance);
    return clock && clock->offset.candidate_ns != 0 ? clock : NULL;
}

/* Lets some of them check the offsets that have most votes. */
static void check(struct thread_spans *threads, const struct thread_ask *asks, size_t count)
{
    struct known_voter voters[KNOWN_THREADS] = {{.sample = NULL}};
    const struct process_clock *known =
        process_clocks_find(&threads->clocks, asks[0].thread->instance);
    size_t checks = known && clock_offset_is_checked(&known->offset) ? LATER_VOTES : VOTES;
    struct process_clock *clock = NULL;
    uint16_t instance = 0; /* of no process */
    for (size_t i = 0; i < count; i += count / checks + 1) {
        if (asks[i].thread->instance != instance) {
            instance = asks[i].thread->instance;
            clock = clock_to_check(threads, instance);
        }
        const struct thread *thread = clock ? know_voter(threads, voters, asks[i].thread) : NULL;
        if (thread)
            clock_offset_check(&clock->offset, &thread->timeline,
                               asks[i].time_ns + (uint64_t)clock->moved_ns);
    }
}

/* The threads of the last questions, likewise. */
struct known_thread {
    const struct sample_thread *thread;
    struct resolved resolved;
    struct process_clock *clock; /* NULL: it has none */
    int64_t offset_ns;
    bool is_of_others;           /* it is not sure whose samples these are */
    bool is_unclear;             /* likewise, or the offset is not known */
    bool has_answer;             /* it is the same at all times: */
    enum thread_answer answer;   /* otherwise that of the last question */
    struct timeline_found found; /* by the last question; from_ns 1 and to_ns 0: none */
};

static void learn(struct thread_spans *threads, struct known_thread *slot,
                  const struct sample_thread *thread)
{
    struct process_clock *clock = process_clocks_find(&threads->clocks, thread->instance);
    struct clock_difference difference = process_clock_difference(clock);
    struct resolved resolved = resolve(threads, thread);
    bool is_of_others = may_be_of_others(threads, thread);
    bool is_unclear = difference.is_unclear || is_of_others;
    bool is_ambiguous = resolved.thread ? is_unclear : resolved.is_ambiguous;
    *slot = (struct known_thread){.thread = thread,
                                  .resolved = resolved,
                                  .clock = clock,
                                  .offset_ns = difference.offset_ns,
                                  .is_of_others = is_of_others,
                                  .is_unclear = is_unclear,
                                  .has_answer = is_ambiguous || !resolved.thread,
                                  .answer = is_ambiguous ? THREAD_AMBIGUOUS : THREAD_NO_SPAN,
                                  .found = {.from_ns = 1, .to_ns = 0}};
}

static inline struct known_thread *know(struct thread_spans *threads, struct known_thread *known,
                                        const struct sample_thread *thread)
{
    struct known_thread *slot = &known[sample_thread_slot(thread, KNOWN_THREADS)];
    if (slot->thread != thread)
        learn(threads, slot, thread);
    return slot;
}

static void forget_known(struct known_thread *known)
{
    memset(known, 0, KNOWN_THREADS * sizeof *known);
}

/* Lets others in before a part of the questions. */
static void begin_part(struct thread_spans *threads, struct known_thread *known)
{
    if (let_others_in(threads))
        forget_known(known);
}

/* Finds the span of a question. Most questions about a thread come in the order of their times,
 * many for one span. */
static void find_span(struct known_thread *known, uint64_t time_ns)
{
    if (time_ns >= known->found.from_ns && time_ns <= known->found.to_ns)
        return;
    struct timeline_found found = timeline_find(&known->resolved.thread->timeline, time_ns);
    /* After its last span, one may run that has not arrived yet. */
    bool is_known = found.span || found.to_ns != UINT64_MAX;
    if (known->clock && !found.is_unsure && is_known)
        clock_watch_note(&known->clock->watch, found.span != NULL);
    known->answer = found.span ? THREAD_SPAN : found.is_unsure ? THREAD_AMBIGUOUS : THREAD_NO_SPAN;
    known->found = found;
}

/* ---- threads with one name ---- */

/* Returns the name of a sample's thread if it is that of several threads, and times may show which
 * one it is. */
static struct thread_name *name_to_match(struct thread_spans *threads,
                                         const struct known_thread *known)
{
    const struct sample_thread *sample = known->thread;
    if (!sample->has_id[THREAD_ID_OS] || sample->has_id[THREAD_ID_RUNTIME] || known->is_unclear)
        return NULL;
    struct thread_name *name = known->resolved.name;
    if (known->resolved.is_matched)
        name = thread_names_of(&threads->names, known->resolved.thread->number);
    return name && (name->threads > 1 || name->is_shared) ? name : NULL;
}

static struct thread_match *match_of(struct thread_spans *threads, struct thread_name *name)
{
    uint64_t most = 1 + threads->max_spans / SPANS_OF_MATCH;
    return thread_names_match(&threads->names, name, most < MATCHES_MAX ? most : MATCHES_MAX);
}

static uint32_t hash_of_trace(const struct span_key *key)
{
    return (uint32_t)hash_bytes(slice_of(key->trace_id, TRACE_ID_SIZE)) | 1;
}

/* Finds what ran on the threads of a match at a time. */
static void collect_votes(const struct thread_spans *threads, const struct thread_match *match,
                          uint64_t time_ns, struct match_vote votes[MATCH_THREADS_MAX])
{
    for (int i = 0; i < MATCH_THREADS_MAX; i++) {
        const struct thread *thread = thread_of_number(threads, match->threads[i]);
        votes[i] = (struct match_vote){.is_known = false};
        if (!thread)
            continue;
        struct timeline_found found = timeline_find(&thread->timeline, time_ns);
        /* After its last span, one may run that has not arrived yet. */
        votes[i].is_known = found.span || (!found.is_unsure && found.to_ns != UINT64_MAX);
        votes[i].trace = found.span ? hash_of_trace(&found.span->key) : 0;
    }
}

/* Notes that samples with this id (0: none) are those of the thread, and of no other one. */
static void set_matched(struct thread_spans *threads, struct thread *thread, uint64_t hash)
{
    struct thread *before = hash != 0 ? find_thread(threads, hash) : NULL;
    if (before == thread)
        return;
    if (before && before->matched_id == hash)
        forget_matched_id(threads, before);
    forget_matched_id(threads, thread);
    if (hash == 0)
        return;
    thread->matched_id = hash;
    add_to(&threads->by_id, hash, thread->number);
}

/* Notes which ids the threads have that changed. */
static void note_matched(struct thread_spans *threads, const struct thread_match *match,
                         uint16_t instance)
{
    for (int i = 0; i < MATCH_THREADS_MAX; i++) {
        struct thread *thread = thread_of_number(threads, match->threads[i]);
        if (!thread || !(match->changed >> i & 1))
            continue;
        const struct match_id *id = thread_match_id_of(match, i);
        set_matched(threads, thread,
                    id ? thread_hash(THREAD_HASH_MATCHED, instance, (uint64_t)id->id) : 0);
    }
}

/* An id may be known from a match that was freed meanwhile. */
static void note_known(struct thread_match *match, struct match_id *voter,
                       const struct resolved *resolved)
{
    if (voter->thread < 0 && resolved->is_matched)
        voter->thread = thread_match_place(match, resolved->thread->number);
}

/* Returns whether it changes what is known of which thread an id is. */
static bool match_one(struct thread_spans *threads, const struct known_thread *known,
                      uint64_t time_ns)
{
    struct thread_name *name = name_to_match(threads, known);
    struct thread_match *match = name ? match_of(threads, name) : NULL;
    int64_t id = known->thread->id[THREAD_ID_OS];
    struct match_id *voter = match ? thread_match_begin(match, id, time_ns) : NULL;
    struct match_vote votes[MATCH_THREADS_MAX];
    if (!voter)
        return false;
    note_known(match, voter, &known->resolved);
    collect_votes(threads, match, time_ns + (uint64_t)known->offset_ns, votes);
    thread_match_vote(voter, votes);
    if (!thread_match_judge(match, voter))
        return false;
    note_matched(threads, match, known->thread->instance);
    return true;
}

/* Lets samples vote for the thread that they are of, if several have their name. */
static void match(struct thread_spans *threads, const struct thread_ask *asks, size_t count)
{
    struct known_thread known[KNOWN_THREADS] = {{.thread = NULL}};
    size_t step = count / MATCH_VOTES + 1;
    for (size_t i = 0; i < count; i += step) {
        if (i % (step * MATCH_VOTES_TOGETHER) == 0)
            begin_part(threads, known);
        if (match_one(threads, know(threads, known, asks[i].thread), asks[i].time_ns))
            forget_known(known);
    }
}

/* ---- answers ---- */

static inline void answer(struct known_thread *known, struct thread_ask *ask)
{
    ask->has_spans = known->resolved.thread != NULL;
    ask->by_name = known->resolved.name != NULL;
    ask->answer = known->answer;
    if (known->has_answer)
        return;
    assert(known->resolved.thread);
    uint64_t time_ns = ask->time_ns + (uint64_t)known->offset_ns;
    if (known->resolved.name &&
        (time_ns < known->resolved.thread->renamed_ns || /* another thread had the name */
         !is_of_one_thread(known->resolved.name, ask->thread, ask->time_ns))) {
        ask->answer = THREAD_AMBIGUOUS;
        return;
    }
    find_span(known, time_ns);
    ask->answer = known->answer;
    if (known->answer == THREAD_SPAN)
        ask->key = known->found.span->key;
}

/* is_again: they say nothing of clocks. */
static void answer_some(struct thread_spans *threads, struct known_thread *known,
                        struct thread_ask *asks, size_t count, bool is_again)
{
    for (size_t i = 0; i < count; i++) {
        struct known_thread *of_ask = know(threads, known, asks[i].thread);
        if (is_again)
            of_ask->clock = NULL;
        answer(of_ask, &asks[i]);
    }
}

static void answer_all(struct thread_spans *threads, struct thread_ask *asks, size_t count,
                       bool is_again)
{
    struct known_thread known[KNOWN_THREADS] = {{.thread = NULL}};
    for (size_t i = 0; i < count; i += ASKS_TOGETHER) {
        begin_part(threads, known);
        answer_some(threads, known, asks + i, count - i < ASKS_TOGETHER ? count - i : ASKS_TOGETHER,
                    is_again);
    }
}

/* ---- notes, each of all questions before the next one ---- */

/* Notes whose samples have names of threads of other pid namespaces. */
static void note_samplers(struct thread_spans *threads, const struct thread_ask *asks, size_t count,
                          uint64_t now_ns)
{
    struct known_thread known[KNOWN_THREADS] = {{.thread = NULL}};
    for (size_t i = 0; i < count; i++) {
        const struct sample_thread *thread = asks[i].thread;
        if (i % ASKS_TOGETHER == 0)
            begin_part(threads, known);
        if (thread->sampler == 0 || thread->name.size == 0)
            continue;
        struct thread_log *log = thread_logs_find(&threads->logs, thread->instance);
        if (log && know(threads, known, thread)->resolved.name)
            thread_sampler_note(&log->sampler, thread->sampler, now_ns);
    }
}

/* Notes which threads have the names in these questions, before the first of them is answered: a
 * name that two of them have tells nothing. */
static void note_names(struct thread_spans *threads, const struct thread_ask *asks, size_t count)
{
    struct known_thread known[KNOWN_THREADS] = {{.thread = NULL}};
    for (size_t i = 0; i < count; i++) {
        const struct sample_thread *thread = asks[i].thread;
        if (i % ASKS_TOGETHER == 0)
            begin_part(threads, known);
        else if (thread == asks[i - 1].thread)
            continue;
        const struct known_thread *of_ask = know(threads, known, thread);
        if (of_ask->resolved.thread && of_ask->resolved.name && !of_ask->is_of_others)
            is_of_one_thread(of_ask->resolved.name, thread, asks[i].time_ns);
    }
}

/* ---- what has to be done for questions ---- */

/* What has to be done for these questions. */
struct asked {
    uint16_t instance; /* that of the last one; 0: there are none yet */
    bool are_of_one;   /* process */
    bool have_sampler; /* samples are of another pid namespace */
    bool are_by_name;  /* threads are not known by their ids alone */
};

/* Looks at a thread. What is known of its process is sorted before. */
static void look_at(struct thread_spans *threads, const struct sample_thread *thread,
                    struct asked *asked)
{
    if (asked->instance != thread->instance) {
        asked->are_of_one = asked->instance == 0;
        asked->instance = thread->instance;
        sort_logged(threads, thread->instance);
    }
    asked->have_sampler |= thread->sampler != 0;
    struct resolved resolved = resolve(threads, thread);
    asked->are_by_name |= resolved.name || resolved.is_matched;
}

static struct asked look_at_all(struct thread_spans *threads, const struct thread_ask *asks,
                                size_t count)
{
    const struct sample_thread *known[KNOWN_THREADS] = {NULL};
    struct asked asked = {.instance = 0};
    for (size_t i = 0; i < count; i++) {
        const struct sample_thread *thread = asks[i].thread;
        size_t slot = sample_thread_slot(thread, KNOWN_THREADS);
        if (known[slot] == thread)
            continue;
        known[slot] = thread;
        look_at(threads, thread, &asked);
    }
    return asked;
}

/* Does what has to be done before they are answered. is_again: whose samples they are was noted
 * before. */
static struct asked begin_questions(struct thread_spans *threads, const struct thread_ask *asks,
                                    size_t count, uint64_t now_ns, bool is_again)
{
    struct asked asked = look_at_all(threads, asks, count);
    if (asked.have_sampler && !is_again)
        note_samplers(threads, asks, count, now_ns);
    if (asked.are_by_name)
        note_names(threads, asks, count);
    return asked;
}

/* Looks whether the clocks of these samples were set. */
static void watch_clocks(struct thread_spans *threads, const struct thread_ask *asks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t instance = asks[i].thread->instance;
        if (i > 0 && instance == asks[i - 1].thread->instance)
            continue;
        struct process_clock *clock = process_clocks_find(&threads->clocks, instance);
        if (clock)
            process_clock_look(&threads->clocks, clock);
    }
}

void thread_spans_find(struct thread_spans *threads, struct thread_ask *asks, size_t count,
                       uint64_t arrived_ns, uint64_t now_ns)
{
    if (count == 0)
        return;
    lock(threads);
    struct asked asked = begin_questions(threads, asks, count, now_ns, false);
    if (vote(threads, asks, count, arrived_ns))
        check(threads, asks, count);
    if (asked.are_by_name)
        match(threads, asks, count);
    answer_all(threads, asks, count, false);
    watch_clocks(threads, asks, asked.are_of_one ? 1 : count);
    unlock(threads);
}

void thread_spans_find_again(struct thread_spans *threads, struct thread_ask *asks, size_t count)
{
    if (count == 0)
        return;
    lock(threads);
    begin_questions(threads, asks, count, 0, true);
    answer_all(threads, asks, count, true);
    unlock(threads);
}

static int64_t offset_of(const struct thread_spans *threads, uint16_t instance)
{
    return process_clock_difference(process_clocks_find(&threads->clocks, instance)).offset_ns;
}

int64_t thread_spans_offset(struct thread_spans *threads, uint16_t instance)
{
    lock(threads);
    int64_t offset_ns = offset_of(threads, instance);
    unlock(threads);
    return offset_ns;
}

void thread_spans_handles(struct thread_spans *threads, const struct thread_span *spans,
                          size_t count, struct thread_handles *handles_out)
{
    lock(threads);
    for (size_t i = 0; i < count; i++) {
        const struct thread_span *span = &spans[i];
        if (i == 0 || span->instance != spans[i - 1].instance)
            sort_logged(threads, span->instance);
        uint64_t id =
            thread_hash((enum thread_hash_kind)span->kind, span->instance, (uint64_t)span->id);
        const struct thread *thread = find_thread(threads, id);
        uint64_t name = span->name.size > 0 ? thread_hash_name(span->instance, span->name) : 0;
        const struct thread_name *known = name ? thread_names_find(&threads->names, name) : NULL;
        bool has_other_id = thread && (thread->os_id != 0 || thread->matched_id != 0);
        handles_out[i] = (struct thread_handles){
            .hashes = {id, thread ? thread->os_id : 0, thread ? thread->matched_id : 0,
                       known && known->threads == 1 ? name : 0,
                       name && !has_other_id
                           ? thread_hash_of_name(THREAD_HASH_NAMED, span->instance, span->name)
                           : 0},
            .offset_ns = offset_of(threads, span->instance)};
    }
    unlock(threads);
}

void thread_spans_pair(struct thread_spans *threads, uint16_t instance, int64_t os_id,
                       int64_t runtime_id)
{
    uint64_t os = thread_hash(THREAD_HASH_OS, instance, (uint64_t)os_id);
    lock(threads);
    sort_logged(threads, instance);
    struct thread *thread =
        find_thread(threads, thread_hash(THREAD_HASH_RUNTIME, instance, (uint64_t)runtime_id));
    struct thread *before = thread ? find_thread(threads, os) : NULL;
    if (thread && before != thread && (!before || before->os_id == os)) {
        if (before)
            forget_os_id(threads, before); /* the operating system gave its id to another thread */
        forget_os_id(threads, thread);
        thread->os_id = os;
        add_to(&threads->by_id, os, thread->number);
    }
    unlock(threads);
}

/* ---- the window ---- */

static bool is_expired(const struct thread *thread, uint64_t now_ns, uint64_t window_ns)
{
    return thread->timeline.count > 0 && thread->timeline.blocks[0].arrived_ns + window_ns < now_ns;
}

static void sweep_logs(struct thread_spans *threads, uint64_t now_ns, uint64_t window_ns)
{
    uint32_t number = 0;
    for (struct thread_log *log; (log = thread_logs_next(&threads->logs, &number));) {
        while (log->first && log->first->arrived_ns + window_ns < now_ns)
            free(pop_logged(threads, log));
        if (log->is_used)
            log->used_ns = now_ns;
        log->is_used = false;
        if (log->used_ns + window_ns < now_ns)
            log->is_asked = false;
        if (log->count == 0 && !log->is_asked)
            thread_logs_remove(&threads->logs, log);
    }
}

void thread_spans_sweep(struct thread_spans *threads, uint64_t now_ns, uint64_t window_ns)
{
    lock(threads);
    for (uint32_t i = 0; i < threads->used; i++) {
        struct thread *thread = threads->items[i];
        if (!thread)
            continue;
        while (is_expired(thread, now_ns, window_ns))
            drop_earliest(threads, thread);
        if (thread->timeline.count == 0)
            free_thread(threads, thread);
    }
    thread_names_sweep(&threads->names, now_ns, window_ns);
    sweep_logs(threads, now_ns, window_ns);
    process_clocks_sweep(&threads->clocks, now_ns, window_ns);
    unlock(threads);
}

uint64_t thread_spans_count(struct thread_spans *threads)
{
    lock(threads);
    uint64_t count = threads->count;
    unlock(threads);
    return count;
}

uint64_t thread_spans_limit(const struct thread_spans *threads)
{
    return threads->max_spans;
}

struct thread_clocks thread_spans_clocks(struct thread_spans *threads)
{
    struct thread_clocks clocks = {0};
    lock(threads);
    for (uint32_t i = 0; i < PROCESS_CLOCKS_MAX; i++) {
        const struct process_clock *clock = threads->clocks.items[i];
        clocks.unclear += clock && clock->is_unclear;
        clocks.moved += clock && !clock->is_unclear && clock->moved_ns != 0;
    }
    unlock(threads);
    return clocks;
}

size_t thread_spans_memory(struct thread_spans *threads)
{
    lock(threads);
    size_t size = sizeof *threads + thread_logs_memory(&threads->logs);
    size += index_table_memory(&threads->by_id) + thread_names_memory(&threads->names);
    size += threads->capacity * sizeof(struct thread *);
    for (uint32_t i = 0; i < threads->used; i++)
        if (threads->items[i])
            size += sizeof(struct thread) + timeline_memory(&threads->items[i]->timeline);
    size += process_clocks_memory(&threads->clocks);
    unlock(threads);
    return size;
}
