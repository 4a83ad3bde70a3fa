/* The answer to /api/histogram. */
#include "extensions/explore/api.h"
#include "extensions/explore/percentiles.h"

#include <stdlib.h>

struct row {
    uint64_t time_ns, width_ns;
    uint32_t key; /* minute, with a bit for hours */
    uint64_t counts[STORE_BUCKETS];
};

struct histogram {
    struct api_request *request;
    struct row *rows;
    uint32_t count, capacity;
    struct row all;
    bool has_stacks[STORE_BUCKETS];
};

enum { ROWS_MAX = 4096, MINUTES_MAX = 24 * 60 /* rows of a minute */ };

/* Returns the row of a minute. Older ones are in rows of an hour, so that there are few. */
static struct row *row_at(struct histogram *histogram, uint32_t minute, bool is_hour)
{
    uint64_t now = histogram->request->now_ns / STORE_MINUTE_NS;
    is_hour |= (minute / 60 + UINT64_C(1)) * 60 + MINUTES_MAX <= now; /* all of the hour */
    minute -= is_hour ? minute % 60 : 0;
    uint32_t key = minute * 2 + is_hour;
    for (uint32_t i = histogram->count; i-- > 0;)
        if (histogram->rows[i].key == key)
            return &histogram->rows[i];
    if (histogram->count == ROWS_MAX)
        return NULL;
    histogram->rows = arena_grow(&histogram->request->arena, histogram->rows, histogram->count,
                                 &histogram->capacity, sizeof *histogram->rows);
    struct row *row = &histogram->rows[histogram->count++];
    *row = (struct row){.time_ns = minute * STORE_MINUTE_NS,
                        .width_ns = (is_hour ? 60 : 1) * STORE_MINUTE_NS,
                        .key = key};
    return row;
}

static void add(struct histogram *histogram, struct row *row, unsigned bucket, uint64_t count)
{
    histogram->all.counts[bucket] += count;
    if (row)
        row->counts[bucket] += count;
}

/* The rows of cells, found once for each. */
static struct row **rows_of_cells(struct histogram *histogram, const bool *marks)
{
    const struct store_cells *cells = &histogram->request->store->cells;
    uint32_t *numbers =
        arena_array(&histogram->request->arena, cells->cells.count + 1, sizeof *numbers);
    for (uint32_t i = 0; i < cells->cells.count; i++) {
        const struct store_cell *cell = store_cell_at(cells, i);
        if (!marks[i] || cell->minute == 0)
            continue;
        const struct row *row = row_at(histogram, cell->minute, cell->is_hour);
        numbers[i] = row ? (uint32_t)(row - histogram->rows) + 1 : 0;
    }
    struct row **rows =
        arena_array(&histogram->request->arena, cells->cells.count + 1, sizeof(struct row *));
    for (uint32_t i = 0; i < cells->cells.count; i++)
        rows[i] = numbers[i] > 0 ? &histogram->rows[numbers[i] - 1] : NULL;
    return rows;
}

static void add_entries(struct histogram *histogram, const struct store_selection *selection,
                        uint8_t measure)
{
    const struct store_cells *cells = &histogram->request->store->cells;
    bool *marks = store_query_cells(histogram->request->store, selection);
    struct row **rows = rows_of_cells(histogram, marks);
    for (uint32_t i = 0; i < cells->entries.count; i++) {
        const struct store_entry *entry = store_entry_at(cells, i);
        if (!marks[entry->cell])
            continue;
        unsigned parts = entry->type == STORE_ENTRY_DURATION ? FINE_PARTS : 1;
        if (entry->type == measure && entry->value > 0)
            add(histogram, rows[entry->cell], entry->node / parts, (uint64_t)entry->value);
        else if (entry->type < STORE_TYPES_MAX && entry->bucket < STORE_BUCKETS &&
                 entry->value != 0)
            histogram->has_stacks[entry->bucket] = true;
    }
    free(marks);
}

static void add_spans(struct histogram *histogram, const struct store_selection *selection,
                      uint8_t measure)
{
    const struct store *store = histogram->request->store;
    for (uint32_t i = 0; i < store->spans.spans.count; i++) {
        const struct store_span *span = store_span_at(&store->spans, i);
        if (!store_query_has_span(store, selection, span) || !store_span_has_arrived(span))
            continue;
        uint64_t ns = measure == STORE_ENTRY_CPU ? (uint64_t)span->cpu_ns : span->duration_ns;
        add(histogram, row_at(histogram, span->minute, false), store_bucket_of(ns), 1);
        if (measure == STORE_ENTRY_DURATION && span->first_cost)
            histogram->has_stacks[store_bucket_of(ns)] = true;
    }
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *one = a, *other = b;
    if (one->time_ns != other->time_ns)
        return one->time_ns < other->time_ns ? -1 : 1;
    return one->key < other->key ? -1 : one->key > other->key;
}

static void print_counts(struct json_text *json, const struct row *row, unsigned count)
{
    json_text_open(json, "counts", '[');
    for (unsigned i = 0; i < count; i++)
        json_text_u64(json, NULL, row->counts[i]);
    json_text_close(json, ']');
}

static void print_rows(struct histogram *histogram, unsigned buckets)
{
    struct json_text *json = &histogram->request->json;
    if (histogram->count > 0)
        qsort(histogram->rows, histogram->count, sizeof *histogram->rows, compare_rows);
    json_text_open(json, "rows", '[');
    for (uint32_t i = 0; i < histogram->count; i++) {
        json_text_open(json, NULL, '{');
        json_text_time(json, "time", histogram->rows[i].time_ns);
        json_text_u64(json, "width_ns", histogram->rows[i].width_ns);
        print_counts(json, &histogram->rows[i], buckets);
        json_text_close(json, '}');
    }
    json_text_close(json, ']');
}

static void print(struct histogram *histogram, bool is_duration)
{
    struct json_text *json = &histogram->request->json;
    unsigned buckets = STORE_BUCKETS;
    while (buckets > 0 && histogram->all.counts[buckets - 1] == 0)
        buckets--;
    json_text_open(json, NULL, '{');
    json_text_string(json, "measure", is_duration ? "duration" : "cpu");
    json_text_string(json, "unit", "nanoseconds");
    json_text_open(json, "bounds", '[');
    for (unsigned i = 0; i < buckets; i++)
        json_text_u64(json, NULL, store_bucket_lower(i + 1));
    json_text_close(json, ']');
    print_counts(json, &histogram->all, buckets);
    json_text_open(json, "has_stacks", '[');
    for (unsigned i = 0; i < buckets; i++)
        json_text_bool(json, NULL, is_duration && histogram->has_stacks[i]);
    json_text_close(json, ']');
    print_rows(histogram, buckets);
    json_text_close(json, '}');
}

void api_histogram(struct api_request *request)
{
    struct store_selection selection;
    struct histogram histogram = {.request = request};
    static const char *const measures[] = {"duration", "cpu"};
    uint8_t type;
    int measure;
    if (!api_selection(request, "", &selection, &type) ||
        !api_word(request, "measure", measures, 2, 0, &measure))
        return;
    bool is_duration = measure == 0;
    uint8_t entries = is_duration ? STORE_ENTRY_DURATION : STORE_ENTRY_CPU;
    if (store_selection_is_of_spans(&selection))
        add_spans(&histogram, &selection, entries);
    else
        add_entries(&histogram, &selection, entries);
    print(&histogram, is_duration);
}
