/*
 * trace_holders: who holds spans of traces, and is told to ask about one again.
 *
 * A holder is a node on its worker. Each trace has a set of those that have not got its decision.
 *
 * Owner: counted by reference: the table of traces has one, and each message that is being
 * delivered.
 *
 * Thread: any.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TRACE_HOLDERS_H
#define PROFCOL_TAIL_SAMPLING_TRACE_HOLDERS_H

#include "core/base/worker.h"

enum { HOLDERS_MAX = 128, HOLDER_WORDS = HOLDERS_MAX / 64 };

struct holder {
    struct worker *worker; /* NULL: free */
    void (*on_wake)(void *context, const uint8_t *id);
    void (*on_shortage)(void *context);
    void *context;
};

struct trace_holders;

/* Bits by number. */
struct holder_set {
    uint64_t words[HOLDER_WORDS];
};

static inline void holder_set_add(struct holder_set *set, int holder)
{
    set->words[holder / 64] |= UINT64_C(1) << (holder % 64);
}

static inline void holder_set_remove(struct holder_set *set, int holder)
{
    set->words[holder / 64] &= ~(UINT64_C(1) << (holder % 64));
}

static inline bool holder_set_has(const struct holder_set *set, int holder)
{
    return set->words[holder / 64] >> (holder % 64) & 1;
}

bool holder_set_is_empty(const struct holder_set *set);

/* Returns no holders, with one reference. */
struct trace_holders *trace_holders_new(void);
void trace_holders_unref(struct trace_holders *holders);
/* Adds a holder, on its worker. Returns its number, or -1 if there are too many. */
int trace_holders_add(struct trace_holders *holders, const struct holder *holder);
/* Removes a holder, on its worker. It holds no trace any more. */
void trace_holders_remove(struct trace_holders *holders, int holder);
/* Returns how many more there may be. */
unsigned trace_holders_room(struct trace_holders *holders);
/* Tells all of the set, but one, to ask about a trace: on_wake is called on their workers. */
enum { ALL_HOLDERS = -1 };
void trace_holders_wake(struct trace_holders *holders, const struct holder_set *set, int but,
                        const uint8_t *id);
/* Tells all holders but one that it finds no memory: on_shortage is called on their workers. */
void trace_holders_ask_for_memory(struct trace_holders *holders, int but);

#endif
