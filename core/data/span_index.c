#include "core/data/span_index.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/span_entries.h"

#include <assert.h>

enum {
    SHARDS_MAX = 256,
    SHARD_SPANS_MIN = 2048,
    STRING_BYTES_PER_SPAN = 160,
    BLOCK_KEYS = 32, /* prefetched together */
    PURGE_PER_SWEEP = 2048,
};

_Static_assert((int)SPAN_INDEX_CANDIDATES_MAX == (int)SPAN_SHARD_SAME_ID, "all are returned");
_Static_assert(SPAN_INDEX_VALUES_MAX + (1 + 2 * SPAN_INDEX_TYPES_MAX) * 8 <= SPAN_SHARD_BLOCK_MAX,
               "totals and values fit into a block");

const char *const span_index_eviction_names[] = {"full", "memory", "same_id", "crowded", NULL};

struct span_index {
    struct span_shard *shards;
    uint32_t shard_count; /* a power of two */
    struct span_index_common common;
};

struct span_index *span_index_new(const struct span_index_options *options)
{
    assert(options->max_spans > 0 && options->type_count <= SPAN_INDEX_TYPES_MAX);
    struct span_index *index = memory_zalloc(sizeof *index);
    index->common.max_spans = options->max_spans;
    index->common.window_ns = options->window_ns;
    index->common.totals_count = span_totals_count(options->type_count);
    index->shard_count = 1;
    while (index->shard_count < SHARDS_MAX &&
           options->max_spans / (index->shard_count * 2) >= SHARD_SPANS_MIN)
        index->shard_count *= 2;
    index->shards = aligned_alloc(64, index->shard_count * sizeof *index->shards);
    assert(index->shards);
    size_t bytes = (size_t)(options->max_spans / index->shard_count) * STRING_BYTES_PER_SPAN;
    for (uint32_t i = 0; i < index->shard_count; i++)
        span_shard_init(&index->shards[i], index->common.totals_count * sizeof(uint64_t), bytes);
    return index;
}

void span_index_free(struct span_index *index)
{
    if (!index)
        return;
    for (uint32_t i = 0; i < index->shard_count; i++)
        span_shard_deinit(&index->shards[i]);
    free(index->shards);
    free(index);
}

void span_wakeups_deinit(struct span_wakeups *wakeups)
{
    free(wakeups->items);
    *wakeups = (struct span_wakeups){0};
}

/* --- many at once --- */

static void run_one(struct span_operation *op, void *item,
                    void (*one)(struct span_operation *op, void *item))
{
    struct span_index_common *common = op->common;
    struct span_shard *shard = op->shard;
    pthread_mutex_lock(&shard->lock);
    span_shard_tidy(shard);
    uint32_t before = shard->live, profiles_before = shard->live_profiles;
    one(op, item);
    uint64_t more = (uint64_t)shard->live - before;
    uint64_t more_profiles = (uint64_t)shard->live_profiles - profiles_before;
    bool evicted = shard->evicted_any;
    size_t reasons[SPAN_EVICTION_COUNT];
    if (evicted) {
        memcpy(reasons, shard->evicted, sizeof reasons);
        memset(shard->evicted, 0, sizeof shard->evicted);
        shard->evicted_any = false;
    }
    pthread_mutex_unlock(&shard->lock);
    if (more != 0)
        atomic_fetch_add_explicit(&common->entries, more, memory_order_relaxed);
    if (more_profiles != 0)
        atomic_fetch_add_explicit(&common->profiles, more_profiles, memory_order_relaxed);
    for (unsigned i = 0; evicted && i < SPAN_EVICTION_COUNT; i++)
        atomic_fetch_add_explicit(&common->evicted[i], reasons[i], memory_order_relaxed);
}

static struct span_shard *shard_of(struct span_index *index, uint64_t hash)
{
    return &index->shards[(hash >> 40) & (index->shard_count - 1)];
}

/* A look-up in a large index waits for memory three times, one after the other; a block of them
 * waits for all at once. Worth two more turns of the lock where the keys are likely known. */
static void look_ahead(struct span_index *index, const uint64_t *hashes, size_t count)
{
    void (*const prefetch[])(const struct span_shard *, uint32_t) = {span_shard_prefetch_entry,
                                                                     span_shard_prefetch_block};
    for (size_t turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < count; i++) {
            struct span_shard *shard = shard_of(index, hashes[i]);
            pthread_mutex_lock(&shard->lock);
            prefetch[turn](shard, span_shard_tag(hashes[i]));
            pthread_mutex_unlock(&shard->lock);
        }
}

enum likely { LIKELY_NEW, LIKELY_KNOWN };

/* Keys are the first member of what they belong to. */
static void run(struct span_index *index, struct span_operation *op, enum likely likely,
                void *items, size_t count, size_t size,
                void (*one)(struct span_operation *op, void *item))
{
    for (size_t begin = 0; begin < count; begin += BLOCK_KEYS) {
        size_t many = count - begin < BLOCK_KEYS ? count - begin : BLOCK_KEYS;
        uint64_t hashes[BLOCK_KEYS];
        uint8_t *block = (uint8_t *)items + begin * size;
        for (size_t i = 0; i < many; i++) {
            const struct span_key *key = (const struct span_key *)(void *)(block + i * size);
            hashes[i] = hash_u64(span_id_number(key->span_id));
            span_shard_prefetch(shard_of(index, hashes[i]), span_shard_tag(hashes[i]));
        }
        if (likely == LIKELY_KNOWN)
            look_ahead(index, hashes, many);
        for (size_t i = 0; i < many; i++) {
            op->shard = shard_of(index, hashes[i]);
            op->tag = span_shard_tag(hashes[i]);
            run_one(op, block + i * size, one);
        }
    }
}

void span_index_put_many(struct span_index *index, uint64_t now_ns, struct span_put *puts,
                         size_t count, const struct span_waiter *waiter, struct arena *arena,
                         struct span_wakeups *wakeups)
{
    struct span_operation op = {.common = &index->common,
                                .now_ns = now_ns,
                                .waiter = waiter,
                                .arena = arena,
                                .wakeups = wakeups};
    run(index, &op, LIKELY_NEW, puts, count, sizeof *puts, span_entries_put);
}

void span_index_collect_many(struct span_index *index, uint64_t now_ns, struct span_put *puts,
                             size_t count, const struct span_waiter *waiter, struct arena *arena)
{
    struct span_operation op = {
        .common = &index->common, .now_ns = now_ns, .waiter = waiter, .arena = arena};
    run(index, &op, LIKELY_KNOWN, puts, count, sizeof *puts, span_entries_collect);
}

void span_index_find_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                          size_t count, struct arena *arena)
{
    struct span_operation op = {.common = &index->common, .now_ns = now_ns, .arena = arena};
    run(index, &op, LIKELY_KNOWN, finds, count, sizeof *finds, span_entries_find);
}

void span_index_add_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                         size_t count, const struct span_waiter *waiter,
                         struct span_wakeups *wakeups)
{
    struct span_operation op = {
        .common = &index->common, .now_ns = now_ns, .waiter = waiter, .wakeups = wakeups};
    run(index, &op, LIKELY_KNOWN, finds, count, sizeof *finds, span_entries_add);
}

void span_index_leave_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                           size_t count, const struct span_waiter *waiter)
{
    struct span_operation op = {.common = &index->common, .now_ns = now_ns, .waiter = waiter};
    run(index, &op, LIKELY_KNOWN, finds, count, sizeof *finds, span_entries_leave);
}

/* --- profile ids --- */

bool span_index_see_profile(struct span_index *index, uint64_t now_ns,
                            const uint8_t profile_id[PROFILE_ID_SIZE], uint64_t request,
                            bool remember)
{
    struct profile_sight sight = {.request = request, .remember = remember};
    memcpy(sight.key.trace_id, profile_id, PROFILE_ID_SIZE);
    memcpy(sight.key.span_id, profile_id, SPAN_ID_SIZE);
    struct span_operation op = {.common = &index->common, .now_ns = now_ns};
    run(index, &op, LIKELY_NEW, &sight, 1, sizeof sight, span_entries_see_profile);
    return sight.seen;
}

/* --- keeping house --- */

void span_index_sweep(struct span_index *index, uint64_t now_ns)
{
    for (uint32_t i = 0; i < index->shard_count; i++) {
        struct span_shard *shard = &index->shards[i];
        pthread_mutex_lock(&shard->lock);
        uint32_t before = shard->live, profiles_before = shard->live_profiles;
        span_entries_purge(&index->common, shard, now_ns, PURGE_PER_SWEEP);
        uint32_t gone = before - shard->live;
        uint32_t profiles_gone = profiles_before - shard->live_profiles;
        pthread_mutex_unlock(&shard->lock);
        atomic_fetch_sub_explicit(&index->common.entries, gone, memory_order_relaxed);
        atomic_fetch_sub_explicit(&index->common.profiles, profiles_gone, memory_order_relaxed);
    }
}

uint64_t span_index_entries(const struct span_index *index)
{
    uint64_t profiles = atomic_load_explicit(&index->common.profiles, memory_order_relaxed);
    uint64_t entries = atomic_load_explicit(&index->common.entries, memory_order_relaxed);
    return entries > profiles ? entries - profiles : 0;
}

size_t span_index_memory(struct span_index *index)
{
    size_t size = sizeof *index + index->shard_count * sizeof *index->shards;
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
    if (atomic_load_explicit(&index->common.evicted[reason], memory_order_relaxed) == 0)
        return 0;
    return atomic_exchange_explicit(&index->common.evicted[reason], 0, memory_order_relaxed);
}
