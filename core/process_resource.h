/*
 * process_resource: the attributes of the process itself (service::telemetry::resource), which its
 * log lines, the metric `target_info` and the metrics that it pushes have.
 *
 * Owner: whoever makes one; it owns copies of everything.
 *
 * Thread: any; it does not change.
 */
#ifndef PROFCOL_CORE_PROCESS_RESOURCE_H
#define PROFCOL_CORE_PROCESS_RESOURCE_H

#include "config/field.h"
#include "core/base/arena.h"

struct process_resource {
    struct arena arena;
    struct config_pairs pairs;
    const char *instance_id; /* the one made, written or not */
};

/* Has the attributes that are written, then the defaults that are neither written nor removed:
 * service.instance.id, service.name, service.version. written: a value NULL removes a default.
 * instance_id: NULL: a new random one. */
struct process_resource *process_resource_new(const struct config_pairs *written,
                                              const char *version, const char *instance_id);
/* Whether both have the same attributes in the same order. */
bool process_resource_equal(const struct process_resource *one,
                            const struct process_resource *other);
/* NULL is allowed. */
void process_resource_free(struct process_resource *resource);

#endif
