/*
 * trace_table_private: the inside of a table of traces, for the files that implement it.
 *
 * Owner: the table.
 *
 * Thread: a shard under its lock; the other members change only while all workers wait.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TRACE_TABLE_PRIVATE_H
#define PROFCOL_TAIL_SAMPLING_TRACE_TABLE_PRIVATE_H

#include "core/base/list.h"
#include "processors/tail_sampling/trace_ids.h"
#include "processors/tail_sampling/trace_table.h"

enum {
    SHARDS_MAX = 16,
    SHARD_TRACES = 1024, /* a smaller table has one shard, and is exact about what is oldest */
};

struct trace_entry {
    struct list_link link; /* of one of the lists of its shard; of none when it was forgotten */
    struct trace_id id;
    enum trace_state state;
    uint64_t first_ns, decided_ns;
    uint64_t root_deadline_ns; /* that its root span has set; UINT64_MAX: none */
    struct holder_set holders; /* that have not got the decision */
    struct open_trace *open;   /* NULL: decided */
};

struct open_trace {
    struct trace_facts facts;
    uint64_t bits[];
};

struct shard {
    pthread_mutex_t lock;
    struct trace_ids ids;  /* of struct trace_entry */
    struct list arrivals;  /* counted by num_traces, oldest first */
    struct list cached[2]; /* decided: not sampled, sampled; the least recently used first */
};

struct trace_table {
    atomic_uint references;
    struct rules_book rules;
    struct rate_states rates;
    struct trace_holders *holders;
    atomic_size_t count;
    uint32_t words; /* of the bits of a trace */
    size_t cache_sizes[2];
    uint32_t shard_count;
    struct shard shards[SHARDS_MAX];
};

/* Sets the sizes of the caches of decisions. */
void trace_table_set_caches(struct trace_table *table, const struct tail_cache *cache);
/* Locks the shard of a trace. */
struct shard *trace_table_lock(struct trace_table *table, const uint8_t *id, uint32_t *hash_out);
/* Returns what is known of a trace; NULL: nothing. */
struct trace_entry *shard_find(const struct shard *shard, const uint8_t *id, uint32_t hash);
/* Forgets a trace that does not wait, as soon as its holders have the decision. */
void shard_forget(struct trace_table *table, struct shard *shard, struct trace_entry *entry,
                  const struct table_user *user, uint64_t now_ns);
/* Forgets the oldest trace of the shard, which has one; decides about it first if necessary. */
void shard_forget_oldest(struct trace_table *table, struct shard *shard,
                         const struct table_user *user, uint64_t now_ns);

#endif
