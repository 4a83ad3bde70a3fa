#include "core/process_log.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

static int compare_members(const void *one, const void *other)
{
    const struct log_member *left = one, *right = other;
    return strcmp(left->name, right->name);
}

struct log_setup *process_log_new(const struct config_telemetry *settings,
                                  const struct process_resource *resource, struct error *err)
{
    const struct config_pairs *pairs = &resource->pairs;
    struct log_options options = settings->log;
    struct log_member *members = memory_array(pairs->count + 1, sizeof *members);
    for (size_t i = 0; i < pairs->count; i++)
        members[i] = (struct log_member){pairs->items[i].name, pairs->items[i].value};
    qsort(members, pairs->count, sizeof *members, compare_members);
    options.resource = members;
    options.resource_count = pairs->count;
    struct log_setup *made = log_setup_new(&options, err);
    free(members); /* copied */
    return made;
}
