/*
 * trace_table: what the process knows about each trace: the facts of one that waits, the decision
 * about one that was decided.
 *
 * There is one decision for a trace, whatever workers its spans reach. The spans themselves wait at
 * the node that received them, a *holder*. A holder asks for the decision when decision_wait is
 * over; the first one that asks makes it. If it is made earlier (memory, num_traces, a root span),
 * the other holders of the trace are told.
 *
 * At most num_traces traces are known, in the order of their first span; the oldest leaves, and is
 * decided first if it waits. Decisions may be remembered longer, in the order of their last use
 * (decision_cache).
 *
 * Owner: components with equal settings may share a table, which is counted by reference.
 *
 * Thread: any; each shard has a lock.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TRACE_TABLE_H
#define PROFCOL_TAIL_SAMPLING_TRACE_TABLE_H

#include "processors/tail_sampling/policy_decision.h"
#include "processors/tail_sampling/tail_rules.h"
#include "processors/tail_sampling/trace_holders.h"

struct trace_table;

enum trace_state {
    TRACE_UNKNOWN, /* no span has arrived */
    TRACE_PENDING,
    TRACE_NOT_SAMPLED,
    TRACE_SAMPLED,
    TRACE_DROPPED, /* by a drop policy */
};

/* Who uses the table: a component. */
struct table_user {
    const struct tail_settings *settings;
    const struct tail_metrics *metrics;
    unsigned worker;
};

struct trace_answer {
    enum trace_state state;
    uint64_t deadline_ns; /* of one that waits: monotonic */
};

/* Spans of one trace, or samples linked to it, that arrive together. */
struct trace_arrival {
    const uint8_t *id; /* 16 bytes */
    struct trace_facts facts;
    const uint64_t *bits;
};

/* Returns a table with one reference, for components with these rules, whose reference it takes
 * over. */
struct trace_table *trace_table_new(struct tail_rules *rules);
struct trace_table *trace_table_ref(struct trace_table *table);
void trace_table_unref(struct trace_table *table);
/* Returns the number of traces that count for num_traces. */
size_t trace_table_count(const struct trace_table *table);

/* Returns the holders, which are the table's. */
struct trace_holders *trace_table_holders(struct trace_table *table);
/* Returns the rules, which are the table's. */
struct rules_book *trace_table_rules(struct trace_table *table);

/* ---- reloads: on main, while all workers wait ---- */

/* Exchanges the rules, whose reference it takes over, and tells the holders. Of traces that wait,
 * what was seen stays as far as the new rules look for it, too. Until the holders have read again
 * for the rest, no trace is due. */
void trace_table_follow(struct trace_table *table, struct tail_rules *rules);
/* Adds what another table has decided, as far as this one remembers it. */
void trace_table_copy_decisions(struct trace_table *table, struct trace_table *other);

/* ---- traces ---- */

/* Adds spans. If the trace waits, the holder has to keep them, and to ask with trace_table_take. */
struct trace_answer trace_table_arrive(struct trace_table *table, const struct table_user *user,
                                       const struct trace_arrival *arrival, int holder,
                                       uint64_t now_ns);
/* Why a decision is made before its time; TAKE_WHEN_DUE: it is not. */
enum { TAKE_WHEN_DUE = -1 };
/* Returns what was decided about a trace that the holder keeps, and decides if it is time, or
 * because of `early` (enum tail_early). If the answer is not TRACE_PENDING, it is the last one that
 * the holder gets about these spans. */
struct trace_answer trace_table_take(struct trace_table *table, const struct table_user *user,
                                     const uint8_t *id, int holder, uint64_t now_ns, int early);
/* Adds what was found when spans of a trace were read again. */
void trace_table_add_bits(struct trace_table *table, const uint8_t *id, const uint64_t *bits);
/* Forgets the oldest traces above num_traces and the sizes of the caches; those that wait are
 * decided first. What was in a cache that the settings do not have any more counts within
 * num_traces. At most so many, and returns whether there are more. */
bool trace_table_shrink(struct trace_table *table, const struct table_user *user, uint64_t now_ns,
                        size_t most);
/* Drops a trace that waits, undecided. */
void trace_table_give_up(struct trace_table *table, const struct table_user *user,
                         const uint8_t *id, int holder, uint64_t now_ns);

/* LOOK_WHEN_DUE decides about a trace whose time is over, LOOK_AND_DECIDE about any that waits; for
 * these two, the caller is on its worker. */
enum trace_look { LOOK_ONLY, LOOK_WHEN_DUE, LOOK_AND_DECIDE };
/* Returns what is known about a trace. */
struct trace_answer trace_table_look(struct trace_table *table, const struct table_user *user,
                                     const uint8_t *id, uint64_t now_ns, enum trace_look look);
/* Adds samples to the facts of a trace that is not decided. */
void trace_table_add_samples(struct trace_table *table, const struct table_user *user,
                             const struct trace_arrival *samples, uint64_t now_ns);

#endif
