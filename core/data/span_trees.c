#include "core/data/span_trees.h"

#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/owned_table.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

/* Bits of Span.flags: whether the next one is valid, and whether the parent is remote. */
enum { HAS_IS_REMOTE = 0x100, IS_REMOTE = 0x200 };
/* Values of Span.kind. */
enum { KIND_SERVER = 2, KIND_CONSUMER = 5 };

bool span_parent_is_remote(uint64_t flags, uint64_t kind)
{
    if (flags & HAS_IS_REMOTE)
        return flags & IS_REMOTE;
    return kind == KIND_SERVER || kind == KIND_CONSUMER;
}

/* A span in its tree. */
struct node_span {
    uint64_t id;
    uint64_t parent; /* 0: none */
    uint32_t moved;  /* samples that went on from it, if it is a root; UINT32_MAX: or more */
    bool is_root;
    bool is_late; /* as in struct tree_span, if it is a root */
    bool lacks;   /* as in struct tree_ask */
};

/* When and where a span ran. */
struct node_run {
    uint64_t start_ns;
    uint64_t end_ns;
    int64_t thread; /* its id, of this kind */
    uint32_t name;  /* hash of the thread's name; 0: none */
    uint8_t kind;
    bool has_thread;
};

struct tree {
    struct owned_item item;  /* its weight is the number of spans */
    struct node_span *spans; /* by id */
    struct node_run *runs;   /* of each; NULL: they are not kept */
    uint64_t left_from_ns;   /* the first time of samples that were asked for, */
    uint64_t left_to_ns;     /* and the last; 0: there are none */
    uint32_t count;
    uint32_t capacity;
};

struct span_trees {
    pthread_mutex_t lock;
    struct owned_table table;
    bool keeps_runs;
};

static void free_tree(struct owned_item *item)
{
    struct tree *tree = container_of(item, struct tree, item);
    free(tree->spans);
    free(tree->runs);
    free(tree);
}

struct span_trees *span_trees_new(uint64_t max_spans, bool keeps_runs)
{
    struct span_trees *trees = memory_zalloc(sizeof *trees);
    pthread_mutex_init(&trees->lock, NULL);
    owned_table_init(&trees->table, max_spans, free_tree);
    trees->keeps_runs = keeps_runs;
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

static struct node_span *find_span(const struct tree *tree, uint64_t id)
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

static uint32_t hash_of_name(struct slice name)
{
    return name.size > 0 ? (uint32_t)hash_bytes(thread_name_compared(name)) | 1 : 0;
}

static struct node_run run_of(const struct tree_span *span)
{
    struct node_run run = {.start_ns = span->start_ns,
                           .end_ns = span->end_ns,
                           .name = hash_of_name(span->thread.name)};
    for (int kind = THREAD_ID_OS; kind <= THREAD_ID_RUNTIME; kind++) {
        if (!span->thread.has_id[kind])
            continue;
        run.has_thread = true;
        run.kind = (uint8_t)kind;
        run.thread = span->thread.id[kind];
    }
    return run;
}

/* Makes room for an item at this place of an array. */
static void *open_gap(void *items, uint32_t count, uint32_t capacity, uint32_t at, size_t size)
{
    uint8_t *grown = memory_grow(items, capacity, size);
    memmove(grown + (at + 1) * size, grown + at * size, (count - at) * size);
    return grown;
}

static void insert(struct tree *tree, uint32_t at, const struct tree_span *span, bool keeps_run)
{
    assert(at <= tree->count);
    if (tree->count == tree->capacity)
        tree->capacity = tree->capacity ? tree->capacity * 2 : 1;
    tree->spans = open_gap(tree->spans, tree->count, tree->capacity, at, sizeof *tree->spans);
    tree->spans[at] = (struct node_span){.id = id_number(span->place.key.span_id),
                                         .parent = id_number(span->parent_id),
                                         .is_root = span->is_root,
                                         .is_late = span->is_root && span->is_late};
    if (keeps_run) {
        tree->runs = open_gap(tree->runs, tree->count, tree->capacity, at, sizeof *tree->runs);
        tree->runs[at] = run_of(span);
    }
    tree->count++;
}

/* Whether a span ran at any time between these, or at one of them. */
static bool ran_within(const struct node_run *run, uint64_t from_ns, uint64_t to_ns)
{
    return run->start_ns <= to_ns && from_ns < run->end_ns;
}

/* Whether a span ran when samples of its tree were taken that have left. */
static bool ran_while_left(const struct tree *tree, const struct node_span *span)
{
    return tree->left_to_ns > 0 &&
           ran_within(&tree->runs[span - tree->spans], tree->left_from_ns, tree->left_to_ns);
}

/* A span that arrives when samples have left may have owned some of them: instead of those that run
 * at the same time, if it was running; instead of the root, also what is below it, which it
 * connects with the root. Nothing below it began earlier. */
static void note_late(struct tree *tree, uint32_t late)
{
    uint64_t start_ns = tree->runs[late].start_ns;
    uint64_t from_ns = start_ns > tree->left_from_ns ? start_ns : tree->left_from_ns;
    if (tree->spans[late].is_root || from_ns > tree->left_to_ns)
        return;
    for (uint32_t i = 0; i < tree->count; i++)
        tree->spans[i].lacks |= ran_within(&tree->runs[i], from_ns, tree->left_to_ns);
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
    insert(tree, at, span, trees->keeps_runs);
    if (tree->left_to_ns > 0)
        note_late(tree, at);
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

static struct node_span *root_above(const struct tree *tree, uint64_t id)
{
    for (int depth = 0; depth <= SPAN_TREE_DEPTH_MAX; depth++) {
        struct node_span *span = find_span(tree, id);
        if (!span || span->is_root)
            return span;
        id = span->parent;
    }
    return NULL;
}

static void note_leaving(struct tree *tree, uint64_t from_ns, uint64_t to_ns)
{
    if (tree->left_to_ns == 0 || from_ns < tree->left_from_ns)
        tree->left_from_ns = from_ns;
    if (to_ns > tree->left_to_ns)
        tree->left_to_ns = to_ns;
}

static void find_root(const struct span_trees *trees, struct root_ask *ask)
{
    struct tree *tree = find_tree(trees, hash_of(&ask->place));
    const struct node_span *root =
        tree ? root_above(tree, id_number(ask->place.key.span_id)) : NULL;
    ask->is_known = root != NULL;
    ask->has_others = tree && tree->count > 1;
    if (root && tree->count == 1 && ask->left_to_ns > 0)
        note_leaving(tree, ask->left_from_ns, ask->left_to_ns);
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

/* ---- what was running ---- */

/* Whether a span began on another thread than that of the samples, as far as is known. */
static bool is_elsewhere(const struct node_run *run, const struct sample_thread *thread,
                         uint32_t name)
{
    bool is_comparable = run->kind != THREAD_ID_OS || thread->sampler == 0;
    if (run->has_thread && thread->has_id[run->kind] && is_comparable)
        return run->thread != thread->id[run->kind];
    return run->name != 0 && name != 0 && run->name != name;
}

/* A search for the innermost span below a root at one time. */
struct search {
    const struct tree *tree;
    uint64_t root;
    const struct sample_thread *thread;
    uint32_t thread_name; /* its hash */
    uint64_t *steps;
    const struct node_span *found; /* NULL: none yet */
    bool is_ambiguous;
    uint64_t from_ns, until_ns; /* this is the answer from one time to before the other */
};

/* What finding a span by its id takes. */
enum { STEPS_OF_FIND = 8 };

static bool take_steps(struct search *search, uint64_t steps)
{
    bool has_steps = *search->steps >= steps;
    *search->steps -= has_steps ? steps : *search->steps;
    return has_steps;
}

/* Whether one span is somewhere above another one. */
static bool is_above(struct search *search, uint64_t upper, const struct node_span *lower)
{
    for (int depth = 0; depth < SPAN_TREE_DEPTH_MAX && !lower->is_root; depth++) {
        if (lower->parent == upper)
            return true;
        lower = take_steps(search, STEPS_OF_FIND) ? find_span(search->tree, lower->parent) : NULL;
        if (!lower)
            return false;
    }
    return false;
}

/* Spans that run at the same time must all be above each other. */
static void consider(struct search *search, const struct node_span *span)
{
    if (!is_above(search, search->root, span))
        return;
    if (!search->found || is_above(search, search->found->id, span))
        search->found = span;
    else if (!is_above(search, span->id, search->found))
        search->is_ambiguous = true;
}

/* A span that begins or ends at another time may change the answer from then on. */
static void note_change(struct search *search, uint64_t time_ns, uint64_t at_ns)
{
    if (at_ns <= time_ns)
        search->from_ns = at_ns > search->from_ns ? at_ns : search->from_ns;
    else
        search->until_ns = at_ns < search->until_ns ? at_ns : search->until_ns;
}

static bool is_running(const struct search *search, uint32_t i, uint64_t time_ns)
{
    const struct node_run *run = &search->tree->runs[i];
    return run->start_ns <= time_ns && time_ns < run->end_ns &&
           !is_elsewhere(run, search->thread, search->thread_name);
}

/* Returns how many spans are running, and which of them began last. */
static uint32_t count_running(struct search *search, uint64_t time_ns, uint32_t *last_out)
{
    const struct node_run *runs = search->tree->runs;
    uint32_t count = 0;
    search->from_ns = 0;
    search->until_ns = UINT64_MAX;
    for (uint32_t i = 0; i < search->tree->count; i++) {
        note_change(search, time_ns, runs[i].start_ns);
        note_change(search, time_ns, runs[i].end_ns);
        if (is_running(search, i, time_ns) &&
            (count++ == 0 || runs[i].start_ns > runs[*last_out].start_ns))
            *last_out = i;
    }
    return count;
}

/* Whether a span is below the root, and so many spans are running that are above it, or it. The
 * usual case, in which one walk is enough. */
static bool is_innermost(struct search *search, uint32_t i, uint32_t count, uint64_t time_ns)
{
    const struct tree *tree = search->tree;
    const struct node_span *span = &tree->spans[i];
    for (int depth = 0; depth < SPAN_TREE_DEPTH_MAX && !span->is_root; depth++) {
        count -= is_running(search, (uint32_t)(span - tree->spans), time_ns);
        bool reaches_root = span->parent == search->root;
        span = take_steps(search, STEPS_OF_FIND) ? find_span(tree, span->parent) : NULL;
        if (reaches_root && span)
            count -= is_running(search, (uint32_t)(span - tree->spans), time_ns);
        if (reaches_root)
            return count == 0;
        if (!span)
            return false;
    }
    return false;
}

static void find_innermost(struct search *search, uint64_t time_ns)
{
    const struct tree *tree = search->tree;
    uint32_t last = 0;
    search->found = NULL;
    search->from_ns = search->until_ns = 0;
    search->is_ambiguous = !take_steps(search, tree->count);
    if (search->is_ambiguous)
        return;
    uint32_t count = count_running(search, time_ns, &last);
    if (count > 0 && is_innermost(search, last, count, time_ns)) {
        search->found = &tree->spans[last];
        return;
    }
    for (uint32_t i = 0; count > 0 && i < tree->count && !search->is_ambiguous; i++)
        if (is_running(search, i, time_ns))
            consider(search, &tree->spans[i]);
}

static void answer(struct search *search, const struct tree_place *root, struct thread_ask *ask)
{
    if (ask->time_ns < search->from_ns || ask->time_ns >= search->until_ns)
        find_innermost(search, ask->time_ns);
    ask->answer = search->is_ambiguous ? THREAD_AMBIGUOUS
                  : search->found      ? THREAD_SPAN
                                       : THREAD_NO_SPAN;
    if (ask->answer != THREAD_SPAN)
        return;
    ask->key = root->key;
    memcpy(ask->key.span_id, &search->found->id, SPAN_ID_SIZE);
}

void span_trees_find_running(struct span_trees *trees, const struct tree_place *root,
                             const struct sample_thread *thread, struct thread_ask *asks,
                             size_t count, uint64_t *steps)
{
    pthread_mutex_lock(&trees->lock);
    assert(trees->keeps_runs);
    struct tree *tree = find_tree(trees, hash_of(root));
    struct search search = {.tree = tree,
                            .root = id_number(root->key.span_id),
                            .thread = thread,
                            .thread_name = hash_of_name(thread->name),
                            .steps = steps};
    for (size_t i = 0; i < count; i++) {
        asks[i].answer = THREAD_NO_SPAN;
        if (!tree)
            continue;
        answer(&search, root, &asks[i]);
        note_leaving(tree, asks[i].time_ns, asks[i].time_ns);
    }
    pthread_mutex_unlock(&trees->lock);
}

/* ---- samples that went on ---- */

static void note_moved(const struct span_trees *trees, const struct tree_moved *moved)
{
    const struct tree *tree = find_tree(trees, hash_of(&moved->place));
    struct node_span *root = tree ? root_above(tree, id_number(moved->place.key.span_id)) : NULL;
    if (root)
        root->moved = moved->samples < UINT32_MAX - root->moved
                          ? root->moved + (uint32_t)moved->samples
                          : UINT32_MAX;
}

void span_trees_note_moved(struct span_trees *trees, const struct tree_moved *moved, size_t count)
{
    pthread_mutex_lock(&trees->lock);
    for (size_t i = 0; i < count; i++)
        note_moved(trees, &moved[i]);
    pthread_mutex_unlock(&trees->lock);
}

static void answer_ask(const struct span_trees *trees, struct tree_ask *ask)
{
    const struct tree *tree = find_tree(trees, hash_of(&ask->place));
    const struct node_span *span = tree ? find_span(tree, id_number(ask->place.key.span_id)) : NULL;
    *ask = (struct tree_ask){.place = ask->place};
    if (!span)
        return;
    const struct node_span *root = root_above(tree, span->id);
    ask->moved = span->moved;
    ask->has_late_root = root != span && (!root || root->is_late);
    ask->lacks = root != span && (span->lacks || (!root && ran_while_left(tree, span)));
}

void span_trees_ask(struct span_trees *trees, struct tree_ask *asks, size_t count)
{
    pthread_mutex_lock(&trees->lock);
    for (size_t i = 0; i < count; i++)
        answer_ask(trees, &asks[i]);
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
    size_t span_size = sizeof(struct node_span) + (trees->keeps_runs ? sizeof(struct node_run) : 0);
    for (uint32_t i = 0; i < trees->table.used; i++)
        if (trees->table.items[i])
            size += sizeof(struct tree) +
                    container_of(trees->table.items[i], struct tree, item)->capacity * span_size;
    pthread_mutex_unlock(&trees->lock);
    return size;
}
