/*
 * service_naming: the service under which the profiles of an instance stand: that of the spans
 * which their samples name.
 *
 * An instance (instances.h) has a struct service_naming. Its spans say which service it is. If an
 * upload of profiles has samples of such spans, the instance that uploads learns that service. It
 * keeps it while its uploads go on, also if they have no samples of spans. If it has learned of
 * two services within a window, it is not known which one is meant, and names stay. If the first
 * one was named longer ago, the service has changed.
 *
 * Owner: the instance; names are shared by all who learned them.
 *
 * Thread: one at a time (instances.h locks).
 */
#ifndef PROFCOL_CORE_DATA_SERVICE_NAMING_H
#define PROFCOL_CORE_DATA_SERVICE_NAMING_H

#include "core/base/slice.h"

enum { SERVICE_NAME_MAX = 255 }; /* in bytes; a longer name, or namespace, is not learned */

/* A service as a resource names it: service.name and service.namespace; empty: absent. */
struct service_id {
    struct slice name;
    struct slice space;
};

struct shared_service;

/* A zeroed one is valid: nothing is known. */
struct service_naming {
    struct shared_service *of_spans; /* the service that its spans name; NULL: none */
    struct shared_service *learned;  /* that of the spans which its samples name; NULL: none */
    uint64_t spans_ns;               /* when its spans named this service last */
    uint64_t other_spans_ns;         /* and another one; 0: never */
    uint64_t learned_ns;             /* last upload */
    uint64_t named_ns;       /* when its samples named spans of the service that was learned */
    uint64_t other_named_ns; /* and of another one; 0: never */
};

void service_naming_deinit(struct service_naming *naming);
/* Returns the memory of its names in bytes. */
size_t service_naming_memory(const struct service_naming *naming);

/* Notes that spans of the instance name this service. A name that is absent, too long, or begins
 * with "unknown_service" (what SDKs send when nobody gave them a name) is ignored. */
void service_naming_note(struct service_naming *naming, const struct service_id *service,
                         uint64_t now_ns);
/* Learns from samples of spans of the other instance. */
void service_naming_learn(struct service_naming *naming, const struct service_naming *of_spans,
                          uint64_t now_ns);
/* Keeps what was learned for another window, because an upload has arrived. Call it after
 * service_naming_learn. */
void service_naming_keep(struct service_naming *naming, uint64_t now_ns, uint64_t window_ns);

enum service_verdict {
    SERVICE_STAYS,   /* nothing else is known */
    SERVICE_CHANGES, /* it is another one */
    SERVICE_IS_DISPUTED,
};
/* Decides about profiles with this service. *is_out: which one it is, for SERVICE_CHANGES; valid
 * until the naming changes. A namespace changes only if the spans have one. */
enum service_verdict service_naming_decide(const struct service_naming *naming,
                                           const struct service_id *service, uint64_t now_ns,
                                           uint64_t window_ns, struct service_id *is_out);

#endif
