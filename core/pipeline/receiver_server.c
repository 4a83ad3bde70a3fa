#include "core/pipeline/receiver_server.h"

#include "core/pipeline/server_settings.h"

#include <assert.h>

bool receiver_server_open(struct receiver_server *self, const struct component *component,
                          const struct server_options *options,
                          const struct server_handler *handler, void *context,
                          struct receiver_server *former, struct error *err)
{
    struct process *process = component->process;
    assert(!receiver_server_is_used(self));
    self->options = *options;
    self->handler = handler;
    self->context = context;
    if (former && former->server && server_can_pass(former->server, options)) {
        assert(former->is_started);
        server_keep_address(former->server);
        self->former = former;
        return true;
    }
    self->server =
        server_new(options, handler, context, process->workers, process->worker_count, err);
    return self->server != NULL;
}

bool receiver_server_is_used(const struct receiver_server *self)
{
    return self->server || self->former || self->passed;
}

void receiver_server_take_over(struct receiver_server *self)
{
    struct receiver_server *former = self->former;
    if (!former)
        return;
    assert(!self->server && former->server && !former->passed);
    server_pass(former->server, &self->options, self->handler, self->context);
    self->server = former->passed = former->server;
    self->is_started = true;
    former->server = NULL;
    self->former = NULL;
}

bool receiver_server_start(struct receiver_server *self, const struct node *node)
{
    /* Workers start one after the other. */
    if (!self->server || node->worker->index + 1 < node->component->process->worker_count)
        return false;
    assert(!self->is_started);
    self->is_started = true;
    server_start(self->server);
    return true;
}

bool receiver_server_drain(struct receiver_server *self, const struct node *node,
                           void (*on_drained)(void *context), void *context)
{
    assert(!self->former && !(self->server && self->passed));
    if (self->passed)
        server_leave(self->passed, node->worker, self->context, on_drained, context);
    else if (self->server)
        node_drain_server(node, self->server, on_drained, context);
    return self->passed || self->server;
}

void receiver_server_stop(struct receiver_server *self, const struct node *node)
{
    if (self->server && self->is_started) /* false if another worker could not start its nodes */
        server_stop(self->server, node->worker);
}

void receiver_server_close(struct receiver_server *self)
{
    if (self->server)
        server_free(self->server);
    self->server = NULL;
    self->former = NULL;
}
