#include "processors/spanjoin/wanted_attributes.h"

#include "core/data/any_value.h"

#include <assert.h>

_Static_assert((int)WANTED_COUNT <= 64, "a bit for each");

static uint64_t bit_of_size(size_t size)
{
    return UINT64_C(1) << (size < 63 ? size : 63);
}

static void add(struct wanted_attributes *wanted, unsigned place, struct slice key)
{
    assert(wanted->count < WANTED_COUNT && place < WANTED_COUNT);
    wanted->places[wanted->count++] = (uint8_t)place;
    wanted->keys[place] = key;
    wanted->sizes |= bit_of_size(key.size);
}

void wanted_attributes_init(struct wanted_attributes *wanted, const struct spanjoin_side *side,
                            bool with_threads)
{
    wanted->sizes = wanted->found = 0;
    wanted->count = 0;
    for (size_t i = 0; i < side->joined_count; i++)
        if (side->joined[i].path == JOIN_SPAN_ATTRIBUTE)
            add(wanted, (unsigned)i, side->joined[i].name);
    if (with_threads) {
        add(wanted, WANTED_THREAD_ID, SLICE("thread.id"));
        add(wanted, WANTED_THREAD_NAME, SLICE("thread.name"));
    }
    wanted_attributes_begin(wanted);
}

void wanted_attributes_begin(struct wanted_attributes *wanted)
{
    wanted->found = 0;
    for (unsigned i = 0; i < wanted->count; i++)
        wanted->values[wanted->places[i]] = (struct slice){0};
}

/* Compares inline: most keys are too short for a call of memcmp. The two words overlap. */
static inline bool is_equal(struct slice a, struct slice b)
{
    uint64_t words[4];
    if (a.size != b.size)
        return false;
    if (a.size < 8 || a.size > 16)
        return memcmp(a.data, b.data, a.size) == 0;
    memcpy(&words[0], a.data, 8);
    memcpy(&words[1], b.data, 8);
    memcpy(&words[2], a.data + a.size - 8, 8);
    memcpy(&words[3], b.data + b.size - 8, 8);
    return words[0] == words[1] && words[2] == words[3];
}

/* A key that is not looked for usually has another size. */
static inline void note(struct wanted_attributes *wanted, const struct key_value *pair)
{
    if (!(wanted->sizes & bit_of_size(pair->key.size)))
        return;
    for (unsigned i = 0; i < wanted->count; i++) {
        unsigned place = wanted->places[i];
        uint64_t bit = UINT64_C(1) << place;
        if (!is_equal(wanted->keys[place], pair->key) || (wanted->found & bit))
            continue;
        wanted->found |= bit;
        wanted->values[place] = pair->value;
    }
}

void wanted_attributes_read(struct wanted_attributes *wanted, struct slice key_value)
{
    struct key_value pair = key_value_read(key_value);
    note(wanted, &pair);
}

const uint8_t *wanted_attributes_run(struct wanted_attributes *wanted, const uint8_t *at,
                                     const uint8_t *end)
{
    struct key_value pair;
    while (end - at >= 2 && at[0] == (SPAN_ATTRIBUTES << 3 | WIRE_BYTES) && at[1] < 0x80 &&
           at[1] <= end - at - 2 && key_value_read_short((struct slice){at + 2, at[1]}, &pair)) {
        note(wanted, &pair);
        at += 2 + at[1];
    }
    return at;
}
