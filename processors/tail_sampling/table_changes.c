/*
 * What a reload does to a table of traces: other rules, other sizes, a copy of the decisions.
 */
#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "processors/tail_sampling/trace_table_private.h"

#include <assert.h>

/* ---- tables that become smaller ---- */

/* Returns the shard that has the oldest trace; NULL: there is none. */
static struct shard *find_oldest(struct trace_table *table)
{
    struct shard *found = NULL;
    uint64_t oldest_ns = UINT64_MAX;
    for (uint32_t i = 0; i < table->shard_count; i++) {
        struct shard *shard = &table->shards[i];
        pthread_mutex_lock(&shard->lock);
        const struct list_link *first = shard->arrivals.first;
        uint64_t first_ns =
            first ? container_of(first, const struct trace_entry, link)->first_ns : UINT64_MAX;
        pthread_mutex_unlock(&shard->lock);
        if (first_ns < oldest_ns) {
            oldest_ns = first_ns;
            found = shard;
        }
    }
    return found;
}

/* A shard has no more than its part: if the table is full, each has to make room for others. */
static bool has_room(const struct trace_table *table, const struct shard *shard,
                     uint64_t num_traces)
{
    return trace_table_count(table) < num_traces &&
           shard->arrivals.count * table->shard_count < num_traces;
}

/* Moves decisions, the last used ones first, to the front of those that num_traces counts. Returns
 * how many. */
static size_t empty_cache(struct trace_table *table, struct shard *shard, struct list *cached,
                          uint64_t num_traces, size_t most)
{
    size_t moved = 0;
    for (; moved < most && cached->last && has_room(table, shard, num_traces); moved++) {
        struct list_link *link = cached->last;
        list_remove(cached, link);
        list_prepend(&shard->arrivals, link);
        atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
    }
    return moved;
}

/* Returns how many decisions it has moved or forgotten. */
static size_t shrink_caches(struct trace_table *table, struct shard *shard,
                            const struct table_user *user, uint64_t now_ns, size_t most)
{
    size_t changed = 0;
    pthread_mutex_lock(&shard->lock);
    for (int sampled = 0; sampled < 2; sampled++) {
        struct list *cached = &shard->cached[sampled];
        size_t size = table->cache_sizes[sampled];
        if (size == 0)
            changed +=
                empty_cache(table, shard, cached, user->settings->num_traces, most - changed);
        for (; changed < most && cached->count > size; changed++)
            shard_forget(table, shard, container_of(cached->first, struct trace_entry, link), user,
                         now_ns);
    }
    pthread_mutex_unlock(&shard->lock);
    return changed;
}

bool trace_table_shrink(struct trace_table *table, const struct table_user *user, uint64_t now_ns,
                        size_t most)
{
    size_t changed = 0;
    for (struct shard *shard;
         changed < most && trace_table_count(table) > user->settings->num_traces &&
         (shard = find_oldest(table));
         changed++) {
        pthread_mutex_lock(&shard->lock);
        if (shard->arrivals.first) /* another worker may have changed it meanwhile */
            shard_forget_oldest(table, shard, user, now_ns);
        pthread_mutex_unlock(&shard->lock);
    }
    for (uint32_t i = 0; i < table->shard_count; i++)
        changed += shrink_caches(table, &table->shards[i], user, now_ns, most - changed);
    return changed >= most;
}

/* ---- other rules ---- */

/* What is applied to all traces that wait. */
struct change {
    struct plan_change plan;
    uint32_t words_before, words_after;
    uint64_t *bits; /* words_after */
};

static void change_bits(struct trace_entry *entry, const struct change *change)
{
    size_t size = change->words_after * sizeof *change->bits;
    memset(change->bits, 0, size);
    plan_change_bits(&change->plan, entry->open->bits, change->bits);
    if (change->words_after > change->words_before) {
        struct open_trace *open = memory_zalloc(sizeof *open + size);
        open->facts = entry->open->facts;
        free(entry->open);
        entry->open = open;
    }
    memcpy(entry->open->bits, change->bits, size);
}

static void change_shard(struct shard *shard, const struct change *change)
{
    pthread_mutex_lock(&shard->lock);
    for (struct list_link *link = shard->arrivals.first; link; link = link->next) {
        struct trace_entry *entry = container_of(link, struct trace_entry, link);
        if (entry->open)
            change_bits(entry, change);
    }
    pthread_mutex_unlock(&shard->lock);
}

static void change_init(struct change *change, const struct tail_plan *before,
                        const struct tail_plan *after)
{
    *change = (struct change){.words_before = facts_words(before->bit_count),
                              .words_after = facts_words(after->bit_count)};
    plan_change_init(&change->plan, before, after);
    change->bits = memory_zalloc((change->words_after + 1) * sizeof *change->bits);
}

static void change_deinit(struct change *change)
{
    plan_change_deinit(&change->plan);
    free(change->bits);
}

void trace_table_follow(struct trace_table *table, struct tail_rules *rules)
{
    const struct tail_rules *before = table->rules.current;
    struct change change;
    change_init(&change, &before->settings->plan, &rules->settings->plan);
    for (uint32_t i = 0; change.plan.moves_bits && i < table->shard_count; i++)
        change_shard(&table->shards[i], &change);
    rules->reading = before->reading + change.plan.reads_more;
    rules->sample_reading = before->sample_reading + change.plan.reads_more_samples;
    table->words = change.words_after;
    trace_table_set_caches(table, &rules->settings->decision_cache);
    rate_states_change(&table->rates, &change.plan);
    rules_book_set(&table->rules, rules);
    trace_holders_tell_change(table->holders, change.plan.reads_more,
                              change.plan.reads_more_samples);
    change_deinit(&change);
}

/* ---- decisions of another table ---- */

/* Returns the list for a decided trace of this state; NULL: it is full. */
static struct list *list_with_room(struct trace_table *table, struct shard *shard,
                                   enum trace_state state)
{
    bool sampled = state == TRACE_SAMPLED;
    size_t size = table->cache_sizes[sampled];
    if (size > 0)
        return shard->cached[sampled].count < size ? &shard->cached[sampled] : NULL;
    return trace_table_count(table) < table->rules.current->settings->num_traces ? &shard->arrivals
                                                                                 : NULL;
}

/* Adds a decided trace, which is older than those that were added before. */
static void copy_decision(struct trace_table *table, const struct trace_entry *from)
{
    uint32_t hash;
    struct shard *shard = trace_table_lock(table, from->id.bytes, &hash);
    assert(shard);
    struct list *list = list_with_room(table, shard, from->state);
    if (list && !shard_find(shard, from->id.bytes, hash)) {
        struct trace_entry *entry = memory_zalloc(sizeof *entry);
        trace_ids_add(&shard->ids, &entry->id, from->id.bytes, hash);
        entry->state = from->state;
        entry->first_ns = from->first_ns;
        entry->decided_ns = from->decided_ns;
        list_prepend(list, &entry->link);
        if (list == &shard->arrivals)
            atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&shard->lock);
}

static const struct trace_entry *entry_at(const struct list_link *link)
{
    return link ? container_of(link, const struct trace_entry, link) : NULL;
}

/* Takes the newest trace of several lists, and moves its cursor back; NULL: none is left. */
static const struct trace_entry *next_newest(const struct list_link **cursors, uint32_t count)
{
    uint32_t newest = 0;
    for (uint32_t i = 1; i < count; i++) {
        const struct trace_entry *entry = entry_at(cursors[i]), *other = entry_at(cursors[newest]);
        if (entry && (!other || entry->first_ns > other->first_ns))
            newest = i;
    }
    const struct trace_entry *found = entry_at(cursors[newest]);
    if (found)
        cursors[newest] = found->link.previous;
    return found;
}

/* Jobs may look at `other` meanwhile, but nothing changes it. */
void trace_table_copy_decisions(struct trace_table *table, struct trace_table *other)
{
    const struct list_link *cursors[SHARDS_MAX] = {0};
    for (uint32_t i = 0; i < other->shard_count; i++) {
        cursors[i] = other->shards[i].arrivals.last;
        for (int sampled = 0; sampled < 2; sampled++)
            for (const struct list_link *link = other->shards[i].cached[sampled].last; link;
                 link = link->previous)
                copy_decision(table, entry_at(link));
    }
    for (const struct trace_entry *entry; (entry = next_newest(cursors, other->shard_count));)
        if (entry->state > TRACE_PENDING)
            copy_decision(table, entry);
}
