/* The answers that list what the store has: /api/status, services, operations, spans, span. */
#include "core/base/saturate.h"
#include "core/pipeline/join_feed.h"
#include "extensions/explore/api.h"

/* ---- status ---- */

static void print_type(struct api_request *request, uint32_t number)
{
    const struct store_type *type = &request->store->cells.types[number];
    json_text_open(&request->json, NULL, '{');
    json_text_slice(&request->json, "name", api_text(request, type->name));
    json_text_slice(&request->json, "unit", api_text(request, type->unit));
    json_text_i64(&request->json, "total", type->total);
    json_text_close(&request->json, '}');
}

/* The default first. */
static void print_types(struct api_request *request)
{
    const struct store_cells *cells = &request->store->cells;
    uint8_t first = store_query_type(request->store, slice_of(NULL, 0));
    json_text_open(&request->json, "types", '[');
    if (first < STORE_TYPES_MAX)
        print_type(request, first);
    for (uint32_t i = 0; i < cells->type_count; i++)
        if (i != first)
            print_type(request, i);
    json_text_close(&request->json, ']');
}

static void print_feed(struct api_request *request)
{
    struct join_feed_stats stats = {0};
    if (request->context->feed)
        stats = join_feed_stats(request->context->feed);
    json_text_open(&request->json, "feed", '{');
    json_text_u64(&request->json, "offers", stats.offers);
    json_text_u64(&request->json, "dropped", stats.dropped);
    json_text_u64(&request->json, "bytes", stats.bytes);
    json_text_close(&request->json, '}');
}

static void print_merged(struct api_request *request)
{
    const struct store_merged *merged = &request->store->cells.merged;
    json_text_open(&request->json, "merged", '{');
    json_text_u64(&request->json, "minutes", merged->minutes);
    json_text_u64(&request->json, "operations", merged->operations);
    json_text_u64(&request->json, "dropped_stacks", merged->stacks + request->store->names.missed);
    json_text_close(&request->json, '}');
}

static void print_links(struct api_request *request)
{
    const struct api_links *links = &request->context->links;
    json_text_open(&request->json, "links", '{');
    json_text_string(&request->json, "grafana", links->grafana);
    json_text_string(&request->json, "tempo", links->tempo);
    json_text_string(&request->json, "pyroscope", links->pyroscope);
    json_text_close(&request->json, '}');
}

void api_status(struct api_request *request)
{
    struct json_text *json = &request->json;
    json_text_open(json, NULL, '{');
    json_text_string(json, "version", request->context->version);
    json_text_time(json, "now", request->now_ns);
    json_text_time(json, "started", request->store->started_ns);
    json_text_open(json, "budget", '{');
    json_text_u64(json, "used_bytes", store_bytes(request->store));
    json_text_u64(json, "limit_bytes", request->context->limit_bytes);
    json_text_close(json, '}');
    print_types(request);
    print_merged(request);
    print_feed(request);
    print_links(request);
    json_text_close(json, '}');
}

/* ---- services ---- */

static void print_versions(struct api_request *request, const struct store_versions *versions)
{
    json_text_open(&request->json, "versions", '[');
    for (int i = 0; i < STORE_VERSIONS_MAX && versions->texts[i] != STORE_TEXT_EMPTY; i++)
        json_text_slice(&request->json, NULL, api_text(request, versions->texts[i]));
    json_text_close(&request->json, ']');
}

/* Prints the values that are not 0 under the names of their types. */
static void print_costs(struct api_request *request, const char *key, const int64_t *values)
{
    const struct store_cells *cells = &request->store->cells;
    json_text_open(&request->json, key, '{');
    for (uint32_t i = 0; i < cells->type_count; i++)
        if (values[i] != 0)
            json_text_member(&request->json, api_text(request, cells->types[i].name), values[i]);
    json_text_close(&request->json, '}');
}

static bool is_empty_service(const struct store_service *service)
{
    bool is_empty = service->spans == 0;
    for (int i = 0; i < STORE_TYPES_MAX; i++)
        is_empty &= service->totals[i] == 0;
    return is_empty;
}

static void print_samples(struct json_text *json, const struct store_service *service)
{
    static const char *const names[STORE_UNJOINED_COUNT] = {[STORE_UNJOINED_NO_ID] = "no_id",
                                                            [STORE_UNJOINED_NOT_FOUND] =
                                                                "not_found",
                                                            [STORE_UNJOINED_EXPIRED] = "expired",
                                                            [STORE_UNJOINED_OVERFLOW] = "overflow"};
    json_text_open(json, "samples", '{');
    json_text_u64(json, "joined", service->joined_samples);
    json_text_open(json, "unjoined", '{');
    for (int i = 0; i < STORE_UNJOINED_COUNT; i++)
        if (service->unjoined[i] > 0)
            json_text_u64(json, names[i], service->unjoined[i]);
    json_text_close(json, '}');
    json_text_close(json, '}');
}

static void print_service(struct api_request *request, const struct store_service *service)
{
    struct json_text *json = &request->json;
    json_text_open(json, NULL, '{');
    json_text_slice(json, "service", api_text(request, service->name));
    print_versions(request, &service->versions);
    json_text_u64(json, "spans", service->spans);
    json_text_u64(json, "errors", service->errors);
    json_text_u64(json, "operations", service->operations);
    print_costs(request, "costs", service->totals);
    print_costs(request, "joined", service->joined);
    print_samples(json, service);
    json_text_close(json, '}');
}

void api_services(struct api_request *request)
{
    const struct store_cells *cells = &request->store->cells;
    json_text_open(&request->json, NULL, '{');
    json_text_open(&request->json, "services", '[');
    for (uint32_t i = 0; i < cells->services.count && !api_must_stop(request); i++)
        if (!is_empty_service(store_service_at(cells, i)))
            print_service(request, store_service_at(cells, i));
    if (request->is_late)
        return;
    json_text_close(&request->json, ']');
    json_text_close(&request->json, '}');
}

/* ---- operations ---- */

struct operation_row {
    uint32_t operation;
    bool is_selected;
    uint64_t spans, errors;
    struct store_histogram *durations; /* NULL: no spans */
    int64_t *costs;                    /* by type; NULL: none */
    uint64_t quantiles[3];             /* 0.5, 0.95, 0.99 */
    double key;                        /* to sort by */
};

static void add_entry(struct api_request *request, struct operation_row *row,
                      const struct store_cell *cell, const struct store_entry *entry)
{
    if (!row->costs)
        row->costs =
            arena_array(&request->arena, request->store->cells.type_count + 1, sizeof *row->costs);
    if (entry->type < STORE_TYPES_MAX)
        row->costs[entry->type] = saturate_add(row->costs[entry->type], entry->value);
    if (entry->type != STORE_ENTRY_DURATION)
        return;
    if (!row->durations)
        row->durations = arena_zalloc(&request->arena, sizeof *row->durations);
    row->durations->counts[entry->node] += (uint64_t)entry->value;
    row->durations->sum += (uint64_t)entry->value;
    row->spans += (uint64_t)entry->value;
    row->errors += cell->status == 2 ? (uint64_t)entry->value : 0;
}

static struct operation_row *collect_operations(struct api_request *request,
                                                const struct store_selection *selection)
{
    const struct store_cells *cells = &request->store->cells;
    struct operation_row *rows =
        arena_array(&request->arena, cells->operations.count + 1, sizeof *rows);
    bool *marks = store_query_cells(request->store, selection);
    for (uint32_t i = 0; i < cells->entries.count; i++) {
        const struct store_entry *entry = store_entry_at(cells, i);
        if (!marks[entry->cell] || entry->value == 0)
            continue;
        const struct store_cell *cell = store_cell_at(cells, entry->cell);
        struct operation_row *row = &rows[cell->operation];
        row->operation = cell->operation;
        row->is_selected = true;
        add_entry(request, row, cell, entry);
    }
    free(marks);
    return rows;
}

static double key_of(const struct api_request *request, const struct operation_row *row,
                     struct slice sort)
{
    uint8_t type = store_query_type(request->store, sort);
    if (slice_is(sort, "spans"))
        return (double)row->spans;
    if (slice_is(sort, "errors"))
        return (double)row->errors;
    if (slice_is(sort, "p50"))
        return (double)row->quantiles[0];
    if (slice_is(sort, "p95"))
        return (double)row->quantiles[1];
    if (slice_is(sort, "p99"))
        return (double)row->quantiles[2];
    return type < STORE_TYPES_MAX && row->costs ? (double)row->costs[type] : (double)row->spans;
}

static int compare_rows(const void *a, const void *b)
{
    const struct operation_row *one = a, *other = b;
    if (one->is_selected != other->is_selected)
        return one->is_selected ? -1 : 1;
    if (one->key != other->key)
        return one->key > other->key ? -1 : 1;
    return one->operation < other->operation ? -1 : one->operation > other->operation;
}

static void print_cost_per_span(struct api_request *request, const struct operation_row *row)
{
    const struct store_cells *cells = &request->store->cells;
    json_text_open(&request->json, "cost_per_span", '{');
    for (uint32_t i = 0; i < cells->type_count && row->spans > 0; i++)
        if (row->costs[i] != 0)
            json_text_member(&request->json, api_text(request, cells->types[i].name),
                             row->costs[i] / (int64_t)row->spans);
    json_text_close(&request->json, '}');
}

static void print_operation(struct api_request *request, const struct operation_row *row)
{
    const struct store_cells *cells = &request->store->cells;
    const struct store_operation *operation = store_operation_at(cells, row->operation);
    struct json_text *json = &request->json;
    json_text_open(json, NULL, '{');
    json_text_slice(json, "service",
                    api_text(request, store_service_at(cells, operation->service)->name));
    json_text_slice(json, "operation", api_text(request, operation->name));
    json_text_string(json, "kind", api_kinds[operation->kind]);
    print_versions(request, &operation->versions);
    json_text_u64(json, "spans", row->spans);
    json_text_u64(json, "errors", row->errors);
    json_text_u64(json, "p50_ns", row->quantiles[0]);
    json_text_u64(json, "p95_ns", row->quantiles[1]);
    json_text_u64(json, "p99_ns", row->quantiles[2]);
    json_text_u64(json, "max_ns", operation->max_ns);
    print_costs(request, "costs", row->costs);
    print_cost_per_span(request, row);
    json_text_close(json, '}');
}

static void finish_rows(struct api_request *request, struct operation_row *rows, uint32_t count,
                        struct slice sort)
{
    static const double parts[3] = {0.5, 0.95, 0.99};
    for (uint32_t i = 0; i < count; i++) {
        for (int q = 0; q < 3 && rows[i].durations; q++) {
            uint64_t bound = store_histogram_quantile(rows[i].durations, parts[q]);
            uint64_t max = store_operation_at(&request->store->cells, rows[i].operation)->max_ns;
            rows[i].quantiles[q] = max > 0 && bound > max ? max : bound;
        }
        rows[i].key = key_of(request, &rows[i], sort);
    }
    qsort(rows, count, sizeof *rows, compare_rows);
}

/* A cursor is the number of items that were listed. */
static bool read_page(struct api_request *request, uint64_t fallback, uint64_t *from,
                      uint64_t *limit)
{
    return api_number(request, "cursor", 0, UINT32_MAX, from) &&
           api_number(request, "limit", fallback, API_LIST_MAX, limit);
}

void api_operations(struct api_request *request)
{
    struct store_selection selection;
    uint8_t type;
    uint64_t from, limit, i;
    if (!api_selection(request, "", &selection, &type) ||
        !read_page(request, API_LIST_MAX, &from, &limit))
        return;
    uint32_t count = request->store->cells.operations.count;
    struct operation_row *rows = collect_operations(request, &selection);
    finish_rows(request, rows, count, api_parameter(request, "sort"));
    json_text_open(&request->json, NULL, '{');
    json_text_open(&request->json, "operations", '[');
    for (i = from; i < count && i < from + limit && rows[i].is_selected && !api_must_stop(request);
         i++)
        print_operation(request, &rows[i]);
    if (request->is_late)
        return;
    json_text_close(&request->json, ']');
    api_next(request, i, i < count && rows[i].is_selected);
    json_text_close(&request->json, '}');
}

/* ---- spans ---- */

static void print_span_costs(struct api_request *request, const struct store_span *span)
{
    int64_t costs[STORE_TYPES_MAX] = {0};
    for (uint32_t at = span->first_cost; at;) {
        const struct store_cost *cost = store_cost_at(&request->store->spans, at);
        costs[cost->type] = saturate_add(costs[cost->type], cost->value);
        at = cost->next;
    }
    print_costs(request, "costs", costs);
}

static struct slice service_of(const struct api_request *request, const struct store_span *span)
{
    const struct store_cells *cells = &request->store->cells;
    uint32_t service = store_operation_at(cells, span->operation)->service;
    return api_text(request, store_service_at(cells, service)->name);
}

/* What every list of spans has. */
static void print_span_head(struct api_request *request, const struct store_span *span)
{
    struct json_text *json = &request->json;
    json_text_hex(json, "span_id", span->span_id, SPAN_ID_SIZE);
    json_text_hex(json, "parent_id", span->parent_id, SPAN_ID_SIZE);
    json_text_slice(json, "service", service_of(request, span));
    json_text_slice(json, "operation", api_text(request, span->name));
    json_text_string(json, "kind", api_kinds[span->kind]);
    json_text_string(json, "status", api_states[span->status]);
    json_text_time(json, "start", span->start_ns);
    json_text_u64(json, "duration_ns", span->duration_ns);
    print_span_costs(request, span);
}

static void print_span_rest(struct api_request *request, const struct store_span *span)
{
    struct json_text *json = &request->json;
    json_text_hex(json, "trace_id", span->trace_id, TRACE_ID_SIZE);
    json_text_slice(json, "version", api_text(request, span->version));
    json_text_slice(json, "status_message", api_text(request, span->status_message));
    json_text_u64(json, "samples", span->samples);
    json_text_members(json, "attributes", api_text(request, span->attributes));
}

struct span_row {
    double key;
    uint32_t number;
};

static int compare_spans(const void *a, const void *b)
{
    const struct span_row *one = a, *other = b;
    if (one->key != other->key)
        return one->key > other->key ? -1 : 1;
    return one->number < other->number ? -1 : one->number > other->number;
}

enum span_sort { SORT_DURATION, SORT_START, SORT_COST };
struct span_query {
    enum span_sort sort;
    uint8_t type;
    bool ascending;
    bool only_entries; /* a filter: spans that begin a request in their service */
};

static bool read_order(struct api_request *request, struct span_query *order)
{
    struct slice sort = api_parameter(request, "sort"), way = api_parameter(request, "order");
    *order = (struct span_query){.sort = SORT_DURATION, .ascending = slice_is(way, "asc")};
    if (way.size > 0 && !order->ascending && !slice_is(way, "desc"))
        return api_refuse(request, 400, "invalid_parameter", "order: must be desc or asc");
    if (sort.size == 0 || slice_is(sort, "duration"))
        return true;
    order->sort = slice_is(sort, "start") ? SORT_START : SORT_COST;
    order->type = store_query_type(request->store, sort);
    return order->sort == SORT_START || order->type < STORE_TYPES_MAX ||
           api_refuse(request, 400, "invalid_parameter",
                      "sort: must be duration, start or a profile type");
}

static double span_key(const struct api_request *request, const struct store_span *span,
                       const struct span_query *order)
{
    double key = order->sort == SORT_DURATION ? (double)span->duration_ns
                 : order->sort == SORT_START
                     ? (double)span->start_ns
                     : (double)store_query_cost(request->store, span, order->type);
    return order->ascending ? -key : key;
}

static bool read_entry(struct api_request *request, bool *only_entries_out)
{
    struct slice entry = api_parameter(request, "entry");
    *only_entries_out = slice_is(entry, "true");
    return entry.size == 0 || *only_entries_out || slice_is(entry, "false") ||
           api_refuse(request, 400, "invalid_parameter", "entry: must be true or false");
}

/* Returns the selected spans in their order. */
static struct span_row *collect_spans(struct api_request *request,
                                      const struct store_selection *selection,
                                      const struct span_query *order, uint32_t *count_out)
{
    const struct store_spans *spans = &request->store->spans;
    struct span_row *rows = arena_array(&request->arena, spans->spans.count + 1, sizeof *rows);
    uint32_t count = 0;
    for (uint32_t i = 0; i < spans->spans.count; i++) {
        const struct store_span *span = store_span_at(spans, i);
        if (store_query_has_span(request->store, selection, span) && store_span_has_arrived(span) &&
            (span->is_entry || !order->only_entries))
            rows[count++] = (struct span_row){span_key(request, span, order), i};
    }
    qsort(rows, count, sizeof *rows, compare_spans);
    *count_out = count;
    return rows;
}

void api_spans(struct api_request *request)
{
    struct store_selection selection;
    struct span_query order;
    uint8_t type;
    uint64_t from, limit, i;
    uint32_t count;
    if (!api_selection(request, "", &selection, &type) || !read_order(request, &order) ||
        !read_entry(request, &order.only_entries) ||
        !read_page(request, API_LIST_DEFAULT, &from, &limit))
        return;
    const struct span_row *rows = collect_spans(request, &selection, &order, &count);
    json_text_open(&request->json, NULL, '{');
    json_text_u64(&request->json, "total", count);
    json_text_open(&request->json, "spans", '[');
    for (i = from; i < count && i < from + limit && !api_must_stop(request); i++) {
        const struct store_span *span = store_span_at(&request->store->spans, rows[i].number);
        json_text_open(&request->json, NULL, '{');
        print_span_head(request, span);
        print_span_rest(request, span);
        json_text_close(&request->json, '}');
    }
    if (request->is_late)
        return;
    json_text_close(&request->json, ']');
    api_next(request, i, i < count);
    json_text_close(&request->json, '}');
}

/* ---- one span ---- */

/* Costs of a span by what kind of time or memory its types measure. */
struct span_times {
    int64_t on_cpu, off_cpu, lock, wait, wall, allocated;
    bool has_on_cpu, has_off_cpu, has_lock, has_wait, has_wall, has_allocated;
};

static bool is_among(struct slice name, const char *const *names)
{
    for (; *names; names++)
        if (slice_is(name, *names))
            return true;
    return false;
}

static void add_time(struct span_times *times, struct slice name, int64_t value)
{
    static const char *const cpu[] = {"cpu", "itimer", NULL};
    static const char *const off_cpu[] = {"off_cpu", "off-cpu", "offcpu", NULL};
    static const char *const lock[] = {"delay", "lock_duration", "contentions_delay", "lock", NULL};
    static const char *const wait[] = {"wait", "io", "sleep", NULL};
    static const char *const allocated[] = {"alloc_space",
                                            "alloc_in_new_tlab_bytes",
                                            "alloc_outside_tlab_bytes",
                                            "allocated_bytes",
                                            "alloc_size",
                                            "space",
                                            NULL};
    if (is_among(name, cpu))
        times->on_cpu = saturate_add(times->on_cpu, value), times->has_on_cpu = true;
    else if (is_among(name, off_cpu))
        times->off_cpu = saturate_add(times->off_cpu, value), times->has_off_cpu = true;
    else if (is_among(name, lock))
        times->lock = saturate_add(times->lock, value), times->has_lock = true;
    else if (is_among(name, wait))
        times->wait = saturate_add(times->wait, value), times->has_wait = true;
    else if (slice_is(name, "wall"))
        times->wall = saturate_add(times->wall, value), times->has_wall = true;
    else if (is_among(name, allocated))
        times->allocated = saturate_add(times->allocated, value), times->has_allocated = true;
}

/* Types count if the service has profiles of them at all: without samples the span took none. */
static struct span_times times_of(const struct api_request *request, const struct store_span *span)
{
    const struct store_cells *cells = &request->store->cells;
    uint32_t number = store_operation_at(cells, span->operation)->service;
    const struct store_service *service = store_service_at(cells, number);
    struct span_times times = {0};
    for (uint32_t i = 0; i < cells->type_count; i++)
        if (service->totals[i] != 0)
            add_time(&times, api_text(request, cells->types[i].name),
                     store_query_cost(request->store, span, (uint8_t)i));
    return times;
}

static void print_part(struct json_text *json, const char *key, bool is_known, int64_t value)
{
    if (is_known)
        json_text_i64(json, key, value);
    else
        json_text_null(json, key);
}

static void print_times(struct api_request *request, const struct store_span *span)
{
    struct span_times times = times_of(request, span);
    int64_t duration = span->duration_ns < INT64_MAX ? (int64_t)span->duration_ns : INT64_MAX;
    struct json_text *json = &request->json;
    int64_t known = saturate_add(saturate_add(times.on_cpu, times.off_cpu),
                                 saturate_add(times.lock, times.wait));
    int64_t rest = duration > known && known >= 0 ? duration - known : 0;
    bool is_any = times.has_on_cpu || times.has_off_cpu || times.has_lock || times.has_wait;
    json_text_open(json, "time", '{');
    print_part(json, "on_cpu_ns", times.has_on_cpu, times.on_cpu);
    print_part(json, "off_cpu_ns", times.has_off_cpu, times.off_cpu);
    print_part(json, "lock_ns", times.has_lock, times.lock);
    print_part(json, "wait_ns", times.has_wait, times.wait);
    print_part(json, "other_ns", is_any, rest);
    json_text_close(json, '}');
    print_part(json, "allocated_bytes", times.has_allocated, times.allocated);
}

static void print_trace(struct api_request *request, const struct store_span *span)
{
    const struct store_spans *spans = &request->store->spans;
    json_text_open(&request->json, "trace", '[');
    uint32_t at = span->trace == STORE_NONE ? 0 : store_trace_at(spans, span->trace)->first;
    for (int listed = 0; at && listed < API_LIST_MAX && !api_must_stop(request);) {
        const struct store_span *other = store_span_at(spans, at - 1);
        at = other->next;
        if (!store_span_has_arrived(other))
            continue;
        json_text_open(&request->json, NULL, '{');
        print_span_head(request, other);
        json_text_close(&request->json, '}');
        listed++;
    }
    if (!request->is_late)
        json_text_close(&request->json, ']');
}

static void print_span_links(struct api_request *request, const struct store_span *span)
{
    const struct api_links *links = &request->context->links;
    struct text url = {0};
    struct json_text *json = &request->json;
    json_text_open(json, "links", '{');
    if (links->tempo[0]) {
        text_append(&url, links->tempo);
        text_append_hex(&url, slice_of(span->trace_id, TRACE_ID_SIZE));
    }
    json_text_string(json, "grafana", links->grafana);
    json_text_slice(json, "tempo", slice_of(url.data, url.size));
    json_text_string(json, "pyroscope", links->pyroscope);
    json_text_close(json, '}');
    text_deinit(&url);
}

void api_span(struct api_request *request)
{
    struct store_selection selection;
    uint8_t type;
    if (!api_selection(request, "", &selection, &type))
        return;
    if (!selection.has_span) {
        api_refuse(request, 400, "invalid_parameter", "span: is missing");
        return;
    }
    uint32_t number = store_spans_find(
        &request->store->spans, selection.has_trace ? selection.trace_id : NULL, selection.span_id);
    const struct store_span *span =
        number == STORE_NONE ? NULL : store_span_at(&request->store->spans, number);
    if (!span || !store_span_has_arrived(span)) {
        api_refuse(request, 404, "not_found", "the span is not remembered; see /api/explain");
        return;
    }
    json_text_open(&request->json, NULL, '{');
    json_text_open(&request->json, "span", '{');
    print_span_head(request, span);
    print_span_rest(request, span);
    json_text_members(&request->json, "resource", api_text(request, span->resource));
    json_text_slice(&request->json, "scope", api_text(request, span->scope));
    print_times(request, span);
    json_text_close(&request->json, '}');
    print_trace(request, span);
    if (request->is_late)
        return;
    print_span_links(request, span);
    json_text_close(&request->json, '}');
}
