#include "processors/tail_sampling/trace_table.h"

#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/list.h"
#include "core/base/memory.h"
#include "core/data/otlp.h"

#include <assert.h>

enum {
    SHARDS_MAX = 16,
    SHARD_TRACES = 1024, /* a smaller table has one shard, and is exact about what is oldest */
    HOLDER_WORDS = HOLDERS_MAX / 64,
};

struct trace_entry {
    struct list_link link; /* of one of the lists of its shard; of none when it was forgotten */
    uint8_t id[TRACE_ID_SIZE];
    uint32_t hash;
    uint32_t number;
    enum trace_state state;
    uint64_t first_ns, deadline_ns, decided_ns;
    uint64_t holders[HOLDER_WORDS]; /* bits of those that have not got the decision */
    struct open_trace *open;        /* NULL: decided */
};

struct open_trace {
    struct trace_facts facts;
    uint64_t bits[];
};

struct shard {
    pthread_mutex_t lock;
    struct index_table by_id;
    struct trace_entry **entries; /* by number */
    uint32_t entry_count, entry_capacity;
    uint32_t *free_numbers;
    uint32_t free_count, free_capacity;
    struct list arrivals;  /* counted by num_traces, oldest first */
    struct list cached[2]; /* decided: not sampled, sampled; the least recently used first */
};

struct holder {
    struct worker *worker; /* NULL: free */
    void (*on_wake)(void *context, const uint8_t *id);
    void *context;
};

struct trace_table {
    atomic_uint references;
    struct rate_states rates;
    pthread_mutex_t holders_lock;
    struct holder holders[HOLDERS_MAX];
    atomic_size_t count;
    uint32_t words; /* of the bits of a trace */
    size_t cache_sizes[2];
    uint32_t shard_count;
    struct shard shards[SHARDS_MAX];
};

/* ---- tables ---- */

static size_t per_shard(uint64_t size, uint32_t shards)
{
    return (size_t)((size + shards - 1) / shards);
}

struct trace_table *trace_table_new(const struct tail_settings *settings)
{
    struct trace_table *table = memory_zalloc(sizeof *table);
    atomic_init(&table->references, 1);
    rate_states_init(&table->rates, &settings->plan);
    pthread_mutex_init(&table->holders_lock, NULL);
    table->words = facts_words(settings->plan.bit_count);
    table->shard_count = 1;
    while (table->shard_count < SHARDS_MAX &&
           settings->num_traces / SHARD_TRACES >= (uint64_t)table->shard_count * 2)
        table->shard_count *= 2;
    table->cache_sizes[0] =
        per_shard(settings->decision_cache.non_sampled_cache_size, table->shard_count);
    table->cache_sizes[1] =
        per_shard(settings->decision_cache.sampled_cache_size, table->shard_count);
    for (uint32_t i = 0; i < table->shard_count; i++)
        pthread_mutex_init(&table->shards[i].lock, NULL);
    return table;
}

struct trace_table *trace_table_ref(struct trace_table *table)
{
    atomic_fetch_add_explicit(&table->references, 1, memory_order_relaxed);
    return table;
}

static void free_shard(struct shard *shard)
{
    for (uint32_t i = 0; i < shard->entry_count; i++)
        if (shard->entries[i]) {
            free(shard->entries[i]->open);
            free(shard->entries[i]);
        }
    free(shard->entries);
    free(shard->free_numbers);
    free(shard->by_id.slots);
    pthread_mutex_destroy(&shard->lock);
}

void trace_table_unref(struct trace_table *table)
{
    if (!table || atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) > 1)
        return;
    for (uint32_t i = 0; i < table->shard_count; i++)
        free_shard(&table->shards[i]);
    rate_states_deinit(&table->rates);
    pthread_mutex_destroy(&table->holders_lock);
    free(table);
}

size_t trace_table_count(const struct trace_table *table)
{
    return atomic_load_explicit(&table->count, memory_order_relaxed);
}

/* ---- holders ---- */

int trace_table_add_holder(struct trace_table *table, struct worker *worker,
                           void (*on_wake)(void *context, const uint8_t *id), void *context)
{
    int number = -1;
    pthread_mutex_lock(&table->holders_lock);
    for (int i = 0; i < HOLDERS_MAX && number < 0; i++)
        if (!table->holders[i].worker) {
            table->holders[i] = (struct holder){worker, on_wake, context};
            number = i;
        }
    pthread_mutex_unlock(&table->holders_lock);
    return number;
}

void trace_table_remove_holder(struct trace_table *table, int holder)
{
    pthread_mutex_lock(&table->holders_lock);
    table->holders[holder] = (struct holder){0};
    pthread_mutex_unlock(&table->holders_lock);
}

bool trace_table_has_room(struct trace_table *table, unsigned holders)
{
    unsigned room = 0;
    pthread_mutex_lock(&table->holders_lock);
    for (int i = 0; i < HOLDERS_MAX; i++)
        room += table->holders[i].worker == NULL;
    pthread_mutex_unlock(&table->holders_lock);
    return room >= holders;
}

struct wake {
    struct post post;
    struct trace_table *table;
    int holder;
    uint8_t id[TRACE_ID_SIZE];
};

/* The holder may have gone meanwhile, and its number may be another one's, which ignores ids that
 * it does not hold. */
static void on_wake_post(struct worker *worker, struct post *post)
{
    struct wake *wake = container_of(post, struct wake, post);
    pthread_mutex_lock(&wake->table->holders_lock);
    struct holder holder = wake->table->holders[wake->holder];
    pthread_mutex_unlock(&wake->table->holders_lock);
    if (holder.worker == worker)
        holder.on_wake(holder.context, wake->id);
    trace_table_unref(wake->table);
    free(wake);
}

/* Tells the holders of a trace, but one (-1: all of them), to ask about it. */
static void wake_holders(struct trace_table *table, const struct trace_entry *entry, int but)
{
    for (int i = 0; i < HOLDERS_MAX; i++) {
        if (i == but || !(entry->holders[i / 64] >> (i % 64) & 1))
            continue;
        struct wake *wake = memory_zalloc(sizeof *wake);
        wake->post.on_post = on_wake_post;
        wake->table = trace_table_ref(table);
        wake->holder = i;
        memcpy(wake->id, entry->id, TRACE_ID_SIZE);
        pthread_mutex_lock(&table->holders_lock);
        struct worker *worker = table->holders[i].worker;
        pthread_mutex_unlock(&table->holders_lock);
        assert(worker); /* it holds the trace */
        worker_post(worker, &wake->post);
    }
}

static bool has_holders(const struct trace_entry *entry)
{
    uint64_t any = 0;
    for (int i = 0; i < HOLDER_WORDS; i++)
        any |= entry->holders[i];
    return any != 0;
}

/* ---- entries ---- */

static struct shard *lock_shard(struct trace_table *table, const uint8_t *id, uint32_t *hash_out)
{
    uint64_t hash = hash_bytes(slice_of(id, TRACE_ID_SIZE));
    struct shard *shard = &table->shards[(hash >> 32) % table->shard_count];
    *hash_out = (uint32_t)hash;
    pthread_mutex_lock(&shard->lock);
    return shard;
}

static struct trace_entry *find(const struct shard *shard, const uint8_t *id, uint32_t hash)
{
    if (!shard->by_id.slots)
        return NULL;
    struct index_probe probe = index_table_probe(&shard->by_id, hash);
    for (uint32_t number; index_table_next(&shard->by_id, &probe, &number);)
        if (memcmp(shard->entries[number]->id, id, TRACE_ID_SIZE) == 0)
            return shard->entries[number];
    return NULL;
}

static uint32_t take_number(struct shard *shard)
{
    if (shard->free_count > 0)
        return shard->free_numbers[--shard->free_count];
    if (shard->entry_count == shard->entry_capacity) {
        shard->entry_capacity = shard->entry_capacity ? shard->entry_capacity * 2 : 64;
        shard->entries =
            memory_grow(shard->entries, shard->entry_capacity, sizeof(struct trace_entry *));
        shard->free_numbers =
            memory_grow(shard->free_numbers, shard->entry_capacity, sizeof *shard->free_numbers);
    }
    return shard->entry_count++;
}

static void reserve_slot(struct shard *shard)
{
    size_t bytes = index_table_growth(&shard->by_id, 1);
    if (bytes > 0)
        free(index_table_move(&shard->by_id, memory_zalloc(bytes), bytes));
}

static struct trace_entry *add_entry(struct trace_table *table, struct shard *shard,
                                     const uint8_t *id, uint32_t hash, uint64_t now_ns)
{
    struct trace_entry *entry = memory_zalloc(sizeof *entry);
    memcpy(entry->id, id, TRACE_ID_SIZE);
    entry->hash = hash;
    entry->number = take_number(shard);
    entry->first_ns = now_ns;
    entry->open = memory_zalloc(sizeof *entry->open + table->words * sizeof(uint64_t));
    shard->entries[entry->number] = entry;
    reserve_slot(shard);
    index_table_add_new(&shard->by_id, hash, entry->number);
    list_append(&shard->arrivals, &entry->link);
    atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
    return entry;
}

static void free_entry(struct shard *shard, struct trace_entry *entry)
{
    assert(!entry->link.list && !has_holders(entry));
    index_table_remove(&shard->by_id, entry->hash, entry->number);
    shard->entries[entry->number] = NULL;
    shard->free_numbers[shard->free_count++] = entry->number;
    free(entry->open);
    free(entry);
}

static void unlist(struct trace_table *table, struct shard *shard, struct trace_entry *entry)
{
    if (list_has(&shard->arrivals, &entry->link))
        atomic_fetch_sub_explicit(&table->count, 1, memory_order_relaxed);
    list_remove(entry->link.list, &entry->link);
}

/* Forgets a trace that does not wait, as soon as its holders have the decision. */
static void forget(struct trace_table *table, struct shard *shard, struct trace_entry *entry,
                   const struct table_user *user, uint64_t now_ns)
{
    assert(entry->state != TRACE_PENDING);
    histogram_record(user->metrics->removal_age, user->worker,
                     (double)(now_ns - entry->first_ns) / 1e9);
    unlist(table, shard, entry);
    if (!has_holders(entry))
        free_entry(shard, entry);
}

/* ---- decisions ---- */

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
    while (cached->count > size)
        forget(table, shard, container_of(cached->first, struct trace_entry, link), user, now_ns);
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
    struct decided_trace trace = {entry->id, &entry->open->facts, entry->open->bits};
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
    wake_holders(table, entry, holder);
    decide(table, shard, entry, user, now_ns);
}

/* Makes room for a trace: the oldest ones leave, decided early if necessary. */
static void make_room(struct trace_table *table, struct shard *shard, const struct table_user *user,
                      uint64_t now_ns)
{
    while (trace_table_count(table) >= user->settings->num_traces && shard->arrivals.first) {
        struct trace_entry *oldest = container_of(shard->arrivals.first, struct trace_entry, link);
        if (oldest->state == TRACE_PENDING)
            decide_early(table, shard, oldest, user, now_ns, EARLY_NUM_TRACES, -1);
        if (shard->arrivals.first == &oldest->link)
            forget(table, shard, oldest, user, now_ns);
    }
}

/* ---- arrivals ---- */

static struct trace_answer answer_of(const struct trace_entry *entry)
{
    return (struct trace_answer){entry->state, entry->deadline_ns};
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
    entry->deadline_ns = now_ns + (uint64_t)user->settings->decision_wait;
    if (entry->link.list) {
        list_remove(&shard->arrivals, &entry->link);
        list_append(&shard->arrivals, &entry->link);
    }
}

static void hear_of_root(struct trace_table *table, struct trace_entry *entry,
                         const struct table_user *user, int holder, uint64_t now_ns)
{
    uint64_t wait = (uint64_t)user->settings->decision_wait_after_root_received;
    if (wait == 0 || now_ns + wait >= entry->deadline_ns)
        return;
    entry->deadline_ns = now_ns + wait;
    wake_holders(table, entry, holder);
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
           !user->settings->plan.has_drop &&
           ask_policies(table, entry, user, now_ns) == VOTE_SAMPLED;
}

static void add_spans(struct trace_table *table, struct shard *shard, struct trace_entry *entry,
                      const struct trace_arrival *arrival, const struct table_user *user,
                      int holder, uint64_t now_ns)
{
    facts_add(&entry->open->facts, entry->open->bits, &arrival->facts, arrival->bits, table->words);
    if (is_too_large(entry, user)) {
        counter_add(user->metrics->too_large, user->worker, 1);
        wake_holders(table, entry, -1);
        set_decision(table, shard, entry, VOTE_NOT_SAMPLED, user, now_ns);
    } else if (suffices(table, entry, user, now_ns)) {
        wake_holders(table, entry, -1);
        set_decision(table, shard, entry, VOTE_SAMPLED, user, now_ns);
    } else {
        if (arrival->facts.has_root)
            hear_of_root(table, entry, user, holder, now_ns);
        entry->holders[holder / 64] |= UINT64_C(1) << (holder % 64);
    }
}

struct trace_answer trace_table_arrive(struct trace_table *table, const struct table_user *user,
                                       const struct trace_arrival *arrival, int holder,
                                       uint64_t now_ns)
{
    uint32_t hash;
    struct shard *shard = lock_shard(table, arrival->id, &hash);
    struct trace_entry *entry = find(shard, arrival->id, hash);
    if (!entry) {
        make_room(table, shard, user, now_ns);
        entry = add_entry(table, shard, arrival->id, hash, now_ns);
    }
    if (entry->state == TRACE_UNKNOWN)
        begin_waiting(shard, entry, user, now_ns);
    struct trace_answer answer;
    if (entry->state == TRACE_PENDING) {
        add_spans(table, shard, entry, arrival, user, holder, now_ns);
        answer = answer_of(entry);
    } else {
        count_late(shard, entry, arrival, user, now_ns);
        answer = answer_of(entry);
    }
    pthread_mutex_unlock(&shard->lock);
    return answer;
}

/* ---- asking ---- */

static void drop_holder(struct shard *shard, struct trace_entry *entry, int holder)
{
    entry->holders[holder / 64] &= ~(UINT64_C(1) << (holder % 64));
    if (!entry->link.list && !has_holders(entry))
        free_entry(shard, entry);
}

struct trace_answer trace_table_take(struct trace_table *table, const struct table_user *user,
                                     const uint8_t *id, int holder, uint64_t now_ns, int early)
{
    uint32_t hash;
    struct shard *shard = lock_shard(table, id, &hash);
    struct trace_entry *entry = find(shard, id, hash);
    assert(entry && (entry->holders[holder / 64] >> (holder % 64) & 1));
    if (entry->state == TRACE_PENDING) {
        if (now_ns >= entry->deadline_ns)
            decide(table, shard, entry, user, now_ns);
        else if (early != TAKE_WHEN_DUE)
            decide_early(table, shard, entry, user, now_ns, early, holder);
    }
    struct trace_answer answer = answer_of(entry);
    if (answer.state != TRACE_PENDING)
        drop_holder(shard, entry, holder);
    pthread_mutex_unlock(&shard->lock);
    return answer;
}

void trace_table_give_up(struct trace_table *table, const struct table_user *user,
                         const uint8_t *id, int holder, uint64_t now_ns)
{
    uint32_t hash;
    struct shard *shard = lock_shard(table, id, &hash);
    struct trace_entry *entry = find(shard, id, hash);
    assert(entry);
    if (entry->state == TRACE_PENDING) {
        wake_holders(table, entry, holder);
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
    struct shard *shard = lock_shard(table, id, &hash);
    struct trace_entry *entry = find(shard, id, hash);
    struct trace_answer answer = {TRACE_UNKNOWN, 0};
    bool waits = entry && entry->state == TRACE_PENDING;
    if (waits && look != LOOK_ONLY && now_ns >= entry->deadline_ns)
        decide(table, shard, entry, user, now_ns);
    else if (waits && look == LOOK_AND_DECIDE)
        decide_early(table, shard, entry, user, now_ns, EARLY_DRAIN, -1);
    if (entry)
        answer = answer_of(entry);
    pthread_mutex_unlock(&shard->lock);
    return answer;
}

void trace_table_add_samples(struct trace_table *table, const struct table_user *user,
                             const struct trace_arrival *samples, uint64_t now_ns)
{
    uint32_t hash;
    struct shard *shard = lock_shard(table, samples->id, &hash);
    struct trace_entry *entry = find(shard, samples->id, hash);
    if (!entry) {
        make_room(table, shard, user, now_ns);
        entry = add_entry(table, shard, samples->id, hash, now_ns);
    }
    if (entry->open)
        facts_add(&entry->open->facts, entry->open->bits, &samples->facts, samples->bits,
                  table->words);
    pthread_mutex_unlock(&shard->lock);
}
