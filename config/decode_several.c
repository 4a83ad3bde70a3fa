#include "config/decode.h"

#include "config/decode_value.h"
#include "config/node.h"

#include <assert.h>

enum { PAIRS_MAX = 1000 };

/* ---- lists of texts ---- */

/* Splits "a,b". */
static struct config_strings split(struct arena *arena, const char *text)
{
    struct config_strings strings = {0};
    if (!*text)
        return strings;
    size_t count = 1;
    for (const char *c = text; *c; c++)
        count += *c == ',';
    strings.items = arena_array(arena, count, sizeof(const char *));
    for (const char *part = text; strings.count < count;) {
        const char *end = strchrnul(part, ',');
        strings.items[strings.count++] =
            arena_string(arena, slice_trim(slice_of(part, (size_t)(end - part)), SLICE_SPACES));
        part = *end ? end + 1 : end;
    }
    return strings;
}

static bool require_some(const struct decoding *at, size_t count)
{
    if (!at->field->required || count || at->check->lenient)
        return true;
    return decode_fail(at, "is required and cannot be empty");
}

static bool read_string_list(const struct decoding *at, struct config_strings *strings)
{
    const struct config_node *list = at->node;
    struct config_strings read = {
        .items = arena_array(at->check->arena, list->count, sizeof(const char *)),
    };
    for (size_t i = 0; i < list->count; i++) {
        struct config_path path = {.parent = at->path, .position = i};
        struct decoding item = *at;
        item.path = &path;
        item.node = list->items[i];
        const char *text = item.node->broken ? "" : decode_take_text(&item);
        assert(read.count <= i);
        read.items[read.count++] = text ? text : ""; /* the others keep their positions */
    }
    *strings = read;
    return true;
}

bool decode_read_strings(const struct decoding *at, void *member)
{
    struct config_strings *strings = member;
    if (at->node->kind == CONFIG_NODE_MAP)
        return decode_fail(at, "expected a list of texts, got a map");
    if (at->node->kind == CONFIG_NODE_LIST)
        read_string_list(at, strings);
    else if (at->node->kind == CONFIG_NODE_SCALAR)
        *strings = split(at->check->arena, config_node_verbatim(at->node));
    return require_some(at, strings->count);
}

/* ---- maps of texts ---- */

static bool add_pair(const struct decoding *at, struct config_pairs *pairs, const char *name)
{
    const char *value = at->node->broken ? "" : decode_take_text(at);
    if (!value)
        return false;
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->items[i].name, name) == 0)
            return decode_fail(at, "%s is given twice", config_quote(at->check->arena, name));
    assert(pairs->count < PAIRS_MAX);
    pairs->items[pairs->count++] = (struct config_pair){name, value};
    return true;
}

static void read_pairs_map(const struct decoding *at, struct config_pairs *pairs)
{
    for (size_t i = 0; i < at->node->count; i++) {
        struct config_path path = {.parent = at->path, .name = at->node->keys[i]->text};
        struct decoding item = *at;
        item.path = &path;
        item.node = at->node->items[i];
        add_pair(&item, pairs, path.name);
    }
}

/* Reads {name: a, value: b}. */
static bool read_pair(const struct decoding *at, struct config_pairs *pairs)
{
    const struct config_node *node = at->node;
    if (node->kind != CONFIG_NODE_MAP)
        return decode_fail(at, "expected a map with name and value, got %s",
                           config_node_describe(node));
    for (size_t i = 0; i < node->count; i++)
        if (strcmp(node->keys[i]->text, "name") != 0 && strcmp(node->keys[i]->text, "value") != 0)
            return decode_fail(at, "unknown key %s; the keys are name and value",
                               config_quote(at->check->arena, node->keys[i]->text));
    size_t value = config_node_find(node, "value");
    const struct config_node *name = config_node_get(node, "name");
    if (!name || value == SIZE_MAX)
        return decode_fail(at, "the key \"%s\" is missing", name ? "value" : "name");
    struct decoding inner = *at;
    inner.node = name;
    const char *text = name->broken ? NULL : decode_take_text(&inner);
    if (!text)
        return false;
    if (!*text)
        return decode_fail(&inner, "the name cannot be empty");
    inner.node = node->items[value];
    return add_pair(&inner, pairs, text);
}

bool decode_read_pairs(const struct decoding *at, void *member)
{
    struct config_pairs *pairs = member;
    const struct config_node *node = at->node;
    if (node->kind == CONFIG_NODE_SCALAR)
        return decode_fail(at, "expected a map, or a list of {name, value}, got text");
    if (node->kind == CONFIG_NODE_NULL)
        return require_some(at, pairs->count);
    if (node->count > PAIRS_MAX)
        return decode_fail(at, "at most %d are allowed", PAIRS_MAX);
    *pairs = (struct config_pairs){
        .items = arena_array(at->check->arena, node->count, sizeof(struct config_pair)),
    };
    if (node->kind == CONFIG_NODE_MAP)
        read_pairs_map(at, pairs);
    for (size_t i = 0; node->kind == CONFIG_NODE_LIST && i < node->count; i++) {
        struct config_path path = {.parent = at->path, .position = i};
        struct decoding item = *at;
        item.path = &path;
        item.node = node->items[i];
        if (!item.node->broken)
            read_pair(&item, pairs);
    }
    return require_some(at, pairs->count);
}

/* ---- lists and maps of blocks, anything ---- */

bool decode_read_list(const struct decoding *at, void *member)
{
    struct config_list *list = member;
    const struct config_node *node = at->node;
    const struct field *field = at->field;
    if (node->kind == CONFIG_NODE_NULL)
        return require_some(at, list->count);
    if (node->kind != CONFIG_NODE_LIST)
        return decode_fail(at, "expected a list, got %s; each item begins with \"- \"",
                           config_node_describe(node));
    assert(field->block && field->block_size > 0);
    list->count = node->count;
    list->items = arena_array(at->check->arena, node->count, field->block_size);
    for (size_t i = 0; i < node->count; i++) {
        struct config_path path = {.parent = at->path, .position = i};
        config_decode_block(at->check, &path, node->items[i], node->items[i], field->block,
                            (char *)list->items + i * field->block_size);
    }
    return require_some(at, list->count);
}

static bool read_map_item(const struct decoding *at, const struct config_node *key,
                          const struct config_node *node, void *item)
{
    struct config_path path = {.parent = at->path, .name = key->text};
    if (!*key->text) {
        config_error_at(at->check, key->place, at->path, "a name cannot be empty");
        return false;
    }
    config_decode_block(at->check, &path, key, node, at->field->block, item);
    *(const char **)item = key->text;
    return true;
}

bool decode_read_map(const struct decoding *at, void *member)
{
    struct config_list *map = member;
    const struct config_node *node = at->node;
    const struct field *field = at->field;
    bool good = true;
    if (node->kind == CONFIG_NODE_NULL)
        return require_some(at, map->count);
    if (node->kind != CONFIG_NODE_MAP)
        return decode_fail(at, "expected a map, got %s", config_node_describe(node));
    assert(field->block && field->block_size > 0);
    map->count = node->count;
    map->items = arena_array(at->check->arena, node->count, field->block_size);
    for (size_t i = 0; i < node->count; i++)
        good &= read_map_item(at, node->keys[i], node->items[i],
                              (char *)map->items + i * field->block_size);
    return require_some(at, map->count) && good;
}

bool decode_read_node(const struct decoding *at, void *member)
{
    const struct config_node *node = at->node->kind == CONFIG_NODE_NULL ? NULL : at->node;
    if (node || !at->field->fallback) /* null keeps the default, as for lists and maps */
        *(const struct config_node **)member = node;
    return !at->field->required || node || at->check->lenient ||
           decode_fail(at, "is required and cannot be empty");
}
