#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "processors/tail_sampling/trace_table_private.h"

#include <assert.h>

enum {
    FORGOTTEN_MOST = 16,   /* for one that is added, after a reload has made the table smaller */
    BEHIND_TRACES = 65536, /* more than num_traces are known while spans are read again */
};

/* Profiles ask again after this time about a trace that cannot be decided yet. */
#define ASK_AGAIN_NS UINT64_C(10000000)

/* ---- tables ---- */

static size_t per_shard(uint64_t size, uint32_t shards)
{
    return (size_t)((size + shards - 1) / shards);
}

void trace_table_set_caches(struct trace_table *table, const struct tail_cache *cache)
{
    assert(table->shard_count > 0);
    table->cache_sizes[0] = per_shard(cache->non_sampled_cache_size, table->shard_count);
    table->cache_sizes[1] = per_shard(cache->sampled_cache_size, table->shard_count);
}

struct trace_table *trace_table_new(struct tail_rules *rules)
{
    const struct tail_settings *settings = rules->settings;
    struct trace_table *table = memory_zalloc(sizeof *table);
    atomic_init(&table->references, 1);
    rules_book_init(&table->rules);
    rules_book_set(&table->rules, rules);
    rate_states_init(&table->rates, &settings->plan);
    table->holders = trace_holders_new();
    table->words = facts_words(settings->plan.bit_count);
    table->shard_count = 1;
    while (table->shard_count < SHARDS_MAX &&
           settings->num_traces / SHARD_TRACES >= (uint64_t)table->shard_count * 2)
        table->shard_count *= 2;
    trace_table_set_caches(table, &settings->decision_cache);
    for (uint32_t i = 0; i < table->shard_count; i++)
        pthread_mutex_init(&table->shards[i].lock, NULL);
    return table;
}

struct trace_table *trace_table_ref(struct trace_table *table)
{
    atomic_fetch_add_explicit(&table->references, 1, memory_order_relaxed);
    return table;
}

static struct trace_entry *entry_of(struct trace_id *id)
{
    return id ? container_of(id, struct trace_entry, id) : NULL;
}

static void free_shard(struct shard *shard)
{
    for (uint32_t i = 0; i < shard->ids.item_count; i++) {
        struct trace_entry *entry = entry_of(shard->ids.items[i]);
        if (entry)
            free(entry->open);
        free(entry);
    }
    trace_ids_deinit(&shard->ids);
    pthread_mutex_destroy(&shard->lock);
}

void trace_table_unref(struct trace_table *table)
{
    if (!table || atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) > 1)
        return;
    for (uint32_t i = 0; i < table->shard_count; i++)
        free_shard(&table->shards[i]);
    rate_states_deinit(&table->rates);
    rules_book_deinit(&table->rules);
    trace_holders_unref(table->holders);
    free(table);
}

size_t trace_table_count(const struct trace_table *table)
{
    return atomic_load_explicit(&table->count, memory_order_relaxed);
}

struct trace_holders *trace_table_holders(struct trace_table *table)
{
    return table->holders;
}

struct rules_book *trace_table_rules(struct trace_table *table)
{
    return &table->rules;
}

/* ---- entries ---- */

struct shard *trace_table_lock(struct trace_table *table, const uint8_t *id, uint32_t *hash_out)
{
    uint64_t hash = trace_id_hash(id);
    struct shard *shard = &table->shards[(hash >> 32) % table->shard_count];
    *hash_out = (uint32_t)hash;
    pthread_mutex_lock(&shard->lock);
    return shard;
}

struct trace_entry *shard_find(const struct shard *shard, const uint8_t *id, uint32_t hash)
{
    return entry_of(trace_ids_find(&shard->ids, id, hash));
}

static struct trace_entry *add_entry(struct trace_table *table, struct shard *shard,
                                     const uint8_t *id, uint32_t hash, uint64_t now_ns)
{
    struct trace_entry *entry = memory_zalloc(sizeof *entry);
    trace_ids_add(&shard->ids, &entry->id, id, hash);
    entry->first_ns = now_ns;
    entry->open = memory_zalloc(sizeof *entry->open + table->words * sizeof(uint64_t));
    list_append(&shard->arrivals, &entry->link);
    atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
    return entry;
}

static void free_entry(struct shard *shard, struct trace_entry *entry)
{
    assert(!entry->link.list && holder_set_is_empty(&entry->holders));
    trace_ids_remove(&shard->ids, &entry->id);
    free(entry->open);
    free(entry);
}

static void unlist(struct trace_table *table, struct shard *shard, struct trace_entry *entry)
{
    if (list_has(&shard->arrivals, &entry->link))
        atomic_fetch_sub_explicit(&table->count, 1, memory_order_relaxed);
    list_remove(entry->link.list, &entry->link);
}

void shard_forget(struct trace_table *table, struct shard *shard, struct trace_entry *entry,
                  const struct table_user *user, uint64_t now_ns)
{
    assert(entry->state != TRACE_PENDING);
    histogram_record(user->metrics->removal_age, user->worker,
                     (double)(now_ns - entry->first_ns) / 1e9);
    unlist(table, shard, entry);
    if (holder_set_is_empty(&entry->holders))
        free_entry(shard, entry);
}

/* ---- decisions ---- */

/* Tells the holders of a trace, but one, to ask about it. */
static void wake(struct trace_table *table, const struct trace_entry *entry, int but)
{
    trace_holders_wake(table->holders, &entry->holders, but, entry->id.bytes);
}

/* Moves a decided trace to those that are remembered apart from num_traces, if there are such. */
static void cache(struct trace_table *table, struct shard *shard, struct trace_entry *entry,
                  const struct table_user *user, uint64_t now_ns)
{
    bool sampled = entry->state == TRACE_SAMPLED;
    size_t size = table->cache_sizes[sampled];
    struct list *cached = &shard->cached[sampled];
    if (size == 0)
        return;
    unlist(table, shard, entry);
    list_append(cached, &entry->link);
    for (int n = 0; n < FORGOTTEN_MOST && cached->count > size; n++)
        shard_forget(table, shard, container_of(cached->first, struct trace_entry, link), user,
                     now_ns);
}

static void set_decision(struct trace_table *table, struct shard *shard, struct trace_entry *entry,
                         enum tail_vote vote, const struct table_user *user, uint64_t now_ns)
{
    static const enum trace_state states[] = {TRACE_NOT_SAMPLED, TRACE_SAMPLED, TRACE_DROPPED};
    assert(entry->state == TRACE_PENDING && vote < VOTE_ERROR);
    counter_add(user->metrics->decisions[vote], user->worker, 1);
    entry->state = states[vote];
    entry->decided_ns = now_ns;
    free(entry->open);
    entry->open = NULL;
    cache(table, shard, entry, user, now_ns);
}

static enum tail_vote ask_policies(struct trace_table *table, const struct trace_entry *entry,
                                   const struct table_user *user, uint64_t now_ns)
{
    struct decided_trace trace = {entry->id.bytes, &entry->open->facts, entry->open->bits};
    return policies_decide(user->settings, &table->rates, &trace, now_ns, user->metrics,
                           user->worker);
}

static void decide(struct trace_table *table, struct shard *shard, struct trace_entry *entry,
                   const struct table_user *user, uint64_t now_ns)
{
    set_decision(table, shard, entry, ask_policies(table, entry, user, now_ns), user, now_ns);
}

static void decide_early(struct trace_table *table, struct shard *shard, struct trace_entry *entry,
                         const struct table_user *user, uint64_t now_ns, int early, int holder)
{
    counter_add(user->metrics->early[early], user->worker, 1);
    wake(table, entry, holder);
    decide(table, shard, entry, user, now_ns);
}

void shard_forget_oldest(struct trace_table *table, struct shard *shard,
                         const struct table_user *user, uint64_t now_ns)
{
    struct trace_entry *oldest = container_of(shard->arrivals.first, struct trace_entry, link);
    if (oldest->state == TRACE_PENDING)
        decide_early(table, shard, oldest, user, now_ns, EARLY_NUM_TRACES, ALL_HOLDERS);
    if (shard->arrivals.first == &oldest->link)
        shard_forget(table, shard, oldest, user, now_ns);
}

/* Makes room for a trace. While spans are read again, the oldest are spared if possible: the new
 * policies have not seen them yet. */
static void make_room(struct trace_table *table, struct shard *shard, const struct table_user *user,
                      uint64_t now_ns)
{
    uint64_t most =
        user->settings->num_traces + (trace_holders_are_behind(table->holders) ? BEHIND_TRACES : 0);
    for (int n = 0; n < FORGOTTEN_MOST && shard->arrivals.first && trace_table_count(table) >= most;
         n++)
        shard_forget_oldest(table, shard, user, now_ns);
}

/* ---- arrivals ---- */

/* It follows decision_wait, which a reload may change. */
static uint64_t deadline_of(const struct trace_entry *entry, const struct table_user *user)
{
    uint64_t deadline_ns = entry->first_ns + (uint64_t)user->settings->decision_wait;
    return entry->root_deadline_ns < deadline_ns ? entry->root_deadline_ns : deadline_ns;
}

static struct trace_answer answer_of(const struct trace_entry *entry, const struct table_user *user)
{
    return (struct trace_answer){entry->state, deadline_of(entry, user)};
}

static void count_late(struct shard *shard, struct trace_entry *entry,
                       const struct trace_arrival *arrival, const struct table_user *user,
                       uint64_t now_ns)
{
    struct list *cached = entry->link.list;
    if (cached == &shard->cached[0] || cached == &shard->cached[1]) {
        counter_add(user->metrics->cached[cached == &shard->cached[1]], user->worker,
                    arrival->facts.spans);
        list_remove(cached, &entry->link);
        list_append(cached, &entry->link);
    } else {
        histogram_record(user->metrics->late_age, user->worker,
                         (double)(now_ns - entry->decided_ns) / 1e9);
    }
}

/* The first span of a trace, of which samples may be known. */
static void begin_waiting(struct shard *shard, struct trace_entry *entry,
                          const struct table_user *user, uint64_t now_ns)
{
    counter_add(user->metrics->new_traces, user->worker, 1);
    entry->state = TRACE_PENDING;
    entry->first_ns = now_ns;
    entry->root_deadline_ns = UINT64_MAX;
    if (entry->link.list) {
        list_remove(&shard->arrivals, &entry->link);
        list_append(&shard->arrivals, &entry->link);
    }
}

static void hear_of_root(struct trace_table *table, struct trace_entry *entry,
                         const struct table_user *user, int holder, uint64_t now_ns)
{
    uint64_t wait = (uint64_t)user->settings->decision_wait_after_root_received;
    if (wait == 0 || now_ns + wait >= deadline_of(entry, user))
        return;
    entry->root_deadline_ns = now_ns + wait;
    wake(table, entry, holder);
}

static bool is_too_large(const struct trace_entry *entry, const struct table_user *user)
{
    uint64_t most = user->settings->maximum_trace_size_bytes;
    return most > 0 && entry->open->facts.bytes > most;
}

/* Whether a trace is sampled before its time, because its spans suffice (span-ingest). */
static bool suffices(struct trace_table *table, const struct trace_entry *entry,
                     const struct table_user *user, uint64_t now_ns)
{
    return user->settings->sampling_strategy == TAIL_SPAN_INGEST &&
           !user->settings->plan.has_drop && !trace_holders_are_behind(table->holders) &&
           ask_policies(table, entry, user, now_ns) == VOTE_SAMPLED;
}

static void add_spans(struct trace_table *table, struct shard *shard, struct trace_entry *entry,
                      const struct trace_arrival *arrival, const struct table_user *user,
                      int holder, uint64_t now_ns)
{
    facts_add(&entry->open->facts, entry->open->bits, &arrival->facts, arrival->bits, table->words);
    if (is_too_large(entry, user)) {
        counter_add(user->metrics->too_large, user->worker, 1);
        wake(table, entry, ALL_HOLDERS);
        set_decision(table, shard, entry, VOTE_NOT_SAMPLED, user, now_ns);
    } else if (suffices(table, entry, user, now_ns)) {
        wake(table, entry, ALL_HOLDERS);
        set_decision(table, shard, entry, VOTE_SAMPLED, user, now_ns);
    } else {
        if (arrival->facts.has_root)
            hear_of_root(table, entry, user, holder, now_ns);
        holder_set_add(&entry->holders, holder);
    }
}

struct trace_answer trace_table_arrive(struct trace_table *table, const struct table_user *user,
                                       const struct trace_arrival *arrival, int holder,
                                       uint64_t now_ns)
{
    uint32_t hash;
    struct shard *shard = trace_table_lock(table, arrival->id, &hash);
    struct trace_entry *entry = shard_find(shard, arrival->id, hash);
    if (!entry) {
        make_room(table, shard, user, now_ns);
        entry = add_entry(table, shard, arrival->id, hash, now_ns);
    }
    if (entry->state == TRACE_UNKNOWN)
        begin_waiting(shard, entry, user, now_ns);
    struct trace_answer answer;
    if (entry->state == TRACE_PENDING) {
        add_spans(table, shard, entry, arrival, user, holder, now_ns);
        answer = answer_of(entry, user);
    } else {
        count_late(shard, entry, arrival, user, now_ns);
        answer = answer_of(entry, user);
    }
    pthread_mutex_unlock(&shard->lock);
    return answer;
}

/* ---- asking ---- */

static bool is_due(const struct trace_table *table, const struct trace_entry *entry,
                   const struct table_user *user, uint64_t now_ns)
{
    return now_ns >= deadline_of(entry, user) && !trace_holders_are_behind(table->holders);
}

static void drop_holder(struct shard *shard, struct trace_entry *entry, int holder)
{
    holder_set_remove(&entry->holders, holder);
    if (!entry->link.list && holder_set_is_empty(&entry->holders))
        free_entry(shard, entry);
}

struct trace_answer trace_table_take(struct trace_table *table, const struct table_user *user,
                                     const uint8_t *id, int holder, uint64_t now_ns, int early)
{
    uint32_t hash;
    struct shard *shard = trace_table_lock(table, id, &hash);
    struct trace_entry *entry = shard_find(shard, id, hash);
    assert(entry && holder_set_has(&entry->holders, holder));
    if (entry->state == TRACE_PENDING) {
        if (is_due(table, entry, user, now_ns))
            decide(table, shard, entry, user, now_ns);
        else if (early != TAKE_WHEN_DUE)
            decide_early(table, shard, entry, user, now_ns, early, holder);
    }
    struct trace_answer answer = answer_of(entry, user);
    if (answer.state != TRACE_PENDING)
        drop_holder(shard, entry, holder);
    pthread_mutex_unlock(&shard->lock);
    return answer;
}

void trace_table_add_bits(struct trace_table *table, const uint8_t *id, const uint64_t *bits)
{
    uint32_t hash;
    struct shard *shard = trace_table_lock(table, id, &hash);
    const struct trace_entry *entry = shard_find(shard, id, hash);
    for (uint32_t i = 0; entry && entry->open && i < table->words; i++)
        entry->open->bits[i] |= bits[i];
    pthread_mutex_unlock(&shard->lock);
}

void trace_table_give_up(struct trace_table *table, const struct table_user *user,
                         const uint8_t *id, int holder, uint64_t now_ns)
{
    uint32_t hash;
    struct shard *shard = trace_table_lock(table, id, &hash);
    struct trace_entry *entry = shard_find(shard, id, hash);
    assert(entry);
    if (entry->state == TRACE_PENDING) {
        wake(table, entry, holder);
        set_decision(table, shard, entry, VOTE_NOT_SAMPLED, user, now_ns);
    }
    drop_holder(shard, entry, holder);
    pthread_mutex_unlock(&shard->lock);
}

/* ---- samples ---- */

struct trace_answer trace_table_look(struct trace_table *table, const struct table_user *user,
                                     const uint8_t *id, uint64_t now_ns, enum trace_look look)
{
    uint32_t hash;
    struct shard *shard = trace_table_lock(table, id, &hash);
    struct trace_entry *entry = shard_find(shard, id, hash);
    struct trace_answer answer = {TRACE_UNKNOWN, 0};
    bool waits = entry && entry->state == TRACE_PENDING;
    if (waits && look != LOOK_ONLY && is_due(table, entry, user, now_ns))
        decide(table, shard, entry, user, now_ns);
    else if (waits && look == LOOK_AND_DECIDE)
        decide_early(table, shard, entry, user, now_ns, EARLY_DRAIN, ALL_HOLDERS);
    if (entry)
        answer = answer_of(entry, user);
    if (answer.state == TRACE_PENDING && answer.deadline_ns <= now_ns)
        answer.deadline_ns = now_ns + ASK_AGAIN_NS;
    pthread_mutex_unlock(&shard->lock);
    return answer;
}

void trace_table_add_samples(struct trace_table *table, const struct table_user *user,
                             const struct trace_arrival *samples, uint64_t now_ns)
{
    uint32_t hash;
    struct shard *shard = trace_table_lock(table, samples->id, &hash);
    struct trace_entry *entry = shard_find(shard, samples->id, hash);
    if (!entry) {
        make_room(table, shard, user, now_ns);
        entry = add_entry(table, shard, samples->id, hash, now_ns);
    }
    if (entry->open)
        facts_add(&entry->open->facts, entry->open->bits, &samples->facts, samples->bits,
                  table->words);
    pthread_mutex_unlock(&shard->lock);
}
