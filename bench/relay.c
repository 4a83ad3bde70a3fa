/*
 * bench_relay: only reads and writes sockets. What it costs per GB is the limit for anything that
 * moves data from one connection to another.
 *
 *     bench_relay TO_PORT      prints the port it listens on; ends with SIGTERM
 */
#include "bench/sockets.h"
#include "core/base/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 * 1024 };

/* One direction of a connection: what was read from `end` and is not yet written to the peer. */
struct end {
    int fd;
    struct end *peer;
    uint8_t *buffer;
    size_t from, to;
    uint32_t events;
};

static int poll_fd;

static struct end *end_new(int fd)
{
    struct end *end = memory_zalloc(sizeof *end);
    end->fd = fd;
    end->buffer = memory_alloc(BUFFER_BYTES);
    end->events = EPOLLIN;
    return end;
}

static void open_pair(int listener, uint16_t to_port)
{
    int fd = socket_accept(listener);
    if (fd < 0)
        return;
    struct end *a = end_new(fd), *b = end_new(socket_connect(to_port));
    if (b->fd < 0)
        die("connect");
    a->peer = b;
    b->peer = a;
    poll_add(poll_fd, a->fd, EPOLLIN, a);
    poll_add(poll_fd, b->fd, EPOLLIN, b);
}

static void wait_for(struct end *end)
{
    uint32_t events = 0;
    if (end->from == end->to)
        events |= EPOLLIN;
    if (end->peer->from < end->peer->to)
        events |= EPOLLOUT;
    if (events != end->events)
        poll_change(poll_fd, end->fd, events, end);
    end->events = events;
}

/* False: the connection is over. */
static bool move(struct end *end)
{
    if (end->from == end->to) {
        ssize_t got = recv(end->fd, end->buffer, BUFFER_BYTES, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return false;
        end->from = 0;
        end->to = got > 0 ? (size_t)got : 0;
    }
    if (end->from < end->to) {
        ssize_t sent = send(end->peer->fd, end->buffer + end->from, end->to - end->from, 0);
        if (sent < 0 && errno != EAGAIN)
            return false;
        end->from += sent > 0 ? (size_t)sent : 0;
    }
    wait_for(end);
    wait_for(end->peer);
    return true;
}

/* The structs stay: an event for the other end may still be on its way. */
static void close_pair(struct end *end)
{
    struct end *ends[] = {end, end->peer};
    for (int i = 0; i < 2; i++) {
        if (ends[i]->fd >= 0)
            close(ends[i]->fd);
        ends[i]->fd = -1;
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: bench_relay TO_PORT\n");
        return 1;
    }
    uint16_t port;
    uint16_t to_port = (uint16_t)number_argument(argv[1]);
    int listener = socket_listen(0, &port);
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    poll_signals(poll_fd);
    poll_add(poll_fd, listener, EPOLLIN, &listener);
    printf("%u\n", port);
    fflush(stdout);
    for (;;) {
        struct epoll_event events[64];
        int count = epoll_wait(poll_fd, events, 64, -1);
        for (int i = 0; i < count; i++) {
            struct end *end = events[i].data.ptr;
            if (!end)
                return 0;
            if (events[i].data.ptr == &listener) {
                open_pair(listener, to_port);
                continue;
            }
            bool alive = end->fd >= 0;
            if (alive && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                alive = move(end);
            if (alive && events[i].events & EPOLLOUT)
                alive = move(end->peer);
            if (!alive)
                close_pair(end);
        }
    }
}
