#include "core/process_resource.h"

#include "core/base/hash.h"
#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Returns a random UUID (RFC 9562, version 4). */
static const char *make_instance_id(struct arena *arena)
{
    uint64_t high = random_u64(), low = random_u64();
    return arena_printf(arena, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(high >> 32),
                        (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xfff),
                        (unsigned)(0x8000 | (low >> 48 & 0x3fff)),
                        (unsigned long long)(low & 0xffffffffffff));
}

static bool has(const struct config_pairs *pairs, const char *name)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->items[i].name, name) == 0)
            return true;
    return false;
}

static struct config_pair copy_pair(struct arena *arena, const struct config_pair *pair)
{
    return (struct config_pair){arena_strdup(arena, pair->name), arena_strdup(arena, pair->value)};
}

struct process_resource *process_resource_new(const struct config_pairs *written,
                                              const char *version, const char *instance_id)
{
    struct process_resource *resource = memory_zalloc(sizeof *resource);
    struct arena *arena = &resource->arena;
    struct config_pairs *all = &resource->pairs;
    arena_init(arena, NULL);
    resource->instance_id =
        instance_id ? arena_strdup(arena, instance_id) : make_instance_id(arena);
    const struct config_pair defaults[] = {{"service.instance.id", resource->instance_id},
                                           {"service.name", "profcol"},
                                           {"service.version", version}};
    enum { DEFAULT_COUNT = sizeof defaults / sizeof defaults[0] };
    all->items = arena_array(arena, written->count + DEFAULT_COUNT, sizeof *all->items);
    for (size_t i = 0; i < written->count; i++)
        if (written->items[i].value)
            all->items[all->count++] = copy_pair(arena, &written->items[i]);
    for (size_t i = 0; i < DEFAULT_COUNT; i++)
        if (!has(written, defaults[i].name))
            all->items[all->count++] = copy_pair(arena, &defaults[i]);
    return resource;
}

bool process_resource_equal(const struct process_resource *one,
                            const struct process_resource *other)
{
    if (one->pairs.count != other->pairs.count)
        return false;
    for (size_t i = 0; i < one->pairs.count; i++) {
        const struct config_pair *left = &one->pairs.items[i], *right = &other->pairs.items[i];
        if (strcmp(left->name, right->name) != 0 || strcmp(left->value, right->value) != 0)
            return false;
    }
    return true;
}

void process_resource_free(struct process_resource *resource)
{
    if (!resource)
        return;
    arena_deinit(&resource->arena);
    free(resource);
}
