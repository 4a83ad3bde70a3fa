#include "processors/spanjoin/wanted_attributes.h"

#include "core/data/any_value.h"

#include <assert.h>

_Static_assert((int)WANTED_COUNT <= 64, "a bit for each");

static size_t size_class(size_t size)
{
    return size < WANTED_SIZES ? size : WANTED_SIZES - 1;
}

static void add(struct wanted_attributes *wanted, unsigned place, struct slice key)
{
    assert(wanted->count < WANTED_COUNT && place < WANTED_COUNT);
    uint8_t *last = &wanted->of_size[size_class(key.size)];
    wanted->places[wanted->count++] = (uint8_t)place;
    wanted->keys[place] = key;
    wanted->next[place] = *last;
    *last = (uint8_t)(place + 1);
}

void wanted_attributes_init(struct wanted_attributes *wanted, const struct spanjoin_side *side,
                            bool with_threads)
{
    wanted->found = 0;
    wanted->count = 0;
    memset(wanted->of_size, 0, sizeof wanted->of_size);
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

/* Notes an attribute. place: 1 + that of a key of its size; 0: there is none, as usual. */
static inline void note(struct wanted_attributes *wanted, unsigned place,
                        const struct key_value *pair)
{
    for (; place > 0; place = wanted->next[place - 1]) {
        uint64_t bit = UINT64_C(1) << (place - 1);
        if (!slice_equal_short(wanted->keys[place - 1], pair->key) || (wanted->found & bit))
            continue;
        wanted->found |= bit;
        wanted->values[place - 1] = pair->value;
    }
}

void wanted_attributes_read(struct wanted_attributes *wanted, struct slice key_value)
{
    struct key_value pair = key_value_read(key_value);
    note(wanted, wanted->of_size[size_class(pair.key.size)], &pair);
}

/* Sets the size of the key of the short KeyValue field at `at`, and returns its size; 0 if it is
 * another one. Its tag, the upper bit of its length, the tag of its key and the upper bit of the
 * key's length are looked at together. */
static inline size_t short_field_size(const uint8_t *at, const uint8_t *end, size_t *key_size_out)
{
    const uint32_t tags =
        SPAN_ATTRIBUTES << 3 | WIRE_BYTES | (KEY_VALUE_KEY << 3 | WIRE_BYTES) << 16;
    enum { HEADERS = 6 }; /* of the field, the key and the value */
    uint32_t head;
    if (end - at < HEADERS)
        return 0;
    memcpy(&head, at, sizeof head);
    head = le32toh(head);
    size_t size = 2 + (head >> 8 & 0xff), key_size = head >> 24;
    if ((head & 0x80ff80ff) != tags || key_size + HEADERS > size || (ptrdiff_t)size > end - at)
        return 0;
    const uint8_t *value = at + 4 + key_size;
    bool is_whole =
        value[0] == (KEY_VALUE_VALUE << 3 | WIRE_BYTES) && value[1] == size - HEADERS - key_size;
    *key_size_out = key_size;
    return is_whole ? size : 0;
}

const uint8_t *wanted_attributes_run(struct wanted_attributes *wanted, const uint8_t *at,
                                     const uint8_t *end)
{
    size_t size, key_size;
    for (; (size = short_field_size(at, end, &key_size)) > 0; at += size) {
        unsigned place = wanted->of_size[key_size];
        if (place == 0)
            continue;
        struct key_value pair = {.key = {at + 4, key_size},
                                 .value = {at + 6 + key_size, size - 6 - key_size}};
        note(wanted, place, &pair);
    }
    return at;
}
