/* The answers about the spans that the store remembers: /api/spans, span. */
#include "core/base/saturate.h"
#include "extensions/explore/api.h"

#include <stdlib.h>

/* ---- spans ---- */

static void print_span_costs(struct api_request *request, const struct store_span *span)
{
    int64_t costs[STORE_TYPES_MAX] = {0};
    for (uint32_t at = span->first_cost; at;) {
        const struct store_cost *cost = store_cost_at(&request->store->spans, at);
        costs[cost->type] = saturate_add(costs[cost->type], cost->value);
        at = cost->next;
    }
    api_costs(request, "costs", costs);
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

/* Moves a row of a heap, whose first row is the one that comes last, down to its place. */
static void sift_down(struct span_row *rows, uint32_t count, uint32_t at)
{
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && compare_spans(&rows[child], &rows[child + 1]) < 0)
            child++;
        if (compare_spans(&rows[at], &rows[child]) >= 0)
            return;
        const struct span_row row = rows[at];
        rows[at] = rows[child];
        rows[child] = row;
    }
}

/* Puts the rows that come first, so many, to the front, in their order. */
static void sort_first(struct span_row *rows, uint32_t count, uint32_t wanted)
{
    if (wanted < count) {
        for (uint32_t i = wanted / 2; i-- > 0;)
            sift_down(rows, wanted, i);
        for (uint32_t i = wanted; wanted > 0 && i < count; i++)
            if (compare_spans(&rows[i], &rows[0]) < 0) {
                rows[0] = rows[i];
                sift_down(rows, wanted, 0);
            }
        count = wanted;
    }
    qsort(rows, count, sizeof *rows, compare_spans);
}

enum span_sort { SORT_DURATION, SORT_START, SORT_COST }; /* as in read_order */
struct span_query {
    enum span_sort sort;
    uint8_t type;
    bool ascending;
    bool only_entries;    /* a filter: spans that begin a request in their service */
    uint64_t from, limit; /* which of them are printed */
};

static bool read_order(struct api_request *request, struct span_query *order)
{
    static const char *const sorts[] = {"duration", "start"}, *const ways[] = {"desc", "asc"};
    int sort, way;
    if (!api_word_or_type(request, "sort", sorts, 2, &sort, &order->type) ||
        !api_word(request, "order", ways, 2, 0, &way))
        return false;
    bool is_given = api_parameter(request, "sort").size > 0;
    order->sort = !is_given ? SORT_DURATION : sort < 0 ? SORT_COST : (enum span_sort)sort;
    order->ascending = way == 1;
    return true;
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

static bool span_is_call(const struct store_span *span)
{
    enum { KIND_CLIENT = 3, KIND_PRODUCER = 4 };
    return span->kind == KIND_CLIENT || span->kind == KIND_PRODUCER;
}

static bool read_entry(struct api_request *request, bool *only_entries_out)
{
    static const char *const words[] = {"false", "true"};
    int entry;
    bool is_valid = api_word(request, "entry", words, 2, 0, &entry);
    *only_entries_out = entry == 1;
    return is_valid;
}

/* Drops the calls whose called span is in the list too: a request counts once, where it is served.
 */
static uint32_t drop_answered_calls(struct api_request *request, struct span_row *rows,
                                    uint32_t count)
{
    struct store_spans *spans = &request->store->spans;
    bool *is_answered = arena_array(&request->arena, spans->spans.count + 1, sizeof *is_answered);
    for (uint32_t i = 0; i < count; i++) {
        const struct store_span *span = store_span_at(spans, rows[i].number);
        uint32_t caller = store_span_has_parent(span)
                              ? store_spans_find(spans, span->trace_id, span->parent_id)
                              : STORE_NONE;
        if (caller != STORE_NONE)
            is_answered[caller] = true;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!is_answered[rows[i].number] || !span_is_call(store_span_at(spans, rows[i].number)))
            rows[kept++] = rows[i];
    return kept;
}

/* Returns the selected spans, in their order up to the last one that is printed. */
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
    if (order->only_entries)
        count = drop_answered_calls(request, rows, count);
    uint64_t last = order->from < count ? order->from + order->limit : 0;
    sort_first(rows, count, last < count ? (uint32_t)last : count);
    *count_out = count;
    return rows;
}

void api_spans(struct api_request *request)
{
    struct store_selection selection;
    struct span_query order;
    uint8_t type;
    uint64_t i;
    uint32_t count;
    if (!api_selection(request, "", &selection, &type) || !read_order(request, &order) ||
        !read_entry(request, &order.only_entries) ||
        !api_page(request, API_LIST_DEFAULT, &order.from, &order.limit))
        return;
    const struct span_row *rows = collect_spans(request, &selection, &order, &count);
    json_text_open(&request->json, NULL, '{');
    json_text_u64(&request->json, "total", count);
    json_text_open(&request->json, "spans", '[');
    for (i = order.from; i < count && i < order.from + order.limit && !api_must_stop(request);
         i++) {
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
    if (slice_is(name, "cpu"))
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

/* A span and its callers, which are listed whatever there is no room for. */
enum { CALLERS_MAX = 64 };
struct callers {
    const struct store_span *spans[CALLERS_MAX];
    unsigned count;
};

static bool is_among_callers(const struct callers *callers, const struct store_span *span)
{
    for (unsigned i = 0; i < callers->count; i++)
        if (callers->spans[i] == span)
            return true;
    return false;
}

/* Parents may form a circle. */
static struct callers find_callers(struct store_spans *spans, const struct store_span *span)
{
    struct callers callers = {.count = 0};
    uint32_t number = 0;
    while (number != STORE_NONE && store_span_has_arrived(span) && callers.count < CALLERS_MAX &&
           !is_among_callers(&callers, span)) {
        callers.spans[callers.count++] = span;
        number = store_span_has_parent(span)
                     ? store_spans_find(spans, span->trace_id, span->parent_id)
                     : STORE_NONE;
        span = number == STORE_NONE ? span : store_span_at(spans, number);
    }
    return callers;
}

static void print_span_of_trace(struct api_request *request, const struct store_span *span)
{
    json_text_open(&request->json, NULL, '{');
    print_span_head(request, span);
    json_text_close(&request->json, '}');
}

static void print_trace(struct api_request *request, const struct store_span *span)
{
    struct store_spans *spans = &request->store->spans;
    const struct callers callers = find_callers(spans, span);
    uint32_t at = span->trace == STORE_NONE ? 0 : store_trace_at(spans, span->trace)->first;
    unsigned listed = callers.count, total = callers.count;
    json_text_open(&request->json, "trace", '[');
    for (unsigned i = 0; i < callers.count; i++)
        print_span_of_trace(request, callers.spans[i]);
    for (; at && !api_must_stop(request);) {
        const struct store_span *other = store_span_at(spans, at - 1);
        at = other->next;
        if (!store_span_has_arrived(other) || is_among_callers(&callers, other))
            continue;
        total++;
        if (listed++ < API_LIST_MAX)
            print_span_of_trace(request, other);
    }
    if (request->is_late)
        return;
    json_text_close(&request->json, ']');
    json_text_u64(&request->json, "trace_total", total);
}

static void print_span_links(struct api_request *request, const struct store_span *span)
{
    const struct linked_span linked = {span->trace_id, span->span_id, service_of(request, span),
                                       span->start_ns, span->duration_ns};
    span_links_write(&request->json, &request->context->links, &linked);
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
