#include "extensions/explore/store_spans.h"

#include "core/base/hash.h"
#include "core/base/saturate.h"

enum {
    SAME_ID_MAX = 8,    /* spans with one span id */
    SEARCHED_COSTS = 8, /* costs of a span that a new one may be added to */
    COSTS_MAX = 4096,   /* of a span */
    SKIPPED_MAX = 16,   /* spans that stay for their trace, at one eviction */
    SLOWEST_MAX = 64,   /* likewise, because they are the slowest ones of their operations */
};

static const uint8_t no_trace[TRACE_ID_SIZE];

static bool is_zero(const uint8_t *trace_id)
{
    return memcmp(trace_id, no_trace, TRACE_ID_SIZE) == 0;
}

static uint64_t hash_span(const uint8_t *span_id)
{
    return hash_bytes(slice_of(span_id, SPAN_ID_SIZE));
}

static uint64_t hash_trace(const uint8_t *trace_id)
{
    return hash_bytes(slice_of(trace_id, TRACE_ID_SIZE));
}

/* ---- traces ---- */

static struct store_trace *trace_at(const struct store_spans *spans, uint32_t number)
{
    return store_table_at(&spans->traces, number);
}

uint32_t store_spans_find_trace(struct store_spans *spans, const uint8_t *trace_id)
{
    struct store_probe probe = store_table_probe(&spans->traces, hash_trace(trace_id));
    for (uint32_t number; store_table_next(&spans->traces, &probe, &number);)
        if (memcmp(trace_at(spans, number)->trace_id, trace_id, TRACE_ID_SIZE) == 0)
            return number;
    return STORE_NONE;
}

static uint32_t add_trace(struct store_spans *spans, const uint8_t *trace_id)
{
    uint32_t number = spans->free_trace - 1;
    if (spans->free_trace)
        spans->free_trace = trace_at(spans, number)->first;
    else
        number = store_table_append(&spans->traces, 0);
    assert(number != STORE_NONE); /* as many as spans */
    struct store_trace *trace = trace_at(spans, number);
    *trace = (struct store_trace){.first = 0};
    memcpy(trace->trace_id, trace_id, TRACE_ID_SIZE);
    store_table_index(&spans->traces, hash_trace(trace_id), number);
    return number;
}

static void join_trace(struct store_spans *spans, uint32_t number, const uint8_t *trace_id)
{
    struct store_span *span = store_span_at(spans, number);
    assert(span->trace == STORE_NONE);
    memcpy(span->trace_id, trace_id, TRACE_ID_SIZE);
    if (is_zero(trace_id))
        return;
    uint32_t found = store_spans_find_trace(spans, trace_id);
    span->trace = found != STORE_NONE ? found : add_trace(spans, trace_id);
    struct store_trace *trace = trace_at(spans, span->trace);
    span->next = trace->first;
    span->last = 0;
    if (trace->first)
        store_span_at(spans, trace->first - 1)->last = number + 1;
    trace->first = number + 1;
    trace->count++;
    trace->notable += span->notable;
}

static void free_trace(struct store_spans *spans, uint32_t number)
{
    struct store_trace *trace = trace_at(spans, number);
    assert(trace->count == 0 && trace->notable == 0);
    store_table_unindex(&spans->traces, number);
    trace->first = spans->free_trace;
    spans->free_trace = number + 1;
}

static void leave_trace(struct store_spans *spans, struct store_span *span)
{
    if (span->trace == STORE_NONE)
        return;
    struct store_trace *trace = trace_at(spans, span->trace);
    assert(trace->count > 0 && trace->notable >= span->notable);
    if (span->last)
        store_span_at(spans, span->last - 1)->next = span->next;
    else
        trace->first = span->next;
    if (span->next)
        store_span_at(spans, span->next - 1)->last = span->last;
    trace->notable -= span->notable;
    if (--trace->count == 0)
        free_trace(spans, span->trace);
    span->trace = STORE_NONE;
}

/* ---- notable spans ---- */

static int64_t slowness(const struct store_span *span)
{
    return (int64_t)(span->duration_ns >> 1);
}

static int64_t expense(const struct store_span *span)
{
    return span->cpu_ns;
}

static void change_notable(struct store_spans *spans, struct store_span *span, int by)
{
    span->notable = (uint8_t)(span->notable + by);
    if (span->trace != STORE_NONE)
        trace_at(spans, span->trace)->notable += (uint32_t)by;
}

/* Puts a span into a list of the best ones, if it is better than the worst of them. */
static void enter_list(struct store_spans *spans, uint32_t *list, uint32_t number,
                       int64_t (*measure)(const struct store_span *span))
{
    int worst = 0;
    int64_t least = INT64_MAX;
    for (int i = 0; i < STORE_NOTABLE_MAX; i++) {
        int64_t value = list[i] ? measure(store_span_at(spans, list[i] - 1)) : 0;
        if (list[i] == number + 1)
            return;
        if (value < least)
            least = value, worst = i;
    }
    struct store_span *span = store_span_at(spans, number);
    if (measure(span) <= least)
        return;
    if (list[worst])
        change_notable(spans, store_span_at(spans, list[worst] - 1), -1);
    list[worst] = number + 1;
    change_notable(spans, span, 1);
}

static void leave_list(struct store_spans *spans, uint32_t *list, uint32_t number)
{
    for (int i = 0; i < STORE_NOTABLE_MAX; i++)
        if (list[i] == number + 1) {
            list[i] = 0;
            change_notable(spans, store_span_at(spans, number), -1);
        }
}

static void note_max(struct store_operation *operation, uint64_t duration_ns, uint32_t number)
{
    bool is_max =
        operation->max_span ? operation->max_ns < duration_ns : operation->max_ns <= duration_ns;
    if (!is_max)
        return;
    operation->max_ns = duration_ns;
    operation->max_span = number + 1;
}

bool store_spans_is_slowest(const struct store_spans *spans, uint32_t number)
{
    const struct store_span *span = store_span_at(spans, number);
    return span->is_used && store_span_has_arrived(span) &&
           store_operation_at(spans->cells, span->operation)->max_span == number + 1;
}

void store_spans_note(struct store_spans *spans, uint32_t number)
{
    const struct store_span *span = store_span_at(spans, number);
    struct store_operation *operation = store_operation_at(spans->cells, span->operation);
    assert(store_span_has_arrived(span));
    note_max(operation, span->duration_ns, number);
    enter_list(spans, operation->slowest, number, slowness);
    enter_list(spans, operation->costliest, number, expense);
}

static void leave_lists(struct store_spans *spans, uint32_t number)
{
    uint32_t of = store_span_at(spans, number)->operation;
    struct store_operation *operation = store_operation_at(spans->cells, of);
    leave_list(spans, operation->slowest, number);
    leave_list(spans, operation->costliest, number);
    if (operation->max_span == number + 1)
        operation->max_span = 0;
}

void store_spans_merge_operation(struct store_spans *spans, uint32_t number, uint32_t operation)
{
    leave_lists(spans, number);
    store_span_at(spans, number)->operation = operation;
    store_spans_note(spans, number);
}

/* ---- spans ---- */

uint32_t store_spans_find(struct store_spans *spans, const uint8_t *trace_id,
                          const uint8_t *span_id)
{
    bool is_any = !trace_id || is_zero(trace_id);
    struct store_probe probe = store_table_probe(&spans->spans, hash_span(span_id));
    for (uint32_t number; store_table_next(&spans->spans, &probe, &number);) {
        const struct store_span *span = store_span_at(spans, number);
        if (memcmp(span->span_id, span_id, SPAN_ID_SIZE) == 0 &&
            (is_any || is_zero(span->trace_id) ||
             memcmp(span->trace_id, trace_id, TRACE_ID_SIZE) == 0))
            return number;
    }
    return STORE_NONE;
}

uint32_t store_spans_find_arrived(struct store_spans *spans, const uint8_t *span_id)
{
    struct store_probe probe = store_table_probe(&spans->spans, hash_span(span_id));
    for (uint32_t number; store_table_next(&spans->spans, &probe, &number);) {
        const struct store_span *span = store_span_at(spans, number);
        if (memcmp(span->span_id, span_id, SPAN_ID_SIZE) == 0 && store_span_has_arrived(span))
            return number;
    }
    return STORE_NONE;
}

static void free_costs(struct store_spans *spans, struct store_span *span)
{
    while (span->first_cost) {
        uint32_t cost = span->first_cost;
        struct store_cost *freed = store_table_at(&spans->costs, cost - 1);
        span->first_cost = freed->next;
        freed->next = spans->free_cost;
        spans->free_cost = cost;
    }
}

void store_spans_evict(struct store_spans *spans, uint32_t number)
{
    struct store_span *span = store_span_at(spans, number);
    assert(span->is_used);
    if (store_span_has_arrived(span))
        leave_lists(spans, number);
    assert(span->notable == 0);
    leave_trace(spans, span);
    free_costs(spans, span);
    store_table_unindex(&spans->spans, number);
    span->is_used = false;
}

void store_spans_strip(struct store_spans *spans, uint32_t number)
{
    struct store_span *span = store_span_at(spans, number);
    free_costs(spans, span);
    span->attributes = span->resource = STORE_TEXT_EMPTY;
    span->status_message = span->scope = STORE_TEXT_EMPTY;
}

static bool stays(const struct store_spans *spans, const struct store_span *span)
{
    return span->is_used && span->trace != STORE_NONE && trace_at(spans, span->trace)->notable > 0;
}

static uint32_t next_hand(struct store_spans *spans)
{
    uint32_t hand = spans->hand < spans->spans.count ? spans->hand : 0;
    spans->hand = hand + 1;
    return hand;
}

/* Returns the number of a span that was evicted, or never used. */
static uint32_t make_room(struct store_spans *spans)
{
    uint32_t hand = next_hand(spans);
    for (int i = 0; i < SKIPPED_MAX && stays(spans, store_span_at(spans, hand)); i++)
        hand = next_hand(spans);
    for (int i = 0; i < SLOWEST_MAX && store_spans_is_slowest(spans, hand); i++)
        hand = next_hand(spans);
    if (store_span_at(spans, hand)->is_used)
        store_spans_evict(spans, hand);
    return hand;
}

/* Evicts one of those with the same span id, if there are too many. */
static void limit_same_id(struct store_spans *spans, const uint8_t *span_id)
{
    uint32_t count = 0, found = STORE_NONE;
    struct store_probe probe = store_table_probe(&spans->spans, hash_span(span_id));
    for (uint32_t number; store_table_next(&spans->spans, &probe, &number);)
        if (memcmp(store_span_at(spans, number)->span_id, span_id, SPAN_ID_SIZE) == 0) {
            found = found != STORE_NONE && store_spans_is_slowest(spans, number) ? found : number;
            count++;
        }
    if (count >= SAME_ID_MAX)
        store_spans_evict(spans, found);
}

/* Returns the number of a span that is not used. Each may have a trace of its own. */
static uint32_t new_span(struct store_spans *spans)
{
    uint32_t number = STORE_NONE;
    if (store_table_ensure(&spans->traces, spans->spans.count + 1))
        number = store_table_append(&spans->spans, 0);
    return number == STORE_NONE ? make_room(spans) : number;
}

uint32_t store_spans_add(struct store_spans *spans, const uint8_t *trace_id, const uint8_t *span_id)
{
    limit_same_id(spans, span_id);
    uint32_t number = new_span(spans);
    struct store_span *span = store_span_at(spans, number);
    *span = (struct store_span){.is_used = true, .trace = STORE_NONE, .cell = STORE_NONE};
    memcpy(span->span_id, span_id, SPAN_ID_SIZE);
    store_table_index(&spans->spans, hash_span(span_id), number);
    join_trace(spans, number, trace_id ? trace_id : no_trace);
    return number;
}

void store_spans_set_trace(struct store_spans *spans, uint32_t number, const uint8_t *trace_id)
{
    if (store_span_at(spans, number)->trace == STORE_NONE)
        join_trace(spans, number, trace_id);
}

/* ---- costs ---- */

static uint32_t new_cost(struct store_spans *spans)
{
    uint32_t number = spans->free_cost - 1;
    if (!spans->free_cost)
        return store_table_append(&spans->costs, 0);
    spans->free_cost = ((struct store_cost *)store_table_at(&spans->costs, number))->next;
    return number;
}

/* Frees costs of old spans. */
static void make_room_for_cost(struct store_spans *spans, uint32_t except)
{
    for (int i = 0; i < SKIPPED_MAX && !spans->free_cost; i++) {
        uint32_t hand = next_hand(spans);
        struct store_span *span = store_span_at(spans, hand);
        if (span->is_used && hand != except)
            free_costs(spans, span);
    }
}

static bool is_same_cost(const struct store_cost *a, const struct store_cost *b)
{
    return a->node == b->node && a->type == b->type && a->cell == b->cell && a->bucket == b->bucket;
}

static bool add_to_known(struct store_spans *spans, const struct store_span *span,
                         const struct store_cost *cost)
{
    uint32_t at = span->first_cost;
    for (int i = 0; at && i < SEARCHED_COSTS; i++) {
        struct store_cost *known = store_table_at(&spans->costs, at - 1);
        if (is_same_cost(known, cost)) {
            known->value = saturate_add(known->value, cost->value);
            return true;
        }
        at = known->next;
    }
    return false;
}

void store_spans_cost(struct store_spans *spans, uint32_t number, const struct store_cost *cost)
{
    struct store_span *span = store_span_at(spans, number);
    if (cost->value == 0 || add_to_known(spans, span, cost) || span->samples > COSTS_MAX)
        return;
    uint32_t added = new_cost(spans);
    if (added == STORE_NONE) {
        make_room_for_cost(spans, number);
        added = new_cost(spans);
    }
    if (added == STORE_NONE)
        return;
    struct store_cost *record = store_table_at(&spans->costs, added);
    *record = *cost;
    record->next = span->first_cost;
    span->first_cost = added + 1;
}

/* Moves the value of a cost from its entry to that of another cell. */
static void move_cost(struct store_spans *spans, struct store_cost *cost, uint32_t cell,
                      uint8_t bucket)
{
    struct store_entry entry = {cost->value, cost->cell, cost->node, cost->type, cost->bucket};
    if (!store_cells_take(spans->cells, &entry)) {
        entry.node = STORE_NODE_MERGED; /* its entry was merged meanwhile */
        entry.bucket = STORE_BUCKET_ANY;
        if (!store_cells_take(spans->cells, &entry))
            return;
    }
    entry.cell = cost->cell = cell;
    entry.bucket = cost->bucket = bucket;
    store_cells_add(spans->cells, &entry);
}

/* Returns the cell of a cost's service and time for the operation of its span. */
static uint32_t cell_for(struct store_spans *spans, const struct store_span *span,
                         const struct store_cost *cost)
{
    struct store_cells *cells = spans->cells;
    struct store_cell key = *store_cell_at(cells, cost->cell);
    const struct store_operation *operation = store_operation_at(cells, span->operation);
    uint32_t service = store_operation_at(cells, key.operation)->service;
    key.operation = store_cells_operation(cells, service, operation->name, operation->kind);
    key.status = span->status;
    key.version = store_span_version_of(span, key.version);
    return store_cells_cell(cells, &key);
}

void store_spans_settle(struct store_spans *spans, uint32_t number)
{
    const struct store_span *span = store_span_at(spans, number);
    uint8_t bucket = store_operation_at(spans->cells, span->operation)->keeps_buckets
                         ? (uint8_t)store_bucket_of(span->duration_ns)
                         : STORE_BUCKET_ANY;
    uint32_t from = STORE_NONE, to = STORE_NONE;
    for (uint32_t at = span->first_cost; at;) {
        struct store_cost *cost = store_table_at(&spans->costs, at - 1);
        if (cost->cell != from) { /* most are in one cell */
            from = cost->cell;
            to = cell_for(spans, span, cost);
        }
        move_cost(spans, cost, to, bucket);
        at = cost->next;
    }
}

/* ---- life ---- */

static uint32_t records_in(size_t bytes, size_t size)
{
    size_t count = bytes / size;
    return count > STORE_RECORDS_MAX ? STORE_RECORDS_MAX : (uint32_t)count;
}

void store_spans_init(struct store_spans *spans, struct store_cells *cells, struct store_pool *pool)
{
    enum { SPANS_PART = 6, COSTS_PART = 3 /* of that: one of so many */ };
    *spans = (struct store_spans){.cells = cells, .cpu_type = STORE_TYPES_MAX};
    size_t bytes = pool->limit / SPANS_PART, costs = bytes / COSTS_PART;
    size_t links = 2 * (sizeof(struct store_link) + sizeof(uint32_t));
    size_t size = sizeof(struct store_span) + sizeof(struct store_trace) + links;
    uint32_t count = records_in(bytes - costs, size);
    store_table_init(&spans->spans, pool, sizeof(struct store_span), 0, count, true);
    store_table_init(&spans->traces, pool, sizeof(struct store_trace), 0, count, true);
    store_table_init(&spans->costs, pool, sizeof(struct store_cost), 0,
                     records_in(costs, sizeof(struct store_cost)), false);
}

void store_spans_deinit(struct store_spans *spans)
{
    store_table_deinit(&spans->spans);
    store_table_deinit(&spans->traces);
    store_table_deinit(&spans->costs);
}

size_t store_spans_bytes(const struct store_spans *spans)
{
    return store_table_bytes(&spans->spans) + store_table_bytes(&spans->traces) +
           store_table_bytes(&spans->costs);
}
