/*
 * trace_holders: who holds spans of traces, and is told to ask about one again.
 *
 * A holder is a node on its worker. Each trace has a set of those that have not got its decision.
 * After a reload, holders are *behind* until they have read again what they hold; meanwhile no
 * trace is due.
 *
 * Owner: counted by reference: the table of traces has one, and each message that is being
 * delivered.
 *
 * Thread: any.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TRACE_HOLDERS_H
#define PROFCOL_TAIL_SAMPLING_TRACE_HOLDERS_H

#include "core/base/worker.h"

/* Two for each worker: a reload may replace a component. As many may only listen. */
enum { HOLDERS_MAX = 2 * WORKERS_MAX, HOLDER_WORDS = HOLDERS_MAX / 64 };

enum holder_message {
    ASK_ABOUT_TRACE,
    GIVE_MEMORY, /* another holder finds none */
    RULES_CHANGED,
    ALL_HAVE_READ, /* no holder is behind any more */
};

struct holder {
    struct worker *worker; /* NULL: free */
    /* id: of ASK_ABOUT_TRACE. */
    void (*on_message)(void *context, enum holder_message message, const uint8_t *id);
    void *context;
    bool is_behind;
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
/* Adds one that holds no traces, and gets only messages to all. The same applies. */
int trace_holders_add_listener(struct trace_holders *holders, const struct holder *holder);
/* Removes either, on its worker. It holds no trace any more. */
void trace_holders_remove(struct trace_holders *holders, int holder);
/* Returns how many more holders there may be. */
unsigned trace_holders_room(struct trace_holders *holders);
/* Tells all of the set, but one, to ask about a trace. Messages arrive on their workers. */
enum { ALL_HOLDERS = -1 };
void trace_holders_wake(struct trace_holders *holders, const struct holder_set *set, int but,
                        const uint8_t *id);
/* Tells all holders but one that it finds no memory. */
void trace_holders_ask_for_memory(struct trace_holders *holders, int but);

/* Tells all holders that the rules have changed, while all workers wait. are_behind: what they hold
 * has to be read again; listeners_are: the same of those that only listen. */
void trace_holders_tell_change(struct trace_holders *holders, bool are_behind, bool listeners_are);
/* Something that the holder holds has to be read again. */
void trace_holders_fall_behind(struct trace_holders *holders, int holder);
/* The holder has read all. If it was the last one that was behind, all are told. */
void trace_holders_catch_up(struct trace_holders *holders, int holder);
/* Whether any holder is behind. */
bool trace_holders_are_behind(const struct trace_holders *holders);

#endif
