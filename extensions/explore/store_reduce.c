/* How the store makes room: minutes become hours, buckets are folded, rare operations and small
 * stacks are merged, and the oldest hours lose their details. Values are moved, never lost. */
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "extensions/explore/store.h"

enum {
    FULL_PERCENT = 97,   /* of the pool: time to make room */
    TARGET_PERCENT = 88, /* and how much is used then, at most */
    FRESH_MINUTES = 60,  /* that stay minutes as long as possible */
    DETAILED_OPERATIONS = 32,
    MANY_OPERATIONS = 256,
    HOUR = 60,
    ROUNDS_MAX = 8, /* of small steps, before everything is merged */
};

/* ---- cells get other keys ---- */

/* The caller changes the keys of cells, which are not found meanwhile. */
struct rekeying {
    struct store *store;
    uint32_t *cells;    /* new number of each cell */
    bool *loses_stacks; /* entries of the cell */
};

static struct rekeying begin_rekeying(struct store *store)
{
    const struct store_cells *cells = &store->cells;
    struct rekeying rekeying = {
        .store = store,
        .cells = memory_array(cells->cells.count, sizeof(uint32_t)),
        .loses_stacks = memory_zalloc(cells->cells.count),
    };
    return rekeying;
}

/* Cells with equal keys become one. */
static void rekey_cells(struct rekeying *rekeying)
{
    struct store_cells *cells = &rekeying->store->cells;
    uint32_t count = cells->cells.count;
    store_table_clear_index(&cells->cells);
    cells->cells.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct store_cell cell = ((const struct store_cell *)(void *)cells->cells.records)[i];
        uint32_t number = store_cells_cell(cells, &cell); /* not beyond where it is read */
        assert(number <= i);
        store_cell_add_spans(store_cell_at(cells, number), cell.spans);
        rekeying->cells[i] = number;
    }
    store_table_trim(&cells->cells);
}

static void rekey_entries(struct rekeying *rekeying)
{
    struct store_cells *cells = &rekeying->store->cells;
    for (uint32_t i = 0; i < cells->entries.count; i++) {
        struct store_entry *entry = store_entry_at(cells, i);
        if (rekeying->loses_stacks[entry->cell] && entry->type < STORE_TYPES_MAX) {
            cells->merged.stacks += entry->node != STORE_NODE_MERGED;
            entry->node = STORE_NODE_MERGED;
            entry->bucket = STORE_BUCKET_ANY;
        }
        entry->cell = rekeying->cells[entry->cell];
    }
    store_cells_index_entries(cells);
}

static void rekey_spans(struct rekeying *rekeying)
{
    struct store_spans *spans = &rekeying->store->spans;
    for (uint32_t i = 0; i < spans->spans.count; i++) {
        struct store_span *span = store_span_at(spans, i);
        if (span->is_used && span->cell != STORE_NONE)
            span->cell = rekeying->cells[span->cell];
        for (uint32_t at = span->is_used ? span->first_cost : 0; at;) {
            struct store_cost *cost = store_table_at(&spans->costs, at - 1);
            cost->cell = rekeying->cells[cost->cell];
            at = cost->next;
        }
    }
}

static void end_rekeying(struct rekeying *rekeying)
{
    rekey_cells(rekeying);
    rekey_entries(rekeying);
    rekey_spans(rekeying);
    free(rekeying->cells);
    free(rekeying->loses_stacks);
}

/* ---- the steps ---- */

/* Minutes before the last `fresh` ones become hours. */
static void merge_minutes(struct store *store, uint32_t fresh)
{
    struct rekeying rekeying = begin_rekeying(store);
    uint32_t now = (uint32_t)(store->now_ns / STORE_MINUTE_NS);
    for (uint32_t i = 0; i < store->cells.cells.count; i++) {
        struct store_cell *key = store_cell_at(&store->cells, i);
        if (key->is_hour || key->minute == 0 || key->minute + fresh > now)
            continue;
        key->is_hour = true;
        key->minute -= key->minute % HOUR;
        store->cells.merged.minutes++;
    }
    end_rekeying(&rekeying);
}

static uint64_t add_weights(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Returns the weight of each operation: its entries' values in CPU time, else in any type. */
static uint64_t *weigh_operations(const struct store *store)
{
    const struct store_cells *cells = &store->cells;
    uint64_t *weights = memory_zalloc((cells->operations.count + 1) * sizeof *weights);
    for (uint32_t i = 0; i < cells->entries.count; i++) {
        const struct store_entry *entry = store_entry_at(cells, i);
        bool counts = store->spans.cpu_type < STORE_TYPES_MAX ? entry->type == store->spans.cpu_type
                                                              : entry->type < STORE_TYPES_MAX;
        uint64_t *weight = &weights[store_cell_at(cells, entry->cell)->operation];
        if (counts && entry->value > 0)
            *weight = add_weights(*weight, (uint64_t)entry->value);
    }
    for (uint32_t i = 0; i < cells->cells.count; i++) {
        const struct store_cell *cell = store_cell_at(cells, i);
        weights[cell->operation] = add_weights(weights[cell->operation], cell->spans);
    }
    return weights;
}

static int compare_weights(const void *a, const void *b)
{
    const uint64_t *one = a, *other = b;
    return *one < *other ? 1 : *one > *other ? -1 : 0;
}

/* Returns the weight of the operation that is number `rank` from above; 0: there are fewer. */
static uint64_t weight_at(const uint64_t *weights, uint32_t count, uint32_t rank)
{
    if (rank >= count)
        return 0;
    uint64_t *sorted = memory_array(count, sizeof *sorted);
    memcpy(sorted, weights, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_weights);
    uint64_t weight = sorted[rank];
    free(sorted);
    return weight;
}

/* Only the most expensive operations keep stacks by bucket. */
static void fold_buckets(struct store *store)
{
    struct store_cells *cells = &store->cells;
    uint64_t *weights = weigh_operations(store);
    uint64_t least = weight_at(weights, cells->operations.count, DETAILED_OPERATIONS - 1);
    for (uint32_t i = 0; i < cells->operations.count; i++)
        store_operation_at(cells, i)->keeps_buckets = weights[i] > least;
    for (uint32_t i = 0; i < cells->entries.count; i++) {
        struct store_entry *entry = store_entry_at(cells, i);
        uint32_t operation = store_cell_at(cells, entry->cell)->operation;
        if (entry->type < STORE_TYPES_MAX && !store_operation_at(cells, operation)->keeps_buckets)
            entry->bucket = STORE_BUCKET_ANY;
    }
    free(weights);
    store_cells_index_entries(cells);
}

/* What each operation takes: of cells, or of entries. */
enum sized { SIZED_OPERATIONS, SIZED_CELLS, SIZED_ENTRIES };

static uint32_t *size_operations(const struct store *store, enum sized sized)
{
    const struct store_cells *cells = &store->cells;
    uint32_t *sizes = memory_zalloc((cells->operations.count + 1) * sizeof *sizes);
    for (uint32_t i = 0; sized == SIZED_OPERATIONS && i < cells->operations.count; i++)
        sizes[i] = 1;
    for (uint32_t i = 0; sized == SIZED_CELLS && i < cells->cells.count; i++)
        sizes[store_cell_at(cells, i)->operation]++;
    for (uint32_t i = 0; sized == SIZED_ENTRIES && i < cells->entries.count; i++)
        sizes[store_cell_at(cells, store_entry_at(cells, i)->cell)->operation]++;
    return sizes;
}

struct weighed {
    uint64_t weight;
    uint32_t operation;
};

static int compare_weighed(const void *a, const void *b)
{
    const struct weighed *one = a, *other = b;
    return one->weight < other->weight ? -1 : one->weight > other->weight;
}

static bool may_merge(const struct store_operation *operation)
{
    return operation->name != STORE_TEXT_EMPTY && operation->name != STORE_TEXT_MERGED;
}

/* Returns the operations that may be merged, the cheapest first. */
static struct weighed *list_operations(const struct store *store, uint32_t *count_out)
{
    const struct store_cells *cells = &store->cells;
    uint64_t *weights = weigh_operations(store);
    struct weighed *list = memory_array(cells->operations.count + 1, sizeof *list);
    uint32_t count = 0;
    for (uint32_t i = 0; i < cells->operations.count; i++)
        if (may_merge(store_operation_at(cells, i)))
            list[count++] = (struct weighed){weights[i], i};
    free(weights);
    qsort(list, count, sizeof *list, compare_weighed);
    *count_out = count;
    return list;
}

/* Marks the cheapest operations that together have `excess` of what is counted. keep: how many
 * stay anyway. */
static bool *rare_operations(const struct store *store, enum sized sized, uint32_t excess,
                             uint32_t keep)
{
    bool *marks = memory_zalloc(store->cells.operations.count + 1);
    uint32_t *sizes = size_operations(store, sized);
    uint32_t count, freed = 0;
    struct weighed *list = list_operations(store, &count);
    for (uint32_t i = 0; i + keep < count && freed < excess; i++) {
        marks[list[i].operation] = true;
        freed += sizes[list[i].operation];
    }
    free(sizes);
    free(list);
    return marks;
}

static void remove_operations(struct store *store);

/* Cells of rare operations go to the operation that stands for them. */
static void merge_operations(struct store *store, enum sized sized, uint32_t excess, uint32_t keep)
{
    struct store_cells *cells = &store->cells;
    bool *marks = rare_operations(store, sized, excess, keep);
    struct rekeying rekeying = begin_rekeying(store);
    for (uint32_t i = 0; i < cells->cells.count; i++) {
        struct store_cell *key = store_cell_at(&store->cells, i);
        if (!marks[key->operation])
            continue;
        uint32_t service = store_operation_at(cells, key->operation)->service;
        key->operation = store_cells_operation(cells, service, STORE_TEXT_MERGED, 0);
        key->version = STORE_TEXT_EMPTY;
    }
    free(marks);
    end_rekeying(&rekeying);
    remove_operations(store);
}

/* Whether a cell is of the last minute, which keeps its details as long as possible. */
static bool is_fresh(const struct store *store, const struct store_cell *cell)
{
    return !cell->is_hour && cell->minute + UINT64_C(1) >= store->now_ns / STORE_MINUTE_NS;
}

/* The oldest cells lose their time, stacks and operation. `left`: how many keep them; more, if
 * `keeps_fresh`. */
static void merge_oldest(struct store *store, uint32_t left, bool keeps_fresh)
{
    struct store_cells *cells = &store->cells;
    uint32_t count = cells->cells.count;
    uint64_t *minutes = memory_array(count + 1, sizeof *minutes);
    for (uint32_t i = 0; i < count; i++)
        minutes[i] = store_cell_at(cells, i)->minute;
    uint64_t oldest = weight_at(minutes, count, left);
    free(minutes);
    struct rekeying rekeying = begin_rekeying(store);
    for (uint32_t i = 0; i < count; i++) {
        struct store_cell *key = store_cell_at(&store->cells, i);
        if (key->minute > oldest || (keeps_fresh && is_fresh(store, key)))
            continue;
        uint32_t service = store_operation_at(cells, key->operation)->service;
        key->operation = store_cells_operation(cells, service, STORE_TEXT_MERGED, 0);
        key->version = STORE_TEXT_EMPTY;
        key->minute = 0;
        key->is_hour = false;
        rekeying.loses_stacks[i] = true;
    }
    end_rekeying(&rekeying);
}

/* ---- small stacks ---- */

static uint64_t size_of(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static bool is_stack(const struct store_entry *entry)
{
    return entry->type < STORE_TYPES_MAX && entry->node != STORE_NODE_MERGED;
}

static uint32_t count_stacks(const struct store *store)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < store->cells.entries.count; i++)
        count += is_stack(store_entry_at(&store->cells, i));
    return count;
}

static uint64_t sum_capped(const uint32_t *counts, uint32_t count, uint32_t most)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += counts[i] < most ? counts[i] : most;
    return sum;
}

/* Returns how many stacks each cell may keep, so that at most `left` are left of all. */
static uint32_t stacks_for_cell(const struct store *store, uint32_t left)
{
    const struct store_cells *cells = &store->cells;
    uint32_t *counts = memory_zalloc((cells->cells.count + 1) * sizeof *counts);
    for (uint32_t i = 0; i < cells->entries.count; i++)
        counts[store_entry_at(cells, i)->cell] += is_stack(store_entry_at(cells, i));
    uint32_t low = 0, high = left;
    while (low < high) {
        uint32_t most = low + (high - low + 1) / 2;
        if (sum_capped(counts, cells->cells.count, most) <= left)
            low = most;
        else
            high = most - 1;
    }
    free(counts);
    return low;
}

/* Whether one entry is before another: by cell, then stacks, the largest first. */
static bool is_before(const struct store_entry *a, const struct store_entry *b)
{
    if (a->cell != b->cell)
        return a->cell < b->cell;
    if (is_stack(a) != is_stack(b))
        return is_stack(a);
    return size_of(a->value) > size_of(b->value);
}

static void swap_entries(struct store_entry *a, struct store_entry *b)
{
    struct store_entry entry = *a;
    *a = *b;
    *b = entry;
}

/* Puts what is before one of the entries to the front. Returns how many those are, less than all.
 */
static uint32_t partition_entries(struct store_entry *entries, uint32_t count)
{
    uint32_t low = 0, high = count - 1;
    swap_entries(&entries[0], &entries[hash_u64(count) % count]); /* cannot be foreseen */
    const struct store_entry pivot = entries[0];
    for (;;) {
        while (is_before(&entries[low], &pivot))
            low++;
        while (is_before(&pivot, &entries[high]))
            high--;
        if (low >= high)
            return high + 1;
        swap_entries(&entries[low++], &entries[high--]);
    }
}

/* Sorts in place: qsort takes as much memory again. */
static void sort_entries(struct store_entry *entries, uint32_t count)
{
    while (count > 1) {
        uint32_t first = partition_entries(entries, count), rest = count - first;
        assert(first > 0 && rest > 0);
        bool is_first_smaller = first < rest;
        sort_entries(is_first_smaller ? entries : entries + first, is_first_smaller ? first : rest);
        entries = is_first_smaller ? entries + first : entries;
        count = is_first_smaller ? rest : first;
    }
}

/* Large cells keep their largest stacks, small cells all of them. left: of stacks. */
static void merge_stacks(struct store *store, uint32_t left)
{
    struct store_cells *cells = &store->cells;
    uint32_t most = stacks_for_cell(store, left), in_cell = 0;
    struct store_entry *entries = (void *)cells->entries.records;
    sort_entries(entries, cells->entries.count);
    for (uint32_t i = 0; i < cells->entries.count; i++) {
        in_cell = i > 0 && entries[i].cell == entries[i - 1].cell ? in_cell + 1 : 0;
        if (in_cell < most || !is_stack(&entries[i]))
            continue;
        cells->merged.stacks++;
        entries[i].node = STORE_NODE_MERGED;
        entries[i].bucket = STORE_BUCKET_ANY;
    }
    store_cells_index_entries(cells);
}

/* ---- spans and names ---- */

/* Forgets the part of the remembered spans that came first. Unless that are all, the slowest one of
 * each operation only loses its details. */
static void forget_spans(struct store *store, uint32_t part)
{
    struct store_spans *spans = &store->spans;
    uint32_t count = spans->spans.count, forget = count / part;
    for (uint32_t i = 0; i < forget; i++) {
        uint32_t number = (spans->hand + i) % count;
        if (part > 1 && store_spans_is_slowest(spans, number))
            store_spans_strip(spans, number);
        else if (store_span_at(spans, number)->is_used)
            store_spans_evict(spans, number);
    }
    spans->hand = count > 0 ? (spans->hand + forget) % count : 0;
}

/* Moves the spans of operations that have no cells any more. */
static void leave_operations(struct store *store, const uint32_t *used)
{
    struct store_spans *spans = &store->spans;
    for (uint32_t i = 0; i < spans->spans.count; i++) {
        const struct store_span *span = store_span_at(spans, i);
        if (!span->is_used || !store_span_has_arrived(span) || used[span->operation])
            continue;
        uint32_t service = store_operation_at(&store->cells, span->operation)->service;
        store_spans_merge_operation(
            spans, i, store_cells_operation(&store->cells, service, STORE_TEXT_MERGED, 0));
    }
}

/* What the spans that are not remembered have left. */
static void leave_max(struct store_cells *cells, const struct store_operation *operation)
{
    uint32_t number = store_cells_operation(cells, operation->service, STORE_TEXT_MERGED, 0);
    struct store_operation *other = store_operation_at(cells, number);
    if (operation->max_ns <= other->max_ns)
        return;
    other->max_ns = operation->max_ns;
    other->max_span = 0;
}

/* Marks the operations that stay. There is room for those that are added later. */
static uint32_t *used_operations(struct store *store)
{
    struct store_cells *cells = &store->cells;
    uint32_t most = cells->operations.count + cells->services.count;
    uint32_t *used = memory_zalloc(most * sizeof *used);
    for (uint32_t i = 0; i < cells->cells.count; i++)
        used[store_cell_at(cells, i)->operation] = 1;
    leave_operations(store, used);
    for (uint32_t i = 0; i < cells->operations.count; i++) {
        const struct store_operation operation = *store_operation_at(cells, i);
        used[i] |= operation.name == STORE_TEXT_MERGED;
        if (!used[i])
            leave_max(cells, &operation);
    }
    return used;
}

/* Moves operations to their new numbers, which replace the marks. */
static void compact_operations(struct store_cells *cells, uint32_t *numbers)
{
    uint32_t count = cells->operations.count, left = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct store_operation operation = *store_operation_at(cells, i);
        if (!numbers[i]) {
            store_service_at(cells, operation.service)->operations--;
            cells->merged.operations++;
            continue;
        }
        *store_operation_at(cells, left) = operation;
        numbers[i] = left++;
    }
    cells->operations.count = left;
    store_table_trim(&cells->operations);
    store_cells_index_operations(cells);
}

static void remove_operations(struct store *store)
{
    struct store_cells *cells = &store->cells;
    uint32_t *numbers = used_operations(store);
    compact_operations(cells, numbers);
    for (uint32_t i = 0; i < cells->cells.count; i++) {
        struct store_cell *cell = store_cell_at(cells, i);
        cell->operation = numbers[cell->operation];
    }
    store_cells_index_cells(cells);
    for (uint32_t i = 0; i < store->spans.spans.count; i++) {
        struct store_span *span = store_span_at(&store->spans, i);
        if (span->is_used && store_span_has_arrived(span))
            span->operation = numbers[span->operation];
    }
    free(numbers);
}

/* ---- names that nobody uses any more ---- */

/* Calls a function for each text, or node, that the store refers to. */
struct visit {
    struct store_sweep *sweep;
    void (*text)(struct store_sweep *sweep, uint32_t *text);
    void (*node)(struct store_sweep *sweep, uint32_t *node);
};

static void visit_versions(const struct visit *visit, struct store_versions *versions)
{
    for (int i = 0; i < STORE_VERSIONS_MAX; i++)
        visit->text(visit->sweep, &versions->texts[i]);
}

static void visit_cells(struct store *store, const struct visit *visit)
{
    struct store_cells *cells = &store->cells;
    for (uint32_t i = 0; i < cells->type_count; i++) {
        visit->text(visit->sweep, &cells->types[i].name);
        visit->text(visit->sweep, &cells->types[i].label);
        visit->text(visit->sweep, &cells->types[i].unit);
    }
    for (uint32_t i = 0; i < cells->services.count; i++) {
        visit->text(visit->sweep, &store_service_at(cells, i)->name);
        visit_versions(visit, &store_service_at(cells, i)->versions);
    }
    for (uint32_t i = 0; i < cells->operations.count; i++) {
        visit->text(visit->sweep, &store_operation_at(cells, i)->name);
        visit_versions(visit, &store_operation_at(cells, i)->versions);
    }
    for (uint32_t i = 0; i < cells->cells.count; i++)
        visit->text(visit->sweep, &store_cell_at(cells, i)->version);
    for (uint32_t i = 0; i < cells->entries.count; i++)
        if (store_entry_at(cells, i)->type < STORE_TYPES_MAX)
            visit->node(visit->sweep, &store_entry_at(cells, i)->node);
}

static void visit_span(struct store *store, const struct visit *visit, struct store_span *span)
{
    visit->text(visit->sweep, &span->name);
    visit->text(visit->sweep, &span->version);
    visit->text(visit->sweep, &span->status_message);
    visit->text(visit->sweep, &span->scope);
    visit->text(visit->sweep, &span->attributes);
    visit->text(visit->sweep, &span->resource);
    for (uint32_t at = span->first_cost; at;) {
        struct store_cost *cost = store_table_at(&store->spans.costs, at - 1);
        visit->node(visit->sweep, &cost->node);
        at = cost->next;
    }
}

static void visit_all(struct store *store, const struct visit *visit)
{
    visit_cells(store, visit);
    for (uint32_t i = 0; i < store->spans.spans.count; i++)
        if (store_span_at(&store->spans, i)->is_used)
            visit_span(store, visit, store_span_at(&store->spans, i));
    for (int ring = 0; ring < STORE_UNREAD_RINGS; ring++)
        for (uint32_t i = 0; i < store_unread_used(store, ring); i++)
            visit->text(visit->sweep, &store->unread[ring][i].key);
    for (uint32_t i = 0; i < store_trails_used(store); i++)
        visit->text(visit->sweep, &store->trails[i].condition);
}

static void mark_text(struct store_sweep *sweep, uint32_t *text)
{
    store_sweep_text(sweep, *text);
}

static void mark_node(struct store_sweep *sweep, uint32_t *node)
{
    store_sweep_node(sweep, *node);
}

static void take_text(struct store_sweep *sweep, uint32_t *text)
{
    *text = sweep->texts[*text];
}

static void take_node(struct store_sweep *sweep, uint32_t *node)
{
    *node = sweep->nodes[*node];
}

static void index_services(struct store_cells *cells)
{
    store_cells_index_services(cells);
    store_cells_index_operations(cells);
    store_cells_index_cells(cells);
}

static void sweep_names(struct store *store)
{
    struct store_sweep sweep = store_sweep_begin(&store->names);
    visit_all(store, &(struct visit){&sweep, mark_text, mark_node});
    store_sweep_number(&sweep);
    visit_all(store, &(struct visit){&sweep, take_text, take_node});
    store_sweep_end(&sweep);
    index_services(&store->cells);
    store_cells_index_entries(&store->cells);
    store_table_trim(&store->cells.cells);
    store_table_trim(&store->cells.operations);
}

/* Merges the stacks that are too many, but leaves some. */
static void reduce_stacks(struct store *store)
{
    const struct store_table *entries = &store->cells.entries;
    uint32_t excess = store_table_excess(entries), stacks = count_stacks(store);
    uint32_t least = entries->target / 4;
    if (excess > 0 && stacks > least)
        merge_stacks(store, stacks - least > excess ? stacks - excess : least);
}

/* ---- cells, step by step ---- */

/* Steps that merge more and more. Each returns whether it has to be done again. */

static bool merge_old_minutes(struct store *store)
{
    if (store_cells_have_excess(&store->cells))
        merge_minutes(store, FRESH_MINUTES);
    return false;
}

static bool merge_all_minutes(struct store *store)
{
    if (store_cells_have_excess(&store->cells))
        merge_minutes(store, 1);
    return false;
}

static bool fold_rare_buckets(struct store *store)
{
    if (store_table_excess(&store->cells.entries) > 0)
        fold_buckets(store);
    return false;
}

static bool reduce_operations(struct store *store)
{
    uint32_t excess = store_table_excess(&store->cells.operations);
    if (excess > 0)
        merge_operations(store, SIZED_OPERATIONS, excess, 0);
    return false;
}

/* keep: operations that stay. */
static bool merge_for_cells(struct store *store, uint32_t keep)
{
    uint32_t excess = store_table_excess(&store->cells.cells);
    if (excess > 0)
        merge_operations(store, SIZED_CELLS, excess, keep);
    return store_table_excess(&store->cells.cells) > 0;
}

static bool merge_for_entries(struct store *store, uint32_t keep)
{
    const struct store_table *entries = &store->cells.entries;
    reduce_stacks(store);
    if (store_table_excess(entries) > 0)
        merge_operations(store, SIZED_ENTRIES, store_table_excess(entries), keep);
    return store_table_excess(entries) > 0;
}

static bool merge_many_for_cells(struct store *store)
{
    return merge_for_cells(store, MANY_OPERATIONS);
}

static bool merge_many_for_entries(struct store *store)
{
    return merge_for_entries(store, MANY_OPERATIONS);
}

static bool merge_all_for_cells(struct store *store)
{
    return merge_for_cells(store, 0);
}

static bool merge_all_for_entries(struct store *store)
{
    return merge_for_entries(store, 0);
}

static bool merge_old_cells(struct store *store)
{
    struct store_cells *cells = &store->cells;
    if (store_table_excess(&cells->cells) > 0 || store_table_excess(&cells->entries) > 0)
        merge_oldest(store, cells->cells.target, true);
    return false;
}

static bool merge_all_cells(struct store *store)
{
    if (store_cells_have_excess(&store->cells))
        merge_oldest(store, 0, false);
    return false;
}

static bool merge_small_stacks(struct store *store)
{
    reduce_stacks(store);
    return false;
}

static bool (*const cell_steps[])(struct store *store) = {
    merge_old_minutes,    merge_all_minutes,      fold_rare_buckets, reduce_operations,
    merge_many_for_cells, merge_many_for_entries, merge_old_cells,   reduce_operations,
    merge_all_for_cells,  merge_all_for_entries,  merge_all_cells,   merge_small_stacks};
enum { CELL_STEPS = sizeof cell_steps / sizeof cell_steps[0] };

/* Does the next step. Returns whether there is another one. */
static bool reduce_cells(struct store *store, struct store_reduction *reduction)
{
    bool again = cell_steps[reduction->cell_step](store);
    if (again && ++reduction->repeats < ROUNDS_MAX)
        return true;
    reduction->repeats = 0;
    return ++reduction->cell_step < CELL_STEPS && store_cells_have_excess(&store->cells);
}

/* ---- all of it ---- */

static bool is_above_target(const struct store *store)
{
    return store_pool_is_above(&store->pool, TARGET_PERCENT);
}

/* Names are used by spans and entries: a part of both goes. */
static void reduce_names(struct store *store)
{
    forget_spans(store, 4);
    merge_stacks(store, count_stacks(store) / 8 * 7);
    sweep_names(store);
}

/* What uses more than its share of the pool is reduced by a quarter. */
struct share {
    size_t bytes;
    unsigned percent;
};

/* Returns how many percent of its share a part must use in order to be reduced. */
static unsigned level_of(const struct store *store, const struct share *shares, int count)
{
    for (int i = 0; i < count; i++)
        if (shares[i].bytes > store->pool.limit / 100 * shares[i].percent)
            return 100;
    return 80;
}

static bool is_large(const struct store *store, const struct share *share, unsigned level)
{
    return share->bytes > store->pool.limit / 10000 * share->percent * level;
}

static void set_target(struct store *store, struct store_table *table, const struct share *share,
                       unsigned level)
{
    bool is_reduced = is_large(store, share, level) && table->count > table->reserve;
    table->target = is_reduced ? table->count - (table->count - table->reserve) / 4 : UINT32_MAX;
}

/* Sets what each part may have. Returns how many bytes names may. */
static size_t set_targets(struct store *store)
{
    enum { NAMES, OPERATIONS, CELLS, ENTRIES, PARTS };
    struct store_cells *cells = &store->cells;
    size_t names = store_names_bytes(&store->names);
    const struct share shares[PARTS] = {
        [NAMES] = {names, 46},
        [OPERATIONS] = {store_table_bytes(&cells->operations), 6},
        [CELLS] = {store_table_bytes(&cells->cells), 6},
        [ENTRIES] = {store_table_bytes(&cells->entries), 24},
    };
    unsigned level = level_of(store, shares, PARTS);
    set_target(store, &cells->operations, &shares[OPERATIONS], level);
    set_target(store, &cells->cells, &shares[CELLS], level);
    set_target(store, &cells->entries, &shares[ENTRIES], level);
    return is_large(store, &shares[NAMES], level) ? names / 4 * 3 : SIZE_MAX;
}

/* Leaves little besides totals. */
static void reduce_all(struct store *store)
{
    forget_spans(store, 1);
    merge_operations(store, SIZED_OPERATIONS, UINT32_MAX, MANY_OPERATIONS);
    merge_stacks(store, count_stacks(store) / 4);
    sweep_names(store);
    if (!is_above_target(store))
        return;
    merge_oldest(store, 0, false);
    remove_operations(store);
    sweep_names(store);
}

/* ---- step by step ---- */

static void run_phase(struct store *store, struct store_reduction *reduction)
{
    switch (reduction->phase) {
    case STORE_REDUCED:
        break;
    case STORE_SWEEPS:
        sweep_names(store);
        break;
    case STORE_REDUCES_LARGEST:
        reduction->names_limit = set_targets(store);
        reduction->cell_step = reduction->repeats = 0;
        reduction->has_cell_step = store_cells_have_excess(&store->cells);
        break;
    case STORE_REDUCES_CELLS:
        reduction->has_cell_step = reduce_cells(store, reduction);
        break;
    case STORE_REDUCES_NAMES:
        reduce_names(store);
        break;
    case STORE_REDUCES_ALL:
        reduce_all(store);
        break;
    }
}

static enum store_phase next_phase(const struct store *store, struct store_reduction *reduction)
{
    if (reduction->phase == STORE_REDUCES_LARGEST || reduction->phase == STORE_REDUCES_CELLS)
        return reduction->has_cell_step ? STORE_REDUCES_CELLS : STORE_SWEEPS;
    if (reduction->phase == STORE_REDUCES_ALL || !is_above_target(store))
        return STORE_REDUCED;
    if (store_names_bytes(&store->names) > reduction->names_limit &&
        reduction->names_rounds++ < ROUNDS_MAX)
        return STORE_REDUCES_NAMES;
    reduction->names_rounds = 0;
    return reduction->rounds++ < ROUNDS_MAX ? STORE_REDUCES_LARGEST : STORE_REDUCES_ALL;
}

bool store_reduce(struct store *store)
{
    struct store_reduction *reduction = &store->reduction;
    if (reduction->phase == STORE_REDUCED) {
        if (!store_pool_is_above(&store->pool, FULL_PERCENT))
            return false;
        /* Perhaps it is enough to forget names. */
        *reduction = (struct store_reduction){.phase = STORE_SWEEPS, .names_limit = SIZE_MAX};
    }
    run_phase(store, reduction);
    reduction->phase = next_phase(store, reduction);
    return reduction->phase != STORE_REDUCED;
}
