/*
 * Who takes the requests of a server. A reload passes a server on to another user; the requests
 * that the former one has taken stay with it until they are answered.
 */
#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/net/server_private.h"

#include <assert.h>

static struct server_user *user_new(const struct server_handler *handler, void *context)
{
    struct server_user *user = memory_zalloc(sizeof *user);
    user->handler = handler;
    user->context = context;
    return user;
}

void server_users_init(struct server *server, const struct server_handler *handler, void *context)
{
    for (unsigned i = 0; i < server->part_count; i++)
        server->parts[i].user = user_new(handler, context);
}

static struct server_user *user_of_link(struct list_link *link)
{
    return container_of(link, struct server_user, link);
}

void server_users_deinit(struct server *server)
{
    for (unsigned i = 0; i < server->part_count; i++) {
        struct server_part *part = &server->parts[i];
        for (struct list_link *link; (link = list_pop(&part->former_users));)
            free(user_of_link(link));
        free(part->user);
    }
}

struct server_user *server_user_of(const struct exchange *exchange)
{
    return exchange->user ? exchange->user : exchange->part->user;
}

void server_user_take(struct exchange *exchange)
{
    assert(!exchange->user);
    exchange->user = exchange->part->user;
    exchange->user->exchanges++;
}

void server_user_release(struct exchange *exchange)
{
    if (!exchange->user)
        return;
    assert(exchange->user->exchanges > 0);
    exchange->user->exchanges--;
    exchange->user = NULL;
}

/* Only between two callbacks of the loop: the user's handler may be on the stack otherwise. */
void server_users_let_go(struct server_part *part)
{
    for (struct list_link *link = part->former_users.first, *next; link; link = next) {
        struct server_user *user = user_of_link(link);
        next = link->next;
        if (user->exchanges > 0 || !user->on_left)
            continue;
        list_remove(&part->former_users, link);
        user->on_left(user->left_context);
        free(user);
    }
}

void server_users_stop(struct server_part *part)
{
    for (struct list_link *link = part->former_users.first; link; link = link->next)
        user_of_link(link)->on_left = NULL;
}

/* ---- passing a server on ---- */

bool server_can_pass(const struct server *server, const struct server_options *options)
{
    const struct server_auth *one = &server->options.auth, *other = &options->auth;
    return one->begin == other->begin && one->context == other->context;
}

/* Whatever the server keeps of the options refers to the new ones. */
static void refer_to(struct server *server, const struct server_options *options)
{
    server->options = *options;
    server_options_complete(&server->options);
    server_set_limits(server);
    cors_free(server->cors);
    server->cors = cors_new(options->cors);
    assert(!server->tls == !(options->tls && options->tls->enabled));
    if (server->tls)
        tls_context_set_settings(server->tls, options->tls);
}

void server_pass(struct server *server, const struct server_options *options,
                 const struct server_handler *handler, void *context)
{
    assert(server_can_pass(server, options));
    for (unsigned i = 0; i < server->part_count; i++) {
        struct server_part *part = &server->parts[i];
        assert(worker_is_current(part->worker) && !part->draining && !part->stopped);
        list_append(&part->former_users, &part->user->link);
        part->user = user_new(handler, context);
    }
    refer_to(server, options);
}

void server_leave(struct server *server, struct worker *worker, const void *context,
                  void (*on_left)(void *context), void *left_context)
{
    assert(worker >= server->workers && worker < server->workers + server->part_count);
    struct server_part *part = &server->parts[worker - server->workers];
    assert(worker_is_current(worker));
    struct list_link *link = part->former_users.first;
    while (link && user_of_link(link)->context != context)
        link = link->next;
    assert(link); /* it stays until this call */
    struct server_user *user = user_of_link(link);
    assert(!user->on_left);
    user->on_left = on_left;
    user->left_context = left_context;
    server_users_let_go(part);
}
