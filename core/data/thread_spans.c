#include "core/data/thread_spans.h"

#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/list.h"
#include "core/base/memory.h"
#include "core/data/clock_offset.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

/* Two threads of the operating system that ran with the same name within this time are two; later,
 * one may have taken the place of the other. */
#define SAME_NAME_NS UINT64_C(5000000000)

struct thread {
    struct list_link link; /* of `recent` */
    uint32_t number;
    struct thread_timeline timeline;
    uint64_t id;    /* hash of the process and the id */
    uint64_t os_id; /* likewise, of the id in the operating system; 0: not known, or it is `id` */
    uint32_t name;  /* number of its name, from 1; 0: none */
    uint32_t spans;
    uint16_t owner;
};

/* A name that threads of one process have. */
struct name {
    uint64_t hash;    /* of the process and the name */
    uint32_t threads; /* that have spans */
    uint32_t number;  /* exclusive or of their numbers: if there is one, this is its number */
    bool has_os_id;
    bool is_shared;      /* samples of several threads had it */
    int64_t os_id;       /* of the samples with this name */
    uint64_t sampled_ns; /* the time of one of them */
    uint32_t next_free;
};

/* Estimates are kept for so many processes. Two processes whose numbers differ by a multiple of it
 * replace each other. */
enum { CLOCKS_MAX = 1024 };

struct clock {
    struct clock_offset offset;
    uint16_t instance;
    bool is_used;     /* since the last sweep */
    uint64_t used_ns; /* the last sweep that found it used; monotonic */
};

struct thread_spans {
    pthread_mutex_t lock;
    uint64_t max_spans;
    uint64_t count;
    struct thread **items; /* by number; NULL: it is free */
    uint32_t capacity;
    uint32_t used;
    uint32_t likely_free; /* the first number that may be free */
    struct name *names;
    uint32_t names_capacity;
    uint32_t names_used;
    uint32_t names_free;      /* number + 1 */
    struct index_table by_id; /* also by os_id */
    struct index_table by_name;
    struct clock *clocks[CLOCKS_MAX];     /* by instance; NULL: none */
    uint64_t owned[SPAN_SOURCES_MAX];     /* spans by owner */
    struct list recent[SPAN_SOURCES_MAX]; /* threads by owner, those without new spans first */
};

struct thread_spans *thread_spans_new(uint64_t max_spans)
{
    struct thread_spans *threads = memory_zalloc(sizeof *threads);
    pthread_mutex_init(&threads->lock, NULL);
    threads->max_spans = max_spans;
    return threads;
}

void thread_spans_free(struct thread_spans *threads)
{
    if (!threads)
        return;
    thread_spans_sweep(threads, UINT64_MAX, 0);
    for (uint32_t i = 0; i < CLOCKS_MAX; i++)
        free(threads->clocks[i]);
    pthread_mutex_destroy(&threads->lock);
    free(threads->by_id.slots);
    free(threads->by_name.slots);
    free(threads->items);
    free(threads->names);
    free(threads);
}

/* ---- finding threads ---- */

enum hash_kind { HASH_OS = THREAD_ID_OS, HASH_RUNTIME = THREAD_ID_RUNTIME, HASH_NAME };

static uint64_t hash_of(enum hash_kind kind, uint16_t instance, uint64_t value)
{
    const uint64_t parts[] = {(uint64_t)kind << 32 | instance, value};
    return hash_bytes(slice_of(parts, sizeof parts)) | 1;
}

static uint64_t hash_of_name(uint16_t instance, struct slice name)
{
    if (name.size > THREAD_NAME_COMPARED)
        name.size = THREAD_NAME_COMPARED;
    return hash_of(HASH_NAME, instance, hash_bytes(name));
}

static void add_to(struct index_table *table, uint64_t hash, uint32_t number)
{
    size_t bytes = index_table_growth(table, 1);
    if (bytes > 0)
        free(index_table_move(table, memory_zalloc(bytes), bytes));
    index_table_add_new(table, (uint32_t)hash, number);
}

static struct thread *find_thread(struct thread_spans *threads, uint64_t hash)
{
    if (!threads->by_id.slots)
        return NULL;
    struct index_probe probe = index_table_probe(&threads->by_id, (uint32_t)hash);
    for (uint32_t number; index_table_next(&threads->by_id, &probe, &number);)
        if (threads->items[number]->id == hash || threads->items[number]->os_id == hash)
            return threads->items[number];
    return NULL;
}

static struct name *find_name(struct thread_spans *threads, uint64_t hash)
{
    if (!threads->by_name.slots)
        return NULL;
    struct index_probe probe = index_table_probe(&threads->by_name, (uint32_t)hash);
    for (uint32_t number; index_table_next(&threads->by_name, &probe, &number);)
        if (threads->names[number].hash == hash)
            return &threads->names[number];
    return NULL;
}

/* ---- names ---- */

static struct name *new_name(struct thread_spans *threads, uint64_t hash)
{
    uint32_t number = threads->names_free ? threads->names_free - 1 : threads->names_used;
    if (number == threads->names_capacity) {
        threads->names_capacity = number ? number * 2 : 64;
        threads->names =
            memory_grow(threads->names, threads->names_capacity, sizeof *threads->names);
    }
    if (number == threads->names_used)
        threads->names_used++;
    else
        threads->names_free = threads->names[number].next_free;
    threads->names[number] = (struct name){.hash = hash};
    add_to(&threads->by_name, hash, number);
    return &threads->names[number];
}

static void leave_name(struct thread_spans *threads, struct thread *thread)
{
    if (thread->name == 0)
        return;
    struct name *name = &threads->names[thread->name - 1];
    name->threads--;
    name->number ^= thread->number;
    if (name->threads == 0) {
        index_table_remove(&threads->by_name, (uint32_t)name->hash, thread->name - 1);
        *name = (struct name){.next_free = threads->names_free};
        threads->names_free = thread->name;
    }
    thread->name = 0;
}

/* Threads change their names; the name of the newest span counts. */
static void set_name(struct thread_spans *threads, struct thread *thread,
                     const struct thread_span *span)
{
    uint64_t hash = span->name.size > 0 ? hash_of_name(span->instance, span->name) : 0;
    if (thread->name != 0 && threads->names[thread->name - 1].hash == hash)
        return;
    leave_name(threads, thread);
    if (hash == 0)
        return;
    struct name *name = find_name(threads, hash);
    if (!name)
        name = new_name(threads, hash);
    name->threads++;
    name->number ^= thread->number;
    thread->name = (uint32_t)(name - threads->names) + 1;
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

static void free_thread(struct thread_spans *threads, struct thread *thread)
{
    assert(thread->timeline.count == 0 && thread->spans == 0);
    forget_os_id(threads, thread);
    leave_name(threads, thread);
    index_table_remove(&threads->by_id, (uint32_t)thread->id, thread->number);
    list_remove(&threads->recent[thread->owner], &thread->link);
    threads->items[thread->number] = NULL;
    if (thread->number < threads->likely_free)
        threads->likely_free = thread->number;
    free(thread);
}

/* Removes the earliest spans of a thread. It stays, even if it has none any more. */
static void drop_earliest(struct thread_spans *threads, struct thread *thread)
{
    uint32_t count = timeline_drop_first(&thread->timeline);
    assert(thread->spans >= count && threads->owned[thread->owner] >= count);
    thread->spans -= count;
    threads->owned[thread->owner] -= count;
    threads->count -= count;
}

/* ---- adding ---- */

static uint16_t owner_of_most(const struct thread_spans *threads)
{
    unsigned most = 0;
    for (unsigned owner = 1; owner < SPAN_SOURCES_MAX; owner++)
        if (threads->owned[owner] > threads->owned[most])
            most = owner;
    return (uint16_t)most;
}

/* Makes room for a span of this thread, which stays. */
static void make_room(struct thread_spans *threads, struct thread *thread)
{
    if (thread->timeline.count == TIMELINE_BLOCKS_MAX)
        drop_earliest(threads, thread);
    while (threads->count >= threads->max_spans) {
        struct list *recent = &threads->recent[owner_of_most(threads)];
        struct thread *oldest = container_of(recent->first, struct thread, link);
        drop_earliest(threads, oldest);
        if (oldest->timeline.count == 0 && oldest != thread)
            free_thread(threads, oldest);
    }
}

static struct timeline_span timeline_span_of(const struct thread_span *span)
{
    struct timeline_span out = {
        .key = span->key, .start_ns = span->start_ns, .end_ns = span->end_ns};
    memcpy(out.parent_id, span->parent_id, SPAN_ID_SIZE);
    return out;
}

static void put(struct thread_spans *threads, const struct thread_span *span, uint64_t now_ns)
{
    assert(span->instance != 0 && span->owner < SPAN_SOURCES_MAX);
    uint64_t id = hash_of((enum hash_kind)span->kind, span->instance, (uint64_t)span->id);
    struct thread *thread = find_thread(threads, id);
    if (!thread)
        thread = new_thread(threads, id, span->owner);
    /* First, so that its earlier spans are not the ones that make room. */
    struct list *recent = &threads->recent[thread->owner];
    list_remove(recent, &thread->link);
    list_append(recent, &thread->link);
    make_room(threads, thread);
    set_name(threads, thread, span);
    struct timeline_span added = timeline_span_of(span);
    if (!timeline_add(&thread->timeline, &added, now_ns))
        return;
    thread->spans++;
    threads->owned[thread->owner]++;
    threads->count++;
}

void thread_spans_put(struct thread_spans *threads, const struct thread_span *spans, size_t count,
                      uint64_t now_ns)
{
    pthread_mutex_lock(&threads->lock);
    for (size_t i = 0; i < count; i++)
        if (spans[i].start_ns <= spans[i].end_ns)
            put(threads, &spans[i], now_ns);
    pthread_mutex_unlock(&threads->lock);
}

/* ---- asking ---- */

/* Whether samples with this name are of one thread, as far as is known. */
static bool is_of_one_thread(struct name *name, const struct sample_thread *thread,
                             uint64_t time_ns)
{
    if (!thread->has_id[THREAD_ID_OS])
        return true;
    int64_t os_id = thread->id[THREAD_ID_OS];
    uint64_t apart_ns =
        time_ns > name->sampled_ns ? time_ns - name->sampled_ns : name->sampled_ns - time_ns;
    if (name->has_os_id && name->os_id != os_id && apart_ns < SAME_NAME_NS)
        name->is_shared = true;
    name->has_os_id = true;
    name->os_id = os_id;
    name->sampled_ns = time_ns;
    return !name->is_shared;
}

/* The thread of a question. */
struct resolved {
    const struct thread *thread; /* NULL: it has no spans, or it is not known which one it is */
    struct name *name;           /* it was found by this name; NULL: by an id */
    bool is_ambiguous;
};

static struct resolved resolve(struct thread_spans *threads, const struct sample_thread *sample)
{
    struct resolved resolved = {.thread = NULL};
    for (int kind = THREAD_ID_RUNTIME; kind >= THREAD_ID_OS && !resolved.thread; kind--)
        if (sample->has_id[kind])
            resolved.thread = find_thread(threads, hash_of((enum hash_kind)kind, sample->instance,
                                                           (uint64_t)sample->id[kind]));
    if (resolved.thread || sample->has_id[THREAD_ID_RUNTIME] || sample->name.size == 0)
        return resolved;
    resolved.name = find_name(threads, hash_of_name(sample->instance, sample->name));
    if (resolved.name && resolved.name->threads == 1)
        resolved.thread = threads->items[resolved.name->number];
    resolved.is_ambiguous = resolved.name && resolved.name->threads > 1;
    return resolved;
}

static void answer(const struct resolved *resolved, int64_t offset_ns, struct thread_ask *ask)
{
    ask->answer = resolved->is_ambiguous ? THREAD_AMBIGUOUS : THREAD_NO_SPAN;
    if (!resolved->thread)
        return;
    if (resolved->name && !is_of_one_thread(resolved->name, ask->thread, ask->time_ns)) {
        ask->answer = THREAD_AMBIGUOUS;
        return;
    }
    bool hops;
    const struct timeline_span *span =
        timeline_find(&resolved->thread->timeline, ask->time_ns + (uint64_t)offset_ns, &hops);
    ask->answer = span ? THREAD_SPAN : hops ? THREAD_AMBIGUOUS : THREAD_NO_SPAN;
    if (span)
        ask->key = span->key;
}

/* Returns the clock of a process. If it has none: NULL, or with `create` a new one. */
static struct clock *clock_of(struct thread_spans *threads, uint16_t instance, bool create)
{
    struct clock **clock = &threads->clocks[instance % CLOCKS_MAX];
    if (*clock && (*clock)->instance == instance)
        return *clock;
    if (!create)
        return NULL;
    free(*clock);
    *clock = memory_zalloc(sizeof **clock);
    (*clock)->instance = instance;
    return *clock;
}

/* Questions are answered in parts, because others want the lock, too. */
enum { ASKS_TOGETHER = 256 };

/* Lets some of the samples vote for the offset of their process's clock. */
static void vote(struct thread_spans *threads, const struct thread_ask *asks, size_t count)
{
    size_t step = count / ASKS_TOGETHER + 1;
    for (size_t i = 0; i < count; i += step) {
        const struct thread *thread = resolve(threads, asks[i].thread).thread;
        if (!thread)
            continue;
        struct clock *clock = clock_of(threads, asks[i].thread->instance, true);
        clock->is_used = true;
        clock_offset_vote(&clock->offset, &thread->timeline, asks[i].time_ns);
    }
}

static void answer_some(struct thread_spans *threads, struct thread_ask *asks, size_t count)
{
    struct resolved resolved = {.thread = NULL};
    int64_t offset_ns = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || asks[i].thread != asks[i - 1].thread) {
            struct clock *clock = clock_of(threads, asks[i].thread->instance, false);
            offset_ns = clock ? clock_offset_ns(&clock->offset) : 0;
            resolved = resolve(threads, asks[i].thread);
        }
        answer(&resolved, offset_ns, &asks[i]);
    }
}

void thread_spans_find(struct thread_spans *threads, struct thread_ask *asks, size_t count)
{
    pthread_mutex_lock(&threads->lock);
    vote(threads, asks, count);
    for (size_t i = 0; i < count; i += ASKS_TOGETHER) {
        pthread_mutex_unlock(&threads->lock);
        pthread_mutex_lock(&threads->lock);
        answer_some(threads, asks + i, count - i < ASKS_TOGETHER ? count - i : ASKS_TOGETHER);
    }
    pthread_mutex_unlock(&threads->lock);
}

void thread_spans_pair(struct thread_spans *threads, uint16_t instance, int64_t os_id,
                       int64_t runtime_id)
{
    uint64_t os = hash_of(HASH_OS, instance, (uint64_t)os_id);
    pthread_mutex_lock(&threads->lock);
    struct thread *thread =
        find_thread(threads, hash_of(HASH_RUNTIME, instance, (uint64_t)runtime_id));
    struct thread *before = thread ? find_thread(threads, os) : NULL;
    if (thread && before != thread && (!before || before->os_id == os)) {
        if (before)
            forget_os_id(threads, before); /* the operating system gave its id to another thread */
        forget_os_id(threads, thread);
        thread->os_id = os;
        add_to(&threads->by_id, os, thread->number);
    }
    pthread_mutex_unlock(&threads->lock);
}

/* ---- the window ---- */

static bool is_expired(const struct thread *thread, uint64_t now_ns, uint64_t window_ns)
{
    return thread->timeline.count > 0 && thread->timeline.blocks[0].arrived_ns + window_ns < now_ns;
}

static void sweep_clocks(struct thread_spans *threads, uint64_t now_ns, uint64_t window_ns)
{
    for (uint32_t i = 0; i < CLOCKS_MAX; i++) {
        struct clock *clock = threads->clocks[i];
        if (!clock)
            continue;
        if (clock->is_used)
            clock->used_ns = now_ns;
        clock->is_used = false;
        if (clock->used_ns + window_ns < now_ns) {
            free(clock);
            threads->clocks[i] = NULL;
        }
    }
}

void thread_spans_sweep(struct thread_spans *threads, uint64_t now_ns, uint64_t window_ns)
{
    pthread_mutex_lock(&threads->lock);
    for (uint32_t i = 0; i < threads->used; i++) {
        struct thread *thread = threads->items[i];
        if (!thread)
            continue;
        while (is_expired(thread, now_ns, window_ns))
            drop_earliest(threads, thread);
        if (thread->timeline.count == 0)
            free_thread(threads, thread);
    }
    sweep_clocks(threads, now_ns, window_ns);
    pthread_mutex_unlock(&threads->lock);
}

uint64_t thread_spans_count(struct thread_spans *threads)
{
    pthread_mutex_lock(&threads->lock);
    uint64_t count = threads->count;
    pthread_mutex_unlock(&threads->lock);
    return count;
}

static size_t table_memory(const struct index_table *table)
{
    return table->slots ? ((size_t)table->mask + 1) * sizeof *table->slots : 0;
}

size_t thread_spans_memory(struct thread_spans *threads)
{
    pthread_mutex_lock(&threads->lock);
    size_t size = sizeof *threads + table_memory(&threads->by_id) + table_memory(&threads->by_name);
    size += threads->capacity * sizeof(struct thread *);
    size += threads->names_capacity * sizeof *threads->names;
    for (uint32_t i = 0; i < threads->used; i++)
        if (threads->items[i])
            size += sizeof(struct thread) + timeline_memory(&threads->items[i]->timeline);
    for (uint32_t i = 0; i < CLOCKS_MAX; i++)
        size += threads->clocks[i] ? sizeof(struct clock) : 0;
    pthread_mutex_unlock(&threads->lock);
    return size;
}
