#include "exporters/pyroscope/texts.h"

#include "core/base/hash.h"

struct text_slot {
    uint64_t hash;
    struct slice text; /* data NULL: a free slot */
};

static struct text_slot *find(const struct texts *texts, struct slice text, uint64_t hash)
{
    uint64_t at = hash;
    for (;; at++) {
        struct text_slot *slot = &texts->slots[at & texts->mask];
        if (!slot->text.data || (slot->hash == hash && slice_equal(slot->text, text)))
            return slot;
    }
}

static void grow(struct texts *texts)
{
    struct text_slot *old = texts->slots;
    uint32_t old_count = old ? texts->mask + 1 : 0, count = old ? old_count * 2 : 64;
    texts->slots = arena_array(texts->arena, count, sizeof *texts->slots);
    texts->mask = count - 1;
    for (uint32_t i = 0; i < old_count; i++) {
        uint64_t at = old[i].hash;
        if (!old[i].text.data)
            continue;
        while (texts->slots[at & texts->mask].text.data)
            at++;
        texts->slots[at & texts->mask] = old[i];
    }
}

static struct slice add(struct texts *texts, struct slice text, bool is_copied)
{
    if (text.size == 0)
        return text;
    if (texts->count * 2 >= texts->mask)
        grow(texts);
    uint64_t hash = hash_bytes(text);
    struct text_slot *slot = find(texts, text, hash);
    if (!slot->text.data) {
        *slot = (struct text_slot){hash, is_copied ? arena_copy(texts->arena, text) : text};
        texts->count++;
    }
    return slot->text;
}

struct slice texts_of(struct texts *texts, struct slice text)
{
    return add(texts, text, false);
}

struct slice texts_copy_of(struct texts *texts, struct slice text)
{
    return add(texts, text, true);
}

struct slice texts_find(const struct texts *texts, struct slice text)
{
    return texts->slots && text.size > 0 ? find(texts, text, hash_bytes(text))->text
                                         : (struct slice){0};
}

uint64_t texts_hash(struct slice text)
{
    return text.size <= TEXTS_SHORT_MAX ? hash_bytes(text)
                                        : hash_u64((uint64_t)(uintptr_t)text.data);
}
