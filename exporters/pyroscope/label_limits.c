#include "exporters/pyroscope/label_limits.h"

#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/memory.h"

#include <pthread.h>

#define HOUR_NS (UINT64_C(3600) * 1000000000)

/* Who invents services gets no more than this: then everything new is folded. */
enum { ENTRIES_MAX = 1 << 18, SLOTS_MIN = 1024 };

/* A value that was seen, or (count > 0) a label of a service with how many values it has. */
struct entry {
    uint64_t hash; /* 0: free */
    uint64_t count;
    bool is_folded;
};

struct label_limits {
    uint64_t max_values;
    struct counter *folded; /* under the lock, so one of its cells will do */
    const char *label;
    pthread_mutex_t lock;
    uint64_t hour_ns; /* when the present hour began */
    struct entry *slots;
    size_t slots_mask;
    size_t used;
    bool is_full_told;
};

static void clear(struct label_limits *limits)
{
    free(limits->slots);
    limits->slots = memory_zalloc(SLOTS_MIN * sizeof *limits->slots);
    limits->slots_mask = SLOTS_MIN - 1;
    limits->used = 0;
    limits->is_full_told = false;
}

struct label_limits *label_limits_new(uint64_t max_values, struct counter *folded,
                                      const char *label)
{
    struct label_limits *limits = memory_zalloc(sizeof *limits);
    limits->max_values = max_values;
    limits->folded = folded;
    limits->label = label;
    pthread_mutex_init(&limits->lock, NULL);
    clear(limits);
    return limits;
}

void label_limits_free(struct label_limits *limits)
{
    if (!limits)
        return;
    pthread_mutex_destroy(&limits->lock);
    free(limits->slots);
    free(limits);
}

/* Where it is, or the free place where it belongs. */
static struct entry *find(struct label_limits *limits, uint64_t hash)
{
    size_t at = hash & limits->slots_mask;
    while (limits->slots[at].hash != 0 && limits->slots[at].hash != hash)
        at = (at + 1) & limits->slots_mask;
    return &limits->slots[at];
}

static void grow(struct label_limits *limits)
{
    struct entry *old = limits->slots;
    size_t count = limits->slots_mask + 1;
    limits->slots = memory_zalloc(2 * count * sizeof *limits->slots);
    limits->slots_mask = 2 * count - 1;
    for (size_t i = 0; i < count; i++)
        if (old[i].hash != 0)
            *find(limits, old[i].hash) = old[i];
    free(old);
}

static void note_full(struct label_limits *limits)
{
    if (limits->is_full_told)
        return;
    limits->is_full_told = true;
    log_warn(limits->label,
             "more than %d labels and values of all services within an hour: further ones are sent "
             "as \"other\" until it ends",
             ENTRIES_MAX);
}

/* NULL: there are too many already. */
static struct entry *insert(struct label_limits *limits, uint64_t hash)
{
    struct entry *entry = find(limits, hash);
    if (entry->hash != 0)
        return entry;
    if (limits->used == ENTRIES_MAX) {
        note_full(limits);
        return NULL;
    }
    if (limits->used++ >= limits->slots_mask / 2) {
        grow(limits);
        entry = find(limits, hash);
    }
    entry->hash = hash;
    return entry;
}

static void note_folded(struct label_limits *limits, struct entry *of_label, struct slice service,
                        struct slice label)
{
    if (of_label->is_folded)
        return;
    of_label->is_folded = true;
    log_warn(limits->label,
             "label \"%.*s\" of service \"%.*s\" has more than %llu values: others are sent as "
             "\"other\"",
             SLICE_ARG(label), SLICE_ARG(service), (unsigned long long)limits->max_values);
}

static bool admit(struct label_limits *limits, struct slice service, struct slice label,
                  struct slice value)
{
    const uint64_t parts[] = {hash_bytes(service), hash_bytes(label), hash_bytes(value)};
    uint64_t label_hash = hash_bytes(slice_of(parts, 2 * sizeof *parts)) | 1;
    uint64_t value_hash = hash_bytes(slice_of(parts, sizeof parts)) | 1;
    if (find(limits, value_hash)->hash != 0)
        return true;
    struct entry *of_label = insert(limits, label_hash);
    if (!of_label)
        return false;
    if (of_label->count >= limits->max_values) {
        note_folded(limits, of_label, service, label);
        return false;
    }
    of_label->count++;
    return insert(limits, value_hash) != NULL; /* may move of_label */
}

bool label_limits_admit(struct label_limits *limits, struct slice service, struct slice label,
                        struct slice value, uint64_t now_ns)
{
    if (limits->max_values == 0)
        return true;
    pthread_mutex_lock(&limits->lock);
    if (now_ns - limits->hour_ns >= HOUR_NS) {
        limits->hour_ns = now_ns;
        clear(limits);
    }
    bool admitted = admit(limits, service, label, value);
    if (!admitted)
        counter_add(limits->folded, 0, 1);
    pthread_mutex_unlock(&limits->lock);
    return admitted;
}
