#include "exporters/pyroscope/label_limits.h"

#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/log.h"
#include "core/base/memory.h"

#include <assert.h>
#include <pthread.h>

#define HOUR_NS (UINT64_C(3600) * 1000000000)
#define ROUND_NS (HOUR_NS / 16) /* in which the age of every entry is checked once */

/* The table is bounded. Half of it is available to all services. The other half is divided into
 * equal shares, one for each service and one for all services beyond the limit. */
enum {
    ENTRIES_MAX = 1 << 18,
    ENTRIES_FREE = ENTRIES_MAX / 2,
    SERVICES_MAX = 500,
    SERVICE_ENTRIES = 256,
    ENTRIES_MIN = 512,
    AGED_AT_ONCE = 4, /* number of entries that each call checks at least */
};
_Static_assert((SERVICES_MAX + 1) * (SERVICE_ENTRIES + 1) <= ENTRIES_MAX - ENTRIES_FREE,
               "the shares of all services fit into the table");

/* A service, a label of a service, or a value of a label. */
struct entry {
    uint64_t hash;    /* 0: free */
    uint64_t parent;  /* hash of the label or service that it belongs to; 0: this is a service */
    uint64_t seen_ns; /* last use */
    uint32_t count;   /* of a label: its values; of a service: all labels and values */
    union {
        bool is_folded;     /* of a label */
        uint32_t next_free; /* of a free entry: the next one */
    };
};

/* The services beyond the limit. */
#define OTHER_SERVICES UINT64_C(3)

struct label_limits {
    uint64_t max_values;
    struct counter *folded; /* used under the lock, so one of its cells is enough */
    const char *label;
    pthread_mutex_t lock;
    struct entry *entries;
    uint32_t capacity;   /* of entries */
    uint32_t first_free; /* of them; capacity: none */
    struct index_table by_hash;
    size_t services;
    uint32_t hand;    /* the entry whose age was looked at last; it counts down, because most values
                       * come after their label and service */
    uint64_t aged_ns; /* when `hand` moved last */
    bool is_told;     /* logged that a service has used up its share */
    uint64_t told_ns; /* when that was logged */
};

/* ---- the table ---- */

/* The lowest bit of all hashes is set. */
static uint32_t index_hash(uint64_t hash)
{
    return (uint32_t)(hash >> 32);
}

/* Returns the entry; NULL if it is absent. */
static struct entry *find(const struct label_limits *limits, uint64_t hash)
{
    struct index_probe probe = index_table_probe(&limits->by_hash, index_hash(hash));
    for (uint32_t number; index_table_next(&limits->by_hash, &probe, &number);)
        if (limits->entries[number].hash == hash)
            return &limits->entries[number];
    return NULL;
}

static struct entry *find_known(const struct label_limits *limits, uint64_t hash)
{
    struct entry *entry = find(limits, hash);
    assert(entry);
    return entry;
}

/* There are as many entries as the table may have items. */
static void grow(struct label_limits *limits)
{
    size_t bytes = index_table_growth(&limits->by_hash, limits->capacity ? 1 : ENTRIES_MIN);
    uint32_t capacity = (uint32_t)(bytes / sizeof(struct index_slot) / 2);
    assert(capacity > limits->capacity && limits->first_free == limits->capacity);
    limits->entries = memory_grow(limits->entries, capacity, sizeof *limits->entries);
    for (uint32_t i = limits->capacity; i < capacity; i++)
        limits->entries[i] = (struct entry){.next_free = i + 1};
    limits->capacity = capacity;
    free(index_table_move(&limits->by_hash, memory_zalloc(bytes), bytes));
}

/* Adds an entry. Other entries may move. */
static void insert(struct label_limits *limits, uint64_t hash, uint64_t parent, uint64_t now_ns)
{
    assert(limits->by_hash.count < ENTRIES_MAX && hash != 0);
    if (index_table_is_full(&limits->by_hash))
        grow(limits);
    uint32_t number = limits->first_free;
    struct entry *entry = &limits->entries[number];
    assert(number < limits->capacity && entry->hash == 0);
    limits->first_free = entry->next_free;
    *entry = (struct entry){.hash = hash, .parent = parent, .seen_ns = now_ns};
    index_table_add_new(&limits->by_hash, index_hash(hash), number);
}

static void erase(struct label_limits *limits, uint32_t number)
{
    struct entry *entry = &limits->entries[number];
    index_table_remove(&limits->by_hash, index_hash(entry->hash), number);
    *entry = (struct entry){.next_free = limits->first_free};
    limits->first_free = number;
}

/* ---- start and end ---- */

struct label_limits *label_limits_new(uint64_t max_values, struct counter *folded,
                                      const char *label)
{
    struct label_limits *limits = memory_zalloc(sizeof *limits);
    limits->max_values = max_values;
    limits->folded = folded;
    limits->label = label;
    pthread_mutex_init(&limits->lock, NULL);
    grow(limits);
    return limits;
}

void label_limits_free(struct label_limits *limits)
{
    if (!limits)
        return;
    pthread_mutex_destroy(&limits->lock);
    free(limits->entries);
    free(limits->by_hash.slots);
    free(limits);
}

/* ---- expiry ---- */

static void uncount(struct label_limits *limits, uint64_t parent)
{
    while (parent != 0) {
        struct entry *entry = find_known(limits, parent);
        assert(entry->count > 0);
        entry->count--;
        parent = entry->parent;
    }
}

static void age_one(struct label_limits *limits, uint64_t now_ns)
{
    uint32_t number = (limits->hand > 0 ? limits->hand : limits->capacity) - 1;
    const struct entry *entry = &limits->entries[number];
    limits->hand = number;
    if (entry->hash == 0 || entry->count > 0 || now_ns < entry->seen_ns + HOUR_NS)
        return;
    limits->services -= entry->parent == 0;
    uncount(limits, entry->parent);
    erase(limits, number);
}

static void age(struct label_limits *limits, uint64_t now_ns)
{
    size_t most = limits->capacity;
    uint64_t since_ns = now_ns > limits->aged_ns ? now_ns - limits->aged_ns : 0;
    if (since_ns < ROUND_NS)
        most = (size_t)(limits->capacity * since_ns / ROUND_NS) + AGED_AT_ONCE;
    limits->aged_ns = now_ns;
    for (size_t i = 0; i < most && limits->by_hash.count > 0; i++)
        age_one(limits, now_ns);
}

/* ---- shares of services ---- */

static void note_share(struct label_limits *limits, struct slice service, uint64_t now_ns)
{
    if (limits->is_told && now_ns < limits->told_ns + HOUR_NS)
        return;
    limits->is_told = true;
    limits->told_ns = now_ns;
    log_warn(log_component(limits->label),
             "Too many labels and values within an hour: further ones of this service, and of "
             "others with more than service_limit, are sent as other",
             LOG_U64("limit", ENTRIES_FREE), LOG_SLICE("service", service),
             LOG_U64("service_limit", SERVICE_ENTRIES));
}

static void note_folded(const struct label_limits *limits, struct entry *of_label,
                        struct slice service, struct slice label)
{
    if (of_label->is_folded)
        return;
    of_label->is_folded = true;
    log_warn(log_component(limits->label),
             "A label has more than max_values values: further ones are sent as other",
             LOG_SLICE("label", label), LOG_SLICE("service", service),
             LOG_U64("max_values", limits->max_values));
}

static uint64_t hash_of(const uint64_t *parts, size_t count)
{
    return hash_bytes(slice_of(parts, count * sizeof *parts)) | 1;
}

/* Returns the hash of the service, or OTHER_SERVICES if there are too many. */
static uint64_t service_of(struct label_limits *limits, uint64_t service, uint64_t now_ns)
{
    bool is_known = find(limits, service);
    if (!is_known && limits->services >= SERVICES_MAX) {
        service = OTHER_SERVICES;
        is_known = find(limits, service);
    }
    if (!is_known) {
        insert(limits, service, 0, now_ns);
        limits->services++;
    }
    find_known(limits, service)->seen_ns = now_ns;
    return service;
}

/* Adds a label or value to its parent. Returns false if its service has no room. */
static bool add(struct label_limits *limits, uint64_t hash, uint64_t parent, uint64_t service,
                uint64_t now_ns)
{
    if (limits->by_hash.count >= ENTRIES_FREE &&
        find_known(limits, service)->count >= SERVICE_ENTRIES)
        return false;
    insert(limits, hash, parent, now_ns);
    find_known(limits, service)->count++;
    if (parent != service)
        find_known(limits, parent)->count++;
    return true;
}

static bool admit(struct label_limits *limits, struct slice service, struct slice label,
                  struct slice value, uint64_t now_ns)
{
    const uint64_t parts[] = {hash_bytes(service), hash_bytes(label), hash_bytes(value)};
    uint64_t value_hash = hash_of(parts, 3), label_hash = hash_of(parts, 2);
    struct entry *known = find(limits, value_hash);
    if (known) {
        known->seen_ns = now_ns;
        return true;
    }
    const struct entry *known_label = find(limits, label_hash);
    uint64_t of_service =
        known_label ? known_label->parent : service_of(limits, hash_of(parts, 1), now_ns);
    if (!known_label && !add(limits, label_hash, of_service, of_service, now_ns)) {
        note_share(limits, service, now_ns);
        return false;
    }
    struct entry *of_label = find_known(limits, label_hash);
    if (of_label->count >= limits->max_values) {
        note_folded(limits, of_label, service, label);
        return false;
    }
    if (add(limits, value_hash, label_hash, of_service, now_ns))
        return true;
    note_share(limits, service, now_ns);
    return false;
}

bool label_limits_admit(struct label_limits *limits, struct slice service, struct slice label,
                        struct slice value, uint64_t now_ns)
{
    if (limits->max_values == 0)
        return true;
    pthread_mutex_lock(&limits->lock);
    age(limits, now_ns);
    bool admitted = admit(limits, service, label, value, now_ns);
    if (!admitted)
        counter_add(limits->folded, 0, 1);
    pthread_mutex_unlock(&limits->lock);
    return admitted;
}
