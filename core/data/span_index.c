#include "core/data/span_index.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/span_shard.h"

#include <assert.h>

enum {
    SHARDS_MAX = 256,
    SHARD_SPANS_MIN = 2048,
    STRING_BYTES_PER_SPAN = 160,
    BLOCK_KEYS = 32,   /* prefetched together */
    PURGE_PER_KEY = 4, /* expired entries that an arrival takes out */
    PURGE_PER_SWEEP = 2048,
};

_Static_assert((int)SPAN_INDEX_CANDIDATES_MAX == (int)SPAN_SHARD_SAME_ID, "all are returned");
_Static_assert(SPAN_INDEX_VALUES_MAX + (1 + 2 * SPAN_INDEX_TYPES_MAX) * 8 <= SPAN_SHARD_BLOCK_MAX,
               "totals and values fit into a block");

const char *const span_index_eviction_names[] = {"full", "memory", "same_id", "crowded", NULL};

struct span_index {
    struct span_shard *shards;
    uint32_t shard_count; /* a power of two */
    unsigned totals_count;
    uint64_t max_spans;
    uint64_t window_ns;
    uint64_t linger_ns; /* entries stay a quarter longer, so that "expired" can be told from "not
                           found" */
    _Atomic uint64_t entries; /* profile ids included */
    _Atomic uint64_t profiles;
    _Atomic uint64_t evicted[SPAN_EVICTION_COUNT];
};

struct span_index *span_index_new(const struct span_index_options *options)
{
    assert(options->max_spans > 0 && options->type_count <= SPAN_INDEX_TYPES_MAX);
    struct span_index *index = memory_zalloc(sizeof *index);
    index->max_spans = options->max_spans;
    index->window_ns = options->window_ns;
    index->linger_ns = options->window_ns + options->window_ns / 4;
    index->totals_count = span_totals_count(options->type_count);
    index->shard_count = 1;
    while (index->shard_count < SHARDS_MAX &&
           options->max_spans / (index->shard_count * 2) >= SHARD_SPANS_MIN)
        index->shard_count *= 2;
    index->shards = aligned_alloc(64, index->shard_count * sizeof *index->shards);
    assert(index->shards);
    size_t bytes = (size_t)(options->max_spans / index->shard_count) * STRING_BYTES_PER_SPAN;
    for (uint32_t i = 0; i < index->shard_count; i++)
        span_shard_init(&index->shards[i], index->totals_count * sizeof(uint64_t), bytes);
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

/* --- what the functions below work with: one key, its shard locked --- */

struct operation {
    struct span_index *index;
    struct span_shard *shard;
    uint32_t tag;
    uint64_t now_ns;
    const struct span_waiter *waiter;
    struct arena *arena;
    struct span_wakeups *wakeups;
};

static const uint8_t no_trace[TRACE_ID_SIZE];

static bool trace_is_known(const uint8_t *trace_id)
{
    return memcmp(trace_id, no_trace, TRACE_ID_SIZE) != 0;
}

static uint64_t id_number(const uint8_t *span_id)
{
    uint64_t number;
    memcpy(&number, span_id, sizeof number);
    return number;
}

static bool within(const struct operation *op, uint64_t arrived_ns)
{
    return op->now_ns <= arrived_ns || op->now_ns - arrived_ns <= op->index->window_ns;
}

static bool has_span(const struct operation *op, const struct span_entry *entry)
{
    return (entry->flags & SPAN_ENTRY_HAS_SPAN) && within(op, entry->span_arrived_ns);
}

static bool has_totals(const struct operation *op, const struct span_entry *entry)
{
    return (entry->flags & SPAN_ENTRY_HAS_TOTALS) && within(op, entry->samples_last_ns);
}

static uint64_t last_arrival(const struct span_entry *entry)
{
    return entry->samples_last_ns > entry->span_arrived_ns ? entry->samples_last_ns
                                                           : entry->span_arrived_ns;
}

/* Entries stand in the order of their last arrival, so the expired ones come first. */
static void purge(struct span_index *index, struct span_shard *shard, uint64_t now_ns,
                  unsigned most)
{
    shard->live_since_ns = now_ns > index->window_ns ? now_ns - index->window_ns : 0;
    uint64_t gone = now_ns > index->linger_ns ? now_ns - index->linger_ns : 0;
    for (; most > 0; most--) {
        struct span_entry *oldest = span_shard_oldest(shard);
        if (!oldest || last_arrival(oldest) >= gone)
            return;
        span_shard_remove(shard, oldest);
    }
}

static struct span_entry *insert(struct operation *op, const struct span_key *key, uint8_t flag)
{
    if (atomic_load_explicit(&op->index->entries, memory_order_relaxed) >= op->index->max_spans)
        span_shard_evict(op->shard, NULL, SPAN_EVICTED_FULL);
    struct span_entry *entry = span_shard_insert(op->shard, op->tag, id_number(key->span_id), flag);
    memcpy(entry->trace_id, key->trace_id, TRACE_ID_SIZE);
    /* Also what only waits is as old as it is. */
    entry->samples_last_ns = op->now_ns;
    return entry;
}

struct candidates {
    struct span_entry *entries[SPAN_SHARD_SAME_ID];
    unsigned count;
    struct span_entry *exact; /* the same trace */
    struct span_entry *loose; /* of samples without a trace id, and no span yet */
};

static struct candidates candidates_of(struct operation *op, const struct span_key *key)
{
    struct candidates found = {.exact = NULL};
    found.count = span_shard_matches(op->shard, op->tag, id_number(key->span_id), 0, found.entries);
    for (unsigned i = 0; i < found.count; i++) {
        struct span_entry *entry = found.entries[i];
        if (!trace_is_known(entry->trace_id))
            found.loose = entry;
        else if (memcmp(entry->trace_id, key->trace_id, TRACE_ID_SIZE) == 0)
            found.exact = entry;
    }
    return found;
}

static void add_wakeup(struct span_wakeups *wakeups, struct span_wakeup wakeup)
{
    if (wakeups->count == wakeups->capacity) {
        wakeups->capacity = wakeups->capacity ? wakeups->capacity * 2 : 16;
        wakeups->items = memory_grow(wakeups->items, wakeups->capacity, sizeof *wakeups->items);
    }
    wakeups->items[wakeups->count++] = wakeup;
}

static void wake(struct operation *op, struct span_entry *entry, enum span_waits_for waits_for)
{
    struct span_wakeup wakeup = {.waits_for = waits_for};
    while (span_shard_take_waiter(op->shard, entry, waits_for, &wakeup.waiter.worker,
                                  &wakeup.waiter.hold))
        add_wakeup(op->wakeups, wakeup);
}

static const uint64_t *copy_totals(struct operation *op, const struct span_entry *entry)
{
    if (!has_totals(op, entry))
        return NULL;
    return (const uint64_t *)(const void *)arena_copy(
               op->arena, slice_of(span_entry_totals(entry), op->shard->totals_size))
        .data;
}

static void add_totals(struct operation *op, uint64_t *sum, const uint64_t *more)
{
    for (unsigned i = 0; i < op->index->totals_count; i++)
        sum[i] += more[i]; /* wraps: numbers from outside */
}

/* --- spans --- */

/* What samples without a trace id left under the span id becomes the span's. */
static struct span_entry *adopt(struct operation *op, struct candidates *found,
                                const struct span_key *key)
{
    struct span_entry *loose = found->loose;
    struct span_entry *exact = found->exact;
    if (!loose)
        return exact ? exact : insert(op, key, 0);
    if (!exact) {
        memcpy(loose->trace_id, key->trace_id, TRACE_ID_SIZE);
        return loose;
    }
    uint64_t sum[1 + 2 * SPAN_INDEX_TYPES_MAX] = {0};
    if (has_totals(op, exact))
        add_totals(op, sum, span_entry_totals(exact));
    if (has_totals(op, loose)) {
        add_totals(op, sum, span_entry_totals(loose));
        if (!has_totals(op, exact) || loose->samples_first_ns < exact->samples_first_ns)
            exact->samples_first_ns = loose->samples_first_ns;
    }
    bool any = has_totals(op, exact) || has_totals(op, loose);
    uint64_t last_ns = has_totals(op, loose) ? loose->samples_last_ns : 0;
    if (has_totals(op, exact) && exact->samples_last_ns > last_ns)
        last_ns = exact->samples_last_ns;
    exact->samples_left += loose->samples_left;
    wake(op, loose, SPAN_WAITS_FOR_SPAN);
    span_shard_remove(op->shard, loose);
    if (!any)
        return exact;
    exact = span_shard_touch(op->shard, exact);
    exact->samples_last_ns = last_ns; /* it is a span now, and arrives as one */
    span_shard_store(op->shard, exact, sum, span_entry_values(op->shard, exact));
    return exact;
}

static void put_one(struct operation *op, void *item)
{
    struct span_put *put = item;
    assert(put->facts.values.size <= SPAN_INDEX_VALUES_MAX);
    purge(op->index, op->shard, op->now_ns, PURGE_PER_KEY);
    struct candidates found = candidates_of(op, &put->key);
    struct span_entry *entry = span_shard_touch(op->shard, adopt(op, &found, &put->key));
    bool again = has_span(op, entry);
    wake(op, entry, SPAN_WAITS_FOR_SPAN);

    put->totals = copy_totals(op, entry);
    put->samples_left = entry->samples_left;
    put->has_lag = put->totals != NULL && !again;
    put->lag_ns = put->has_lag ? (int64_t)(entry->samples_first_ns - op->now_ns) : 0;
    put->waits = op->waiter != NULL && put->totals == NULL;

    entry->start_ns = put->facts.start_ns;
    entry->end_ns = put->facts.end_ns;
    entry->kind = put->facts.kind;
    entry->status = put->facts.status;
    entry->flags |= SPAN_ENTRY_HAS_SPAN;
    entry->span_arrived_ns = op->now_ns;
    entry->samples_left = 0;
    span_shard_store(op->shard, entry, put->totals, put->facts.values);
    if (put->waits)
        span_shard_add_waiter(op->shard, entry, op->waiter->worker, op->waiter->hold,
                              SPAN_WAITS_FOR_SAMPLES);
}

static void collect_one(struct operation *op, void *item)
{
    struct span_put *put = item;
    put->totals = NULL;
    struct candidates found = candidates_of(op, &put->key);
    if (!found.exact)
        return;
    put->totals = copy_totals(op, found.exact);
    if (op->waiter)
        span_shard_drop_waiter(op->shard, found.exact, op->waiter->worker, op->waiter->hold,
                               SPAN_WAITS_FOR_SAMPLES);
}

/* --- samples --- */

static void copy_match(struct operation *op, const struct span_entry *entry, struct span_match *out)
{
    *out = (struct span_match){
        .facts = {.start_ns = entry->start_ns,
                  .end_ns = entry->end_ns,
                  .kind = entry->kind,
                  .status = entry->status,
                  .values = arena_copy(op->arena, span_entry_values(op->shard, entry))},
        .arrived_ns = entry->span_arrived_ns,
    };
    memcpy(out->key.trace_id, entry->trace_id, TRACE_ID_SIZE);
    memcpy(out->key.span_id, &entry->span_id, SPAN_ID_SIZE);
}

/* Entries that a key of a sample means, newest first: those with a span that is within its window.
 */
static unsigned live_spans(struct operation *op, const struct span_key *key,
                           const struct candidates *found, struct span_entry **out,
                           bool *expired_out)
{
    unsigned count = 0;
    *expired_out = false;
    for (unsigned i = 0; i < found->count; i++) {
        struct span_entry *entry = found->entries[i];
        if (!(entry->flags & SPAN_ENTRY_HAS_SPAN) ||
            (trace_is_known(key->trace_id) && entry != found->exact))
            continue;
        if (!has_span(op, entry)) {
            *expired_out = true;
            continue;
        }
        unsigned at = count++;
        for (; at > 0 && out[at - 1]->span_arrived_ns <= entry->span_arrived_ns; at--)
            out[at] = out[at - 1];
        out[at] = entry;
    }
    return count;
}

static enum span_presence presence_of(unsigned live, bool expired)
{
    return live > 0 ? SPAN_FOUND : expired ? SPAN_EXPIRED : SPAN_MISSING;
}

static void find_one(struct operation *op, void *item)
{
    struct span_find *find = item;
    if (find->skip)
        return;
    struct candidates found = candidates_of(op, &find->key);
    struct span_entry *live[SPAN_SHARD_SAME_ID];
    bool expired;
    find->match_count = live_spans(op, &find->key, &found, live, &expired);
    find->presence = presence_of(find->match_count, expired);
    find->matches = NULL;
    if (find->match_count == 0)
        return;
    struct span_match *matches = arena_alloc(op->arena, find->match_count * sizeof *matches);
    for (unsigned i = 0; i < find->match_count; i++)
        copy_match(op, live[i], &matches[i]);
    find->matches = matches;
}

static void add_samples(struct operation *op, struct span_entry *entry, const uint64_t *totals)
{
    entry = span_shard_touch(op->shard, entry);
    uint64_t sum[1 + 2 * SPAN_INDEX_TYPES_MAX] = {0};
    if (has_totals(op, entry))
        add_totals(op, sum, span_entry_totals(entry));
    else
        entry->samples_first_ns = op->now_ns;
    add_totals(op, sum, totals);
    entry->samples_last_ns = op->now_ns;
    span_shard_store(op->shard, entry, sum, span_entry_values(op->shard, entry));
    wake(op, entry, SPAN_WAITS_FOR_SAMPLES);
}

static void add_one(struct operation *op, void *item)
{
    struct span_find *find = item;
    purge(op->index, op->shard, op->now_ns, PURGE_PER_KEY);
    struct candidates found = candidates_of(op, &find->key);
    struct span_entry *live[SPAN_SHARD_SAME_ID];
    bool expired;
    unsigned count = live_spans(op, &find->key, &found, live, &expired);
    find->presence = presence_of(count, expired);
    find->waits = find->presence == SPAN_MISSING && op->waiter != NULL;
    if (!find->totals && !find->waits)
        return;

    bool has_trace = trace_is_known(find->key.trace_id);
    struct span_entry *entry = count > 0 ? live[0] : has_trace ? found.exact : found.loose;
    if (!entry)
        entry = insert(op, &find->key, 0);
    if (find->waits)
        span_shard_add_waiter(op->shard, entry, op->waiter->worker, op->waiter->hold,
                              SPAN_WAITS_FOR_SPAN);
    if (find->totals)
        add_samples(op, entry, find->totals);
}

static void leave_one(struct operation *op, void *item)
{
    struct span_find *find = item;
    struct candidates found = candidates_of(op, &find->key);
    struct span_entry *entry = trace_is_known(find->key.trace_id) ? found.exact : found.loose;
    if (!entry || has_span(op, entry))
        return;
    if (op->waiter)
        span_shard_drop_waiter(op->shard, entry, op->waiter->worker, op->waiter->hold,
                               SPAN_WAITS_FOR_SPAN);
    uint64_t left = entry->samples_left + find->samples_left;
    entry->samples_left = left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
}

/* --- many at once --- */

static void run_one(struct operation *op, void *item, void (*one)(struct operation *op, void *item))
{
    struct span_index *index = op->index;
    struct span_shard *shard = op->shard;
    pthread_mutex_lock(&shard->lock);
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
        atomic_fetch_add_explicit(&index->entries, more, memory_order_relaxed);
    if (more_profiles != 0)
        atomic_fetch_add_explicit(&index->profiles, more_profiles, memory_order_relaxed);
    for (unsigned i = 0; evicted && i < SPAN_EVICTION_COUNT; i++)
        atomic_fetch_add_explicit(&index->evicted[i], reasons[i], memory_order_relaxed);
}

/* Keys are the first member of what they belong to. */
static void run(struct operation *op, void *items, size_t count, size_t size,
                void (*one)(struct operation *op, void *item))
{
    struct span_index *index = op->index;
    for (size_t begin = 0; begin < count; begin += BLOCK_KEYS) {
        size_t many = count - begin < BLOCK_KEYS ? count - begin : BLOCK_KEYS;
        uint64_t hashes[BLOCK_KEYS];
        uint8_t *block = (uint8_t *)items + begin * size;
        for (size_t i = 0; i < many; i++) {
            const struct span_key *key = (const struct span_key *)(void *)(block + i * size);
            hashes[i] = hash_u64(id_number(key->span_id));
            span_shard_prefetch(&index->shards[(hashes[i] >> 40) & (index->shard_count - 1)],
                                span_shard_tag(hashes[i]));
        }
        for (size_t i = 0; i < many; i++) {
            op->shard = &index->shards[(hashes[i] >> 40) & (index->shard_count - 1)];
            op->tag = span_shard_tag(hashes[i]);
            run_one(op, block + i * size, one);
        }
    }
}

void span_index_put_many(struct span_index *index, uint64_t now_ns, struct span_put *puts,
                         size_t count, const struct span_waiter *waiter, struct arena *arena,
                         struct span_wakeups *wakeups)
{
    struct operation op = {
        .index = index, .now_ns = now_ns, .waiter = waiter, .arena = arena, .wakeups = wakeups};
    run(&op, puts, count, sizeof *puts, put_one);
}

void span_index_collect_many(struct span_index *index, uint64_t now_ns, struct span_put *puts,
                             size_t count, const struct span_waiter *waiter, struct arena *arena)
{
    struct operation op = {.index = index, .now_ns = now_ns, .waiter = waiter, .arena = arena};
    run(&op, puts, count, sizeof *puts, collect_one);
}

void span_index_find_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                          size_t count, struct arena *arena)
{
    struct operation op = {.index = index, .now_ns = now_ns, .arena = arena};
    run(&op, finds, count, sizeof *finds, find_one);
}

void span_index_add_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                         size_t count, const struct span_waiter *waiter,
                         struct span_wakeups *wakeups)
{
    struct operation op = {.index = index, .now_ns = now_ns, .waiter = waiter, .wakeups = wakeups};
    run(&op, finds, count, sizeof *finds, add_one);
}

void span_index_leave_many(struct span_index *index, uint64_t now_ns, struct span_find *finds,
                           size_t count, const struct span_waiter *waiter)
{
    struct operation op = {.index = index, .now_ns = now_ns, .waiter = waiter};
    run(&op, finds, count, sizeof *finds, leave_one);
}

/* --- profile ids --- */

struct profile_sight {
    struct span_key key; /* the id as a trace id, its first half as a span id */
    uint64_t request;
    bool remember;
    bool seen;
};

static void see_one(struct operation *op, void *item)
{
    struct profile_sight *sight = item;
    purge(op->index, op->shard, op->now_ns, PURGE_PER_KEY);
    struct span_entry *same[SPAN_SHARD_SAME_ID];
    unsigned count = span_shard_matches(op->shard, op->tag, id_number(sight->key.span_id),
                                        SPAN_ENTRY_PROFILE, same);
    struct span_entry *entry = NULL;
    for (unsigned i = 0; i < count; i++)
        if (memcmp(same[i]->trace_id, sight->key.trace_id, TRACE_ID_SIZE) == 0)
            entry = same[i];
    sight->seen = entry && within(op, entry->samples_last_ns) && entry->start_ns != sight->request;
    if (sight->seen || !sight->remember)
        return;
    entry =
        entry ? span_shard_touch(op->shard, entry) : insert(op, &sight->key, SPAN_ENTRY_PROFILE);
    entry->start_ns = sight->request;
    entry->samples_last_ns = op->now_ns;
}

bool span_index_see_profile(struct span_index *index, uint64_t now_ns,
                            const uint8_t profile_id[PROFILE_ID_SIZE], uint64_t request,
                            bool remember)
{
    struct profile_sight sight = {.request = request, .remember = remember};
    memcpy(sight.key.trace_id, profile_id, PROFILE_ID_SIZE);
    memcpy(sight.key.span_id, profile_id, SPAN_ID_SIZE);
    struct operation op = {.index = index, .now_ns = now_ns};
    run(&op, &sight, 1, sizeof sight, see_one);
    return sight.seen;
}

/* --- keeping house --- */

void span_index_sweep(struct span_index *index, uint64_t now_ns)
{
    for (uint32_t i = 0; i < index->shard_count; i++) {
        struct span_shard *shard = &index->shards[i];
        pthread_mutex_lock(&shard->lock);
        uint32_t before = shard->live, profiles_before = shard->live_profiles;
        purge(index, shard, now_ns, PURGE_PER_SWEEP);
        uint32_t gone = before - shard->live;
        uint32_t profiles_gone = profiles_before - shard->live_profiles;
        pthread_mutex_unlock(&shard->lock);
        atomic_fetch_sub_explicit(&index->entries, gone, memory_order_relaxed);
        atomic_fetch_sub_explicit(&index->profiles, profiles_gone, memory_order_relaxed);
    }
}

uint64_t span_index_entries(const struct span_index *index)
{
    uint64_t profiles = atomic_load_explicit(&index->profiles, memory_order_relaxed);
    uint64_t entries = atomic_load_explicit(&index->entries, memory_order_relaxed);
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
    if (atomic_load_explicit(&index->evicted[reason], memory_order_relaxed) == 0)
        return 0;
    return atomic_exchange_explicit(&index->evicted[reason], 0, memory_order_relaxed);
}
