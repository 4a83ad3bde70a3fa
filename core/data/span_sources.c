#include "core/data/span_sources.h"

#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct known_source {
    uint64_t hash; /* of its name */
    uint64_t used_ns;
    uint16_t owner;    /* the source itself, or the peer of a service */
    uint16_t services; /* of an owner */
    bool is_used;
};

struct span_sources {
    pthread_mutex_t lock;
    struct index_table by_hash;
    struct known_source known[SPAN_SOURCES_MAX];
    unsigned count;
    unsigned services;
    uint16_t likely_free; /* the first number that may be free */
};

struct span_sources *span_sources_new(void)
{
    struct span_sources *sources = memory_zalloc(sizeof *sources);
    size_t bytes = index_table_bytes(SPAN_SOURCES_MAX);
    index_table_move(&sources->by_hash, memory_zalloc(bytes), bytes);
    pthread_mutex_init(&sources->lock, NULL);
    sources->likely_free = 1;
    return sources;
}

void span_sources_free(struct span_sources *sources)
{
    if (!sources)
        return;
    pthread_mutex_destroy(&sources->lock);
    free(sources->by_hash.slots);
    free(sources);
}

/* Returns the number of a source; 0 if there is none. */
static uint16_t find(const struct span_sources *sources, uint64_t hash)
{
    struct index_probe probe = index_table_probe(&sources->by_hash, (uint32_t)hash);
    for (uint32_t number; index_table_next(&sources->by_hash, &probe, &number);)
        if (sources->known[number].hash == hash)
            return (uint16_t)number;
    return 0;
}

static uint16_t take_number(struct span_sources *sources)
{
    while (sources->likely_free < SPAN_SOURCES_MAX && sources->known[sources->likely_free].is_used)
        sources->likely_free++;
    return sources->likely_free < SPAN_SOURCES_MAX ? sources->likely_free : 0;
}

/* Adds a source. owner: 0 if it is an owner itself. */
static uint16_t add(struct span_sources *sources, uint64_t hash, uint16_t owner)
{
    uint16_t number = take_number(sources);
    if (number == 0)
        return 0;
    assert(!sources->known[number].is_used && sources->count < SPAN_SOURCES_MAX - 1);
    index_table_add_new(&sources->by_hash, (uint32_t)hash, number);
    sources->known[number] =
        (struct known_source){.hash = hash, .owner = owner ? owner : number, .is_used = true};
    sources->count++;
    if (owner) {
        sources->known[owner].services++;
        sources->services++;
        assert(sources->services <= SPAN_SOURCE_SERVICES_MAX);
    }
    return number;
}

static uint16_t find_owner(struct span_sources *sources, uint64_t hash, uint64_t now_ns)
{
    uint16_t number = find(sources, hash);
    if (number == 0)
        number = add(sources, hash, 0);
    if (number != 0)
        sources->known[number].used_ns = now_ns;
    return number;
}

static bool may_have_service(const struct span_sources *sources, uint16_t owner)
{
    return sources->services < SPAN_SOURCE_SERVICES_MAX &&
           sources->known[owner].services < SPAN_OWNER_SERVICES_MAX;
}

/* Returns the number of a service; that of its owner if there are too many. */
static uint16_t find_service(struct span_sources *sources, uint64_t hash, uint16_t owner,
                             uint64_t now_ns)
{
    uint16_t number = find(sources, hash);
    if (number == 0 && may_have_service(sources, owner))
        number = add(sources, hash, owner);
    if (number == 0)
        return owner;
    assert(sources->known[number].owner == owner);
    sources->known[number].used_ns = now_ns;
    return number;
}

enum name_kind { NAME_TENANT = 1, NAME_PEER, NAME_SERVICE, NAME_SCOPE };

static uint64_t hash_of(enum name_kind kind, uint64_t first, uint64_t second)
{
    const uint64_t parts[] = {kind, first, second};
    return hash_bytes(slice_of(parts, sizeof parts)) | 1;
}

struct span_source span_sources_find(struct span_sources *sources, struct slice tenant,
                                     uint64_t peer, struct slice service, uint64_t now_ns)
{
    struct span_source source = {.scope = 0};
    bool has_tenant = tenant.size > 0;
    uint64_t name = has_tenant ? hash_bytes(tenant) : peer;
    uint64_t owner_hash = hash_of(has_tenant ? NAME_TENANT : NAME_PEER, name, 0);
    if (has_tenant)
        source.scope = hash_of(NAME_SCOPE, name, 0);
    pthread_mutex_lock(&sources->lock);
    source.owner = source.number = find_owner(sources, owner_hash, now_ns);
    if (source.owner != 0 && !has_tenant && service.size > 0)
        source.number = find_service(
            sources, hash_of(NAME_SERVICE, owner_hash, hash_bytes(service)), source.owner, now_ns);
    pthread_mutex_unlock(&sources->lock);
    assert((source.owner == 0) == (source.number == 0));
    return source;
}

/* ---- unused sources ---- */

static bool is_over(const struct known_source *known, uint64_t now_ns, uint64_t idle_ns)
{
    return known->is_used && known->services == 0 && now_ns > known->used_ns &&
           now_ns - known->used_ns > idle_ns;
}

static void forget(struct span_sources *sources, uint16_t number)
{
    struct known_source *known = &sources->known[number];
    if (known->owner != number) {
        assert(sources->known[known->owner].services > 0 && sources->services > 0);
        sources->known[known->owner].services--;
        sources->services--;
    }
    index_table_remove(&sources->by_hash, (uint32_t)known->hash, number);
    *known = (struct known_source){.hash = 0};
    if (number < sources->likely_free)
        sources->likely_free = number;
    assert(sources->count > 0);
    sources->count--;
}

void span_sources_forget(struct span_sources *sources, const uint64_t entries[SPAN_SOURCES_MAX],
                         uint64_t now_ns, uint64_t idle_ns)
{
    pthread_mutex_lock(&sources->lock);
    for (uint32_t i = 1; i < SPAN_SOURCES_MAX; i++)
        if (entries[i] == 0 && is_over(&sources->known[i], now_ns, idle_ns))
            forget(sources, (uint16_t)i);
    pthread_mutex_unlock(&sources->lock);
}

unsigned span_sources_count(struct span_sources *sources)
{
    pthread_mutex_lock(&sources->lock);
    unsigned count = sources->count;
    pthread_mutex_unlock(&sources->lock);
    return count;
}
