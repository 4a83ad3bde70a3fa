#include "core/data/left_samples.h"

#include "core/base/container_of.h"
#include "core/base/index_table.h"
#include "core/base/list.h"
#include "core/base/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    BLOCK_TIMES_FIRST = 8,
    BLOCK_TIMES = 64,
    SAME_HASH_MAX = 8, /* threads that one id or name finds */
    VAIN_MAX = 8,      /* times of a thread are put back so often; then they are lost */
    PAGE_PROCESSES = 128,
    PAGES = 512,
    PARTS_OF_WINDOW = 8, /* a block has times that left within one of them */
};

/* Some times of a thread that count as the same. */
struct block {
    struct list_link link; /* of its owner */
    struct list_link of_thread;
    struct kept_thread *thread;
    struct profile_sums sums;
    uint64_t arrived_ns; /* its first one, since 1970 */
    uint64_t left_ns;    /* its first one; monotonic */
    uint64_t from_ns;    /* no time is before, or after `to_ns` */
    uint64_t to_ns;
    uint32_t count;
    uint32_t capacity;
    struct left_time *times;
};

struct kept_thread {
    struct list_link empty; /* of its owner, if it has no blocks */
    struct list blocks;     /* oldest first */
    uint32_t number;
    uint32_t count; /* of times */
    struct span_source source;
    struct sample_thread thread; /* its name is below */
    uint8_t name[THREAD_NAME_COMPARED];
    bool has_spans;                     /* spans of it were known */
    uint8_t vain;                       /* how often times were put back */
    uint64_t hash;                      /* of all that identifies it */
    uint64_t hashes[THREAD_HASH_KINDS]; /* under which it is found (thread_hash.h); 0: none */
    uint64_t newest_ns;                 /* no time is later */
    uint64_t lost_ns;                   /* the newest time that is not here any more; 0: none */
    uint64_t lost_at_ns;                /* when it was lost; monotonic */
    struct doubted_times doubts;
    uint64_t doubted_ns;    /* the newest one, by the clock of the spans */
    uint64_t doubted_at_ns; /* when the last one came; monotonic */
};

/* Read without the lock: pages stay until the end. */
struct process {
    _Atomic uint64_t reach_ns; /* no time of it is later, by the clock of its spans */
    _Atomic uint32_t watchers;
    uint64_t watched_from_ns; /* when the first span began that came since; UINT64_MAX: none */
    uint32_t threads;
    uint64_t lost_ns; /* the newest time, by the clock of its spans, of threads that were removed */
    uint64_t lost_at_ns;
    /* Likewise, of doubts: */
    _Atomic uint64_t doubted_ns;
    _Atomic uint64_t doubts_lost_ns;
    uint64_t doubts_lost_at_ns;
    _Atomic int64_t offset_ns; /* the last one that was noted */
};

#define OFFSET_CHANGE_NS INT64_C(250000000) /* of clocks that differ by seconds */

struct owner {
    uint64_t bytes;
    uint64_t doubt_bytes; /* of these, of doubts */
    struct list idle;     /* blocks of threads without spans, oldest first */
    struct list busy;     /* blocks of other threads */
    struct list empty;    /* threads without blocks */
};

struct left_samples {
    pthread_mutex_t lock;
    pthread_mutex_t taking;
    _Atomic uint64_t takings;
    size_t max_bytes;
    size_t bytes;
    uint64_t count;             /* of times */
    struct kept_thread **items; /* by number; NULL: it is free */
    uint32_t capacity;
    uint32_t used;
    uint32_t likely_free; /* the first number that may be free */
    struct index_table by_identity;
    struct index_table by_hash;
    _Atomic(struct process *) pages[PAGES];
    uint32_t owner_count;                   /* the largest number of an owner so far, plus 1 */
    struct owner *owners[SPAN_SOURCES_MAX]; /* NULL: new */
};

_Static_assert(PAGE_PROCESSES *PAGES == UINT16_MAX + 1, "a place for each process");

struct left_samples *left_samples_new(size_t max_bytes)
{
    struct left_samples *left = memory_zalloc(sizeof *left);
    pthread_mutex_init(&left->lock, NULL);
    pthread_mutex_init(&left->taking, NULL);
    left->max_bytes = max_bytes;
    return left;
}

/* ---- processes ---- */

static struct process *process_of(struct left_samples *left, uint16_t instance)
{
    struct process *page =
        atomic_load_explicit(&left->pages[instance / PAGE_PROCESSES], memory_order_acquire);
    return page ? &page[instance % PAGE_PROCESSES] : NULL;
}

/* The same; with the lock, so that it has a page afterwards. */
static struct process *open_process(struct left_samples *left, uint16_t instance)
{
    if (!process_of(left, instance))
        atomic_store_explicit(&left->pages[instance / PAGE_PROCESSES],
                              memory_zalloc(PAGE_PROCESSES * sizeof(struct process)),
                              memory_order_release);
    return process_of(left, instance);
}

static uint64_t moved(uint64_t time_ns, int64_t offset_ns)
{
    uint64_t result = time_ns + (uint64_t)offset_ns;
    bool wraps = offset_ns < 0 ? result > time_ns : result < time_ns;
    return !wraps ? result : offset_ns < 0 ? 0 : UINT64_MAX;
}

/* Moves a time of a process on. */
static void raise_to(_Atomic uint64_t *latest_ns, uint64_t time_ns)
{
    if (time_ns > atomic_load_explicit(latest_ns, memory_order_relaxed))
        atomic_store_explicit(latest_ns, time_ns, memory_order_relaxed);
}

static void reach(struct process *process, uint64_t time_ns)
{
    raise_to(&process->reach_ns, time_ns);
}

void left_samples_watch(struct left_samples *left, uint16_t instance)
{
    pthread_mutex_lock(&left->lock);
    struct process *process = open_process(left, instance);
    if (atomic_fetch_add(&process->watchers, 1) == 0)
        process->watched_from_ns = UINT64_MAX;
    pthread_mutex_unlock(&left->lock);
}

uint64_t left_samples_unwatch(struct left_samples *left, uint16_t instance)
{
    pthread_mutex_lock(&left->lock);
    struct process *process = process_of(left, instance);
    assert(process && atomic_load(&process->watchers) > 0);
    uint64_t from_ns = process->watched_from_ns;
    atomic_fetch_sub(&process->watchers, 1);
    pthread_mutex_unlock(&left->lock);
    return from_ns;
}

bool left_samples_reach(struct left_samples *left, const struct thread_span *span)
{
    struct process *process = process_of(left, span->instance);
    if (!process)
        return false;
    if (atomic_load(&process->watchers) > 0) {
        pthread_mutex_lock(&left->lock);
        if (span->start_ns < process->watched_from_ns)
            process->watched_from_ns = span->start_ns;
        pthread_mutex_unlock(&left->lock);
    }
    return span->start_ns <= atomic_load_explicit(&process->reach_ns, memory_order_relaxed);
}

/* Notes that spans which began up to a time may lack samples, whatever their threads. */
static void doubt_process(struct process *process, uint64_t time_ns, uint64_t now_ns)
{
    raise_to(&process->doubts_lost_ns, time_ns);
    process->doubts_lost_at_ns = now_ns;
}

static bool is_same_offset(int64_t a, int64_t b)
{
    return a - b < OFFSET_CHANGE_NS && b - a < OFFSET_CHANGE_NS;
}

void left_samples_note_offset(struct left_samples *left, uint16_t instance, int64_t offset_ns,
                              uint64_t time_ns, uint64_t now_ns)
{
    struct process *process = process_of(left, instance);
    if (!process ||
        is_same_offset(offset_ns, atomic_load_explicit(&process->offset_ns, memory_order_relaxed)))
        return;
    pthread_mutex_lock(&left->lock);
    atomic_store_explicit(&process->offset_ns, offset_ns, memory_order_relaxed);
    doubt_process(process, time_ns, now_ns);
    pthread_mutex_unlock(&left->lock);
}

/* ---- threads ---- */

static void charge(struct left_samples *left, uint16_t owner, size_t bytes)
{
    left->bytes += bytes;
    left->owners[owner]->bytes += bytes;
}

static void release(struct left_samples *left, uint16_t owner, size_t bytes)
{
    assert(left->bytes >= bytes && left->owners[owner]->bytes >= bytes);
    left->bytes -= bytes;
    left->owners[owner]->bytes -= bytes;
}

static void add_to(struct index_table *table, uint64_t hash, uint32_t number)
{
    index_table_grow(table, 1);
    index_table_add_new(table, (uint32_t)hash, number);
}

static uint64_t hash_of(const struct span_source *source, const struct sample_thread *thread)
{
    uint64_t parts[6] = {source->scope, (uint64_t)source->number << 16 | source->owner,
                         (uint64_t)thread->sampler << 32 | (uint64_t)thread->instance << 2};
    for (unsigned kind = 0; kind <= THREAD_ID_RUNTIME; kind++) {
        parts[2] |= (uint64_t)thread->has_id[kind] << kind;
        parts[3 + kind] = thread->has_id[kind] ? (uint64_t)thread->id[kind] : 0;
    }
    parts[5] = hash_bytes(thread_name_compared(thread->name));
    return hash_bytes(slice_of(parts, sizeof parts));
}

static bool is_same_thread(const struct sample_thread *a, const struct sample_thread *b)
{
    for (unsigned kind = 0; kind <= THREAD_ID_RUNTIME; kind++)
        if (a->has_id[kind] != b->has_id[kind] || (a->has_id[kind] && a->id[kind] != b->id[kind]))
            return false;
    return a->instance == b->instance && a->sampler == b->sampler &&
           slice_equal(thread_name_compared(a->name), thread_name_compared(b->name));
}

static struct kept_thread *find_thread(struct left_samples *left, const struct span_source *source,
                                       const struct sample_thread *thread)
{
    if (!left->by_identity.slots)
        return NULL;
    uint64_t hash = hash_of(source, thread);
    struct index_probe probe = index_table_probe(&left->by_identity, (uint32_t)hash);
    for (uint32_t number; index_table_next(&left->by_identity, &probe, &number);) {
        struct kept_thread *kept = left->items[number];
        if (kept->hash == hash && span_source_equal(&kept->source, source) &&
            is_same_thread(&kept->thread, thread))
            return kept;
    }
    return NULL;
}

static bool has_hash(const struct kept_thread *kept, uint64_t hash)
{
    for (unsigned i = 0; i < THREAD_HASH_KINDS; i++)
        if (kept->hashes[i] == hash)
            return true;
    return false;
}

/* Returns the threads that an id or a name finds. */
static unsigned find_by_hash(const struct left_samples *left, uint64_t hash,
                             struct kept_thread *found[SAME_HASH_MAX])
{
    unsigned count = 0;
    if (hash == 0 || !left->by_hash.slots)
        return 0;
    struct index_probe probe = index_table_probe(&left->by_hash, (uint32_t)hash);
    for (uint32_t number;
         count < SAME_HASH_MAX && index_table_next(&left->by_hash, &probe, &number);)
        if (has_hash(left->items[number], hash))
            found[count++] = left->items[number];
    return count;
}

/* Lets a hash find the thread, if it does not find too many. */
static void let_find(struct left_samples *left, struct kept_thread *kept, unsigned place,
                     uint64_t hash)
{
    struct kept_thread *found[SAME_HASH_MAX];
    if (find_by_hash(left, hash, found) == SAME_HASH_MAX)
        return;
    kept->hashes[place] = hash;
    add_to(&left->by_hash, hash, kept->number);
}

/* As thread_spans finds it: samples with an id of the runtime are not found by their name, those of
 * another pid namespace not by the id of the operating system. */
static void let_names_find(struct left_samples *left, struct kept_thread *kept)
{
    const struct sample_thread *thread = &kept->thread;
    for (unsigned kind = 0; kind <= THREAD_ID_RUNTIME; kind++)
        if (thread->has_id[kind] && (kind == THREAD_ID_RUNTIME || thread->sampler == 0))
            let_find(left, kept, kind,
                     thread_hash((enum thread_hash_kind)kind, thread->instance,
                                 (uint64_t)thread->id[kind]));
    if (thread->has_id[THREAD_ID_RUNTIME])
        return;
    if (thread->has_id[THREAD_ID_OS])
        let_find(
            left, kept, THREAD_HASH_MATCHED,
            thread_hash(THREAD_HASH_MATCHED, thread->instance, (uint64_t)thread->id[THREAD_ID_OS]));
    if (thread->name.size > 0)
        let_find(left, kept, THREAD_HASH_NAME, thread_hash_name(thread->instance, thread->name));
    if (thread->name.size > 0 && !thread->has_id[THREAD_ID_OS])
        let_find(left, kept, THREAD_HASH_NAMED,
                 thread_hash_of_name(THREAD_HASH_NAMED, thread->instance, thread->name));
}

static uint32_t take_number(struct left_samples *left)
{
    while (left->likely_free < left->used && left->items[left->likely_free])
        left->likely_free++;
    uint32_t number = left->likely_free;
    if (number == left->capacity) {
        left->capacity = number ? number * 2 : 64;
        left->items = memory_grow(left->items, left->capacity, sizeof(struct kept_thread *));
    }
    if (number == left->used)
        left->used++;
    return number;
}

static void open_owner(struct left_samples *left, uint16_t owner)
{
    assert(owner < SPAN_SOURCES_MAX);
    if (!left->owners[owner])
        left->owners[owner] = memory_zalloc(sizeof *left->owners[owner]);
    if (owner >= left->owner_count)
        left->owner_count = (uint32_t)owner + 1;
}

static struct kept_thread *new_thread(struct left_samples *left, const struct span_source *source,
                                      const struct sample_thread *thread)
{
    struct kept_thread *kept = memory_zalloc(sizeof *kept);
    struct slice name = thread_name_compared(thread->name);
    kept->number = take_number(left);
    kept->source = *source;
    kept->thread = *thread;
    if (name.size > 0)
        memcpy(kept->name, name.data, name.size);
    kept->thread.name = slice_of(kept->name, name.size);
    kept->hash = hash_of(source, thread);
    left->items[kept->number] = kept;
    add_to(&left->by_identity, kept->hash, kept->number);
    let_names_find(left, kept);
    open_owner(left, source->owner);
    charge(left, source->owner, sizeof *kept);
    list_append(&left->owners[source->owner]->empty, &kept->empty);
    open_process(left, thread->instance)->threads++;
    return kept;
}

static struct kept_thread *open_thread(struct left_samples *left, const struct span_source *source,
                                       const struct sample_thread *thread)
{
    struct kept_thread *kept = find_thread(left, source, thread);
    return kept ? kept : new_thread(left, source, thread);
}

/* ---- doubts ---- */

static void charge_doubts(struct left_samples *left, const struct kept_thread *kept,
                          uint32_t capacity_before)
{
    size_t more = (kept->doubts.capacity - capacity_before) * sizeof *kept->doubts.ranges;
    left->owners[kept->source.owner]->doubt_bytes += more;
    charge(left, kept->source.owner, more);
}

static void forget_doubts(struct left_samples *left, struct kept_thread *kept)
{
    size_t bytes = kept->doubts.capacity * sizeof *kept->doubts.ranges;
    struct owner *owner = left->owners[kept->source.owner];
    assert(owner->doubt_bytes >= bytes);
    owner->doubt_bytes -= bytes;
    release(left, kept->source.owner, bytes);
    doubted_times_deinit(&kept->doubts);
}

/* Its process remembers them as long as other things that are lost. */
static void lose_doubts(struct left_samples *left, struct kept_thread *kept, uint64_t now_ns)
{
    if (kept->doubts.count == 0)
        return;
    doubt_process(process_of(left, kept->thread.instance), kept->doubted_ns, now_ns);
    kept->doubted_ns = 0;
    forget_doubts(left, kept);
}

/* Doubts about one thread. */
struct new_doubts {
    const struct time_range *ranges;
    uint32_t count;
    uint64_t newest_ns; /* by the clock of the spans */
    bool by_name;       /* only the name of the thread tells which one it is */
    uint64_t now_ns;
};

static void add_doubts(struct left_samples *left, struct kept_thread *kept,
                       const struct new_doubts *doubts)
{
    uint32_t capacity = kept->doubts.capacity;
    for (uint32_t i = 0; i < doubts->count; i++)
        doubted_times_add(&kept->doubts, doubts->ranges[i]);
    if (doubts->newest_ns > kept->doubted_ns)
        kept->doubted_ns = doubts->newest_ns;
    kept->doubted_at_ns = doubts->now_ns;
    charge_doubts(left, kept, capacity);
}

/* Adds doubts about a thread, and if need be about all threads of its name. */
static void doubt_thread(struct left_samples *left, struct kept_thread *kept,
                         const struct new_doubts *doubts)
{
    struct sample_thread named = {.name = kept->thread.name, .instance = kept->thread.instance};
    add_doubts(left, kept, doubts);
    if (doubts->by_name && named.name.size > 0 && kept->thread.has_id[THREAD_ID_OS])
        add_doubts(left, open_thread(left, &kept->source, &named), doubts);
    raise_to(&process_of(left, kept->thread.instance)->doubted_ns, doubts->newest_ns);
}

/* Frees a thread without blocks. */
static void free_thread(struct left_samples *left, struct kept_thread *kept)
{
    struct process *process = process_of(left, kept->thread.instance);
    assert(kept->count == 0 && kept->blocks.count == 0 && process && process->threads > 0);
    process->threads--;
    if (process->threads == 0) {
        atomic_store_explicit(&process->reach_ns, process->lost_ns, memory_order_relaxed);
        atomic_store_explicit(&process->doubted_ns, 0, memory_order_relaxed);
    }
    forget_doubts(left, kept);
    for (unsigned i = 0; i < THREAD_HASH_KINDS; i++)
        if (kept->hashes[i] != 0)
            index_table_remove(&left->by_hash, (uint32_t)kept->hashes[i], kept->number);
    index_table_remove(&left->by_identity, (uint32_t)kept->hash, kept->number);
    list_remove(&left->owners[kept->source.owner]->empty, &kept->empty);
    left->items[kept->number] = NULL;
    if (kept->number < left->likely_free)
        left->likely_free = kept->number;
    release(left, kept->source.owner, sizeof *kept);
    free(kept);
}

/* ---- blocks ---- */

static size_t block_bytes(const struct block *block)
{
    return sizeof *block + block->capacity * sizeof *block->times;
}

static struct list *list_of(struct left_samples *left, const struct kept_thread *kept)
{
    struct owner *owner = left->owners[kept->source.owner];
    return kept->has_spans ? &owner->busy : &owner->idle;
}

static struct block *new_block(struct left_samples *left, struct kept_thread *kept,
                               const struct profile_sums *sums)
{
    struct block *block = memory_zalloc(sizeof *block);
    block->thread = kept;
    block->sums = *sums;
    block->from_ns = UINT64_MAX;
    block->capacity = BLOCK_TIMES_FIRST;
    block->times = memory_array(block->capacity, sizeof *block->times);
    if (kept->blocks.count == 0)
        list_remove(&left->owners[kept->source.owner]->empty, &kept->empty);
    list_append(list_of(left, kept), &block->link);
    list_append(&kept->blocks, &block->of_thread);
    charge(left, kept->source.owner, block_bytes(block));
    return block;
}

/* It may be out of its lists already. */
static void free_block(struct left_samples *left, struct block *block)
{
    struct kept_thread *kept = block->thread;
    assert(kept->count >= block->count && left->count >= block->count);
    kept->count -= block->count;
    left->count -= block->count;
    release(left, kept->source.owner, block_bytes(block));
    if (block->link.list)
        list_remove(block->link.list, &block->link);
    if (block->of_thread.list)
        list_remove(&kept->blocks, &block->of_thread);
    if (kept->blocks.count == 0) {
        kept->newest_ns = 0;
        list_append(&left->owners[kept->source.owner]->empty, &kept->empty);
    }
    free(block->times);
    free(block);
}

static void note_lost(struct kept_thread *kept, uint64_t time_ns, uint64_t now_ns)
{
    if (time_ns > kept->lost_ns)
        kept->lost_ns = time_ns;
    kept->lost_at_ns = now_ns;
}

static void lose_block(struct left_samples *left, struct block *block, uint64_t now_ns)
{
    note_lost(block->thread, block->to_ns, now_ns);
    free_block(left, block);
}

static bool are_same_sums(const struct profile_sums *a, const struct profile_sums *b)
{
    return a->counts_samples == b->counts_samples && a->counts_values == b->counts_values &&
           a->type_position == b->type_position && a->cpu_per_value == b->cpu_per_value;
}

/* When something is added. */
struct adding {
    struct left_samples *left;
    uint64_t arrived_ns;
    uint64_t now_ns;
    uint64_t window_ns;
};

/* Returns a block of the thread with room. */
static struct block *open_block(const struct adding *adding, struct kept_thread *kept,
                                const struct profile_sums *sums)
{
    struct block *block =
        kept->blocks.last ? container_of(kept->blocks.last, struct block, of_thread) : NULL;
    if (block && block->count < BLOCK_TIMES && are_same_sums(&block->sums, sums) &&
        adding->now_ns - block->left_ns < adding->window_ns / PARTS_OF_WINDOW)
        return block;
    block = new_block(adding->left, kept, sums);
    block->arrived_ns = adding->arrived_ns;
    block->left_ns = adding->now_ns;
    return block;
}

static void reserve(struct left_samples *left, struct block *block, uint32_t more)
{
    uint32_t before = block->capacity;
    assert(block->count + more <= BLOCK_TIMES);
    while (block->capacity < block->count + more)
        block->capacity *= 2;
    if (block->capacity == before)
        return;
    charge(left, block->thread->source.owner, (block->capacity - before) * sizeof *block->times);
    block->times = memory_grow(block->times, block->capacity, sizeof *block->times);
}

/* Appends times for which the block has room. */
static void fill(struct left_samples *left, struct block *block, const struct left_time *times,
                 uint32_t count)
{
    uint64_t from_ns = block->from_ns, to_ns = block->to_ns;
    reserve(left, block, count);
    for (uint32_t i = 0; i < count; i++) {
        from_ns = times[i].time_ns < from_ns ? times[i].time_ns : from_ns;
        to_ns = times[i].time_ns > to_ns ? times[i].time_ns : to_ns;
        block->times[block->count + i] = times[i];
    }
    block->from_ns = from_ns;
    block->to_ns = to_ns;
    block->count += count;
    block->thread->count += count;
    left->count += count;
    if (to_ns > block->thread->newest_ns)
        block->thread->newest_ns = to_ns;
}

static void add_times(const struct adding *adding, struct kept_thread *kept,
                      const struct profile_sums *sums, const struct left_time *times,
                      uint32_t count)
{
    for (uint32_t some; count > 0; times += some, count -= some) {
        if (kept->count >= LEFT_TIMES_OF_THREAD)
            lose_block(adding->left, container_of(kept->blocks.first, struct block, of_thread),
                       adding->now_ns);
        struct block *block = open_block(adding, kept, sums);
        some = BLOCK_TIMES - block->count;
        some = some < count ? some : count;
        fill(adding->left, block, times, some);
    }
}

/* ---- the limit ---- */

static struct owner *owner_of_most(struct left_samples *left)
{
    struct owner *most = NULL;
    for (uint32_t i = 0; i < left->owner_count; i++)
        if (left->owners[i] && (!most || left->owners[i]->bytes > most->bytes))
            most = left->owners[i];
    return most;
}

/* Its process remembers what it has lost. */
static void lose_thread(struct left_samples *left, struct kept_thread *kept, uint64_t now_ns)
{
    struct process *process = process_of(left, kept->thread.instance);
    uint64_t reach_ns = atomic_load_explicit(&process->reach_ns, memory_order_relaxed);
    if (kept->lost_ns > 0) {
        process->lost_ns = reach_ns;
        process->lost_at_ns = now_ns;
    }
    lose_doubts(left, kept, now_ns);
    free_thread(left, kept);
}

/* They have half of the room of their owner at most. */
static bool has_too_many_doubts(const struct owner *owner)
{
    return owner->empty.first && owner->doubt_bytes > owner->bytes / 2;
}

static void shrink(struct left_samples *left, uint64_t now_ns)
{
    while (left->bytes > left->max_bytes) {
        struct owner *owner = owner_of_most(left);
        struct list *blocks = owner->idle.first ? &owner->idle : &owner->busy;
        if (blocks->first && !has_too_many_doubts(owner))
            lose_block(left, container_of(blocks->first, struct block, link), now_ns);
        else
            lose_thread(left, container_of(owner->empty.first, struct kept_thread, empty), now_ns);
    }
}

/* ---- adding ---- */

static void doubt_left(const struct adding *adding, struct kept_thread *kept,
                       const struct left_thread *thread)
{
    struct new_doubts doubts = {.ranges = thread->doubts,
                                .count = thread->doubt_count,
                                .by_name = thread->doubts_name,
                                .now_ns = adding->now_ns};
    for (uint32_t i = 0; i < thread->doubt_count; i++)
        if (thread->doubts[i].end_ns > doubts.newest_ns)
            doubts.newest_ns = thread->doubts[i].end_ns;
    doubts.newest_ns = moved(doubts.newest_ns, thread->offset_ns);
    doubt_thread(adding->left, kept, &doubts);
}

static void add_thread(const struct adding *adding, const struct left_thread *thread)
{
    struct process *process = open_process(adding->left, thread->thread.instance);
    struct kept_thread *kept = open_thread(adding->left, &thread->source, &thread->thread);
    kept->has_spans |= thread->has_spans;
    for (const struct left_run *run = thread->runs; run; run = run->next)
        add_times(adding, kept, run->sums, run->times, run->count);
    reach(process, moved(kept->newest_ns, thread->offset_ns));
    if (thread->doubt_count > 0)
        doubt_left(adding, kept, thread);
    if (thread->lost_ns == 0)
        return;
    note_lost(kept, thread->lost_ns, adding->now_ns);
    reach(process, moved(thread->lost_ns, thread->offset_ns));
}

void left_samples_add(struct left_samples *left, const struct left_thread *threads, uint32_t count,
                      uint64_t arrived_ns, uint64_t now_ns, uint64_t window_ns)
{
    struct adding adding = {
        .left = left, .arrived_ns = arrived_ns, .now_ns = now_ns, .window_ns = window_ns};
    pthread_mutex_lock(&left->lock);
    for (uint32_t i = 0; i < count; i++)
        add_thread(&adding, &threads[i]);
    shrink(left, now_ns);
    pthread_mutex_unlock(&left->lock);
}

/* ---- taking ---- */

void left_samples_begin_taking(struct left_samples *left)
{
    pthread_mutex_lock(&left->taking);
}

void left_samples_end_taking(struct left_samples *left)
{
    atomic_fetch_add(&left->takings, 1);
    pthread_mutex_unlock(&left->taking);
}

uint64_t left_samples_takings(struct left_samples *left)
{
    return atomic_load(&left->takings);
}

/* Times of one thread; both ends belong to it. */
struct range {
    uint32_t thread;
    uint64_t from_ns;
    uint64_t to_ns;
};

struct taking {
    struct left_samples *left;
    struct arena *arena;
    struct range *ranges;
    uint32_t range_count;
    uint32_t range_capacity;
    struct left_taken *out;
};

static void add_range(struct taking *taking, const struct kept_thread *kept, uint64_t from_ns,
                      uint64_t to_ns)
{
    if (kept->count == 0 || kept->newest_ns < from_ns)
        return;
    taking->ranges = arena_grow(taking->arena, taking->ranges, taking->range_count,
                                &taking->range_capacity, sizeof *taking->ranges);
    taking->ranges[taking->range_count++] = (struct range){kept->number, from_ns, to_ns};
}

static void ask(struct taking *taking, struct left_asker *asker)
{
    const struct thread_span *span = asker->span;
    uint64_t from_ns = moved(span->start_ns, -asker->handles.offset_ns);
    uint64_t to_ns = moved(span->end_ns, -asker->handles.offset_ns);
    const struct process *process = process_of(taking->left, span->instance);
    asker->lacks = process && process->lost_ns >= span->start_ns;
    for (unsigned i = 0; i < THREAD_HASH_KINDS; i++) {
        struct kept_thread *found[SAME_HASH_MAX];
        unsigned count = find_by_hash(taking->left, asker->handles.hashes[i], found);
        for (unsigned k = 0; k < count; k++) {
            asker->lacks |= found[k]->lost_ns >= from_ns;
            add_range(taking, found[k], from_ns, to_ns);
        }
    }
}

static int compare_ranges(const void *left, const void *right)
{
    const struct range *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

/* Sorts the ranges, and makes one of those that overlap. */
static void merge_ranges(struct taking *taking)
{
    struct range *ranges = taking->ranges;
    uint32_t count = 0;
    if (taking->range_count > 1)
        qsort(ranges, taking->range_count, sizeof *ranges, compare_ranges);
    for (uint32_t i = 0; i < taking->range_count; i++) {
        struct range *last = count > 0 ? &ranges[count - 1] : NULL;
        if (!last || last->thread != ranges[i].thread || ranges[i].from_ns > last->to_ns)
            ranges[count++] = ranges[i];
        else if (ranges[i].to_ns > last->to_ns)
            last->to_ns = ranges[i].to_ns;
    }
    taking->range_count = count;
}

/* Whether one of these ranges of a thread, which do not overlap, contains the time. */
static bool contains(const struct range *ranges, uint32_t count, uint64_t time_ns)
{
    uint32_t low = 0;
    while (low < count) {
        uint32_t middle = low + (count - low) / 2;
        if (ranges[middle].to_ns < time_ns)
            low = middle + 1;
        else if (ranges[middle].from_ns > time_ns)
            count = middle;
        else
            return true;
    }
    return false;
}

static void reserve_taken(struct taking *taking, uint32_t more)
{
    struct left_taken *out = taking->out;
    if (out->count + more <= out->capacity)
        return;
    uint32_t capacity = (out->count + more) * 2;
    struct left_taken_time *times = arena_alloc(taking->arena, capacity * sizeof *times);
    struct thread_ask *asks = arena_alloc(taking->arena, capacity * sizeof *asks);
    if (out->count > 0) {
        memcpy(times, out->times, out->count * sizeof *times);
        memcpy(asks, out->asks, out->count * sizeof *asks);
    }
    *out = (struct left_taken){
        .times = times, .asks = asks, .count = out->count, .capacity = capacity};
}

static const struct left_origin *origin_of(const struct block *block, struct arena *arena)
{
    struct left_origin *origin = arena_alloc(arena, sizeof *origin);
    *origin = (struct left_origin){
        .sums = block->sums, .source = block->thread->source, .arrived_ns = block->arrived_ns};
    return origin;
}

/* Takes the times of a block that are in these ranges. */
static void take_from(struct taking *taking, struct block *block, const struct range *ranges,
                      uint32_t count, const struct sample_thread *thread)
{
    const struct left_origin *origin = origin_of(block, taking->arena);
    struct left_taken *out = taking->out;
    uint32_t stay = 0;
    bool takes = false; /* the time before, too */
    reserve_taken(taking, block->count);
    for (uint32_t i = 0; i < block->count; i++) {
        struct left_time time = block->times[i];
        if (!contains(ranges, count, time.time_ns)) {
            block->times[stay++] = time;
            takes = false;
            continue;
        }
        if (!takes)
            time.value &= ~UINT64_C(1);
        out->times[out->count] = (struct left_taken_time){time, origin};
        out->asks[out->count].thread = thread;
        out->asks[out->count++].time_ns = time.time_ns;
        takes = true;
    }
    block->thread->count -= block->count - stay;
    taking->left->count -= block->count - stay;
    block->count = stay;
    if (stay == 0)
        free_block(taking->left, block);
}

static const struct sample_thread *copy_thread(const struct kept_thread *kept, struct arena *arena)
{
    struct sample_thread *copy = arena_alloc(arena, sizeof *copy);
    *copy = kept->thread;
    copy->name = arena_copy(arena, kept->thread.name);
    return copy;
}

/* Takes what is in these ranges of a thread. */
static void take_ranges(struct taking *taking, const struct range *ranges, uint32_t count)
{
    struct kept_thread *kept = taking->left->items[ranges->thread];
    const struct sample_thread *thread = copy_thread(kept, taking->arena);
    for (struct list_link *link = kept->blocks.first, *next; link; link = next) {
        struct block *block = container_of(link, struct block, of_thread);
        next = link->next;
        if (block->to_ns >= ranges->from_ns && block->from_ns <= ranges[count - 1].to_ns)
            take_from(taking, block, ranges, count, thread);
    }
}

static void take_all(struct taking *taking)
{
    merge_ranges(taking);
    for (uint32_t i = 0, count; i < taking->range_count; i += count) {
        count = 1;
        while (i + count < taking->range_count &&
               taking->ranges[i + count].thread == taking->ranges[i].thread)
            count++;
        take_ranges(taking, taking->ranges + i, count);
    }
}

void left_samples_take(struct left_samples *left, struct left_asker *askers, size_t count,
                       struct arena *arena, struct left_taken *out)
{
    struct taking taking = {.left = left, .arena = arena, .out = out};
    *out = (struct left_taken){.count = 0};
    pthread_mutex_lock(&left->lock);
    for (size_t i = 0; i < count; i++)
        ask(&taking, &askers[i]);
    take_all(&taking);
    pthread_mutex_unlock(&left->lock);
}

void left_samples_take_threads(struct left_samples *left, const struct left_thread *threads,
                               uint32_t count, uint64_t from_ns, struct arena *arena,
                               struct left_taken *out)
{
    struct taking taking = {.left = left, .arena = arena, .out = out};
    *out = (struct left_taken){.count = 0};
    pthread_mutex_lock(&left->lock);
    for (uint32_t i = 0; i < count; i++) {
        struct kept_thread *kept = find_thread(left, &threads[i].source, &threads[i].thread);
        if (kept)
            add_range(&taking, kept, moved(from_ns, -threads[i].offset_ns), UINT64_MAX);
    }
    take_all(&taking);
    pthread_mutex_unlock(&left->lock);
}

/* Notes a time that may be of several spans. It was within the reach of its process. */
static void doubt_taken(struct adding *adding, const struct left_taken *taken, uint32_t i)
{
    const struct thread_ask *ask = &taken->asks[i];
    struct time_range doubt = {ask->time_ns, ask->time_ns};
    struct kept_thread *kept =
        open_thread(adding->left, &taken->times[i].origin->source, ask->thread);
    struct process *process = process_of(adding->left, ask->thread->instance);
    struct new_doubts doubts = {.ranges = &doubt,
                                .count = 1,
                                .newest_ns =
                                    atomic_load_explicit(&process->reach_ns, memory_order_relaxed),
                                .by_name = ask->by_name,
                                .now_ns = adding->now_ns};
    doubt_thread(adding->left, kept, &doubts);
}

/* Those of a thread that was asked for in vain too often are lost. */
static void put_back(struct adding *adding, const struct left_taken *taken, uint32_t i,
                     struct kept_thread *kept)
{
    if (kept->vain > VAIN_MAX) {
        note_lost(kept, taken->asks[i].time_ns, adding->now_ns);
        return;
    }
    const struct left_origin *origin = taken->times[i].origin;
    adding->arrived_ns = origin->arrived_ns;
    add_times(adding, kept, &origin->sums, &taken->times[i].time, 1);
}

void left_samples_put_back(struct left_samples *left, const struct left_taken *taken,
                           uint64_t now_ns, uint64_t window_ns)
{
    struct adding adding = {.left = left, .now_ns = now_ns, .window_ns = window_ns};
    const struct sample_thread *last = NULL;
    struct kept_thread *kept = NULL;
    pthread_mutex_lock(&left->lock);
    for (uint32_t i = 0; i < taken->count; i++) {
        const struct thread_ask *ask = &taken->asks[i];
        if (ask->answer == THREAD_AMBIGUOUS)
            doubt_taken(&adding, taken, i);
        if (ask->answer != THREAD_NO_SPAN)
            continue;
        if (!kept || ask->thread != last) {
            kept = open_thread(left, &taken->times[i].origin->source, ask->thread);
            if (kept->vain <= VAIN_MAX)
                kept->vain++;
        }
        last = ask->thread;
        put_back(&adding, taken, i, kept);
        reach(process_of(left, ask->thread->instance), kept->newest_ns);
    }
    shrink(left, now_ns);
    pthread_mutex_unlock(&left->lock);
}

/* ---- doubts of spans ---- */

bool left_samples_may_doubt(struct left_samples *left, uint16_t instance, uint64_t start_ns)
{
    struct process *process = process_of(left, instance);
    return process &&
           (start_ns <= atomic_load_explicit(&process->doubted_ns, memory_order_relaxed) ||
            start_ns <= atomic_load_explicit(&process->doubts_lost_ns, memory_order_relaxed));
}

static bool is_doubted(const struct left_samples *left, const struct left_asker *asker)
{
    struct time_range ran = {moved(asker->span->start_ns, -asker->handles.offset_ns),
                             moved(asker->span->end_ns, -asker->handles.offset_ns)};
    for (unsigned i = 0; i < THREAD_HASH_KINDS; i++) {
        struct kept_thread *found[SAME_HASH_MAX];
        unsigned count = find_by_hash(left, asker->handles.hashes[i], found);
        for (unsigned k = 0; k < count; k++)
            if (doubted_times_meet(&found[k]->doubts, ran))
                return true;
    }
    return false;
}

void left_samples_doubt(struct left_samples *left, struct left_asker *askers, size_t count)
{
    pthread_mutex_lock(&left->lock);
    for (size_t i = 0; i < count; i++) {
        const struct process *process = process_of(left, askers[i].span->instance);
        bool may_be_lost = process && askers[i].span->start_ns <= process->doubts_lost_ns;
        askers[i].lacks |= may_be_lost || is_doubted(left, &askers[i]);
    }
    pthread_mutex_unlock(&left->lock);
}

/* ---- the window ---- */

static void sweep_blocks(struct left_samples *left, struct list *blocks, uint64_t now_ns,
                         uint64_t window_ns)
{
    for (struct list_link *first; (first = list_pop(blocks));) {
        struct block *block = container_of(first, struct block, link);
        if (block->left_ns + window_ns >= now_ns) {
            list_prepend(blocks, first);
            return;
        }
        lose_block(left, block, now_ns);
    }
}

/* Threads remember for a window what they have lost. */
static void sweep_threads(struct left_samples *left, uint64_t now_ns, uint64_t window_ns)
{
    for (uint32_t i = 0; i < left->used; i++) {
        struct kept_thread *kept = left->items[i];
        bool remembers = kept && kept->lost_ns > 0 && kept->lost_at_ns + window_ns >= now_ns;
        if (kept && !remembers)
            kept->lost_ns = 0;
        if (kept && kept->doubted_at_ns + window_ns < now_ns)
            lose_doubts(left, kept, now_ns);
        if (kept && !remembers && kept->blocks.count == 0 && kept->doubts.count == 0)
            free_thread(left, kept);
    }
}

static void sweep_process(struct process *process, uint64_t now_ns, uint64_t window_ns)
{
    if (process->doubts_lost_ns != 0 && process->doubts_lost_at_ns + window_ns < now_ns)
        atomic_store_explicit(&process->doubts_lost_ns, 0, memory_order_relaxed);
    if (process->lost_ns == 0 || process->lost_at_ns + window_ns >= now_ns)
        return;
    process->lost_ns = 0;
    if (process->threads == 0)
        atomic_store_explicit(&process->reach_ns, 0, memory_order_relaxed);
}

static void sweep_processes(struct left_samples *left, uint64_t now_ns, uint64_t window_ns)
{
    for (uint32_t i = 0; i < PAGES; i++) {
        struct process *page = atomic_load_explicit(&left->pages[i], memory_order_relaxed);
        for (uint32_t k = 0; page && k < PAGE_PROCESSES; k++)
            sweep_process(&page[k], now_ns, window_ns);
    }
}

void left_samples_sweep(struct left_samples *left, uint64_t now_ns, uint64_t window_ns)
{
    pthread_mutex_lock(&left->lock);
    for (uint32_t i = 0; i < left->owner_count; i++) {
        if (!left->owners[i])
            continue;
        sweep_blocks(left, &left->owners[i]->idle, now_ns, window_ns);
        sweep_blocks(left, &left->owners[i]->busy, now_ns, window_ns);
    }
    sweep_threads(left, now_ns, window_ns);
    sweep_processes(left, now_ns, window_ns);
    pthread_mutex_unlock(&left->lock);
}

void left_samples_free(struct left_samples *left)
{
    if (!left)
        return;
    for (uint32_t i = 0; i < left->used; i++) {
        struct kept_thread *kept = left->items[i];
        if (!kept)
            continue;
        for (struct list_link *first; (first = list_pop(&kept->blocks));)
            free_block(left, container_of(first, struct block, of_thread));
        free_thread(left, kept);
    }
    assert(left->bytes == 0 && left->count == 0);
    for (uint32_t i = 0; i < PAGES; i++)
        free(atomic_load_explicit(&left->pages[i], memory_order_relaxed));
    for (uint32_t i = 0; i < left->owner_count; i++)
        free(left->owners[i]);
    pthread_mutex_destroy(&left->taking);
    pthread_mutex_destroy(&left->lock);
    free(left->by_identity.slots);
    free(left->by_hash.slots);
    free(left->items);
    free(left);
}

uint64_t left_samples_count(struct left_samples *left)
{
    pthread_mutex_lock(&left->lock);
    uint64_t count = left->count;
    pthread_mutex_unlock(&left->lock);
    return count;
}

size_t left_samples_memory(struct left_samples *left)
{
    pthread_mutex_lock(&left->lock);
    size_t size = sizeof *left + left->bytes + left->capacity * sizeof(struct kept_thread *);
    size += index_table_memory(&left->by_identity) + index_table_memory(&left->by_hash);
    for (uint32_t i = 0; i < PAGES; i++)
        if (atomic_load_explicit(&left->pages[i], memory_order_relaxed))
            size += PAGE_PROCESSES * sizeof(struct process);
    for (uint32_t i = 0; i < left->owner_count; i++)
        size += left->owners[i] ? sizeof *left->owners[i] : 0;
    pthread_mutex_unlock(&left->lock);
    return size;
}
