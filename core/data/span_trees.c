#include "core/data/span_trees.h"

#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/list.h"
#include "core/base/memory.h"

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
    struct list_link link;   /* of `recent` */
    uint64_t hash;           /* of the trace and the process */
    uint64_t arrived_ns;     /* its newest span */
    struct node_span *spans; /* by id */
    uint32_t count;
    uint32_t capacity;
    uint32_t number;
    uint16_t owner;
};

struct span_trees {
    pthread_mutex_t lock;
    uint64_t max_spans;
    uint64_t count;
    struct tree **items; /* by number; NULL: it is free */
    uint32_t *free;      /* free numbers below `used` */
    uint32_t free_count;
    uint32_t used;
    uint32_t capacity;
    struct index_table by_hash;
    uint64_t owned[SPAN_SOURCES_MAX];     /* spans by owner */
    struct list recent[SPAN_SOURCES_MAX]; /* trees by owner, those without new spans first */
};

struct span_trees *span_trees_new(uint64_t max_spans)
{
    struct span_trees *trees = memory_zalloc(sizeof *trees);
    assert(max_spans > 0);
    pthread_mutex_init(&trees->lock, NULL);
    trees->max_spans = max_spans;
    return trees;
}

void span_trees_free(struct span_trees *trees)
{
    if (!trees)
        return;
    span_trees_sweep(trees, UINT64_MAX, 0);
    pthread_mutex_destroy(&trees->lock);
    free(trees->by_hash.slots);
    free(trees->items);
    free(trees->free);
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
    if (!trees->by_hash.slots)
        return NULL;
    struct index_probe probe = index_table_probe(&trees->by_hash, (uint32_t)hash);
    for (uint32_t number; index_table_next(&trees->by_hash, &probe, &number);)
        if (trees->items[number]->hash == hash)
            return trees->items[number];
    return NULL;
}

static uint32_t take_number(struct span_trees *trees)
{
    if (trees->free_count > 0)
        return trees->free[--trees->free_count];
    if (trees->used == trees->capacity) {
        trees->capacity = trees->capacity ? trees->capacity * 2 : 64;
        trees->items = memory_grow(trees->items, trees->capacity, sizeof(struct tree *));
        trees->free = memory_grow(trees->free, trees->capacity, sizeof *trees->free);
    }
    return trees->used++;
}

static struct tree *new_tree(struct span_trees *trees, uint64_t hash, uint16_t owner)
{
    struct tree *tree = memory_zalloc(sizeof *tree);
    size_t bytes = index_table_growth(&trees->by_hash, 1);
    if (bytes > 0)
        free(index_table_move(&trees->by_hash, memory_zalloc(bytes), bytes));
    tree->number = take_number(trees);
    tree->hash = hash;
    tree->owner = owner;
    trees->items[tree->number] = tree;
    index_table_add_new(&trees->by_hash, (uint32_t)hash, tree->number);
    list_append(&trees->recent[owner], &tree->link);
    return tree;
}

static void free_tree(struct span_trees *trees, struct tree *tree)
{
    assert(trees->items[tree->number] == tree && trees->owned[tree->owner] >= tree->count);
    trees->owned[tree->owner] -= tree->count;
    trees->count -= tree->count;
    list_remove(&trees->recent[tree->owner], &tree->link);
    index_table_remove(&trees->by_hash, (uint32_t)tree->hash, tree->number);
    trees->items[tree->number] = NULL;
    trees->free[trees->free_count++] = tree->number;
    free(tree->spans);
    free(tree);
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

static uint16_t owner_of_most(const struct span_trees *trees)
{
    unsigned most = 0;
    for (unsigned owner = 1; owner < SPAN_SOURCES_MAX; owner++)
        if (trees->owned[owner] > trees->owned[most])
            most = owner;
    return (uint16_t)most;
}

/* Makes room for a span. Several trees leave at once, because finding their owner takes a pass. */
static void make_room(struct span_trees *trees)
{
    enum { TOGETHER = 16 };
    while (trees->count >= trees->max_spans) {
        struct list *recent = &trees->recent[owner_of_most(trees)];
        for (int i = 0; i < TOGETHER && recent->first; i++)
            free_tree(trees, container_of(recent->first, struct tree, link));
    }
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
    assert(span->place.source.owner < SPAN_SOURCES_MAX);
    make_room(trees);
    uint64_t hash = hash_of(&span->place);
    struct tree *tree = find_tree(trees, hash);
    if (!tree)
        tree = new_tree(trees, hash, span->place.source.owner);
    tree->arrived_ns = now_ns;
    list_remove(&trees->recent[tree->owner], &tree->link);
    list_append(&trees->recent[tree->owner], &tree->link);
    uint64_t id = id_number(span->place.key.span_id);
    uint32_t at = place_of(tree, id);
    if (tree->count == SPAN_TREE_SPANS_MAX || (at < tree->count && tree->spans[at].id == id))
        return;
    insert(tree, at, span);
    trees->owned[tree->owner]++;
    trees->count++;
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
    uint64_t since_ns = now_ns > window_ns ? now_ns - window_ns : 0;
    pthread_mutex_lock(&trees->lock);
    for (unsigned owner = 0; owner < SPAN_SOURCES_MAX; owner++) {
        struct list *recent = &trees->recent[owner];
        while (recent->first &&
               container_of(recent->first, struct tree, link)->arrived_ns < since_ns)
            free_tree(trees, container_of(recent->first, struct tree, link));
    }
    pthread_mutex_unlock(&trees->lock);
}

uint64_t span_trees_count(struct span_trees *trees)
{
    pthread_mutex_lock(&trees->lock);
    uint64_t count = trees->count;
    pthread_mutex_unlock(&trees->lock);
    return count;
}

size_t span_trees_memory(struct span_trees *trees)
{
    pthread_mutex_lock(&trees->lock);
    size_t size = sizeof *trees + trees->capacity * (sizeof(struct tree *) + sizeof *trees->free);
    size +=
        trees->by_hash.slots ? ((size_t)trees->by_hash.mask + 1) * sizeof(struct index_slot) : 0;
    for (uint32_t i = 0; i < trees->used; i++)
        if (trees->items[i])
            size += sizeof(struct tree) + trees->items[i]->capacity * sizeof(struct node_span);
    pthread_mutex_unlock(&trees->lock);
    return size;
}
