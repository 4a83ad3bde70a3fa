#include "config/merge.h"

#include <assert.h>

struct config_node *config_merge(struct arena *arena, struct config_node *earlier,
                                 struct config_node *later)
{
    if (!earlier || earlier->kind != CONFIG_NODE_MAP || later->kind != CONFIG_NODE_MAP)
        return later;
    for (size_t i = 0; i < later->count; i++) {
        size_t same = config_node_find(earlier, later->keys[i]->text);
        if (same == SIZE_MAX) {
            config_node_put(arena, earlier, later->keys[i], later->items[i]);
            continue;
        }
        earlier->items[same] = config_merge(arena, earlier->items[same], later->items[i]);
        earlier->keys[same] = later->keys[i]; /* the same text, but messages then show the position
                                                 of the later value */
    }
    return earlier;
}

static struct config_node *unfold_key(struct arena *arena, struct config_node *key,
                                      struct config_node *value)
{
    struct config_node *outermost = config_node_new(arena, CONFIG_NODE_MAP, key->place);
    struct config_node *map = outermost;
    const char *part = key->text;
    for (const char *end; (end = strstr(part, "::")); part = end + 2) {
        const char *name = arena_string(arena, slice_of(part, (size_t)(end - part)));
        struct config_node *inner = config_node_new(arena, CONFIG_NODE_MAP, key->place);
        config_node_put(arena, map,
                        config_node_scalar(arena, key->place, name, CONFIG_STYLE_QUOTED), inner);
        map = inner;
    }
    config_node_put(arena, map, config_node_scalar(arena, key->place, part, CONFIG_STYLE_QUOTED),
                    value);
    assert(outermost->count == 1); /* and each nested map has one key, too */
    return outermost;
}

struct config_node *config_unfold_paths(struct arena *arena, struct config_node *root)
{
    if (root->kind != CONFIG_NODE_MAP)
        return root;
    struct config_node *unfolded = config_node_new(arena, CONFIG_NODE_MAP, root->place);
    for (size_t i = 0; i < root->count; i++)
        config_merge(arena, unfolded, unfold_key(arena, root->keys[i], root->items[i]));
    return unfolded;
}
