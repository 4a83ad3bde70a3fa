#include "core/data/top_functions.h"

#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/owned_table.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct counted {
    uint64_t hash; /* of the name */
    uint64_t weight;
    uint64_t uncertain; /* the part of it that others may have had */
    char *name;
    uint8_t size;
};

/* The functions of one span. */
struct sketch {
    struct owned_item item; /* its weight is its memory in bytes */
    uint64_t weight;        /* of all samples */
    struct counted *functions;
    uint8_t count;
    uint8_t capacity;
    bool is_cpu;
};

struct top_functions {
    pthread_mutex_t lock;
    struct owned_table table;
};

static void clear_sketch(struct sketch *sketch)
{
    for (uint8_t i = 0; i < sketch->count; i++)
        free(sketch->functions[i].name);
    sketch->count = 0;
    sketch->weight = 0;
}

static void free_sketch(struct owned_item *item)
{
    struct sketch *sketch = container_of(item, struct sketch, item);
    clear_sketch(sketch);
    free(sketch->functions);
    free(sketch);
}

struct top_functions *top_functions_new(size_t max_bytes)
{
    struct top_functions *functions = memory_zalloc(sizeof *functions);
    pthread_mutex_init(&functions->lock, NULL);
    owned_table_init(&functions->table, max_bytes, free_sketch);
    return functions;
}

void top_functions_free(struct top_functions *functions)
{
    if (!functions)
        return;
    owned_table_deinit(&functions->table);
    pthread_mutex_destroy(&functions->lock);
    free(functions);
}

/* ---- spans ---- */

/* The hash is keyed and has 64 bits, so it is the identity of the span. */
static uint64_t hash_of(const struct span_key *key, uint64_t scope)
{
    uint8_t whole[sizeof *key + sizeof scope];
    memcpy(whole, key, sizeof *key);
    memcpy(whole + sizeof *key, &scope, sizeof scope);
    return hash_bytes(slice_of(whole, sizeof whole));
}

static struct sketch *find_sketch(const struct top_functions *functions, uint64_t hash)
{
    struct owned_item *item = owned_table_find(&functions->table, hash);
    return item ? container_of(item, struct sketch, item) : NULL;
}

/* Returns the sketch of a span, as the newest one of its owner. */
static struct sketch *open_sketch(struct top_functions *functions, uint64_t hash, uint16_t owner,
                                  uint64_t now_ns)
{
    struct sketch *sketch = find_sketch(functions, hash);
    bool is_new = !sketch;
    if (is_new) {
        sketch = memory_zalloc(sizeof *sketch);
        owned_table_add(&functions->table, &sketch->item, hash, owner);
    }
    owned_table_touch(&functions->table, &sketch->item, now_ns);
    if (is_new)
        owned_table_grow(&functions->table, &sketch->item, sizeof *sketch);
    return sketch;
}

/* ---- functions ---- */

static struct counted *find_function(const struct sketch *sketch, uint64_t hash)
{
    for (uint8_t i = 0; i < sketch->count; i++)
        if (sketch->functions[i].hash == hash)
            return &sketch->functions[i];
    return NULL;
}

/* Makes room for one function more. Returns false if the sketch has as many as it may. */
static bool reserve(struct top_functions *functions, struct sketch *sketch)
{
    if (sketch->count < sketch->capacity)
        return true;
    if (sketch->capacity == TOP_FUNCTIONS_KEPT)
        return false;
    uint8_t capacity = sketch->capacity ? (uint8_t)(sketch->capacity * 2) : 2;
    sketch->functions = memory_grow(sketch->functions, capacity, sizeof *sketch->functions);
    owned_table_grow(&functions->table, &sketch->item,
                     (size_t)(capacity - sketch->capacity) * sizeof *sketch->functions);
    sketch->capacity = capacity;
    return true;
}

/* Returns the function with the least weight. */
static struct counted *least(const struct sketch *sketch)
{
    struct counted *least = sketch->functions;
    assert(sketch->count > 0);
    for (uint8_t i = 1; i < sketch->count; i++)
        if (sketch->functions[i].weight < least->weight)
            least = &sketch->functions[i];
    return least;
}

/* The memory of a name is counted once, even if another one takes its place. */
static void set_name(struct counted *counted, struct slice name, uint64_t hash)
{
    counted->name = memory_alloc(name.size);
    memcpy(counted->name, name.data, name.size);
    counted->size = (uint8_t)name.size;
    counted->hash = hash;
}

static struct counted *new_function(struct top_functions *functions, struct sketch *sketch,
                                    struct slice name, uint64_t hash)
{
    struct counted *counted;
    if (reserve(functions, sketch)) {
        counted = &sketch->functions[sketch->count++];
        *counted = (struct counted){.name = NULL};
        owned_table_grow(&functions->table, &sketch->item, TOP_FUNCTIONS_NAME_MAX / 4);
    } else {
        counted = least(sketch);
        counted->uncertain = counted->weight;
        free(counted->name);
    }
    set_name(counted, name, hash);
    return counted;
}

/* Adds up to UINT64_MAX. */
static void add_to(uint64_t *sum, uint64_t more)
{
    *sum = more < UINT64_MAX - *sum ? *sum + more : UINT64_MAX;
}

static void count(struct top_functions *functions, struct sketch *sketch, struct slice name,
                  uint64_t weight)
{
    add_to(&sketch->weight, weight);
    if (name.size == 0)
        return;
    name.size = text_utf8_cut(name, TOP_FUNCTIONS_NAME_MAX);
    uint64_t hash = hash_bytes(name);
    struct counted *counted = find_function(sketch, hash);
    if (!counted)
        counted = new_function(functions, sketch, name, hash);
    add_to(&counted->weight, weight);
}

static void add(struct top_functions *functions, const struct function_weight *added,
                uint64_t now_ns)
{
    struct sketch *sketch = open_sketch(functions, hash_of(added->key, added->source->scope),
                                        added->source->owner, now_ns);
    if (sketch->is_cpu && !added->is_cpu)
        return;
    if (added->is_cpu && !sketch->is_cpu)
        clear_sketch(sketch); /* from now on, only CPU time counts */
    sketch->is_cpu = added->is_cpu;
    count(functions, sketch, added->name, added->weight);
}

/* Work is done in parts, because others want the lock, too. */
enum { TOGETHER = 256 };

void top_functions_add(struct top_functions *functions, const struct function_weight *weights,
                       size_t count, uint64_t now_ns)
{
    for (size_t i = 0; i < count; i += TOGETHER) {
        pthread_mutex_lock(&functions->lock);
        for (size_t k = i; k < count && k < i + TOGETHER; k++)
            add(functions, &weights[k], now_ns);
        pthread_mutex_unlock(&functions->lock);
    }
}

/* ---- asking ---- */

static uint64_t certain(const struct counted *counted)
{
    return counted->weight - counted->uncertain;
}

static int compare(const void *left, const void *right)
{
    const struct counted *a = left, *b = right;
    if (certain(a) != certain(b))
        return certain(a) < certain(b) ? 1 : -1;
    int order = memcmp(a->name, b->name, a->size < b->size ? a->size : b->size);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

/* The functions of up to two sketches. Names are theirs. */
struct sum {
    uint64_t weight;
    struct counted functions[2 * TOP_FUNCTIONS_KEPT];
    uint8_t count;
};

static void add_sketch(struct sum *sum, const struct sketch *sketch)
{
    add_to(&sum->weight, sketch->weight);
    for (uint8_t i = 0; i < sketch->count; i++) {
        const struct counted *added = &sketch->functions[i];
        uint8_t at = 0;
        while (at < sum->count && sum->functions[at].hash != added->hash)
            at++;
        if (at == sum->count) {
            sum->functions[sum->count++] = *added;
            continue;
        }
        add_to(&sum->functions[at].weight, added->weight);
        add_to(&sum->functions[at].uncertain, added->uncertain);
    }
}

static unsigned percent_of(uint64_t part, uint64_t whole)
{
    assert(part <= whole);
    return whole == 0 ? 0 : (unsigned)((double)part * 100 / (double)whole + 0.5);
}

static void answer(struct sum *sum, struct top_ask *ask, unsigned most, struct arena *arena)
{
    qsort(sum->functions, sum->count, sizeof *sum->functions, compare);
    ask->functions = arena_array(arena, most, sizeof *ask->functions);
    for (uint8_t i = 0; i < sum->count && ask->count < most; i++) {
        const struct counted *counted = &sum->functions[i];
        unsigned percent = percent_of(certain(counted), sum->weight);
        if (percent == 0)
            return;
        ask->functions[ask->count++] = (struct top_function){
            arena_copy(arena, slice_of(counted->name, counted->size)), percent};
    }
}

/* Samples without a trace id that came before the span have a sketch of their own. */
static void find(struct top_functions *functions, struct top_ask *ask, unsigned most,
                 struct arena *arena)
{
    struct span_key loose_key = ask->key;
    struct sum sum = {.count = 0};
    memset(loose_key.trace_id, 0, TRACE_ID_SIZE);
    const struct sketch *sketch = find_sketch(functions, hash_of(&ask->key, ask->source.scope));
    const struct sketch *loose = find_sketch(functions, hash_of(&loose_key, ask->source.scope));
    ask->count = 0;
    if (sketch && (!loose || sketch->is_cpu >= loose->is_cpu))
        add_sketch(&sum, sketch);
    if (loose && (!sketch || loose->is_cpu >= sketch->is_cpu))
        add_sketch(&sum, loose);
    if (sum.count > 0)
        answer(&sum, ask, most, arena);
}

void top_functions_find(struct top_functions *functions, struct top_ask *asks, size_t count,
                        unsigned most, struct arena *arena)
{
    assert(most > 0);
    pthread_mutex_lock(&functions->lock);
    for (size_t i = 0; i < count; i++)
        find(functions, &asks[i], most, arena);
    pthread_mutex_unlock(&functions->lock);
}

/* ---- the window ---- */

void top_functions_sweep(struct top_functions *functions, uint64_t now_ns, uint64_t window_ns)
{
    pthread_mutex_lock(&functions->lock);
    owned_table_sweep(&functions->table, now_ns, window_ns);
    pthread_mutex_unlock(&functions->lock);
}

size_t top_functions_memory(struct top_functions *functions)
{
    pthread_mutex_lock(&functions->lock);
    size_t size =
        sizeof *functions + owned_table_memory(&functions->table) + (size_t)functions->table.weight;
    pthread_mutex_unlock(&functions->lock);
    return size;
}
