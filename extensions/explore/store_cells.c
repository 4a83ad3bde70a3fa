#include "extensions/explore/store_cells.h"

#include "core/base/hash.h"
#include "core/base/saturate.h"

#include <stdio.h>

enum { ENTRY_RESERVE_MIN = 2 * STORE_TYPES_MAX, STATUSES = 3 };

/* ---- buckets: four to each power of two, from 1,024 ns on ---- */

unsigned store_bucket_of(uint64_t ns)
{
    uint64_t value = ns >> 10;
    if (value < 4)
        return (unsigned)value;
    unsigned power = 63 - (unsigned)__builtin_clzll(value);
    unsigned bucket = 4 * (power - 1) + (unsigned)(value >> (power - 2) & 3);
    return bucket < STORE_BUCKETS ? bucket : STORE_BUCKETS - 1;
}

uint64_t store_bucket_lower(unsigned bucket)
{
    if (bucket < 4)
        return (uint64_t)bucket << 10;
    unsigned power = bucket / 4 + 1;
    return (uint64_t)(4 + bucket % 4) << (power - 2) << 10;
}

/* ---- types and services ---- */

/* Returns what a type is called, so that two have not the same name. */
static uint32_t label_of(struct store_cells *cells, uint32_t name, uint32_t unit)
{
    char label[2 * STORE_TEXT_MAX + 16];
    bool is_taken = false;
    for (uint32_t i = 0; i < cells->type_count; i++)
        is_taken |= cells->types[i].label == name;
    if (!is_taken)
        return name;
    struct slice first = store_names_read(cells->names, name);
    struct slice second = store_names_read(cells->names, unit);
    int size = snprintf(label, sizeof label, "%.*s (%.*s)", SLICE_ARG(first), SLICE_ARG(second));
    return store_names_text(cells->names, slice_of(label, (size_t)size), STORE_TEXT_MAX);
}

uint8_t store_cells_type(struct store_cells *cells, uint32_t name, uint32_t unit)
{
    for (uint32_t i = 0; i < cells->type_count; i++)
        if (cells->types[i].name == name && cells->types[i].unit == unit)
            return (uint8_t)i;
    if (cells->type_count == STORE_TYPES_MAX)
        return STORE_TYPES_MAX - 1;
    if (cells->type_count == STORE_TYPES_MAX - 1)
        name = STORE_TEXT_MERGED, unit = STORE_TEXT_EMPTY;
    uint32_t label = label_of(cells, name, unit);
    cells->types[cells->type_count] =
        (struct store_type){.name = name, .unit = unit, .label = label};
    return (uint8_t)cells->type_count++;
}

uint32_t store_cells_service(struct store_cells *cells, uint32_t name)
{
    struct store_table *table = &cells->services;
    struct store_probe probe = store_table_probe(table, hash_u64(name));
    for (uint32_t number; store_table_next(table, &probe, &number);)
        if (store_service_at(cells, number)->name == name)
            return number;
    uint32_t number = store_table_append(table, 0);
    if (number == STORE_NONE)
        return 0;
    store_service_at(cells, number)->name = name;
    store_table_index(table, hash_u64(name), number);
    return number;
}

void store_versions_note(struct store_versions *versions, uint32_t version)
{
    uint32_t carried = version;
    for (int i = 0; i < STORE_VERSIONS_MAX && version != STORE_TEXT_EMPTY; i++) {
        uint32_t was = versions->texts[i];
        versions->texts[i] = carried;
        if (was == version || was == STORE_TEXT_EMPTY)
            break;
        carried = was;
    }
}

/* ---- operations ---- */

static uint64_t hash_operation(uint32_t service, uint32_t name, uint8_t kind)
{
    return hash_u64(hash_u64((uint64_t)service << 32 | name) ^ kind);
}

/* Returns how many records must stay free when one is added: there is always room for those without
 * details, of each service. */
static uint32_t kept_free(const struct store_table *table, bool has_details)
{
    return has_details ? table->reserve : 0;
}

static uint32_t add_operation(struct store_cells *cells, uint64_t hash,
                              const struct store_operation *operation)
{
    struct store_table *table = &cells->operations;
    bool is_merged = operation->name == STORE_TEXT_MERGED && operation->kind == 0;
    uint32_t number = store_table_append(table, kept_free(table, !is_merged));
    if (number == STORE_NONE)
        return STORE_NONE;
    *store_operation_at(cells, number) = *operation;
    store_table_index(table, hash, number);
    store_service_at(cells, operation->service)->operations++;
    return number;
}

static uint32_t find_operation(struct store_cells *cells, uint32_t service, uint32_t name,
                               uint8_t kind)
{
    struct store_table *table = &cells->operations;
    uint64_t hash = hash_operation(service, name, kind);
    struct store_probe probe = store_table_probe(table, hash);
    for (uint32_t number; store_table_next(table, &probe, &number);) {
        const struct store_operation *found = store_operation_at(cells, number);
        if (found->service == service && found->name == name && found->kind == kind)
            return number;
    }
    const struct store_operation operation = {
        .service = service, .name = name, .kind = kind, .keeps_buckets = true};
    return add_operation(cells, hash, &operation);
}

uint32_t store_cells_operation(struct store_cells *cells, uint32_t service, uint32_t name,
                               uint8_t kind)
{
    uint32_t number = find_operation(cells, service, name, kind);
    if (number == STORE_NONE)
        number = find_operation(cells, service, STORE_TEXT_MERGED, 0);
    return number == STORE_NONE ? 0 : number;
}

/* ---- cells ---- */

static uint64_t hash_cell(const struct store_cell *cell)
{
    uint64_t place = (uint64_t)cell->operation << 32 | cell->version;
    return hash_u64(hash_u64(place) ^ ((uint64_t)cell->minute << 8 | cell->status));
}

static bool is_same_cell(const struct store_cell *a, const struct store_cell *b)
{
    return a->operation == b->operation && a->version == b->version && a->minute == b->minute &&
           a->status == b->status;
}

static uint32_t find_cell(struct store_cells *cells, const struct store_cell *key)
{
    struct store_table *table = &cells->cells;
    struct store_probe probe = store_table_probe(table, hash_cell(key));
    for (uint32_t number; store_table_next(table, &probe, &number);)
        if (is_same_cell(store_cell_at(cells, number), key))
            return number;
    uint32_t number = store_table_append(table, kept_free(table, key->minute != 0));
    if (number == STORE_NONE)
        return STORE_NONE;
    *store_cell_at(cells, number) = *key;
    store_cell_at(cells, number)->spans = 0;
    store_table_index(table, hash_cell(key), number);
    return number;
}

uint32_t store_cells_cell(struct store_cells *cells, const struct store_cell *key)
{
    uint32_t number = find_cell(cells, key);
    if (number != STORE_NONE)
        return number;
    uint32_t service = store_operation_at(cells, key->operation)->service;
    const struct store_cell any = {.operation =
                                       store_cells_operation(cells, service, STORE_TEXT_MERGED, 0),
                                   .status = key->status};
    number = find_cell(cells, &any);
    return number == STORE_NONE ? 0 : number;
}

/* ---- entries ---- */

static uint64_t hash_entry(const struct store_entry *entry)
{
    uint64_t what = (uint64_t)entry->node << 16 | (uint64_t)entry->type << 8 | entry->bucket;
    return hash_u64(hash_u64(what) + entry->cell);
}

static bool is_same_entry(const struct store_entry *a, const struct store_entry *b)
{
    return a->cell == b->cell && a->node == b->node && a->type == b->type && a->bucket == b->bucket;
}

/* Returns false if there is no room. kept: entries that must stay free. */
static bool add_entry(struct store_cells *cells, const struct store_entry *entry, uint32_t kept)
{
    struct store_table *table = &cells->entries;
    struct store_probe probe = store_table_probe(table, hash_entry(entry));
    for (uint32_t number; store_table_next(table, &probe, &number);) {
        struct store_entry *found = store_entry_at(cells, number);
        if (!is_same_entry(found, entry))
            continue;
        found->value = saturate_add(found->value, entry->value);
        return true;
    }
    uint32_t number = store_table_append(table, kept);
    if (number == STORE_NONE)
        return false;
    *store_entry_at(cells, number) = *entry;
    store_table_index(table, hash_entry(entry), number);
    return true;
}

static bool is_histogram(const struct store_entry *entry)
{
    return entry->type >= STORE_TYPES_MAX;
}

/* Adds a value without details: to its cell, its service, or all services. */
static void add_plain(struct store_cells *cells, struct store_entry entry)
{
    struct store_cell any = {.operation = store_cell_at(cells, entry.cell)->operation,
                             .status = store_cell_at(cells, entry.cell)->status};
    uint32_t service = store_operation_at(cells, any.operation)->service;
    entry.node = is_histogram(&entry) ? entry.node : STORE_NODE_MERGED;
    entry.bucket = STORE_BUCKET_ANY;
    cells->merged.stacks++;
    if (add_entry(cells, &entry, cells->entries.reserve))
        return;
    any.operation = store_cells_operation(cells, service, STORE_TEXT_MERGED, 0);
    entry.cell = store_cells_cell(cells, &any);
    if (add_entry(cells, &entry, ENTRY_RESERVE_MIN))
        return;
    entry.cell = 0;
    entry.node = is_histogram(&entry) ? 0 : STORE_NODE_MERGED;
    bool is_added = add_entry(cells, &entry, 0);
    assert(is_added); /* at most one for each type */
    (void)is_added;
}

void store_cells_add(struct store_cells *cells, const struct store_entry *entry)
{
    if (entry->value != 0 && !add_entry(cells, entry, cells->entries.reserve))
        add_plain(cells, *entry);
}

bool store_cells_take(struct store_cells *cells, const struct store_entry *entry)
{
    struct store_table *table = &cells->entries;
    struct store_probe probe = store_table_probe(table, hash_entry(entry));
    for (uint32_t number; store_table_next(table, &probe, &number);) {
        struct store_entry *found = store_entry_at(cells, number);
        if (!is_same_entry(found, entry))
            continue;
        bool has_value =
            entry->value > 0 ? found->value >= entry->value : found->value <= entry->value;
        if (has_value)
            found->value -= entry->value;
        return has_value;
    }
    return false;
}

/* ---- indexes ---- */

void store_cells_index_services(struct store_cells *cells)
{
    store_table_clear_index(&cells->services);
    for (uint32_t i = 0; i < cells->services.count; i++)
        store_table_index(&cells->services, hash_u64(store_service_at(cells, i)->name), i);
}

void store_cells_index_operations(struct store_cells *cells)
{
    store_table_clear_index(&cells->operations);
    for (uint32_t i = 0; i < cells->operations.count; i++) {
        const struct store_operation *operation = store_operation_at(cells, i);
        store_table_index(&cells->operations,
                          hash_operation(operation->service, operation->name, operation->kind), i);
    }
}

void store_cells_index_cells(struct store_cells *cells)
{
    store_table_clear_index(&cells->cells);
    for (uint32_t i = 0; i < cells->cells.count; i++)
        store_table_index(&cells->cells, hash_cell(store_cell_at(cells, i)), i);
}

void store_cells_index_entries(struct store_cells *cells)
{
    struct store_table *table = &cells->entries;
    uint32_t count = table->count;
    store_table_clear_index(table);
    table->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct store_entry entry = ((const struct store_entry *)(void *)table->records)[i];
        if (entry.value == 0)
            continue;
        bool is_added = add_entry(cells, &entry, 0); /* not beyond where it is read */
        assert(is_added && table->count <= i + 1);
        (void)is_added;
    }
    store_table_trim(table);
}

/* ---- life ---- */

void store_cells_init(struct store_cells *cells, struct store_names *names, struct store_pool *pool)
{
    enum { SERVICES_PART = 25, ENTRIES_PART = 80 /* of the pool: one of so many */, LINK = 16 };
    *cells = (struct store_cells){.names = names};
    size_t services = pool->limit / SERVICES_PART / (sizeof(struct store_service) + LINK);
    uint32_t most = services > 2048 ? 2048 : (uint32_t)services;
    size_t entries = pool->limit / ENTRIES_PART / (sizeof(struct store_entry) + LINK);
    uint32_t reserve = entries > 65536 ? 65536 : (uint32_t)entries;
    store_table_init(&cells->services, pool, sizeof(struct store_service), 0, most, true);
    store_table_init(&cells->operations, pool, sizeof(struct store_operation), most,
                     STORE_RECORDS_MAX, true);
    store_table_init(&cells->cells, pool, sizeof(struct store_cell), STATUSES * most,
                     STORE_RECORDS_MAX, true);
    store_table_init(&cells->entries, pool, sizeof(struct store_entry), reserve + ENTRY_RESERVE_MIN,
                     STORE_RECORDS_MAX, true);
    /* Those that stand for what has no room: number 0 of each. */
    store_cells_service(cells, STORE_TEXT_MERGED);
    store_cells_operation(cells, 0, STORE_TEXT_MERGED, 0);
    store_cells_cell(cells, &(struct store_cell){.operation = 0});
}

void store_cells_deinit(struct store_cells *cells)
{
    store_table_deinit(&cells->services);
    store_table_deinit(&cells->operations);
    store_table_deinit(&cells->cells);
    store_table_deinit(&cells->entries);
}

bool store_cells_have_excess(const struct store_cells *cells)
{
    return store_table_excess(&cells->operations) > 0 || store_table_excess(&cells->cells) > 0 ||
           store_table_excess(&cells->entries) > 0;
}

size_t store_cells_bytes(const struct store_cells *cells)
{
    return store_table_bytes(&cells->services) + store_table_bytes(&cells->operations) +
           store_table_bytes(&cells->cells) + store_table_bytes(&cells->entries);
}
