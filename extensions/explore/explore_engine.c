#include "extensions/explore/explore_engine.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"

enum { MAILBOX_PART = 10 /* of the budget: a tenth */ };

struct explore_engine {
    atomic_uint references;
    pthread_t thread;
    struct join_feed *feed; /* may be NULL */
    struct store *store;    /* the thread's */
    size_t budget_bytes;
    bool is_listening;    /* main's */
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    struct explore_query *first, *last;
    struct explore_query *running; /* NULL: none */
    unsigned waiting;
    bool has_offers;
    bool stops;
    bool is_reducing; /* the thread's: the store makes room, and takes no offer */
};

/* ---- the thread ---- */

static struct explore_query *pop(struct explore_engine *engine)
{
    struct explore_query *query = engine->first;
    if (!query)
        return NULL;
    engine->first = query->next;
    engine->waiting--;
    engine->running = query;
    return query;
}

static void answer(struct explore_engine *engine, struct explore_query *query)
{
    struct api_request *request = &query->request;
    request->store = engine->store;
    request->now_ns = clock_wall_ns();
    request->deadline_ns = query->asked_ns + EXPLORE_DEADLINE_NS;
    request->is_given_up = &query->is_given_up;
    if (!api_must_stop(request))
        api_answer(request, slice_of_string(query->path), slice_of_string(query->query));
}

/* Answers the next query. Returns false if none waits. The engine is locked, but not while it
 * answers. */
static bool answer_next(struct explore_engine *engine)
{
    struct explore_query *query = pop(engine);
    if (!query)
        return false;
    struct worker *worker = query->worker;
    pthread_mutex_unlock(&engine->lock);
    answer(engine, query);
    pthread_mutex_lock(&engine->lock);
    engine->running = NULL;
    pthread_cond_broadcast(&engine->changed);
    worker_post(worker, &query->post);
    return true;
}

/* Takes one offer, or makes room in a step. Returns whether there may be more to do. */
static bool take_offer(struct explore_engine *engine)
{
    if (engine->is_reducing) {
        engine->is_reducing = store_reduce(engine->store);
        return true;
    }
    struct join_offer *offer = engine->feed ? join_feed_take(engine->feed) : NULL;
    if (!offer)
        return false;
    store_add(engine->store, offer, clock_wall_ns(), clock_monotonic_ns());
    join_offer_free(offer);
    engine->is_reducing = true; /* store_reduce says whether there is need */
    return true;
}

static void take_offers(struct explore_engine *engine)
{
    engine->has_offers = false;
    pthread_mutex_unlock(&engine->lock);
    bool had_one = take_offer(engine);
    pthread_mutex_lock(&engine->lock);
    engine->has_offers |= had_one;
}

static void *run(void *context)
{
    struct explore_engine *engine = context;
    pthread_mutex_lock(&engine->lock);
    while (!engine->stops) {
        answer_next(engine); /* one, so that many queries do not keep offers waiting */
        if (engine->has_offers)
            take_offers(engine);
        else if (!engine->first && !engine->stops)
            pthread_cond_wait(&engine->changed, &engine->lock);
    }
    while (answer_next(engine))
        ;
    pthread_mutex_unlock(&engine->lock);
    return NULL;
}

/* ---- the feed ---- */

/* The feed is locked: it does not call this after join_feed_close. */
static void on_wake(void *context)
{
    struct explore_engine *engine = context;
    pthread_mutex_lock(&engine->lock);
    engine->has_offers = true;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->lock);
}

bool explore_engine_listen(struct explore_engine *engine)
{
    const struct join_subscriber subscriber = {engine->budget_bytes / MAILBOX_PART, on_wake,
                                               engine};
    assert(!engine->is_listening);
    engine->is_listening = engine->feed && join_feed_open(engine->feed, &subscriber);
    return engine->is_listening;
}

void explore_engine_stop_listening(struct explore_engine *engine)
{
    if (engine->is_listening)
        join_feed_close(engine->feed);
    engine->is_listening = false;
}

/* ---- queries ---- */

bool explore_engine_ask(struct explore_engine *engine, struct explore_query *query,
                        const struct api_context *context)
{
    query->request.context = context;
    query->next = NULL;
    query->asked_ns = clock_monotonic_ns();
    pthread_mutex_lock(&engine->lock);
    bool has_room = engine->waiting < EXPLORE_QUERIES_MAX;
    if (has_room) {
        if (engine->first)
            engine->last->next = query;
        else
            engine->first = query;
        engine->last = query;
        engine->waiting++;
        pthread_cond_broadcast(&engine->changed);
    }
    pthread_mutex_unlock(&engine->lock);
    return has_room;
}

static bool has_query_of(const struct explore_engine *engine, const void *owner)
{
    bool found = engine->running && engine->running->owner == owner;
    if (found)
        atomic_store_explicit(&engine->running->is_given_up, true, memory_order_relaxed);
    for (struct explore_query *query = engine->first; query; query = query->next)
        if (query->owner == owner) {
            atomic_store_explicit(&query->is_given_up, true, memory_order_relaxed);
            found = true;
        }
    return found;
}

void explore_engine_forget(struct explore_engine *engine, const void *owner)
{
    pthread_mutex_lock(&engine->lock);
    while (has_query_of(engine, owner))
        pthread_cond_wait(&engine->changed, &engine->lock);
    pthread_mutex_unlock(&engine->lock);
}

/* ---- life ---- */

const struct join_late *explore_engine_late(const struct explore_engine *engine)
{
    return &engine->store->late;
}

size_t explore_engine_budget(const struct explore_engine *engine)
{
    return engine->budget_bytes;
}

static void free_engine(struct explore_engine *engine)
{
    pthread_cond_destroy(&engine->changed);
    pthread_mutex_destroy(&engine->lock);
    store_free(engine->store);
    free(engine);
}

struct explore_engine *explore_engine_new(size_t budget_bytes, struct join_feed *feed,
                                          struct error *err)
{
    struct explore_engine *engine = memory_zalloc(sizeof *engine);
    atomic_init(&engine->references, 1);
    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->changed, NULL);
    engine->feed = feed;
    engine->budget_bytes = budget_bytes;
    engine->store = store_new(budget_bytes, clock_wall_ns());
    int rc = pthread_create(&engine->thread, NULL, run, engine);
    if (rc == 0)
        return engine;
    error_set_system(err, rc);
    error_prefix(err, "cannot start a thread");
    free_engine(engine);
    return NULL;
}

struct explore_engine *explore_engine_ref(struct explore_engine *engine)
{
    atomic_fetch_add_explicit(&engine->references, 1, memory_order_relaxed);
    return engine;
}

void explore_engine_unref(struct explore_engine *engine)
{
    if (!engine || atomic_fetch_sub_explicit(&engine->references, 1, memory_order_acq_rel) > 1)
        return;
    explore_engine_stop_listening(engine);
    pthread_mutex_lock(&engine->lock);
    engine->stops = true;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->lock);
    pthread_join(engine->thread, NULL);
    assert(!engine->first && !engine->running);
    free_engine(engine);
}
