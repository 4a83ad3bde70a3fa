/*
 * span_sources: who sends to a span index, as small numbers.
 *
 * A source is a tenant, where the request names one; else a peer, and within a peer a service. The
 * tenant or peer is the source's owner; an owner is a source, too: of what has no service, and of
 * services that are too many. Numbers are bounded: who comes when there is none left shares number
 * 0 with all others like it. A number is free again when nothing of its source is left.
 *
 * Owner: a span_index.
 *
 * Thread: any, under a lock of its own; callers ask once per resource of a request.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_SOURCES_H
#define PROFCOL_CORE_DATA_SPAN_SOURCES_H

#include "core/base/slice.h"

enum {
    SPAN_SOURCES_MAX = 1024,        /* number 0 included */
    SPAN_SOURCE_SERVICES_MAX = 768, /* of all of them; the rest is for tenants and peers */
    SPAN_OWNER_SERVICES_MAX = 256,  /* of one peer */
};

/* All-zero: the one that those share who have no number. */
struct span_source {
    uint64_t scope; /* of the tenant, a keyed hash; 0: none. Ids of different scopes never meet */
    uint16_t number;
    uint16_t owner; /* number of the tenant or peer */
};

struct span_sources;

struct span_sources *span_sources_new(void);
void span_sources_free(struct span_sources *sources);

/* tenant: empty: none is named. peer: any number that stands for it, 0: not known. service: empty:
 * none. now_ns: monotonic. */
struct span_source span_sources_find(struct span_sources *sources, struct slice tenant,
                                     uint64_t peer, struct slice service, uint64_t now_ns);
/* Frees the numbers of sources that have no entries and did not come for idle_ns. */
void span_sources_forget(struct span_sources *sources, const uint64_t entries[SPAN_SOURCES_MAX],
                         uint64_t now_ns, uint64_t idle_ns);
/* Numbers in use, without 0. */
unsigned span_sources_count(struct span_sources *sources);

#endif
