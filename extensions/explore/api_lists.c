/* The answers that list what the store has: /api/status, services, operations. */
#include "core/base/saturate.h"
#include "core/pipeline/join_feed.h"
#include "extensions/explore/api.h"
#include "extensions/explore/percentiles.h"

#include <stdlib.h>

/* ---- status ---- */

static void print_type(struct api_request *request, uint32_t number)
{
    const struct store_type *type = &request->store->cells.types[number];
    json_text_open(&request->json, NULL, '{');
    json_text_slice(&request->json, "name", api_text(request, type->label));
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

static bool is_empty_service(const struct store_service *service)
{
    bool is_empty = service->spans == 0;
    for (int i = 0; i < STORE_TYPES_MAX; i++)
        is_empty &= service->totals[i] == 0;
    return is_empty;
}

static void print_samples(struct json_text *json, const struct store_service *service)
{
    static const char *const names[STORE_UNJOINED_COUNT] = {
        [STORE_UNJOINED_NO_ID] = "no_id",
        [STORE_UNJOINED_NO_PROCESS] = "no_process",
        [STORE_UNJOINED_NO_SPAN_ON_THREAD] = "no_span_on_thread",
        [STORE_UNJOINED_AMBIGUOUS_THREAD] = "ambiguous_thread",
        [STORE_UNJOINED_NOT_FOUND] = "not_found",
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
    api_costs(request, "costs", service->totals);
    api_costs(request, "joined", service->joined);
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
    int64_t *costs;          /* by type; NULL: none */
    uint64_t percentiles[3]; /* 50, 95, 99 */
    double key;              /* to sort by */
};

struct operation_rows {
    struct operation_row *rows; /* by number of the operation */
    uint32_t count;
    struct fine_count *durations;
    uint32_t duration_count, duration_capacity;
};

static void add_entry(struct api_request *request, struct operation_rows *rows,
                      const struct store_cell *cell, const struct store_entry *entry)
{
    struct operation_row *row = &rows->rows[cell->operation];
    row->operation = cell->operation;
    row->is_selected = true;
    if (!row->costs)
        row->costs =
            arena_array(&request->arena, request->store->cells.type_count + 1, sizeof *row->costs);
    if (entry->type < STORE_TYPES_MAX)
        row->costs[entry->type] = saturate_add(row->costs[entry->type], entry->value);
    if (entry->type != STORE_ENTRY_DURATION)
        return;
    rows->durations = arena_grow(&request->arena, rows->durations, rows->duration_count,
                                 &rows->duration_capacity, sizeof *rows->durations);
    rows->durations[rows->duration_count++] =
        (struct fine_count){cell->operation, entry->node, (uint64_t)entry->value};
    row->spans += (uint64_t)entry->value;
    row->errors += cell->status == 2 ? (uint64_t)entry->value : 0;
}

static struct operation_rows collect_operations(struct api_request *request,
                                                const struct store_selection *selection)
{
    const struct store_cells *cells = &request->store->cells;
    struct operation_rows rows = {.count = cells->operations.count};
    rows.rows = arena_array(&request->arena, rows.count + 1, sizeof *rows.rows);
    bool *marks = store_query_cells(request->store, selection);
    for (uint32_t i = 0; i < cells->entries.count; i++) {
        const struct store_entry *entry = store_entry_at(cells, i);
        if (!marks[entry->cell] || entry->value == 0)
            continue;
        add_entry(request, &rows, store_cell_at(cells, entry->cell), entry);
    }
    free(marks);
    return rows;
}

/* What operations are sorted by: a word, or else a type. */
static const char *const sorts[] = {"spans", "errors", "p50", "p95", "p99"};
struct operation_sort {
    int word;
    uint8_t type;
};

static double key_of(const struct operation_row *row, struct operation_sort sort)
{
    if (sort.word == 1)
        return (double)row->errors;
    if (sort.word >= 2)
        return (double)row->percentiles[sort.word - 2];
    if (sort.word == 0 || sort.type == STORE_TYPES_MAX || !row->costs)
        return (double)row->spans;
    return (double)row->costs[sort.type];
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
            json_text_member(&request->json, api_text(request, cells->types[i].label),
                             row->costs[i] / (int64_t)row->spans);
    json_text_close(&request->json, '}');
}

/* The list of spans has a span that took so long, or there is none. */
static void print_max(struct json_text *json, const struct store_operation *operation)
{
    if (operation->max_span)
        json_text_u64(json, "max_ns", operation->max_ns);
    else
        json_text_null(json, "max_ns");
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
    json_text_u64(json, "p50_ns", row->percentiles[0]);
    json_text_u64(json, "p95_ns", row->percentiles[1]);
    json_text_u64(json, "p99_ns", row->percentiles[2]);
    print_max(json, operation);
    api_costs(request, "costs", row->costs);
    print_cost_per_span(request, row);
    json_text_close(json, '}');
}

static void finish_rows(struct api_request *request, struct operation_rows *rows,
                        struct operation_sort sort)
{
    static const double parts[3] = {0.5, 0.95, 0.99};
    const struct fine_counts *durations =
        fine_counts_group(&request->arena, rows->durations, rows->duration_count, rows->count);
    for (uint32_t i = 0; i < rows->count; i++) {
        struct operation_row *row = &rows->rows[i];
        uint64_t max_ns = store_operation_at(&request->store->cells, i)->max_ns;
        fine_counts_percentiles(&durations[i], parts, 3, max_ns, row->percentiles);
        row->key = key_of(row, sort);
    }
    qsort(rows->rows, rows->count, sizeof *rows->rows, compare_rows);
}

void api_operations(struct api_request *request)
{
    struct store_selection selection;
    uint8_t type;
    uint64_t from, limit, i;
    struct operation_sort sort;
    if (!api_selection(request, "", &selection, &type) ||
        !api_word_or_type(request, "sort", sorts, 5, &sort.word, &sort.type) ||
        !api_page(request, API_LIST_MAX, &from, &limit))
        return;
    struct operation_rows found = collect_operations(request, &selection);
    finish_rows(request, &found, sort);
    const struct operation_row *rows = found.rows;
    uint32_t count = found.count;
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
