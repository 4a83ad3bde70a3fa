#include "core/net/peer_counts.h"

#include "core/base/hash.h"
#include "core/base/memory.h"

#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>

enum { BUCKETS = 1024, PREFIX_BYTES = 8 };

struct peer {
    struct peer *next;
    struct in6_addr key;
    unsigned connections;
};

struct peer_counts {
    pthread_mutex_t mutex;
    unsigned limit;
    struct peer *buckets[BUCKETS];
};

struct peer_counts *peer_counts_new(unsigned limit)
{
    assert(limit > 0);
    struct peer_counts *counts = memory_zalloc(sizeof(*counts));
    pthread_mutex_init(&counts->mutex, NULL);
    counts->limit = limit;
    return counts;
}

void peer_counts_free(struct peer_counts *counts)
{
    if (!counts)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (counts->buckets[i]) {
            struct peer *peer = counts->buckets[i];
            counts->buckets[i] = peer->next;
            free(peer);
        }
    pthread_mutex_destroy(&counts->mutex);
    free(counts);
}

/* False: it has no address. */
static bool make_key(const struct sockaddr *address, struct in6_addr *key_out)
{
    struct in6_addr key = {0};
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        key.s6_addr[10] = key.s6_addr[11] = 0xff;
        memcpy(key.s6_addr + 12, &v4->sin_addr, sizeof(v4->sin_addr));
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
        bool is_mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
        memcpy(&key, &v6->sin6_addr, is_mapped ? sizeof(key) : PREFIX_BYTES);
    } else {
        return false;
    }
    *key_out = key;
    return true;
}

/* Where it stands, or would. */
static struct peer **find(struct peer_counts *counts, const struct in6_addr *key)
{
    struct peer **at = &counts->buckets[hash_bytes(slice_of(key, sizeof(*key))) % BUCKETS];
    while (*at && memcmp(&(*at)->key, key, sizeof(*key)) != 0)
        at = &(*at)->next;
    return at;
}

static bool add_one(struct peer_counts *counts, const struct in6_addr *key)
{
    struct peer **at = find(counts, key);
    if (!*at) {
        *at = memory_zalloc(sizeof(**at));
        (*at)->key = *key;
    }
    assert((*at)->connections <= counts->limit);
    if ((*at)->connections == counts->limit)
        return false;
    (*at)->connections++;
    return true;
}

static void remove_one(struct peer_counts *counts, const struct in6_addr *key)
{
    struct peer **at = find(counts, key);
    struct peer *peer = *at;
    assert(peer && peer->connections > 0);
    if (--peer->connections > 0)
        return;
    *at = peer->next;
    free(peer);
}

bool peer_counts_add(struct peer_counts *counts, const struct sockaddr *address)
{
    struct in6_addr key;
    if (!make_key(address, &key))
        return true;
    pthread_mutex_lock(&counts->mutex);
    bool added = add_one(counts, &key);
    pthread_mutex_unlock(&counts->mutex);
    return added;
}

void peer_counts_remove(struct peer_counts *counts, const struct sockaddr *address)
{
    struct in6_addr key;
    if (!make_key(address, &key))
        return;
    pthread_mutex_lock(&counts->mutex);
    remove_one(counts, &key);
    pthread_mutex_unlock(&counts->mutex);
}
