#include "core/base/container_of.h"
#include "core/net/server_private.h"

#include <assert.h>

enum { TURN_BYTES = 1024 * 1024 };

static void begin_turn(struct server_part *part)
{
    if (part->turn == part->worker->turn)
        return;
    part->turn = part->worker->turn;
    part->turn_bytes = 0;
}

bool server_turn_is_over(struct server_part *part)
{
    begin_turn(part);
    return part->ready.count > 0 || part->turn_bytes >= TURN_BYTES;
}

void server_turn_count(struct server_part *part, size_t size_bytes)
{
    begin_turn(part);
    part->turn_bytes += size_bytes;
}

static void on_turn(struct timer *timer)
{
    struct server_part *part = container_of(timer, struct server_part, turn_timer);
    begin_turn(part);
    do {
        struct exchange *exchange = container_of(list_pop(&part->ready), struct exchange, ready);
        assert(exchange->state == EXCHANGE_READY && exchange->connection);
        server_exchange_deliver(exchange);
    } while (part->ready.count > 0 && part->turn_bytes < TURN_BYTES);
    if (part->ready.count > 0)
        worker_set_timer(part->worker, &part->turn_timer, 0);
}

void server_turn_wait(struct exchange *exchange)
{
    struct server_part *part = exchange->part;
    assert(exchange->state == EXCHANGE_BODY && exchange->body_complete && !part->stopped);
    exchange->state = EXCHANGE_READY;
    list_append(&part->ready, &exchange->ready);
    if (part->ready.count > 1)
        return;
    part->turn_timer.on_timer = on_turn;
    worker_set_timer(part->worker, &part->turn_timer, 0);
}

void server_turn_leave(struct exchange *exchange)
{
    struct server_part *part = exchange->part;
    if (!list_has(&part->ready, &exchange->ready))
        return;
    list_remove(&part->ready, &exchange->ready);
    if (part->ready.count == 0)
        worker_cancel_timer(part->worker, &part->turn_timer);
}
