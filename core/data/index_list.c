/* Most indices of a large table have two bytes. So a block of 16 bytes is read as eight numbers of
 * two bytes, up to the first that has another length. What is visited twice does not matter, so the
 * last block of a list overlaps the one before. */
#include "core/data/index_list.h"

#include <assert.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* What the indices lead to. */
struct target {
    bool is_marked; /* else the bytes are read; a constant where it is used */
    uint8_t *bytes;
    uint32_t count;
    uint8_t all; /* that was read */
};

static inline __attribute__((always_inline)) void visit(struct target *target, uint64_t index)
{
    if (target->is_marked)
        target->bytes[index] = 1;
    else
        target->all |= target->bytes[index];
}

#ifdef __SSE2__
enum { BLOCK = 16, PAIRS = BLOCK / 2, PAIR_MAX = 0x3fff, ALL_PAIRS = 0x5555 };

/* Reads a block as numbers of two bytes. Returns how many of the first ones are such. */
static inline __attribute__((always_inline)) unsigned read_pairs(const uint8_t *at, uint16_t *out)
{
    __m128i pairs = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i low = _mm_and_si128(pairs, _mm_set1_epi16(0x007f));
    __m128i high = _mm_srli_epi16(_mm_and_si128(pairs, _mm_set1_epi16(0x7f00)), 1);
    unsigned upper = (unsigned)_mm_movemask_epi8(pairs); /* 01 for each number of two bytes */
    _mm_storeu_si128((__m128i *)(void *)out, _mm_or_si128(low, high));
    return upper == ALL_PAIRS ? PAIRS : (unsigned)__builtin_ctz(upper ^ ALL_PAIRS) / 2;
}

static inline __attribute__((always_inline)) bool are_below(const uint16_t *numbers, uint32_t count)
{
    short last = (short)(count - 1 < PAIR_MAX ? count - 1 : PAIR_MAX);
    __m128i block = _mm_loadu_si128((const __m128i *)(const void *)numbers);
    return _mm_movemask_epi8(_mm_cmpgt_epi16(block, _mm_set1_epi16(last))) == 0;
}

static inline __attribute__((always_inline)) void visit_pairs(struct target *target,
                                                              const uint16_t *numbers)
{
    assert(are_below(numbers, target->count)); /* scanned */
#pragma GCC unroll 8
    for (unsigned i = 0; i < PAIRS; i++)
        visit(target, numbers[i]);
}

/* Visits the last block of a list if it consists of numbers of two bytes, before which another one
 * ends. */
static inline __attribute__((always_inline)) bool take_last(struct target *target,
                                                            struct slice list)
{
    uint16_t numbers[PAIRS];
    if (list.size <= BLOCK)
        return false;
    const uint8_t *last = list.data + list.size - BLOCK;
    if (last[-1] >= 0x80 || read_pairs(last, numbers) < PAIRS)
        return false;
    visit_pairs(target, numbers);
    return true;
}

/* Visits the numbers of two bytes ahead that begin before `stop`, and some more. Returns the
 * address after them. */
static inline __attribute__((always_inline)) const uint8_t *
take_pairs(struct target *target, const uint8_t *at, const uint8_t *stop, const uint8_t *end)
{
    uint16_t numbers[PAIRS];
    unsigned taken = PAIRS;
    for (; taken == PAIRS && at < stop && end - at >= BLOCK; at += (size_t)2 * taken) {
        taken = read_pairs(at, numbers);
        if (taken == PAIRS) {
            visit_pairs(target, numbers);
            continue;
        }
        for (unsigned i = 0; i < taken; i++) {
            assert(numbers[i] < target->count);
            visit(target, numbers[i]);
        }
    }
    return at;
}
#else
enum { BLOCK = 16 };

static inline bool take_last(struct target *target, struct slice list)
{
    (void)target;
    (void)list;
    return false;
}

static inline const uint8_t *take_pairs(struct target *target, const uint8_t *at,
                                        const uint8_t *stop, const uint8_t *end)
{
    (void)target;
    (void)stop;
    (void)end;
    return at;
}
#endif

struct number {
    const uint8_t *end;
    uint64_t value;
};

/* Reads a number of any length. */
static __attribute__((noinline)) struct number read_long(const uint8_t *at, const uint8_t *end)
{
    struct wire_cursor rest = {.next = at, .end = end};
    struct number number;
    bool exists = wire_packed_varint(&rest, &number.value);
    assert(exists && !rest.broken); /* scanned */
    number.end = rest.next;
    return number;
}

/* Visits the number ahead. Returns the address after it. */
static inline __attribute__((always_inline)) const uint8_t *
take_number(struct target *target, const uint8_t *at, const uint8_t *end)
{
    struct number number = {at + 1, *at};
    if (*at >= 0x80) {
        if (end - at >= 2 && at[1] < 0x80)
            number = (struct number){at + 2, (*at & 0x7fu) | (uint64_t)at[1] << 7};
        else
            number = read_long(at, end);
    }
    assert(number.value < target->count); /* scanned */
    visit(target, number.value);
    return number.end;
}

static inline __attribute__((always_inline)) void visit_all(struct target *target,
                                                            struct slice list)
{
    const uint8_t *at = list.data, *end = at + list.size;
    const uint8_t *stop = take_last(target, list) ? end - BLOCK : end;
    while (at < stop) {
        at = take_pairs(target, at, stop, end);
        while (at < stop && *at < 0x80)
            at = take_number(target, at, end);
        if (at < stop)
            at = take_number(target, at, end);
    }
}

void index_list_mark(struct slice list, uint8_t *bytes, uint32_t count)
{
    struct target target = {.is_marked = true, .bytes = bytes, .count = count};
    assert(count > 0);
    if (list.size > 0)
        visit_all(&target, list);
}

uint8_t index_list_or(struct slice list, const uint8_t *bytes, uint32_t count)
{
    struct target target = {.bytes = (uint8_t *)bytes, .count = count};
    assert(count > 0);
    if (list.size > 0)
        visit_all(&target, list);
    return target.all;
}
