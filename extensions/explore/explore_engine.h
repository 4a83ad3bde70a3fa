/*
 * explore_engine: the thread of explore: it feeds the store from the join feed, and answers
 * queries.
 *
 * A query goes to the thread as a message and comes back as one, to the worker that it came from.
 * Queries go before offers. What is not answered within EXPLORE_DEADLINE_NS ends with 503.
 *
 * Owner: components hold references, so the store survives a reload. The sender of a query owns it
 * until explore_engine_ask, and again from on_answer on, which is called exactly once.
 *
 * Thread: any, except as described.
 */
#ifndef PROFCOL_EXPLORE_ENGINE_H
#define PROFCOL_EXPLORE_ENGINE_H

#include "core/base/worker.h"
#include "extensions/explore/api.h"

#define EXPLORE_DEADLINE_NS UINT64_C(2000000000)
enum { EXPLORE_QUERIES_MAX = 32 /* that wait */ };

struct explore_engine;

struct explore_query {
    struct post post; /* first; comes back with it */
    struct explore_query *next;
    struct worker *worker;
    void *owner;             /* for explore_engine_forget */
    atomic_bool is_given_up; /* nobody waits for the answer: it need not be found */
    char *path;              /* after "/api/" */
    char *query;
    uint64_t asked_ns; /* monotonic */
    struct api_request request;
};

/* Creates an engine with an empty store and starts its thread. Returns NULL, with err set, if there
 * is no thread. */
struct explore_engine *explore_engine_new(size_t budget_bytes, struct join_feed *feed,
                                          struct error *err);
struct explore_engine *explore_engine_ref(struct explore_engine *engine);
/* Drops a reference; the last one stops the thread and frees the store. On main. NULL is allowed.
 */
void explore_engine_unref(struct explore_engine *engine);
size_t explore_engine_budget(const struct explore_engine *engine);

/* Returns what the store counts for /api/join. */
const struct join_late *explore_engine_late(const struct explore_engine *engine);

/* Begins and ends to listen to the feed. On main. Returns false if somebody else listens. */
bool explore_engine_listen(struct explore_engine *engine);
void explore_engine_stop_listening(struct explore_engine *engine);

/* Asks. Returns false if too many queries wait; then nothing has happened. context: constant until
 * the answer, or explore_engine_forget. */
bool explore_engine_ask(struct explore_engine *engine, struct explore_query *query,
                        const struct api_context *context);
/* Waits until no query of this owner is in the engine. They are given up, also the one that is
 * being answered, so this takes no longer than the next look at that. Their posts may still be on
 * their way. */
void explore_engine_forget(struct explore_engine *engine, const void *owner);

#endif
