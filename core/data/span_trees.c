#include "core/data/span_trees.h"

#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/owned_table.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

/* A span in its tree. */
struct node_span {
    uint64_t id;
    uint64_t parent; /* 0: none */
    bool is_root;
};

struct tree {
    struct owned_item item;  /* its weight is the number of spans */
    struct node_span *spans; /* by id */
    uint32_t count;
    uint32_t capacity;
};

struct span_trees {
    pthread_mutex_t lock;
    struct owned_table table;
};

static void free_tree(struct owned_item *item)
{
    struct tree *tree = container_of(item, struct tree, item);
    free(tree->spans);
    free(tree);
}

struct span_trees *span_trees_new(uint64_t max_spans)
{
    struct span_trees *trees = memory_zalloc(sizeof *trees);
    pthread_mutex_init(&trees->lock, NULL);
    owned_table_init(&trees->table, max_spans, free_tree);
    return trees;
}

void span_trees_free(struct span_trees *trees)
{
    if (!trees)
        return;
    owned_table_deinit(&trees->table);
    pthread_mutex_destroy(&trees->lock);
    free(trees);
}

/* ---- trees ---- */

/* The hash is keyed and has 64 bits, so it is the identity of the tree. */
static uint64_t hash_of(const struct tree_place *place)
{
    uint64_t parts[4] = {0, 0, place->source.scope,
                         (uint64_t)place->source.number << 32 | place->instance};
    _Static_assert(TRACE_ID_SIZE == 2 * sizeof *parts, "the first two");
    memcpy(parts, place->key.trace_id, TRACE_ID_SIZE);
    return hash_bytes(slice_of(parts, sizeof parts));
}

static struct tree *find_tree(const struct span_trees *trees, uint64_t hash)
{
    struct owned_item *item = owned_table_find(&trees->table, hash);
    return item ? container_of(item, struct tree, item) : NULL;
}

/* ---- adding ---- */

/* Returns the place of a span among those of the tree, or where it would be. */
static uint32_t place_of(const struct tree *tree, uint64_t id)
{
    uint32_t from = 0, to = tree->count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (tree->spans[middle].id < id)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static const struct node_span *find_span(const struct tree *tree, uint64_t id)
{
    uint32_t at = place_of(tree, id);
    return at < tree->count && tree->spans[at].id == id ? &tree->spans[at] : NULL;
}

static uint64_t id_number(const uint8_t *id)
{
    uint64_t number;
    memcpy(&number, id, sizeof number);
    return number;
}

static void insert(struct tree *tree, uint32_t at, const struct tree_span *span)
{
    if (tree->count == tree->capacity) {
        tree->capacity = tree->capacity ? tree->capacity * 2 : 1;
        tree->spans = memory_grow(tree->spans, tree->capacity, sizeof *tree->spans);
    }
    memmove(tree->spans + at + 1, tree->spans + at, (tree->count - at) * sizeof *tree->spans);
    tree->spans[at] = (struct node_span){.id = id_number(span->place.key.span_id),
                                         .parent = id_number(span->parent_id),
                                         .is_root = span->is_root};
    tree->count++;
}

static void put(struct span_trees *trees, const struct tree_span *span, uint64_t now_ns)
{
    uint64_t hash = hash_of(&span->place);
    struct tree *tree = find_tree(trees, hash);
    if (!tree) {
        tree = memory_zalloc(sizeof *tree);
        owned_table_add(&trees->table, &tree->item, hash, span->place.source.owner);
    }
    owned_table_touch(&trees->table, &tree->item, now_ns);
    uint64_t id = id_number(span->place.key.span_id);
    uint32_t at = place_of(tree, id);
    if (tree->count == SPAN_TREE_SPANS_MAX || (at < tree->count && tree->spans[at].id == id))
        return;
    insert(tree, at, span);
    owned_table_grow(&trees->table, &tree->item, 1);
}

void span_trees_put(struct span_trees *trees, const struct tree_span *spans, size_t count,
                    uint64_t now_ns)
{
    pthread_mutex_lock(&trees->lock);
    for (size_t i = 0; i < count; i++)
        put(trees, &spans[i], now_ns);
    pthread_mutex_unlock(&trees->lock);
}

/* ---- asking ---- */

static const struct node_span *root_above(const struct tree *tree, uint64_t id)
{
    for (int depth = 0; depth <= SPAN_TREE_DEPTH_MAX; depth++) {
        const struct node_span *span = find_span(tree, id);
        if (!span || span->is_root)
            return span;
        id = span->parent;
    }
    return NULL;
}

static void find_root(const struct span_trees *trees, struct root_ask *ask)
{
    const struct tree *tree = find_tree(trees, hash_of(&ask->place));
    const struct node_span *root =
        tree ? root_above(tree, id_number(ask->place.key.span_id)) : NULL;
    ask->is_known = root != NULL;
    if (root)
        memcpy(ask->root_id, &root->id, SPAN_ID_SIZE);
}

void span_trees_find_roots(struct span_trees *trees, struct root_ask *asks, size_t count)
{
    pthread_mutex_lock(&trees->lock);
    for (size_t i = 0; i < count; i++)
        find_root(trees, &asks[i]);
    pthread_mutex_unlock(&trees->lock);
}

/* ---- the window ---- */

void span_trees_sweep(struct span_trees *trees, uint64_t now_ns, uint64_t window_ns)
{
    pthread_mutex_lock(&trees->lock);
    owned_table_sweep(&trees->table, now_ns, window_ns);
    pthread_mutex_unlock(&trees->lock);
}

uint64_t span_trees_count(struct span_trees *trees)
{
    pthread_mutex_lock(&trees->lock);
    uint64_t count = trees->table.weight;
    pthread_mutex_unlock(&trees->lock);
    return count;
}

size_t span_trees_memory(struct span_trees *trees)
{
    pthread_mutex_lock(&trees->lock);
    size_t size = sizeof *trees + owned_table_memory(&trees->table);
    for (uint32_t i = 0; i < trees->table.used; i++)
        if (trees->table.items[i])
            size += sizeof(struct tree) +
                    container_of(trees->table.items[i], struct tree, item)->capacity *
                        sizeof(struct node_span);
    pthread_mutex_unlock(&trees->lock);
    return size;
}
