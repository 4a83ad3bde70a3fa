#include "processors/tail_sampling/trace_holders.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/data/otlp.h"

#include <assert.h>
#include <string.h>

enum { ALL_MAX = 2 * HOLDERS_MAX }; /* with those that only listen, whose numbers are higher */

struct trace_holders {
    atomic_uint references;
    pthread_mutex_t lock;
    struct holder holders[ALL_MAX];
    atomic_uint behind; /* how many are; changes under the lock */
};

bool holder_set_is_empty(const struct holder_set *set)
{
    uint64_t any = 0;
    for (int i = 0; i < HOLDER_WORDS; i++)
        any |= set->words[i];
    return any == 0;
}

struct trace_holders *trace_holders_new(void)
{
    struct trace_holders *holders = memory_zalloc(sizeof *holders);
    atomic_init(&holders->references, 1);
    pthread_mutex_init(&holders->lock, NULL);
    return holders;
}

void trace_holders_unref(struct trace_holders *holders)
{
    if (atomic_fetch_sub_explicit(&holders->references, 1, memory_order_acq_rel) > 1)
        return;
    pthread_mutex_destroy(&holders->lock);
    free(holders);
}

static int add(struct trace_holders *holders, const struct holder *holder, int from, int end)
{
    int number = -1;
    pthread_mutex_lock(&holders->lock);
    for (int i = from; i < end && number < 0; i++)
        if (!holders->holders[i].worker) {
            holders->holders[i] = *holder;
            number = i;
        }
    pthread_mutex_unlock(&holders->lock);
    return number;
}

int trace_holders_add(struct trace_holders *holders, const struct holder *holder)
{
    return add(holders, holder, 0, HOLDERS_MAX);
}

int trace_holders_add_listener(struct trace_holders *holders, const struct holder *holder)
{
    return add(holders, holder, HOLDERS_MAX, ALL_MAX);
}

unsigned trace_holders_room(struct trace_holders *holders)
{
    unsigned room = 0;
    pthread_mutex_lock(&holders->lock);
    for (int i = 0; i < HOLDERS_MAX; i++)
        room += holders->holders[i].worker == NULL;
    pthread_mutex_unlock(&holders->lock);
    return room;
}

/* ---- messages ---- */

struct message {
    struct post post;
    struct trace_holders *holders; /* a reference */
    int holder;
    enum holder_message what;
    uint8_t id[TRACE_ID_SIZE];
};

static struct holder read_holder(struct trace_holders *holders, int number)
{
    pthread_mutex_lock(&holders->lock);
    struct holder holder = holders->holders[number];
    pthread_mutex_unlock(&holders->lock);
    return holder;
}

/* The holder may have gone meanwhile, and its number may be another one's, which ignores ids that
 * it does not hold. */
static void on_post(struct worker *worker, struct post *post)
{
    struct message *message = container_of(post, struct message, post);
    struct holder holder = read_holder(message->holders, message->holder);
    if (holder.worker == worker)
        holder.on_message(holder.context, message->what, message->id);
    trace_holders_unref(message->holders);
    free(message);
}

/* Sends a message to a holder; does nothing if there is none of this number. id: NULL: of no
 * trace. */
static void tell(struct trace_holders *holders, int number, enum holder_message what,
                 const uint8_t *id)
{
    struct worker *worker = read_holder(holders, number).worker;
    assert(worker || !id); /* it holds the trace */
    if (!worker)
        return;
    struct message *message = memory_zalloc(sizeof *message);
    message->post.on_post = on_post;
    atomic_fetch_add_explicit(&holders->references, 1, memory_order_relaxed);
    message->holders = holders;
    message->holder = number;
    message->what = what;
    if (id)
        memcpy(message->id, id, TRACE_ID_SIZE);
    worker_post(worker, &message->post);
}

static void tell_all(struct trace_holders *holders, int but, enum holder_message what)
{
    for (int i = 0; i < ALL_MAX; i++)
        if (i != but)
            tell(holders, i, what, NULL);
}

void trace_holders_wake(struct trace_holders *holders, const struct holder_set *set, int but,
                        const uint8_t *id)
{
    for (int i = 0; i < HOLDERS_MAX; i++)
        if (i != but && holder_set_has(set, i))
            tell(holders, i, ASK_ABOUT_TRACE, id);
}

void trace_holders_ask_for_memory(struct trace_holders *holders, int but)
{
    tell_all(holders, but, GIVE_MEMORY);
}

/* ---- those that are behind ---- */

/* Under the lock. Returns whether none is behind any more, although one was. */
static bool set_behind(struct trace_holders *holders, int number, bool is_behind)
{
    struct holder *holder = &holders->holders[number];
    assert(holder->worker);
    if (holder->is_behind == is_behind)
        return false;
    holder->is_behind = is_behind;
    atomic_fetch_add(&holders->behind, is_behind ? 1U : -1U);
    return atomic_load(&holders->behind) == 0;
}

void trace_holders_tell_change(struct trace_holders *holders, bool are_behind, bool listeners_are)
{
    pthread_mutex_lock(&holders->lock);
    for (int i = 0; i < ALL_MAX; i++)
        if (holders->holders[i].worker && (i < HOLDERS_MAX ? are_behind : listeners_are))
            set_behind(holders, i, true);
    pthread_mutex_unlock(&holders->lock);
    tell_all(holders, ALL_HOLDERS, RULES_CHANGED);
}

void trace_holders_fall_behind(struct trace_holders *holders, int holder)
{
    pthread_mutex_lock(&holders->lock);
    set_behind(holders, holder, true);
    pthread_mutex_unlock(&holders->lock);
}

/* Tells all if none is behind any more. */
static void end_behind(struct trace_holders *holders, int number, bool leaves)
{
    struct holder *holder = &holders->holders[number];
    pthread_mutex_lock(&holders->lock);
    bool was_last = holder->worker && set_behind(holders, number, false);
    if (leaves)
        *holder = (struct holder){0};
    pthread_mutex_unlock(&holders->lock);
    if (was_last)
        tell_all(holders, ALL_HOLDERS, ALL_HAVE_READ);
}

void trace_holders_catch_up(struct trace_holders *holders, int holder)
{
    end_behind(holders, holder, false);
}

void trace_holders_remove(struct trace_holders *holders, int holder)
{
    end_behind(holders, holder, true);
}

bool trace_holders_are_behind(const struct trace_holders *holders)
{
    return atomic_load_explicit(&holders->behind, memory_order_relaxed) > 0;
}
