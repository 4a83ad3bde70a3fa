#include "core/formats/tree_read.h"

#include "core/base/memory.h"
#include "core/base/saturate.h"

enum { LEVELS_MAX = 65536 }; /* names may be empty, so the depth of stacks does not bound them */

struct node {
    struct slice name;
    int64_t value;
    uint64_t children;
};

/* What an open node is set back to when it ends. */
struct level {
    uint64_t children; /* still to come */
    size_t size;       /* of the frames (tree) or the key's bytes (trie) in front of it */
};

struct walk {
    const uint8_t *start, *next, *end;
    int64_t period;
    struct stacks stacks;
    struct level *levels;
    size_t depth, capacity;
    uint8_t *key; /* of a trie: the folded stack so far */
    size_t key_size, key_capacity;
};

static bool take_varint(struct walk *walk, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && walk->next < walk->end; shift += 7) {
        uint8_t byte = *walk->next++;
        if (shift == 63 && byte > 1)
            return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool take_node(struct walk *walk, struct node *node, struct error *err)
{
    size_t at = (size_t)(walk->next - walk->start);
    uint64_t size, value;
    if (!take_varint(walk, &size) || size > (size_t)(walk->end - walk->next))
        return error_set(err, "the node at byte %zu: its name is cut off", at);
    node->name = slice_of(walk->next, (size_t)size);
    walk->next += size;
    if (!take_varint(walk, &value) || !take_varint(walk, &node->children))
        return error_set(err, "the node at byte %zu: its numbers are cut off", at);
    if (value > INT64_MAX)
        return error_set(err, "the node at byte %zu: its value is too large", at);
    node->value = (int64_t)value;
    return true;
}

static bool open_level(struct walk *walk, uint64_t children, size_t size, struct error *err)
{
    if (walk->depth == LEVELS_MAX)
        return error_set(err, "nodes stand more than %d deep", LEVELS_MAX);
    if (walk->depth == walk->capacity) {
        walk->capacity = walk->capacity ? walk->capacity * 2 : 64;
        walk->levels = memory_grow(walk->levels, walk->capacity, sizeof *walk->levels);
    }
    walk->levels[walk->depth++] = (struct level){children, size};
    return true;
}

static bool enter_tree_node(struct walk *walk, const struct node *node, struct error *err)
{
    return stacks_push(&walk->stacks, node->name, err) &&
           stacks_add(&walk->stacks, saturate_multiply(node->value, walk->period), err);
}

static bool enter_trie_node(struct walk *walk, const struct node *node, struct error *err)
{
    if (walk->key_capacity - walk->key_size < node->name.size) {
        while (walk->key_capacity - walk->key_size < node->name.size)
            walk->key_capacity = walk->key_capacity ? walk->key_capacity * 2 : 1024;
        walk->key = memory_realloc(walk->key, walk->key_capacity);
    }
    if (node->name.size > 0)
        memcpy(walk->key + walk->key_size, node->name.data, node->name.size);
    walk->key_size += node->name.size;
    if (node->value == 0)
        return true;
    stacks_pop_to(&walk->stacks, 0);
    return stacks_push(&walk->stacks, slice_of(walk->key, walk->key_size), err) &&
           stacks_add(&walk->stacks, saturate_multiply(node->value, walk->period), err);
}

/* Nodes until the first one is complete. */
static bool walk_nodes(struct walk *walk, bool is_trie, struct error *err)
{
    struct node node;
    do {
        size_t before = is_trie ? walk->key_size : walk->stacks.depth;
        size_t at = (size_t)(walk->next - walk->start);
        if (!take_node(walk, &node, err))
            return false;
        if (!(is_trie ? enter_trie_node(walk, &node, err) : enter_tree_node(walk, &node, err)) ||
            !open_level(walk, node.children, before, err))
            return error_prefix(err, "the node at byte %zu", at);
        while (walk->depth > 0 && walk->levels[walk->depth - 1].children == 0) {
            size_t size = walk->levels[--walk->depth].size;
            if (is_trie)
                walk->key_size = size;
            else
                stacks_pop_to(&walk->stacks, (uint32_t)size);
        }
        if (walk->depth > 0)
            walk->levels[walk->depth - 1].children--;
        if (profiles_builder_state(walk->stacks.builder) != PROFILES_BUILDER_FINE)
            return true; /* finish says so */
    } while (walk->depth > 0);
    return walk->next == walk->end ||
           error_set(err, "%zu bytes stand behind the last node", (size_t)(walk->end - walk->next));
}

static bool read_nodes(struct profiles_builder *builder, struct slice body,
                       const struct stacks_options *options, bool is_trie, struct error *err)
{
    if (body.size == 0)
        return error_set(err, "there is no node");
    struct walk walk = {.start = body.data,
                        .next = body.data,
                        .end = body.data + body.size,
                        .period = stacks_period(options)};
    stacks_begin(&walk.stacks, builder, options);
    bool fine = walk_nodes(&walk, is_trie, err);
    stacks_end(&walk.stacks);
    free(walk.levels);
    free(walk.key);
    return fine;
}

bool tree_read(struct profiles_builder *builder, struct slice body,
               const struct stacks_options *options, struct error *err)
{
    return read_nodes(builder, body, options, false, err);
}

bool trie_read(struct profiles_builder *builder, struct slice body,
               const struct stacks_options *options, struct error *err)
{
    return read_nodes(builder, body, options, true, err);
}
