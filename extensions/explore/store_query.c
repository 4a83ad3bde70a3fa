#include "extensions/explore/store_query.h"

#include "core/base/memory.h"
#include "core/base/saturate.h"
#include "extensions/explore/percentiles.h"

/* ---- cells ---- */

static bool is_text(const struct store *store, bool is_asked, uint32_t text, struct slice wanted)
{
    return !is_asked || slice_equal(store_names_read(&store->names, text), wanted);
}

/* Operations are compared once, not for each of their cells. */
static bool *mark_operations(const struct store *store, const struct store_selection *selection)
{
    const struct store_cells *cells = &store->cells;
    bool *marks = memory_zalloc(cells->operations.count + 1);
    for (uint32_t i = 0; i < cells->operations.count; i++) {
        const struct store_operation *operation = store_operation_at(cells, i);
        marks[i] =
            (selection->kind < 0 || operation->kind == selection->kind) &&
            is_text(store, selection->has_operation, operation->name, selection->operation) &&
            is_text(store, selection->has_service,
                    store_service_at(cells, operation->service)->name, selection->service);
    }
    return marks;
}

static bool is_in_time(const struct store_cell *cell, const struct store_selection *selection)
{
    uint64_t begin = cell->minute * STORE_MINUTE_NS;
    uint64_t end = begin + (cell->is_hour ? 60 : 1) * STORE_MINUTE_NS;
    return (selection->from_ns == 0 || end > selection->from_ns) &&
           (selection->to_ns == 0 || begin < selection->to_ns);
}

/* Samples outside of requests are in cells without spans, and have no status. */
static bool has_status(const struct store *store, const struct store_cell *cell)
{
    const struct store_operation *operation = store_operation_at(&store->cells, cell->operation);
    return operation->name != STORE_TEXT_EMPTY || operation->kind != 0 || cell->spans > 0;
}

bool *store_query_cells(const struct store *store, const struct store_selection *selection)
{
    const struct store_cells *cells = &store->cells;
    bool *operations = mark_operations(store, selection);
    bool *marks = memory_zalloc(cells->cells.count + 1);
    for (uint32_t i = 0; i < cells->cells.count; i++) {
        const struct store_cell *cell = store_cell_at(cells, i);
        marks[i] = operations[cell->operation] &&
                   (selection->status < 0 ||
                    (cell->status == selection->status && has_status(store, cell))) &&
                   is_text(store, selection->has_version, cell->version, selection->version) &&
                   is_in_time(cell, selection);
    }
    free(operations);
    return marks;
}

bool store_query_has_bucket(const struct store_selection *selection, unsigned bucket)
{
    if (selection->bucket < 0 && selection->min_ns == 0 && selection->max_ns == 0)
        return true;
    if (bucket >= STORE_BUCKETS)
        return false;
    return (selection->bucket < 0 || bucket == (unsigned)selection->bucket) &&
           store_bucket_lower(bucket) >= selection->min_ns &&
           (selection->max_ns == 0 || store_bucket_lower(bucket + 1) <= selection->max_ns);
}

/* ---- spans ---- */

static bool has_attribute(struct slice json, struct slice text, struct slice number)
{
    const uint8_t *found = memmem(json.data, json.size, text.data, text.size);
    if (found)
        return true;
    found = memmem(json.data, json.size, number.data, number.size);
    if (!found)
        return false;
    const uint8_t *end = found + number.size;
    return end == json.data + json.size || *end == ',';
}

enum { MEMO_IS_READ = 1 << SELECTION_ATTRIBUTES_MAX };
_Static_assert(MEMO_IS_READ <= UINT16_MAX, "a memo has a bit for each attribute");

/* Returns which of the attributes a text has, a bit for each. It is read once: all spans of a
 * process share their resource, and many their attributes. */
static unsigned attributes_of(const struct store *store, const struct store_selection *selection,
                              uint32_t text)
{
    uint16_t *memo = &selection->memo[text];
    struct slice json = store_names_read(&store->names, text);
    for (unsigned i = 0; !(*memo & MEMO_IS_READ) && i < selection->attribute_count; i++)
        if (has_attribute(json, selection->attributes[i], selection->numbers[i]))
            *memo |= (uint16_t)(1u << i);
    *memo |= MEMO_IS_READ;
    return *memo;
}

static bool has_attributes(const struct store *store, const struct store_selection *selection,
                           const struct store_span *span)
{
    unsigned all = (1u << selection->attribute_count) - 1;
    return all == 0 || ((attributes_of(store, selection, span->attributes) |
                         attributes_of(store, selection, span->resource)) &
                        all) == all;
}

static bool has_ids(const struct store_selection *selection, const struct store_span *span)
{
    return (!selection->has_trace ||
            memcmp(span->trace_id, selection->trace_id, TRACE_ID_SIZE) == 0) &&
           (!selection->has_span || memcmp(span->span_id, selection->span_id, SPAN_ID_SIZE) == 0);
}

static bool has_numbers(const struct store_selection *selection, const struct store_span *span)
{
    return (selection->kind < 0 || span->kind == selection->kind) &&
           (selection->status < 0 || span->status == selection->status) &&
           (selection->from_ns == 0 || span->start_ns + span->duration_ns >= selection->from_ns) &&
           (selection->to_ns == 0 || span->start_ns < selection->to_ns) &&
           span->duration_ns >= selection->min_ns &&
           (selection->max_ns == 0 || span->duration_ns <= selection->max_ns) &&
           (selection->bucket < 0 ||
            store_bucket_of(span->duration_ns) == (unsigned)selection->bucket);
}

bool store_query_has_span(const struct store *store, const struct store_selection *selection,
                          const struct store_span *span)
{
    if (!span->is_used || !has_ids(selection, span))
        return false;
    if (!store_span_has_arrived(span)) /* asked for by its id */
        return selection->has_span && !selection->has_service && selection->attribute_count == 0;
    const struct store_operation *operation = store_operation_at(&store->cells, span->operation);
    return has_numbers(selection, span) &&
           (is_text(store, selection->has_operation, span->name, selection->operation) ||
            is_text(store, true, operation->name, selection->operation)) &&
           is_text(store, selection->has_version, span->version, selection->version) &&
           is_text(store, selection->has_service,
                   store_service_at(&store->cells, operation->service)->name, selection->service) &&
           has_attributes(store, selection, span);
}

int64_t store_query_cost(const struct store *store, const struct store_span *span, uint8_t type)
{
    int64_t sum = 0;
    for (uint32_t at = span->first_cost; at;) {
        const struct store_cost *cost = store_cost_at(&store->spans, at);
        if (cost->type == type)
            sum = saturate_add(sum, cost->value);
        at = cost->next;
    }
    return sum;
}

/* ---- values ---- */

static void add_spans(const struct store *store, const struct store_selection *selection,
                      uint8_t type, struct store_values *values)
{
    for (uint32_t i = 0; i < store->spans.spans.count; i++) {
        const struct store_span *span = store_span_at(&store->spans, i);
        if (!store_query_has_span(store, selection, span))
            continue;
        values->spans += store_span_has_arrived(span);
        for (uint32_t at = span->first_cost; at;) {
            const struct store_cost *cost = store_cost_at(&store->spans, at);
            if (cost->type == type)
                values->self[cost->node] = saturate_add(values->self[cost->node], cost->value);
            at = cost->next;
        }
    }
}

static void add_entries(const struct store *store, const struct store_selection *selection,
                        uint8_t type, struct store_values *values)
{
    bool *cells = store_query_cells(store, selection);
    for (uint32_t i = 0; i < store->cells.entries.count; i++) {
        const struct store_entry *entry = store_entry_at(&store->cells, i);
        if (!cells[entry->cell])
            continue;
        if (entry->type == type && store_query_has_bucket(selection, entry->bucket))
            values->self[entry->node] = saturate_add(values->self[entry->node], entry->value);
        else if (entry->type == STORE_ENTRY_DURATION &&
                 store_query_has_bucket(selection, entry->node / FINE_PARTS))
            values->spans += (uint64_t)entry->value;
    }
    free(cells);
}

/* Adds what each node costs to its callers. */
static void add_up(const struct store *store, struct store_values *values)
{
    for (uint32_t i = values->count; i-- > 0;) {
        if (values->self[i] != 0)
            values->total[i] = saturate_add(values->total[i], values->self[i]);
        if (values->total[i] == 0 || i == STORE_NODE_ROOT)
            continue; /* most nodes, if little is selected */
        uint32_t parent = store_node_at(&store->names, i)->parent;
        values->total[parent] = saturate_add(values->total[parent], values->total[i]);
    }
    values->sum = values->total[STORE_NODE_ROOT];
}

struct store_values store_query_values(const struct store *store,
                                       const struct store_selection *selection, uint8_t type)
{
    struct store_values values = {.count = store->names.nodes.count};
    values.self = memory_zalloc(values.count * sizeof *values.self);
    values.total = memory_zalloc(values.count * sizeof *values.total);
    if (type < STORE_TYPES_MAX && store_selection_is_of_spans(selection))
        add_spans(store, selection, type, &values);
    else
        add_entries(store, selection, type, &values);
    add_up(store, &values);
    return values;
}

void store_values_deinit(struct store_values *values)
{
    free(values->self);
    free(values->total);
    *values = (struct store_values){.count = 0};
}

/* ---- types ---- */

/* "cpu" is what most ask for. */
static uint8_t default_type(const struct store *store)
{
    if (store->spans.cpu_type < STORE_TYPES_MAX)
        return store->spans.cpu_type;
    return store->cells.type_count > 0 ? 0 : STORE_TYPES_MAX;
}

uint8_t store_query_type(const struct store *store, struct slice name)
{
    if (name.size == 0)
        return default_type(store);
    for (uint32_t i = 0; i < store->cells.type_count; i++)
        if (slice_equal(store_names_read(&store->names, store->cells.types[i].label), name))
            return (uint8_t)i;
    return STORE_TYPES_MAX;
}
