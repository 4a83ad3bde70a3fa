#include "processors/tail_sampling/trace_holders.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/data/otlp.h"

#include <assert.h>
#include <string.h>

struct trace_holders {
    atomic_uint references;
    pthread_mutex_t lock;
    struct holder holders[HOLDERS_MAX];
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

int trace_holders_add(struct trace_holders *holders, const struct holder *holder)
{
    int number = -1;
    pthread_mutex_lock(&holders->lock);
    for (int i = 0; i < HOLDERS_MAX && number < 0; i++)
        if (!holders->holders[i].worker) {
            holders->holders[i] = *holder;
            number = i;
        }
    pthread_mutex_unlock(&holders->lock);
    return number;
}

void trace_holders_remove(struct trace_holders *holders, int holder)
{
    pthread_mutex_lock(&holders->lock);
    holders->holders[holder] = (struct holder){0};
    pthread_mutex_unlock(&holders->lock);
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

struct wake {
    struct post post;
    struct trace_holders *holders; /* a reference */
    int holder;
    bool is_shortage; /* without id */
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
static void on_wake_post(struct worker *worker, struct post *post)
{
    struct wake *wake = container_of(post, struct wake, post);
    struct holder holder = read_holder(wake->holders, wake->holder);
    if (holder.worker == worker && wake->is_shortage)
        holder.on_shortage(holder.context);
    else if (holder.worker == worker)
        holder.on_wake(holder.context, wake->id);
    trace_holders_unref(wake->holders);
    free(wake);
}

/* Sends a message to a holder; does nothing if there is none of this number. id: NULL: of a
 * shortage. */
static void send_wake(struct trace_holders *holders, int number, const uint8_t *id)
{
    struct worker *worker = read_holder(holders, number).worker;
    assert(worker || !id); /* it holds the trace */
    if (!worker)
        return;
    struct wake *wake = memory_zalloc(sizeof *wake);
    wake->post.on_post = on_wake_post;
    atomic_fetch_add_explicit(&holders->references, 1, memory_order_relaxed);
    wake->holders = holders;
    wake->holder = number;
    wake->is_shortage = !id;
    if (id)
        memcpy(wake->id, id, TRACE_ID_SIZE);
    worker_post(worker, &wake->post);
}

void trace_holders_wake(struct trace_holders *holders, const struct holder_set *set, int but,
                        const uint8_t *id)
{
    for (int i = 0; i < HOLDERS_MAX; i++)
        if (i != but && holder_set_has(set, i))
            send_wake(holders, i, id);
}

void trace_holders_ask_for_memory(struct trace_holders *holders, int but)
{
    for (int i = 0; i < HOLDERS_MAX; i++)
        if (i != but)
            send_wake(holders, i, NULL);
}
