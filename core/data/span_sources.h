/*
 * span_sources: gives the sources of data in a span index small numbers.
 *
 * A source is a tenant if the request names one, otherwise a service of a peer. The tenant or peer
 * is the owner of the source. A peer is also a source itself: of data without a service, and of
 * services beyond its limit. If no number is free, new sources share number 0. A number is free
 * again when nothing of its source is left.
 *
 * Owner: a span_index.
 *
 * Thread: any (it locks); called once per resource of a request.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_SOURCES_H
#define PROFCOL_CORE_DATA_SPAN_SOURCES_H

#include "core/base/slice.h"

enum {
    SPAN_SOURCES_MAX = 1024,        /* including number 0 */
    SPAN_SOURCE_SERVICES_MAX = 768, /* numbers for services; the rest is for tenants and peers */
    SPAN_OWNER_SERVICES_MAX = 256,  /* of one peer */
};

/* All-zero: the source that all sources without a number share. */
struct span_source {
    uint64_t scope; /* keyed hash of the tenant; 0: none. Ids of different scopes never match */
    uint16_t number;
    uint16_t owner; /* number of the tenant or peer */
};

static inline bool span_source_equal(const struct span_source *a, const struct span_source *b)
{
    return a->scope == b->scope && a->number == b->number;
}

struct span_sources;

/* Creates an empty table of sources. */
struct span_sources *span_sources_new(void);
/* Frees the table. */
void span_sources_free(struct span_sources *sources);

/* Returns the source of data; gives it a number if it has none. tenant, service: empty if there is
 * none. peer: a number that identifies it (peer_key.h), 0 if it is not known. now_ns: monotonic. */
struct span_source span_sources_find(struct span_sources *sources, struct slice tenant,
                                     uint64_t peer, struct slice service, uint64_t now_ns);
/* Frees the numbers of sources that have no entries and were not looked up for idle_ns. entries:
 * the number of entries of each source. */
void span_sources_forget(struct span_sources *sources, const uint64_t entries[SPAN_SOURCES_MAX],
                         uint64_t now_ns, uint64_t idle_ns);
/* Returns how many numbers are in use, without 0. */
unsigned span_sources_count(struct span_sources *sources);

#endif
