#include "config/tree.h"

#include "config/value.h"
#include "core/base/hash.h"

#include <assert.h>

/* With fewer keys, a linear search is faster than an index. */
#define INDEX_FROM 16

struct config_node *config_node_new(struct arena *arena, enum config_node_kind kind,
                                    struct config_place place)
{
    struct config_node *node = arena_zalloc(arena, sizeof *node);
    node->kind = kind;
    node->place = place;
    node->text = "";
    return node;
}

/* Whether a plain text means null in YAML. */
static bool means_null(const char *text)
{
    static const char *const spellings[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++)
        if (strcmp(text, spellings[i]) == 0)
            return true;
    return false;
}

bool config_text_is_typed(const char *text)
{
    double number;
    bool boolean;
    int64_t integer;
    uint64_t natural;
    struct slice s = slice_of_string(text);
    return means_null(text) || config_parse_double(s, &number) || config_parse_bool(s, &boolean) ||
           config_parse_int(s, &integer) || config_parse_uint(s, &natural);
}

struct config_node *config_node_scalar(struct arena *arena, struct config_place place,
                                       const char *text, enum config_style style)
{
    bool null = style == CONFIG_STYLE_PLAIN && means_null(text);
    struct config_node *node =
        config_node_new(arena, null ? CONFIG_NODE_NULL : CONFIG_NODE_SCALAR, place);
    node->style = style;
    if (!null)
        node->text = text;
    return node;
}

static struct config_node **grow(struct arena *arena, struct config_node **old, size_t count,
                                 size_t capacity)
{
    struct config_node **larger = arena_array(arena, capacity, sizeof(void *));
    if (count)
        memcpy(larger, old, count * sizeof(void *));
    return larger;
}

static void reserve_one(struct arena *arena, struct config_node *node)
{
    assert(node->kind == CONFIG_NODE_LIST || node->kind == CONFIG_NODE_MAP);
    if (node->count < node->capacity)
        return;
    node->capacity = node->capacity ? 2 * node->capacity : 4;
    assert(node->capacity > node->count);
    node->items = grow(arena, node->items, node->count, node->capacity);
    if (node->kind == CONFIG_NODE_MAP)
        node->keys = grow(arena, node->keys, node->count, node->capacity);
}

void config_node_append(struct arena *arena, struct config_node *list, struct config_node *item)
{
    assert(list->kind == CONFIG_NODE_LIST);
    reserve_one(arena, list);
    list->items[list->count++] = item;
}

static uint32_t key_hash(const char *key)
{
    return (uint32_t)hash_bytes(slice_of_string(key));
}

static void index_last(struct arena *arena, struct config_node *map)
{
    if (map->count < INDEX_FROM)
        return;
    size_t first = map->index.count; /* 0, or the last one */
    index_table_reserve(&map->index, (uint32_t)(map->count - first), arena);
    for (size_t i = first; i < map->count; i++)
        index_table_add_new(&map->index, key_hash(map->keys[i]->text), (uint32_t)i);
    assert(map->index.count == map->count);
}

size_t config_node_find(const struct config_node *node, const char *key)
{
    if (!node || node->kind != CONFIG_NODE_MAP)
        return SIZE_MAX;
    if (node->index.slots) {
        struct index_probe probe = index_table_probe(&node->index, key_hash(key));
        for (uint32_t i; index_table_next(&node->index, &probe, &i);)
            if (strcmp(node->keys[i]->text, key) == 0)
                return i;
        return SIZE_MAX;
    }
    for (size_t i = 0; i < node->count; i++)
        if (strcmp(node->keys[i]->text, key) == 0)
            return i;
    return SIZE_MAX;
}

bool config_node_put(struct arena *arena, struct config_node *map, struct config_node *key,
                     struct config_node *value)
{
    assert(map->kind == CONFIG_NODE_MAP);
    assert(key->kind == CONFIG_NODE_SCALAR || key->kind == CONFIG_NODE_NULL);
    if (config_node_find(map, key->text) != SIZE_MAX)
        return false;
    reserve_one(arena, map);
    map->keys[map->count] = key;
    map->items[map->count++] = value;
    index_last(arena, map);
    return true;
}

const char *config_node_verbatim(const struct config_node *node)
{
    return node->verbatim ? node->verbatim : node->text;
}

const char *config_node_describe(const struct config_node *node)
{
    switch (node->kind) {
    case CONFIG_NODE_NULL:
        return "nothing";
    case CONFIG_NODE_SCALAR:
        return "text";
    case CONFIG_NODE_LIST:
        return "a list";
    case CONFIG_NODE_MAP:
        return config_node_is_split_text(node) ? CONFIG_SPLIT_TEXT : "a map";
    }
    return "";
}

bool config_node_is_split_text(const struct config_node *node)
{
    return node && node->kind == CONFIG_NODE_MAP && node->count > 0 &&
           node->keys[0]->style == CONFIG_STYLE_PLAIN && strpbrk(node->keys[0]->text, "(\"'=");
}

enum config_node_kind config_node_kind(const struct config_node *node)
{
    return node ? node->kind : CONFIG_NODE_NULL;
}

const char *config_node_text(const struct config_node *node)
{
    return node ? node->text : "";
}

bool config_node_quoted(const struct config_node *node)
{
    return node && node->kind == CONFIG_NODE_SCALAR && node->style != CONFIG_STYLE_PLAIN;
}

size_t config_node_count(const struct config_node *node)
{
    return node ? node->count : 0;
}

const struct config_node *config_node_at(const struct config_node *node, size_t i)
{
    assert(node && i < node->count);
    return node->items[i];
}

const char *config_node_key(const struct config_node *node, size_t i)
{
    assert(node && node->kind == CONFIG_NODE_MAP && i < node->count);
    return node->keys[i]->text;
}

const struct config_node *config_node_get(const struct config_node *node, const char *key)
{
    size_t found = config_node_find(node, key);
    return found == SIZE_MAX ? NULL : node->items[found];
}
