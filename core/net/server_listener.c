/*
 * The listening descriptor. main binds it; the first worker polls it, and passes each connection to
 * the worker with the fewest.
 */
#include "config/config.h"
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/net/peer_key.h"
#include "core/net/server_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    ACCEPTS_PER_EVENT = 64,
    OUT_OF_DESCRIPTORS_PAUSE_MS = 100,
    LINGER_MS = 200, /* longer than most round trips */
};

/* ---- binding ---- */

struct bind_address {
    struct sockaddr_storage storage;
    socklen_t size;
    int family;
    bool v6_only;
};

/* An address that servers are bound to: of one, or during a reload of an old and a new one, which
 * then have duplicates of one descriptor. */
struct bound_address {
    struct list_link link; /* of all_bound */
    struct bind_address address;
    char *unix_path; /* a file to remove at the end; NULL: none */
    struct list servers;
    bool is_offered;
    bool is_left; /* its only server ends, and accepts those whose handshake had begun: any new
                     server may have the address */
    struct server *successor; /* has the same port on other addresses and takes over the clients
                                 that wait here; NULL: none */
};

/* The addresses of this process. Servers are closed on workers. */
static struct list all_bound;
static pthread_mutex_t all_bound_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_same_address(const struct bind_address *one, const struct bind_address *other)
{
    return one->size == other->size && one->v6_only == other->v6_only &&
           memcmp(&one->storage, &other->storage, one->size) == 0;
}

static uint16_t port_of(const struct bind_address *address)
{
    if (address->family == AF_INET)
        return ntohs(((const struct sockaddr_in *)&address->storage)->sin_port);
    if (address->family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&address->storage)->sin6_port);
    return 0;
}

static bool is_any_address(const struct bind_address *address)
{
    if (address->family == AF_INET)
        return ((const struct sockaddr_in *)&address->storage)->sin_addr.s_addr == INADDR_ANY;
    return address->family == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)&address->storage)->sin6_addr);
}

static bool overlap(const struct bind_address *one, const struct bind_address *other)
{
    return port_of(one) > 0 && port_of(one) == port_of(other) &&
           (is_any_address(one) || is_any_address(other));
}

static bool is_available(const struct bound_address *bound)
{
    return bound->is_offered || bound->is_left;
}

/* Makes the server the successor of those on other, available addresses that overlap. */
static void succeed_offered(struct server *server, const struct bind_address *address)
{
    for (struct list_link *link = all_bound.first; link; link = link->next) {
        struct bound_address *other = container_of(link, struct bound_address, link);
        if (other != server->bound && is_available(other) && overlap(&other->address, address))
            other->successor = server;
    }
}

/* Makes the kernel ignore the SYN of new clients, who send it again a second later. Handshakes that
 * have begun go on. */
static void ignore_new_clients(int fd)
{
    enum { FLAGS_OFFSET = 13, SYN_AND_ACK = 0x12, SYN = 0x02 }; /* of a TCP header: RFC 9293 3.1 */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS_OFFSET),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN_AND_ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

/* Ends that for an address that is used again. Its clients no longer go to another server. */
static void admit_new_clients(struct bound_address *bound)
{
    const struct server *one = container_of(bound->servers.first, struct server, bound_link);
    int unused = 0;
    bound->successor = NULL;
    setsockopt(one->listen_fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused);
}

/* Gives the server a descriptor of an address that is available. */
static bool take_offered(struct server *server, const struct bind_address *address)
{
    bool is_taken = false;
    pthread_mutex_lock(&all_bound_lock);
    for (struct list_link *link = all_bound.first; link && !is_taken; link = link->next) {
        struct bound_address *bound = container_of(link, struct bound_address, link);
        if (!is_available(bound) || !is_same_address(&bound->address, address))
            continue;
        const struct server *other = container_of(bound->servers.first, struct server, bound_link);
        server->listen_fd = fcntl(other->listen_fd, F_DUPFD_CLOEXEC, 0);
        if (server->listen_fd < 0)
            break; /* bind() then says what is wrong */
        list_append(&bound->servers, &server->bound_link);
        bound->is_offered = bound->is_left = false;
        server->bound = bound;
        admit_new_clients(bound);
        is_taken = true;
    }
    if (is_taken)
        succeed_offered(server, address);
    pthread_mutex_unlock(&all_bound_lock);
    return is_taken;
}

static void add_bound(struct server *server, const struct bind_address *address)
{
    struct bound_address *bound = memory_zalloc(sizeof *bound);
    const struct sockaddr_un *path = (const struct sockaddr_un *)&address->storage;
    bound->address = *address;
    if (address->family == AF_UNIX && path->sun_path[0])
        bound->unix_path = memory_strdup(path->sun_path);
    list_append(&bound->servers, &server->bound_link);
    server->bound = bound;
    pthread_mutex_lock(&all_bound_lock);
    list_append(&all_bound, &bound->link);
    pthread_mutex_unlock(&all_bound_lock);
}

static void bound_free(struct bound_address *bound)
{
    if (bound->unix_path)
        unlink(bound->unix_path);
    free(bound->unix_path);
    free(bound);
}

/* Gives those whose successor leaves this address the next one. */
static void replace_successor(const struct server *leaving, const struct bound_address *left)
{
    struct server *next = left->successor;
    if (left->servers.last)
        next = container_of(left->servers.last, struct server, bound_link);
    for (struct list_link *link = all_bound.first; link; link = link->next) {
        struct bound_address *other = container_of(link, struct bound_address, link);
        if (other->successor != leaving || other == left)
            continue;
        const struct server *waiting =
            container_of(other->servers.first, struct server, bound_link);
        other->successor = waiting->lingering && next != waiting ? next : NULL;
    }
}

/* All under the lock: another server duplicates the descriptor before, or binds the address after
 * it is free. */
static void leave_bound(struct server *server)
{
    struct bound_address *bound = server->bound;
    server->bound = NULL;
    if (!bound)
        return;
    pthread_mutex_lock(&all_bound_lock);
    list_remove(&bound->servers, &server->bound_link);
    replace_successor(server, bound);
    if (bound->servers.count == 0) {
        list_remove(&all_bound, &bound->link);
        bound_free(bound);
    }
    close(server->listen_fd);
    server->listen_fd = -1;
    pthread_mutex_unlock(&all_bound_lock);
}

void server_offer_addresses(const char *label)
{
    pthread_mutex_lock(&all_bound_lock);
    for (struct list_link *link = all_bound.first; link; link = link->next) {
        struct bound_address *bound = container_of(link, struct bound_address, link);
        for (struct list_link *each = bound->servers.first; each; each = each->next)
            bound->is_offered |=
                strcmp(container_of(each, struct server, bound_link)->label, label) == 0;
    }
    pthread_mutex_unlock(&all_bound_lock);
}

void server_withdraw_addresses(void)
{
    pthread_mutex_lock(&all_bound_lock);
    for (struct list_link *link = all_bound.first; link; link = link->next)
        container_of(link, struct bound_address, link)->is_offered = false;
    pthread_mutex_unlock(&all_bound_lock);
}

void server_keep_address(struct server *server)
{
    pthread_mutex_lock(&all_bound_lock);
    if (server->bound)
        server->bound->is_offered = false;
    pthread_mutex_unlock(&all_bound_lock);
}

static bool is_wildcard(const char *host)
{
    return host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

/* As in Go, "tcp" on all addresses means both families on one socket. */
static void all_addresses(struct bind_address *address, int family, uint16_t port)
{
    if (family == AF_INET) {
        struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&address->storage, &v4, sizeof v4);
        address->size = sizeof v4;
        address->family = AF_INET;
        return;
    }
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memcpy(&address->storage, &v6, sizeof v6);
    address->size = sizeof v6;
    address->family = AF_INET6;
    address->v6_only = family == AF_INET6;
}

/* Looks up a name. As in Go, the first IPv4 address is preferred, so localhost is 127.0.0.1. */
static bool look_up(struct bind_address *address, const char *host, int family, uint16_t port,
                    struct error *err)
{
    struct addrinfo hints = {
        .ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    int rc = getaddrinfo(host, service, &hints, &found);
    if (rc != 0)
        return error_set(err, "%s: %s", host, gai_strerror(rc));
    assert(found);
    const struct addrinfo *chosen = found;
    for (const struct addrinfo *a = found; a; a = a->ai_next)
        if (a->ai_family == AF_INET) {
            chosen = a;
            break;
        }
    assert(chosen->ai_addrlen <= sizeof address->storage);
    memcpy(&address->storage, chosen->ai_addr, chosen->ai_addrlen);
    address->size = chosen->ai_addrlen;
    address->family = chosen->ai_family;
    address->v6_only = family == AF_INET6;
    freeaddrinfo(found);
    return true;
}

static bool bind_and_listen(int fd, const struct bind_address *address)
{
    return bind(fd, (const struct sockaddr *)&address->storage, address->size) == 0 &&
           listen(fd, SOMAXCONN) == 0;
}

static void set_reuse_port(const struct bound_address *bound, int on)
{
    for (struct list_link *link = bound->servers.first; link; link = link->next)
        setsockopt(container_of(link, struct server, bound_link)->listen_fd, SOL_SOCKET,
                   SO_REUSEPORT, &on, sizeof on);
}

/* Binds a port that is available on addresses that overlap, such as 127.0.0.1 and 0.0.0.0, while
 * the old sockets still listen. bind() permits it if both have SO_REUSEPORT at that moment. */
static bool share_offered_port(struct server *server, int fd, const struct bind_address *address)
{
    int on = 1, off = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    pthread_mutex_lock(&all_bound_lock);
    for (struct list_link *link = all_bound.first; link; link = link->next) {
        struct bound_address *bound = container_of(link, struct bound_address, link);
        if (is_available(bound) && overlap(&bound->address, address))
            set_reuse_port(bound, 1);
    }
    bool ok = bind_and_listen(fd, address);
    int why = errno;
    for (struct list_link *link = all_bound.first; link; link = link->next) {
        struct bound_address *bound = container_of(link, struct bound_address, link);
        if (is_available(bound) && overlap(&bound->address, address))
            set_reuse_port(bound, 0);
    }
    if (ok)
        succeed_offered(server, address);
    pthread_mutex_unlock(&all_bound_lock);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &off, sizeof off);
    errno = why;
    return ok;
}

static bool try_bind(struct server *server, const struct bind_address *address, struct error *err)
{
    assert(server->listen_fd < 0);
    if (take_offered(server, address))
        return true;
    int fd = socket(address->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set_system(err, errno);
    int on = 1, v6_only = address->v6_only;
    if (address->family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
    bool ok = bind_and_listen(fd, address);
    if (!ok && errno == EADDRINUSE && port_of(address) > 0)
        ok = share_offered_port(server, fd, address);
    if (!ok) {
        int why = errno;
        close(fd);
        errno = why; /* for the caller */
        return error_set_system(err, why);
    }
    server->listen_fd = fd;
    add_bound(server, address);
    return true;
}

static void learn_port(struct server *server)
{
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    if (getsockname(server->listen_fd, (struct sockaddr *)&bound, &size) != 0)
        return;
    if (bound.ss_family == AF_INET)
        server->port = ntohs(((struct sockaddr_in *)&bound)->sin_port);
    else if (bound.ss_family == AF_INET6)
        server->port = ntohs(((struct sockaddr_in6 *)&bound)->sin6_port);
}

static bool open_tcp(struct server *server, const char *transport, struct error *err)
{
    char host[256], why[256];
    uint16_t port;
    if (!config_parse_endpoint(slice_of_string(server->options.endpoint), host, sizeof host, &port,
                               why, sizeof why))
        return error_set(err, "%s", why);
    int family = AF_UNSPEC;
    if (strcmp(transport, "tcp4") == 0)
        family = AF_INET;
    else if (strcmp(transport, "tcp6") == 0)
        family = AF_INET6;
    struct bind_address address = {.family = AF_UNSPEC};
    bool is_all = is_wildcard(host);
    if (is_all)
        all_addresses(&address, family, port);
    else if (!look_up(&address, host, family, port, err))
        return false;
    bool ok = try_bind(server, &address, err);
    if (!ok && is_all && family == AF_UNSPEC && errno == EAFNOSUPPORT) {
        all_addresses(&address, AF_INET, port);
        ok = try_bind(server, &address, err);
    }
    if (ok)
        learn_port(server);
    return ok;
}

/* Whether it is a socket file whose process is gone. */
static bool is_stale(const struct bind_address *address)
{
    const struct sockaddr_un *path = (const struct sockaddr_un *)&address->storage;
    struct stat info;
    if (lstat(path->sun_path, &info) != 0 || !S_ISSOCK(info.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool refused =
        connect(fd, (const struct sockaddr *)path, address->size) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

/* Whether the path is a file of another kind, which must not be removed. */
static bool is_other_file(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && !S_ISSOCK(info.st_mode);
}

static bool open_unix(struct server *server, struct error *err)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    if (strlen(server->options.endpoint) >= sizeof path.sun_path)
        return error_set(err, "the path is longer than %zu bytes", sizeof path.sun_path - 1);
    size_t length = strlen(server->options.endpoint);
    memcpy(path.sun_path, server->options.endpoint, length + 1);
    struct bind_address address = {.size = sizeof path, .family = AF_UNIX};
    bool is_abstract = path.sun_path[0] == '@'; /* as in Go: a name that is no file (unix(7)) */
    if (is_abstract) {
        path.sun_path[0] = '\0';
        address.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    }
    memcpy(&address.storage, &path, sizeof path);
    bool ok = try_bind(server, &address, err);
    if (!ok && errno == EADDRINUSE && !is_abstract && is_stale(&address)) {
        unlink(path.sun_path);
        ok = try_bind(server, &address, err);
    }
    server->is_unix = ok;
    if (!ok && !is_abstract && is_other_file(path.sun_path))
        return error_set(err, "the path exists and is not a socket");
    return ok;
}

bool listener_open(struct server *server, struct error *err)
{
    const char *transport = server->options.transport ? server->options.transport : "tcp";
    bool ok =
        strcmp(transport, "unix") == 0 ? open_unix(server, err) : open_tcp(server, transport, err);
    if (!ok)
        return error_prefix(err, "listen on %s", server->options.endpoint);
    server->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return true;
}

void listener_close(struct server *server)
{
    leave_bound(server);
    if (server->reserve_fd >= 0)
        close(server->reserve_fd);
    server->reserve_fd = -1;
}

/* ---- accepting ---- */

struct handover {
    struct post post;
    struct server_part *part;
    int fd;
    struct sockaddr_in6 address;
};

static void connection_lost(struct server_part *part, int fd, const struct sockaddr *address)
{
    close(fd);
    unsigned load = atomic_fetch_sub_explicit(&part->load, 1, memory_order_relaxed);
    assert(load > 0);
    listener_connection_ended(part->server, peer_key(address));
}

static bool is_full(const struct server *server)
{
    return atomic_load(&server->connections) >= server->max_connections;
}

static void open_here(struct server_part *part, int fd, const struct sockaddr *address)
{
    bool is_lingering = part == part->server->parts && part->server->lingering;
    bool is_closed = part->stopped || (part->draining && !is_lingering);
    struct connection *connection =
        is_closed ? NULL : server_connection_open(part, fd, address, NULL, NULL);
    if (!connection)
        connection_lost(part, fd, address);
    else if (part->server->options.makes_room && is_full(part->server))
        server_connection_make_room(part, connection);
}

static void on_handover(struct worker *worker, struct post *post)
{
    struct handover *handover = container_of(post, struct handover, post);
    assert(worker == handover->part->worker);
    struct server *server = handover->part->server;
    open_here(handover->part, handover->fd, (const struct sockaddr *)&handover->address);
    free(handover);
    server_unref(server);
}

static struct server_part *least_loaded(struct server *server)
{
    struct server_part *best = &server->parts[0];
    unsigned best_load = atomic_load_explicit(&best->load, memory_order_relaxed);
    for (unsigned i = 1; i < server->part_count; i++) {
        unsigned load = atomic_load_explicit(&server->parts[i].load, memory_order_relaxed);
        if (load < best_load) {
            best = &server->parts[i];
            best_load = load;
        }
    }
    return best;
}

static struct server_part *most_loaded(struct server *server)
{
    struct server_part *best = &server->parts[0];
    for (unsigned i = 1; i < server->part_count; i++)
        if (atomic_load_explicit(&server->parts[i].load, memory_order_relaxed) >
            atomic_load_explicit(&best->load, memory_order_relaxed))
            best = &server->parts[i];
    return best;
}

/* Only the first part of a server that lingers waits until that ends before it is drained. The last
 * connection that may be opened goes where another one can give way to the next. */
static struct server_part *choose_part(struct server *server)
{
    if (server->lingering)
        return &server->parts[0];
    bool makes_room = server->options.makes_room && is_full(server);
    return makes_room ? most_loaded(server) : least_loaded(server);
}

/* Closes a connection whose client has reached max_connections_per_ip. */
static void refuse_peer(struct server *server, int fd, const struct sockaddr_in6 *address)
{
    const struct worker *worker = server->parts[0].worker;
    close(fd);
    server_count_closed(server, worker->index, CLOSE_PER_IP);
    uint64_t count = log_interval_add(&server->refused_per_ip, 1, worker->now_ns);
    if (count == 0)
        return;
    char peer[INET6_ADDRSTRLEN];
    peer_print((const struct sockaddr *)address, peer);
    log_warn(log_component(server->label),
             "Connections were closed because their address had reached max_connections_per_ip",
             LOG_U64("max_connections_per_ip", server->options.max_connections_per_ip),
             LOG_U64("closed_connections", count), LOG_TEXT("last_address", peer));
}

static void hand_over(struct server *server, int fd, const struct sockaddr_in6 *address)
{
    assert(worker_is_current(server->parts[0].worker));
    int on = 1;
    uint64_t key = server->peers ? peer_key((const struct sockaddr *)address) : 0;
    if (server->peers && !peer_counts_add(server->peers, key)) {
        refuse_peer(server, fd, address);
        return;
    }
    if (!server->is_unix)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    atomic_fetch_add(&server->connections, 1);
    if (server->open_gauge)
        gauge_add(server->open_gauge, 1);
    struct server_part *part = choose_part(server);
    atomic_fetch_add_explicit(&part->load, 1, memory_order_relaxed);
    if (part == server->parts) {
        open_here(part, fd, (const struct sockaddr *)address);
        return;
    }
    struct handover *handover = memory_zalloc(sizeof *handover);
    *handover =
        (struct handover){.post.on_post = on_handover, .part = part, .fd = fd, .address = *address};
    atomic_fetch_add_explicit(&server->references, 1, memory_order_relaxed);
    worker_post(part->worker, &handover->post);
}

static void on_listen(uv_poll_t *handle, int status, int events);

static void listen_again(struct server *server)
{
    if (server->listening && !server->lingering)
        uv_poll_start(&server->listen_poll, UV_READABLE, on_listen);
}

static void log_full(struct server *server)
{
    uint64_t now = server->parts[0].worker->now_ns;
    if (log_interval_add(&server->times_full, 1, now) > 0)
        log_warn(log_component(server->label),
                 "max_connections is reached: new clients wait until another connection ends",
                 LOG_U64("max_connections", server->max_connections));
}

/* Returns true if the limit is reached; accepting then pauses until listener_connection_ended. */
static bool pause_when_full(struct server *server)
{
    if (!is_full(server))
        return false;
    atomic_store(&server->accept_paused, true);
    /* A connection may have ended before accept_paused was set. */
    if (!is_full(server)) {
        atomic_store(&server->accept_paused, false);
        return false;
    }
    uv_poll_stop(&server->listen_poll);
    if (!server->options.makes_room) /* which is over in a moment, or too many requests wait */
        log_full(server);
    return true;
}

/* Closes a connection, so that its client notices, and pauses, so that the loop does not spin. */
static void shed(struct server *server, int fd)
{
    if (fd >= 0) {
        close(fd);
        server_count_closed(server, server->parts[0].worker->index, CLOSE_NO_DESCRIPTOR);
    }
    uv_poll_stop(&server->listen_poll);
    worker_set_timer(server->parts[0].worker, &server->accept_timer,
                     OUT_OF_DESCRIPTORS_PAUSE_MS * (SECOND_NS / 1000));
}

/* Accepts the waiting connection and closes it. */
static void shed_next(struct server *server)
{
    int fd = -1;
    if (server->reserve_fd >= 0) {
        close(server->reserve_fd);
        fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    }
    shed(server, fd);
    if (server->reserve_fd >= 0)
        server->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void on_listen(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    struct server *server = handle->data;
    assert(server->listening && server->listen_fd >= 0);
    worker_now(server->parts[0].worker);
    for (int i = 0; i < ACCEPTS_PER_EVENT && !pause_when_full(server); i++) {
        struct sockaddr_storage peer = {0};
        socklen_t size = sizeof peer;
        int fd = accept4(server->listen_fd, (struct sockaddr *)&peer, &size,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= server->descriptor_limit) {
            log_warn(log_component(server->label),
                     "Cannot accept a connection: the other descriptors are reserved for files and "
                     "outgoing connections. Raise the limit on open files (ulimit -n)",
                     LOG_U64("descriptors", fd));
            shed(server, fd);
            return;
        }
        if (fd >= 0) {
            struct sockaddr_in6 address;
            memcpy(&address, &peer, sizeof address);
            hand_over(server, fd, &address);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            log_warn(log_component(server->label), "Cannot accept a connection",
                     LOG_TEXT("error", strerror(errno)));
            shed_next(server);
        }
        if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

static void on_accept_timer(struct timer *timer)
{
    struct server *server = container_of(timer, struct server, accept_timer);
    assert(server->listening); /* listener_stop cancels the timer */
    listen_again(server);
}

static void on_resume(struct worker *worker, struct post *post)
{
    (void)worker;
    struct server *server = container_of(post, struct server, resume_post);
    atomic_store(&server->resume_posted, false);
    listen_again(server);
    server_unref(server);
}

void listener_connection_ended(struct server *server, uint64_t key)
{
    if (server->peers)
        peer_counts_remove(server->peers, key);
    unsigned connections = atomic_fetch_sub(&server->connections, 1);
    assert(connections > 0);
    if (server->open_gauge)
        gauge_add(server->open_gauge, -1);
    if (!atomic_load(&server->accept_paused) || !atomic_exchange(&server->accept_paused, false))
        return;
    if (atomic_exchange(&server->resume_posted, true))
        return;
    atomic_fetch_add_explicit(&server->references, 1, memory_order_relaxed);
    server->resume_post.on_post = on_resume;
    worker_post(server->parts[0].worker, &server->resume_post);
}

static void on_listen_closed(uv_handle_t *handle)
{
    struct server *server = handle->data;
    struct server_part *part = server->parts;
    part->live--;
    server_part_unlive(part);
}

void listener_start(struct server *server)
{
    assert(!server->listening);
    struct server_part *part = server->parts;
    if (server->listen_fd < 0 || part->worker->manual)
        return;
    int rc = uv_poll_init(&part->worker->loop, &server->listen_poll, server->listen_fd);
    assert(rc == 0);
    server->listen_poll.data = server;
    server->accept_timer.on_timer = on_accept_timer;
    server->listening = true;
    part->live++;
    listen_again(server);
}

/* Returns the server that accepts clients of this one's port now; NULL: none. */
static struct server *successor_of(const struct server *server)
{
    pthread_mutex_lock(&all_bound_lock);
    struct server *successor = server->bound ? server->bound->successor : NULL;
    while (successor && successor->lingering) /* further reloads have followed */
        successor = successor->bound->successor;
    pthread_mutex_unlock(&all_bound_lock);
    if (!successor || !successor->listening)
        return NULL;
    assert(successor->parts[0].worker == server->parts[0].worker); /* so it is not stopped now */
    return successor;
}

/* Whether no other server has a duplicate of the descriptor. Otherwise that one accepts. */
static bool is_alone(const struct server *server)
{
    pthread_mutex_lock(&all_bound_lock);
    bool is_shared = server->bound && server->bound->servers.count > 1;
    pthread_mutex_unlock(&all_bound_lock);
    return !is_shared;
}

/* Returns the server for clients that still wait at one that ends: that which has the port now, or
 * the same one. NULL: another one polls the same queue. */
static struct server *server_for_waiting(struct server *server)
{
    struct server *successor = successor_of(server);
    if (successor)
        return successor;
    return server->lingering && is_alone(server) ? server : NULL;
}

/* Accepts the clients that still wait. */
static void accept_waiting(struct server *server)
{
    struct server *target = server_for_waiting(server);
    while (target && !pause_when_full(target)) {
        struct sockaddr_in6 peer = {0};
        socklen_t size = sizeof peer;
        int fd = accept4(server->listen_fd, (struct sockaddr *)&peer, &size,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        hand_over(target, fd, &peer);
    }
}

static void on_linger_readable(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    struct server *server = handle->data;
    worker_now(server->parts[0].worker);
    if (server_for_waiting(server))
        accept_waiting(server);
    else
        uv_poll_stop(handle);
}

static void on_linger_end(struct timer *timer)
{
    struct server *server = container_of(timer, struct server, accept_timer);
    assert(server->lingering);
    listener_stop(server);
    server_part_check_drained(server->parts);
}

/* Lets the next server that wants the address have it, whoever that is. */
static void leave_address(struct server *server)
{
    pthread_mutex_lock(&all_bound_lock);
    if (server->bound)
        server->bound->is_left = server->bound->servers.count == 1 && !server->bound->successor;
    pthread_mutex_unlock(&all_bound_lock);
}

void listener_retire(struct server *server)
{
    if (!server->listening || (!successor_of(server) && !is_alone(server))) {
        listener_stop(server);
        return;
    }
    assert(!server->lingering);
    server->lingering = true;
    leave_address(server);
    if (!server->is_unix)
        ignore_new_clients(server->listen_fd);
    accept_waiting(server);
    uv_poll_start(&server->listen_poll, UV_READABLE, on_linger_readable);
    server->accept_timer.on_timer = on_linger_end;
    worker_set_timer(server->parts[0].worker, &server->accept_timer,
                     LINGER_MS * (SECOND_NS / 1000));
}

void listener_stop(struct server *server)
{
    struct server_part *part = server->parts;
    if (server->listening) {
        accept_waiting(server);
        server->listening = server->lingering = false;
        worker_cancel_timer(part->worker, &server->accept_timer);
        uv_close((uv_handle_t *)&server->listen_poll, on_listen_closed);
    }
    listener_close(server);
}
