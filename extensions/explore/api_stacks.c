/* The answers about stacks: /api/flamegraph, diff, functions. */
#include "core/base/memory.h"
#include "core/base/saturate.h"
#include "extensions/explore/api.h"
#include "extensions/explore/largest.h"

#include <stdlib.h>

static uint64_t size_of(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static uint64_t add_sizes(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* ---- texts that an answer refers to by their place in a list ---- */

struct text_list {
    uint32_t *places; /* of each text of the store, + 1; 0: not in the list */
    uint32_t *items;
    uint32_t count, capacity;
};

static uint32_t place_of(struct api_request *request, struct text_list *list, uint32_t text)
{
    uint32_t texts = request->store->names.texts.count;
    if (!list->places) /* one more for "(other)", which the store does not have */
        list->places = arena_array(&request->arena, texts + 1, sizeof *list->places);
    uint32_t *place = &list->places[text == STORE_NONE ? texts : text];
    if (*place == 0) {
        list->items = arena_grow(&request->arena, list->items, list->count, &list->capacity,
                                 sizeof *list->items);
        list->items[list->count++] = text;
        *place = list->count;
    }
    return *place - 1;
}

static void print_texts(struct api_request *request, const char *key, const struct text_list *list)
{
    json_text_open(&request->json, key, '[');
    for (uint32_t i = 0; i < list->count && !api_must_stop(request); i++)
        json_text_slice(&request->json, NULL,
                        list->items[i] == STORE_NONE ? SLICE("(other)")
                                                     : api_text(request, list->items[i]));
    if (!request->is_late)
        json_text_close(&request->json, ']');
}

/* ---- graphs ---- */

/* One flame graph, or two that are compared. */
struct graph {
    struct api_request *request;
    struct store_values sides[2];
    int side_count;
    uint32_t count;      /* nodes of the store */
    uint64_t *weights;   /* the sizes of the values of a node and all below it; 0: it is left out */
    struct largest left; /* if it is truncated: the others are merged into "(other)" */
    bool is_truncated;
    uint32_t *places; /* of the nodes in the answer, + 1; 0: merged */
    uint32_t printed;
    int64_t *others[2]; /* what was merged, by parent */
    struct text_list names, files;
};

static void weigh(struct graph *graph)
{
    const struct store_names *names = &graph->request->store->names;
    for (uint32_t i = graph->count; i-- > 0;) {
        for (int side = 0; side < graph->side_count; side++)
            if (graph->sides[side].self[i] != 0)
                graph->weights[i] =
                    add_sizes(graph->weights[i], size_of(graph->sides[side].self[i]));
        if (i == 0 || graph->weights[i] == 0)
            continue; /* most nodes, if little is selected */
        uint32_t parent = store_node_at(names, i)->parent;
        graph->weights[parent] = add_sizes(graph->weights[parent], graph->weights[i]);
    }
}

/* A caller weighs at least as much as what it calls, so what is left is a tree. */
static void limit_nodes(struct graph *graph, uint64_t max_nodes)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < graph->count; i++)
        used += graph->weights[i] > 0;
    if (used <= max_nodes)
        return;
    graph->is_truncated = true;
    /* Each that is left may get an "(other)". */
    graph->left = largest_of(graph->weights, NULL, graph->count, max_nodes / 2);
    for (int side = 0; side < graph->side_count; side++)
        graph->others[side] = memory_zalloc(graph->count * sizeof *graph->others[side]);
}

static void print_node(struct graph *graph, uint32_t parent, uint32_t name, uint32_t file,
                       const int64_t *self, const int64_t *total)
{
    int64_t numbers[7] = {parent, place_of(graph->request, &graph->names, name),
                          place_of(graph->request, &graph->files, file)};
    unsigned count = 3;
    for (int side = 0; side < graph->side_count; side++) {
        numbers[count++] = self[side];
        numbers[count++] = total[side];
    }
    json_text_numbers(&graph->request->json, numbers, count);
    graph->printed++;
}

static void merge_node(struct graph *graph, uint32_t node, uint32_t parent)
{
    if (graph->places[parent] == 0)
        return; /* it is in what its caller has merged */
    for (int side = 0; side < graph->side_count; side++)
        graph->others[side][parent] =
            saturate_add(graph->others[side][parent], graph->sides[side].total[node]);
}

/* Callers come before what they call, so that of equal weights the callers are left. */
static bool is_left(struct graph *graph, uint32_t node, uint32_t parent)
{
    if (node == STORE_NODE_ROOT)
        return true;
    if (graph->places[parent] == 0)
        return false;
    return !graph->is_truncated || largest_takes(&graph->left, graph->weights[node], 1);
}

static void add_node(struct graph *graph, uint32_t node)
{
    if (graph->weights[node] == 0 && node != STORE_NODE_ROOT)
        return;
    const struct store_names *names = &graph->request->store->names;
    uint32_t parent = store_node_at(names, node)->parent;
    const struct store_frame *frame = store_frame_at(names, store_node_at(names, node)->frame);
    if (!is_left(graph, node, parent)) {
        merge_node(graph, node, parent);
        return;
    }
    int64_t self[2] = {0}, total[2] = {0};
    for (int side = 0; side < graph->side_count; side++) {
        self[side] = graph->sides[side].self[node];
        total[side] = graph->sides[side].total[node];
    }
    graph->places[node] = graph->printed + 1;
    print_node(graph, graph->places[parent] - 1, frame->name, frame->file, self, total);
}

static void print_others(struct graph *graph)
{
    for (uint32_t i = 0; graph->is_truncated && i < graph->count; i++) {
        int64_t values[2] = {0};
        for (int side = 0; side < graph->side_count; side++)
            values[side] = graph->others[side][i];
        if (values[0] != 0 || values[1] != 0)
            print_node(graph, graph->places[i] - 1, STORE_NONE, STORE_TEXT_EMPTY, values, values);
    }
}

/* Arrays of all nodes are zero where nothing is selected, and then take no memory. */
static void open_graph(struct graph *graph)
{
    graph->count = graph->sides[0].count;
    graph->weights = memory_zalloc(graph->count * sizeof *graph->weights);
    graph->places = memory_zalloc(graph->count * sizeof *graph->places);
}

static void close_graph(struct graph *graph)
{
    free(graph->weights);
    free(graph->places);
    for (int side = 0; side < graph->side_count; side++) {
        free(graph->others[side]);
        store_values_deinit(&graph->sides[side]);
    }
}

static void print_nodes(struct graph *graph, uint64_t max_nodes)
{
    open_graph(graph);
    weigh(graph);
    limit_nodes(graph, max_nodes);
    json_text_open(&graph->request->json, "nodes", '[');
    for (uint32_t i = 0; i < graph->count; i++) {
        if ((i & 1023) == 0 && api_must_stop(graph->request))
            return;
        add_node(graph, i);
    }
    print_others(graph);
    json_text_close(&graph->request->json, ']');
    json_text_bool(&graph->request->json, "truncated", graph->is_truncated);
    print_texts(graph->request, "names", &graph->names);
    if (!graph->request->is_late)
        print_texts(graph->request, "files", &graph->files);
}

static void print_type(struct api_request *request, uint8_t type)
{
    const struct store_type *of = &request->store->cells.types[type];
    bool is_known = type < STORE_TYPES_MAX;
    json_text_slice(&request->json, "type", is_known ? api_text(request, of->label) : SLICE(""));
    json_text_slice(&request->json, "unit", is_known ? api_text(request, of->unit) : SLICE(""));
}

void api_flamegraph(struct api_request *request)
{
    struct store_selection selection;
    struct graph graph = {.request = request, .side_count = 1};
    uint8_t type;
    uint64_t max_nodes;
    if (!api_selection(request, "", &selection, &type) ||
        !api_number(request, "max_nodes", API_NODES_MAX, API_NODES_MAX, &max_nodes))
        return;
    graph.sides[0] = store_query_values(request->store, &selection, type);
    json_text_open(&request->json, NULL, '{');
    print_type(request, type);
    json_text_i64(&request->json, "total", graph.sides[0].sum);
    json_text_u64(&request->json, "spans", graph.sides[0].spans);
    print_nodes(&graph, max_nodes > 2 ? max_nodes : 2);
    close_graph(&graph);
    if (!request->is_late)
        json_text_close(&request->json, '}');
}

void api_diff(struct api_request *request)
{
    struct store_selection a, b;
    struct graph graph = {.request = request, .side_count = 2};
    uint8_t type, other_type;
    uint64_t max_nodes;
    if (!api_selection(request, "a.", &a, &type) ||
        !api_selection(request, "b.", &b, &other_type) ||
        !api_number(request, "max_nodes", API_NODES_MAX, API_NODES_MAX, &max_nodes))
        return;
    if (type != other_type) {
        api_refuse(request, 400, "invalid_parameter", "both sides must have the same type");
        return;
    }
    graph.sides[0] = store_query_values(request->store, &a, type);
    graph.sides[1] = store_query_values(request->store, &b, type);
    json_text_open(&request->json, NULL, '{');
    print_type(request, type);
    json_text_i64(&request->json, "total_a", graph.sides[0].sum);
    json_text_i64(&request->json, "total_b", graph.sides[1].sum);
    json_text_u64(&request->json, "spans_a", graph.sides[0].spans);
    json_text_u64(&request->json, "spans_b", graph.sides[1].spans);
    print_nodes(&graph, max_nodes > 2 ? max_nodes : 2);
    close_graph(&graph);
    if (!request->is_late)
        json_text_close(&request->json, '}');
}

/* ---- functions ---- */

struct function_row {
    int64_t self, total;
    uint32_t frame;
    uint32_t open; /* frames of the present stack that are this function */
};

struct walk {
    const struct store_names *names;
    const struct store_values *values;
    struct function_row *rows; /* by frame */
    struct {
        uint32_t child;   /* the first one; 0: none */
        uint32_t sibling; /* the next one; 0: none */
    } * nodes;
};

static void enter(struct walk *walk, uint32_t node)
{
    struct function_row *row = &walk->rows[store_node_at(walk->names, node)->frame];
    row->self = saturate_add(row->self, walk->values->self[node]);
    if (row->open++ == 0) /* a recursive function counts once */
        row->total = saturate_add(row->total, walk->values->total[node]);
}

/* Returns the next node after all below this one; 0: there are no more. */
static uint32_t leave(struct walk *walk, uint32_t node)
{
    while (node != STORE_NODE_ROOT) {
        walk->rows[store_node_at(walk->names, node)->frame].open--;
        if (walk->nodes[node].sibling != 0)
            return walk->nodes[node].sibling;
        node = store_node_at(walk->names, node)->parent;
    }
    return 0;
}

static struct function_row *collect_functions(struct api_request *request,
                                              const struct store_values *values)
{
    struct walk walk = {.names = &request->store->names, .values = values};
    walk.rows = arena_array(&request->arena, walk.names->frames.count, sizeof *walk.rows);
    walk.nodes = memory_zalloc(values->count * sizeof *walk.nodes);
    for (uint32_t i = 0; i < walk.names->frames.count; i++)
        walk.rows[i].frame = i;
    for (uint32_t i = values->count; i-- > 1;) {
        if (values->self[i] == 0 && walk.nodes[i].child == 0)
            continue; /* nothing of it is selected */
        uint32_t parent = store_node_at(walk.names, i)->parent;
        walk.nodes[i].sibling = walk.nodes[parent].child;
        walk.nodes[parent].child = i;
    }
    for (uint32_t node = walk.nodes[STORE_NODE_ROOT].child; node != 0;) {
        enter(&walk, node);
        node = walk.nodes[node].child ? walk.nodes[node].child : leave(&walk, node);
    }
    free(walk.nodes);
    return walk.rows;
}

static int compare_self(const void *a, const void *b)
{
    const struct function_row *one = a, *other = b;
    if (one->self != other->self)
        return one->self > other->self ? -1 : 1;
    return one->frame < other->frame ? -1 : one->frame > other->frame;
}

static int compare_total(const void *a, const void *b)
{
    const struct function_row *one = a, *other = b;
    if (one->total != other->total)
        return one->total > other->total ? -1 : 1;
    return one->frame < other->frame ? -1 : one->frame > other->frame;
}

static bool contains(struct slice text, struct slice part)
{
    for (size_t i = 0; i + part.size <= text.size; i++)
        if (strncasecmp((const char *)text.data + i, (const char *)part.data, part.size) == 0)
            return true;
    return false;
}

/* Moves the rows that have a value and the searched name to the front; returns their number. */
static uint32_t choose_rows(struct api_request *request, struct function_row *rows)
{
    struct slice search = api_parameter(request, "search");
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < request->store->names.frames.count; i++) {
        if (rows[i].self == 0 && rows[i].total == 0)
            continue;
        if ((i & 1023) == 0 && api_must_stop(request))
            return 0;
        if (search.size == 0 ||
            contains(api_text(request, store_frame_at(&request->store->names, rows[i].frame)->name),
                     search))
            rows[chosen++] = rows[i];
    }
    return chosen;
}

static void print_function(struct api_request *request, const struct function_row *row)
{
    const struct store_frame *frame = store_frame_at(&request->store->names, row->frame);
    json_text_open(&request->json, NULL, '{');
    json_text_slice(&request->json, "name", api_text(request, frame->name));
    json_text_slice(&request->json, "file", api_text(request, frame->file));
    json_text_i64(&request->json, "self", row->self);
    json_text_i64(&request->json, "total", row->total);
    json_text_close(&request->json, '}');
}

void api_functions(struct api_request *request)
{
    struct store_selection selection;
    uint8_t type;
    uint64_t from, limit, i;
    static const char *const sorts[] = {"self", "total"};
    int sort;
    if (!api_selection(request, "", &selection, &type) ||
        !api_word(request, "sort", sorts, 2, 0, &sort) ||
        !api_page(request, API_LIST_DEFAULT, &from, &limit))
        return;
    struct store_values values = store_query_values(request->store, &selection, type);
    struct function_row *rows = collect_functions(request, &values);
    uint32_t count = choose_rows(request, rows);
    qsort(rows, count, sizeof *rows, sort == 1 ? compare_total : compare_self);
    int64_t sum = values.sum;
    store_values_deinit(&values);
    if (request->is_late)
        return;
    json_text_open(&request->json, NULL, '{');
    print_type(request, type);
    json_text_i64(&request->json, "total", sum);
    json_text_open(&request->json, "functions", '[');
    for (i = from; i < count && i < from + limit && !api_must_stop(request); i++)
        print_function(request, &rows[i]);
    if (request->is_late)
        return;
    json_text_close(&request->json, ']');
    api_next(request, i, i < count);
    json_text_close(&request->json, '}');
}
