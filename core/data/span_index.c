#include "core/data/span_index.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/instances.h"
#include "core/data/left_samples.h"
#include "core/data/span_entries.h"
#include "core/data/span_trees.h"
#include "core/data/thread_spans.h"
#include "core/data/top_functions.h"

#include <assert.h>
#include <stddef.h>

/* Longer than a request that uses the number takes. */
#define SOURCE_IDLE_NS UINT64_C(60000000000)

enum {
    SHARDS_MAX = 32,       /* the bits of key_block.shards_used */
    SHARDS_PER_THREAD = 4, /* more of them mean fewer keys for each lock and look ahead */
    SHARD_SPANS_MIN = 2048,
    SET_BYTES_PER_SPAN = 192, /* if each span has a set of its own, with 100 bytes of values */
    FUNCTION_BYTES_PER_SPAN = 128,
    SPANS_PER_INSTANCE = 16,
    INSTANCES_MIN = 1024,
    SPANS_PER_THREAD_SPAN = 4,
    LEFT_BYTES_PER_SPAN = 32, /* two times of samples */
    LEFT_SPANS_MIN = 4096,
    BLOCK_KEYS = 512,
    PURGE_PER_KEY = 4, /* expired entries that an arrival removes */
    PURGE_PER_SWEEP = 2048,
};

_Static_assert((int)SPAN_INDEX_CANDIDATES_MAX == (int)SPAN_SHARD_SAME_ID, "all are returned");
const char *const span_index_eviction_names[] = {"full",  "memory",   "same_id", "crowded",
                                                 "share", "conflict", NULL};

/* Asserts that a struct begins with struct span_asker. */
#define IS_ASKED(type)                                                                             \
    _Static_assert(offsetof(type, key) == offsetof(struct span_asker, key) &&                      \
                       offsetof(type, source) == offsetof(struct span_asker, source),              \
                   "read as a span_asker")
IS_ASKED(struct span_put);
IS_ASKED(struct span_find);
IS_ASKED(struct profile_sight);

struct span_index {
    atomic_uint references;
    struct span_pages *pages;
    struct span_shard *shards;
    uint32_t shard_count; /* a power of two */
    struct span_sources *sources;
    struct span_sets *sets;
    struct instances *instances;
    struct thread_spans *threads;
    struct left_samples *left;
    struct span_trees *trees;        /* NULL: nobody needs them */
    struct top_functions *functions; /* likewise */
    struct span_index_common common;
};

/* Returns a power of two. */
static uint32_t shards_for(const struct span_index_options *options)
{
    uint32_t wanted = options->threads ? options->threads * SHARDS_PER_THREAD : SHARDS_MAX;
    uint32_t count = 1;
    while (count < SHARDS_MAX && count < wanted &&
           options->max_spans / 2 / count >= SHARD_SPANS_MIN)
        count *= 2;
    return count;
}

struct span_index *span_index_new(const struct span_index_options *options)
{
    assert(options->max_spans > 0 && options->type_count <= SPAN_INDEX_TYPES_MAX);
    struct span_index *index = aligned_alloc(64, sizeof *index);
    assert(index);
    memset(index, 0, sizeof *index);
    atomic_init(&index->references, 1);
    index->common.max_spans = options->max_spans;
    atomic_init(&index->common.window_ns, options->window_ns);
    index->common.totals_count = span_totals_count(options->type_count);
    if (options->sum_type >= 0 && (unsigned)options->sum_type < options->type_count)
        index->common.sum_place = 2 + 2 * (unsigned)options->sum_type;
    index->shard_count = shards_for(options);
    index->shards = aligned_alloc(64, index->shard_count * sizeof *index->shards);
    assert(index->shards);
    index->pages = span_pages_new();
    index->sources = span_sources_new();
    uint64_t instances = options->max_spans / SPANS_PER_INSTANCE;
    instances = instances < INSTANCES_MIN ? INSTANCES_MIN : instances;
    index->instances = instances_new(
        options->type_count + 1, instances < INSTANCES_MAX ? (uint32_t)instances : INSTANCES_MAX);
    index->threads = thread_spans_new(options->max_spans / SPANS_PER_THREAD_SPAN + 1);
    uint64_t left = options->max_spans > LEFT_SPANS_MIN ? options->max_spans : LEFT_SPANS_MIN;
    index->left = left_samples_new((size_t)left * LEFT_BYTES_PER_SPAN);
    if (options->keeps_trees)
        index->trees = span_trees_new(options->max_spans, options->keeps_runs);
    if (options->keeps_functions)
        index->functions = top_functions_new((size_t)options->max_spans * FUNCTION_BYTES_PER_SPAN);
    size_t totals_size = index->common.totals_count * sizeof(uint64_t);
    for (uint32_t i = 0; i < index->shard_count; i++)
        span_shard_init(&index->shards[i], index->pages, totals_size,
                        options->max_spans / index->shard_count);
    index->sets = span_sets_new((size_t)options->max_spans * SET_BYTES_PER_SPAN,
                                (index->shard_count + 1) / 2);
    return index;
}

struct span_index *span_index_ref(struct span_index *index)
{
    atomic_fetch_add_explicit(&index->references, 1, memory_order_relaxed);
    return index;
}

void span_index_unref(struct span_index *index)
{
    if (!index || atomic_fetch_sub_explicit(&index->references, 1, memory_order_acq_rel) > 1)
        return;
    for (uint32_t i = 0; i < index->shard_count; i++)
        span_shard_deinit(&index->shards[i]);
    span_pages_free(index->pages);
    span_sources_free(index->sources);
    span_sets_free(index->sets);
    instances_free(index->instances);
    thread_spans_free(index->threads);
    left_samples_free(index->left);
    span_trees_free(index->trees);
    top_functions_free(index->functions);
    free(index->shards);
    free(index);
}

void span_wakeups_add(struct span_wakeups *wakeups, struct span_wakeup wakeup)
{
    if (wakeups->count == wakeups->capacity) {
        wakeups->capacity = wakeups->capacity ? wakeups->capacity * 2 : 16;
        wakeups->items = memory_grow(wakeups->items, wakeups->capacity, sizeof *wakeups->items);
    }
    wakeups->items[wakeups->count++] = wakeup;
}

void span_wakeups_deinit(struct span_wakeups *wakeups)
{
    free(wakeups->items);
    *wakeups = (struct span_wakeups){0};
}

/* ---- many keys at once ---- */

/* Keys that are looked up together, by shard: a shard is locked once for all its keys. */
struct key_block {
    uint64_t shards_used;       /* a bit for each shard */
    uint16_t first[SHARDS_MAX]; /* keys of each shard, in their order */
    uint16_t count[SHARDS_MAX];
    uint16_t next[BLOCK_KEYS];
    uint32_t tags[BLOCK_KEYS];
};

enum { NO_KEY = UINT16_MAX };

static void read_keys(const struct span_index *index, const uint8_t *items, size_t size,
                      size_t count, struct key_block *block)
{
    block->shards_used = 0;
    for (size_t i = count; i-- > 0;) {
        const struct span_asker *asker =
            (const struct span_asker *)(const void *)(items + i * size);
        uint64_t hash = hash_u64(stored_span_id(&asker->key, &asker->source));
        unsigned shard = (unsigned)(hash >> 40) & (index->shard_count - 1);
        uint64_t bit = UINT64_C(1) << shard;
        block->tags[i] = span_table_tag(hash);
        bool is_first = !(block->shards_used & bit);
        block->next[i] = is_first ? NO_KEY : block->first[shard];
        block->count[shard] = is_first ? 1 : (uint16_t)(block->count[shard] + 1);
        block->first[shard] = (uint16_t)i;
        block->shards_used |= bit;
    }
}

/* What to prefetch. A look-up in a large index has three dependent cache misses. Prefetching for a
 * block of keys lets these overlap, but locks each shard more often. A new key needs only the
 * table; a key that was just found is in the cache. */
enum likely { LIKELY_NEAR = 0, LIKELY_NEW = 1, LIKELY_FOUND = 2, LIKELY_KNOWN = 3 };

static void fetch(const struct span_shard *shard, uint32_t tag, unsigned turn)
{
    if (turn == 0)
        span_table_prefetch(&shard->table, tag);
    else if (turn == 1)
        span_shard_prefetch_entry(shard, tag);
    else
        span_shard_prefetch_samples(shard, tag);
}

static void look_ahead(struct span_index *index, const struct key_block *block, enum likely likely)
{
    for (unsigned turn = 0; turn < likely; turn++)
        for (uint64_t left = block->shards_used; left; left &= left - 1) {
            unsigned number = (unsigned)__builtin_ctzll(left);
            struct span_shard *shard = &index->shards[number];
            pthread_mutex_lock(&shard->lock);
            for (unsigned i = block->first[number]; i != NO_KEY; i = block->next[i])
                fetch(shard, block->tags[i], turn);
            pthread_mutex_unlock(&shard->lock);
        }
}

/* Changes of a shard while it was locked, for the counters that all shards share. */
struct shard_change {
    uint32_t live;
    uint32_t live_profiles;
    bool evicted_any;
    size_t evicted[SPAN_EVICTION_COUNT];
};

static struct shard_change lock_shard(struct span_shard *shard)
{
    pthread_mutex_lock(&shard->lock);
    return (struct shard_change){.live = shard->table.live, .live_profiles = shard->live_profiles};
}

static void unlock_shard(struct span_shard *shard, struct shard_change *change,
                         struct span_index_common *common)
{
    assert(shard->live_profiles <= shard->table.live);
    /* As a wrapping 64-bit number, because it may be negative. */
    uint64_t more = (uint64_t)shard->table.live - change->live;
    uint64_t more_profiles = (uint64_t)shard->live_profiles - change->live_profiles;
    change->evicted_any = shard->evicted_any;
    if (change->evicted_any) {
        memcpy(change->evicted, shard->evicted, sizeof change->evicted);
        memset(shard->evicted, 0, sizeof shard->evicted);
        shard->evicted_any = false;
    }
    pthread_mutex_unlock(&shard->lock);
    if (more != 0)
        atomic_fetch_add_explicit(&common->entries, more, memory_order_relaxed);
    if (more_profiles != 0)
        atomic_fetch_add_explicit(&common->profiles, more_profiles, memory_order_relaxed);
    for (unsigned i = 0; change->evicted_any && i < SPAN_EVICTION_COUNT; i++)
        if (change->evicted[i] > 0)
            atomic_fetch_add_explicit(&common->evicted[i], change->evicted[i],
                                      memory_order_relaxed);
}

static void run(struct span_index *index, struct span_operation *op, enum likely likely,
                void *items, size_t count, size_t size,
                void (*one)(struct span_operation *op, void *item))
{
    struct key_block block;
    for (size_t begin = 0; begin < count; begin += BLOCK_KEYS) {
        size_t many = count - begin < BLOCK_KEYS ? count - begin : BLOCK_KEYS;
        uint8_t *some = (uint8_t *)items + begin * size;
        read_keys(index, some, size, many, &block);
        if (many > 1)
            look_ahead(index, &block, likely);
        for (uint64_t left = block.shards_used; left; left &= left - 1) {
            unsigned number = (unsigned)__builtin_ctzll(left);
            op->shard = &index->shards[number];
            struct shard_change change = lock_shard(op->shard);
            op->live_before = change.live;
            if (op->arrives)
                span_entries_purge(op->common, op->shard, op->now_ns,
                                   PURGE_PER_KEY * block.count[number]);
            for (unsigned i = block.first[number]; i != NO_KEY; i = block.next[i]) {
                span_shard_tidy(op->shard);
                op->tag = block.tags[i];
                one(op, some + i * size);
            }
            unlock_shard(op->shard, &change, op->common);
        }
    }
}

void span_index_put_many(struct span_index *index, uint64_t now_ns, struct span_put *puts,
                         size_t count, struct arena *arena, struct span_wakeups *wakeups)
{
    struct span_operation op = {.common = &index->common,
                                .arrives = true,
                                .now_ns = now_ns,
                                .arena = arena,
                                .wakeups = wakeups};
    struct span_sets_writer writer;
    span_sets_begin(&writer, index->sets, count, now_ns, span_window_ns(op.common));
    for (size_t i = 0; i < count; i++)
        puts[i].set = span_sets_store(&writer, puts[i].source.owner, &puts[i].facts);
    span_sets_finish(&writer);
    run(index, &op, LIKELY_NEW, puts, count, sizeof *puts, span_entries_put);
}

void span_index_collect_many(struct span_index *index, uint64_t now_ns, struct span_put *puts,
                             size_t count, struct arena *arena)
{
    struct span_operation op = {.common = &index->common, .now_ns = now_ns, .arena = arena};
    run(index, &op, LIKELY_KNOWN, puts, count, sizeof *puts, span_entries_collect);
}

void span_index_find_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                          size_t count, struct arena *arena)
{
    struct span_sets_reader sets;
    span_sets_open(&sets, index->sets, count, arena);
    struct span_operation op = {
        .common = &index->common, .now_ns = now_ns, .arena = arena, .sets = &sets};
    run(index, &op, LIKELY_FOUND, finds, count, sizeof *finds, span_entries_find);
}

void span_index_add_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                         size_t count, const struct span_waiter *waiter)
{
    struct span_operation op = {
        .common = &index->common, .arrives = true, .now_ns = now_ns, .waiter = waiter};
    run(index, &op, LIKELY_NEAR, finds, count, sizeof *finds, span_entries_add);
}

void span_index_leave_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                           size_t count, const struct span_waiter *waiter)
{
    struct span_operation op = {.common = &index->common, .now_ns = now_ns, .waiter = waiter};
    run(index, &op, LIKELY_KNOWN, finds, count, sizeof *finds, span_entries_leave);
}

/* ---- profile ids ---- */

bool span_index_see_profile(struct span_index *index, uint64_t now_ns,
                            const uint8_t profile_id[PROFILE_ID_SIZE],
                            const struct span_source *source, uint64_t request, bool remember)
{
    struct profile_sight sight = {.source = *source, .request = request, .remember = remember};
    memcpy(sight.key.trace_id, profile_id, PROFILE_ID_SIZE);
    memcpy(sight.key.span_id, profile_id, SPAN_ID_SIZE);
    struct span_operation op = {.common = &index->common, .arrives = true, .now_ns = now_ns};
    run(index, &op, LIKELY_NEW, &sight, 1, sizeof sight, span_entries_see_profile);
    return sight.seen;
}

/* ---- housekeeping ---- */

struct instances *span_index_instances(struct span_index *index)
{
    return index->instances;
}

struct thread_spans *span_index_threads(struct span_index *index)
{
    return index->threads;
}

struct left_samples *span_index_left(struct span_index *index)
{
    return index->left;
}

struct span_trees *span_index_trees(struct span_index *index)
{
    return index->trees;
}

struct top_functions *span_index_functions(struct span_index *index)
{
    return index->functions;
}

struct span_source span_index_source(struct span_index *index, struct slice tenant, uint64_t peer,
                                     struct slice service, uint64_t now_ns)
{
    return span_sources_find(index->sources, tenant, peer, service, now_ns);
}

unsigned span_index_sources(const struct span_index *index)
{
    return span_sources_count(index->sources);
}

static void count_sources(const struct span_shard *shard, uint64_t entries[SPAN_SOURCES_MAX])
{
    for (uint32_t i = 0; i < shard->shares.size && i < SPAN_SOURCES_MAX; i++)
        entries[i] += shard->shares.of[i].count;
}

void span_index_sweep(struct span_index *index, uint64_t now_ns)
{
    uint64_t entries[SPAN_SOURCES_MAX] = {0};
    for (uint32_t i = 0; i < index->shard_count; i++) {
        struct span_shard *shard = &index->shards[i];
        struct shard_change change = lock_shard(shard);
        span_entries_purge(&index->common, shard, now_ns, PURGE_PER_SWEEP);
        count_sources(shard, entries);
        unlock_shard(shard, &change, &index->common);
    }
    uint64_t window_ns = span_window_ns(&index->common);
    span_sets_sweep(index->sets, now_ns, window_ns);
    uint64_t idle_ns = window_ns > SOURCE_IDLE_NS ? window_ns : SOURCE_IDLE_NS;
    span_sources_forget(index->sources, entries, now_ns, idle_ns);
    struct instance_clock clock = {.now_ns = now_ns, .window_ns = window_ns};
    instances_sweep(index->instances, &clock);
    thread_spans_sweep(index->threads, now_ns, clock.window_ns);
    left_samples_sweep(index->left, now_ns, clock.window_ns);
    if (index->trees)
        span_trees_sweep(index->trees, now_ns, window_ns);
    if (index->functions)
        top_functions_sweep(index->functions, now_ns, window_ns);
}

void span_index_set_window(struct span_index *index, uint64_t window_ns)
{
    assert(window_ns > 0);
    atomic_store_explicit(&index->common.window_ns, window_ns, memory_order_relaxed);
}

uint64_t span_index_window(const struct span_index *index)
{
    return span_window_ns(&index->common);
}

uint64_t span_index_entries(const struct span_index *index)
{
    uint64_t profiles = atomic_load_explicit(&index->common.profiles, memory_order_relaxed);
    uint64_t entries = atomic_load_explicit(&index->common.entries, memory_order_relaxed);
    return entries > profiles ? entries - profiles : 0;
}

uint64_t span_index_limit(const struct span_index *index)
{
    return index->common.max_spans;
}

size_t span_index_memory(struct span_index *index)
{
    size_t size = sizeof *index + index->shard_count * sizeof *index->shards +
                  span_sets_memory(index->sets) + instances_memory(index->instances) +
                  thread_spans_memory(index->threads) + left_samples_memory(index->left) +
                  (index->trees ? span_trees_memory(index->trees) : 0) +
                  (index->functions ? top_functions_memory(index->functions) : 0);
    for (uint32_t i = 0; i < index->shard_count; i++) {
        pthread_mutex_lock(&index->shards[i].lock);
        size += span_shard_memory(&index->shards[i]);
        pthread_mutex_unlock(&index->shards[i].lock);
    }
    return size;
}

uint64_t span_index_take_evicted(struct span_index *index, unsigned reason)
{
    assert(reason < SPAN_EVICTION_COUNT);
    if (reason == SPAN_EVICTED_MEMORY)
        return span_sets_take_evicted(index->sets);
    if (atomic_load_explicit(&index->common.evicted[reason], memory_order_relaxed) == 0)
        return 0;
    return atomic_exchange_explicit(&index->common.evicted[reason], 0, memory_order_relaxed);
}
