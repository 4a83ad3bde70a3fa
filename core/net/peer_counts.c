#include "core/net/peer_counts.h"

#include "core/base/hash.h"
#include "core/base/memory.h"

#include <assert.h>
#include <pthread.h>

enum { BUCKETS = 1024 };

struct peer {
    struct peer *next;
    uint64_t key;
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
    struct peer_counts *counts = memory_zalloc(sizeof *counts);
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

/* Returns the slot of a client, or the one where it would be added. */
static struct peer **find(struct peer_counts *counts, uint64_t key)
{
    struct peer **at = &counts->buckets[hash_u64(key) % BUCKETS];
    while (*at && (*at)->key != key)
        at = &(*at)->next;
    return at;
}

static bool add_one(struct peer_counts *counts, uint64_t key)
{
    struct peer **at = find(counts, key);
    if (!*at) {
        *at = memory_zalloc(sizeof(**at));
        (*at)->key = key;
    }
    assert((*at)->connections <= counts->limit);
    if ((*at)->connections == counts->limit)
        return false;
    (*at)->connections++;
    return true;
}

static void remove_one(struct peer_counts *counts, uint64_t key)
{
    struct peer **at = find(counts, key);
    struct peer *peer = *at;
    assert(peer && peer->connections > 0);
    if (--peer->connections > 0)
        return;
    *at = peer->next;
    free(peer);
}

bool peer_counts_add(struct peer_counts *counts, uint64_t key)
{
    if (key == 0)
        return true;
    pthread_mutex_lock(&counts->mutex);
    bool added = add_one(counts, key);
    pthread_mutex_unlock(&counts->mutex);
    return added;
}

void peer_counts_remove(struct peer_counts *counts, uint64_t key)
{
    if (key == 0)
        return;
    pthread_mutex_lock(&counts->mutex);
    remove_one(counts, key);
    pthread_mutex_unlock(&counts->mutex);
}
