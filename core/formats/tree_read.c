#include "core/formats/tree_read.h"

#include "core/base/memory.h"
#include "core/base/saturate.h"

#include <assert.h>

enum {
    LEVELS_MAX = 65536
}; /* names may be empty, so the limit on the depth of stacks is not enough */

struct node {
    struct slice name;
    int64_t value;
    uint64_t children;
};

/* An open node, and the state to restore when it ends. */
struct level {
    uint64_t children; /* children not read yet */
    uint32_t frames;
    size_t key_size, frame_at; /* of a trie */
};

struct walk {
    const uint8_t *start, *next, *end;
    int64_t period;
    struct stacks stacks;
    struct level *levels;
    size_t depth, capacity;
    uint8_t *key; /* of a trie: the folded stack so far */
    size_t key_size, key_capacity;
    size_t frame_at; /* offset of the last frame, which may still grow; frames before it are open */
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
        return error_set(err, "the node at byte %zu: its name is truncated", at);
    node->name = slice_of(walk->next, (size_t)size);
    walk->next += size;
    if (!take_varint(walk, &value) || !take_varint(walk, &node->children))
        return error_set(err, "the node at byte %zu: its numbers are truncated", at);
    if (value > INT64_MAX)
        return error_set(err, "the node at byte %zu: its value is too large", at);
    node->value = (int64_t)value;
    return true;
}

static bool open_level(struct walk *walk, const struct level *level, struct error *err)
{
    if (walk->depth == LEVELS_MAX)
        return error_set(err, "nodes are nested more than %d deep", LEVELS_MAX);
    if (walk->depth == walk->capacity) {
        walk->capacity = walk->capacity ? walk->capacity * 2 : 64;
        walk->levels = memory_grow(walk->levels, walk->capacity, sizeof *walk->levels);
    }
    assert(walk->depth < walk->capacity);
    walk->levels[walk->depth++] = *level;
    return true;
}

static bool enter_tree_node(struct walk *walk, const struct node *node, struct error *err)
{
    return stacks_push(&walk->stacks, node->name, err) &&
           stacks_add(&walk->stacks, saturate_multiply(node->value, walk->period), err);
}

static void append_key(struct walk *walk, struct slice piece)
{
    if (piece.size == 0)
        return;
    if (walk->key_capacity - walk->key_size < piece.size) {
        while (walk->key_capacity - walk->key_size < piece.size)
            walk->key_capacity = walk->key_capacity ? walk->key_capacity * 2 : 1024;
        walk->key = memory_realloc(walk->key, walk->key_capacity);
    }
    memcpy(walk->key + walk->key_size, piece.data, piece.size);
    walk->key_size += piece.size;
    assert(walk->key_size <= walk->key_capacity);
}

static bool push_key(struct walk *walk, size_t end, struct error *err)
{
    assert(walk->frame_at <= end && end <= walk->key_size);
    size_t size = end - walk->frame_at;
    return size == 0 || stacks_push(&walk->stacks, slice_of(walk->key + walk->frame_at, size), err);
}

/* Opens each frame at the node where it ends, for all nodes below, so that a long key is not read
 * again for each of them. */
static bool open_whole_frames(struct walk *walk, struct slice piece, struct error *err)
{
    const uint8_t *last = piece.size > 0 ? memrchr(piece.data, ';', piece.size) : NULL;
    if (!last)
        return true;
    size_t end = walk->key_size - (size_t)(piece.data + piece.size - last) + 1;
    if (!push_key(walk, end, err))
        return false;
    walk->frame_at = end;
    return true;
}

static bool enter_trie_node(struct walk *walk, const struct node *node, struct error *err)
{
    append_key(walk, node->name);
    if (!open_whole_frames(walk, node->name, err))
        return false;
    if (node->value == 0)
        return true;
    uint32_t depth = walk->stacks.depth;
    if (!push_key(walk, walk->key_size, err) ||
        !stacks_add(&walk->stacks, saturate_multiply(node->value, walk->period), err))
        return false;
    stacks_pop_to(&walk->stacks, depth);
    return true;
}

static void close_finished(struct walk *walk)
{
    while (walk->depth > 0 && walk->levels[walk->depth - 1].children == 0) {
        const struct level *level = &walk->levels[--walk->depth];
        assert(level->key_size <= walk->key_size && level->frame_at <= level->key_size);
        stacks_pop_to(&walk->stacks, level->frames);
        walk->key_size = level->key_size;
        walk->frame_at = level->frame_at;
    }
}

/* Reads nodes until the first one is complete. */
static bool walk_nodes(struct walk *walk, bool is_trie, struct error *err)
{
    struct node node;
    do {
        struct level level = {0, walk->stacks.depth, walk->key_size, walk->frame_at};
        size_t at = (size_t)(walk->next - walk->start);
        if (!take_node(walk, &node, err))
            return false;
        level.children = node.children;
        if (!(is_trie ? enter_trie_node(walk, &node, err) : enter_tree_node(walk, &node, err)) ||
            !open_level(walk, &level, err))
            return error_prefix(err, "the node at byte %zu", at);
        close_finished(walk);
        if (walk->depth > 0)
            walk->levels[walk->depth - 1].children--;
        if (profiles_builder_state(walk->stacks.builder) != PROFILES_BUILDER_FINE)
            return true; /* profiles_builder_finish reports it */
    } while (walk->depth > 0);
    return walk->next == walk->end ||
           error_set(err, "%zu bytes after the last node", (size_t)(walk->end - walk->next));
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
    profiles_builder_admit(builder, body.size);
    stacks_begin(&walk.stacks, builder, options);
    bool fine = walk_nodes(&walk, is_trie, err);
    stacks_end(&walk.stacks);
    free(walk.levels);
    free(walk.key);
    return fine || profiles_builder_state(builder) != PROFILES_BUILDER_FINE;
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
