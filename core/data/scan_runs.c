/*
 * Why this is fast: the code for each kind of message tries its fields in ascending order, as most
 * encoders write them, so branches are predicted well; it repeats this as long as it accepts a
 * field, because the Collector writes fields in descending order. Numbers and texts are checked
 * many bytes at a time, without a branch for each. Fields are accepted without a check that they
 * are inside the message: one check at the end shows whether the end was hit exactly. This may read
 * past a message, so messages that end in the last ROOM bytes are left to the slow path.
 */
#include "core/data/scan_runs.h"

#include "core/data/utf8.h"
#include "core/data/wire.h"

#include <endian.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define ROOM 160 /* more than a text of 127 bytes with its header */
#define TAG(number, type) ((number) << 3 | (type))

/* ---- bytes ---- */

/* ---- return the uppermost bits of 16 bytes, and of 64 ---- */

static inline uint64_t upper_16(const uint8_t *p)
{
#if defined(__SSE2__)
    return (unsigned)_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)p));
#else
    uint64_t bits = 0;

    for (unsigned i = 0; i < 16; i++)
        bits |= (uint64_t)(p[i] >> 7) << i;
    return bits;
#endif
}

static inline uint64_t upper_64(const uint8_t *p)
{
    return upper_16(p) | upper_16(p + 16) << 16 | upper_16(p + 32) << 32 | upper_16(p + 48) << 48;
}

/* Whether none of the first `size` bits is set; size is at most 63. */
static inline bool are_none_upper(uint64_t upper, size_t size)
{
    return upper << 1 << (63 - size) == 0;
}

/* Whether the text is ASCII. Reads up to 64 bytes. */
static inline bool is_ascii(const uint8_t *p, size_t size)
{
    return size < 64 ? are_none_upper(upper_64(p), size) : utf8_is_ascii(p, size);
}

/* The take_ functions accept one field with a given tag, and return the address after it. They
 * return `p` if the tag is another, or the message ends; and an address after `end` if the field is
 * not plain, after which nothing else is accepted. */

static inline bool stands_at(const uint8_t *p, const uint8_t *end, unsigned tag)
{
    return p < end && *p == tag;
}

static inline const uint8_t *not_plain(const uint8_t *end)
{
    return end + 1;
}

static inline const uint8_t *take_number(const uint8_t *p, const uint8_t *end, unsigned tag)
{
    uint64_t word;

    if (!stands_at(p, end, tag))
        return p;
    memcpy(&word, p + 1, sizeof word);
    word = ~le64toh(word) & UINT64_C(0x8080808080808080);
    return word != 0 ? p + 2 + __builtin_ctzll(word) / 8 : not_plain(end);
}

static inline const uint8_t *take_fixed64(const uint8_t *p, const uint8_t *end, unsigned tag)
{
    return stands_at(p, end, tag) ? p + 1 + 8 : p;
}

static inline const uint8_t *take_fixed32(const uint8_t *p, const uint8_t *end, unsigned tag)
{
    return stands_at(p, end, tag) ? p + 1 + 4 : p;
}

static inline const uint8_t *take_id(const uint8_t *p, const uint8_t *end, unsigned tag,
                                     unsigned size)
{
    if (!stands_at(p, end, tag))
        return p;
    if (p[1] == size)
        return p + 2 + size;
    return p[1] == 0 ? p + 2 : not_plain(end);
}

/* Returns the address of the payload, whose length has one byte or two and is complete. */
static inline const uint8_t *open_payload(const uint8_t *p, const uint8_t *end, size_t *size)
{
    *size = *++p;
    p++;
    if (*size >= 0x80) {
        *size = (*size & 0x7f) | (size_t)*p << 7;
        if (*p++ >= 0x80)
            return not_plain(end);
    }
    return p <= end && *size <= (size_t)(end - p) ? p : not_plain(end);
}

static const uint8_t *take_any_text(const uint8_t *p, const uint8_t *end)
{
    size_t size;

    p = open_payload(p, end, &size);
    return p <= end && utf8_is_valid(slice_of(p, size)) ? p + size : not_plain(end);
}

static inline const uint8_t *take_text(const uint8_t *p, const uint8_t *end, unsigned tag)
{
    if (!stands_at(p, end, tag))
        return p;
    return p[1] < 0x80 && is_ascii(p + 2, p[1]) ? p + 2 + p[1] : take_any_text(p, end);
}

/* Takes an index of up to five bytes. */
static inline const uint8_t *take_index(struct scan_found *found, const uint8_t *p,
                                        const uint8_t *end, unsigned tag, unsigned table)
{
    uint64_t value = 0;
    unsigned shift = 0;

    if (!stands_at(p, end, tag))
        return p;
    p++;
    if ((p[0] & p[1]) < 0x80) { /* one byte or two, without a branch */
        unsigned two = p[0] >> 7;
        value = (uint64_t)(p[0] & 0x7f) | (uint64_t)(p[1] & (0u - two)) << 7;
        p += two;
    } else {
        for (; *p >= 0x80 && shift < 28; shift += 7)
            value |= (uint64_t)(*p++ & 0x7f) << shift;
        if (*p >= 0x80)
            return not_plain(end);
        value |= (uint64_t)*p << shift;
    }
    scan_need(found, table, value + 1);
    return p + 1;
}

static inline const uint8_t *take_indices(struct scan_found *found, const uint8_t *p,
                                          const uint8_t *end, unsigned tag, unsigned table)
{
    uint32_t needed;
    size_t size;

    if (!stands_at(p, end, tag))
        return p;
    p = open_payload(p, end, &size);
    if (p > end || size == 0)
        return p;
    needed = size == 1 && *p < 0x80 ? *p + 1u : scan_needed_by(slice_of(p, size));
    scan_need(found, table, needed);
    return needed > 0 ? p + size : not_plain(end);
}

bool scan_count_numbers(struct slice packed, size_t *count)
{
    size_t length = 0;

    for (size_t i = 0; i < packed.size; i++) {
        if (++length > SCAN_NUMBER_SIZE_MAX)
            return false;
        if (packed.data[i] < 0x80) {
            length = 0;
            ++*count;
        }
    }
    return length == 0;
}

/* Takes packed numbers, and adds their number to *count. */
static inline const uint8_t *take_numbers(size_t *count, const uint8_t *p, const uint8_t *end,
                                          unsigned tag)
{
    uint64_t word;
    size_t size;

    if (!stands_at(p, end, tag))
        return p;
    p = open_payload(p, end, &size);
    if (p > end || size == 0)
        return p;
    if (size > sizeof word)
        return scan_count_numbers(slice_of(p, size), count) ? p + size : not_plain(end);
    /* Eight bytes cannot contain a number that is too long; each number ends with a byte without
     * the uppermost bit. */
    memcpy(&word, p, sizeof word);
    word = ~le64toh(word) & UINT64_C(0x8080808080808080) >> (64 - 8 * size);
    *count += (word >> 7) * UINT64_C(0x0101010101010101) >> 56;
    return p[size - 1] < 0x80 ? p + size : not_plain(end);
}

static inline const uint8_t *take_fixed64s(size_t *count, const uint8_t *p, const uint8_t *end,
                                           unsigned tag)
{
    size_t size;

    if (!stands_at(p, end, tag))
        return p;
    p = open_payload(p, end, &size);
    if (p > end)
        return p;
    *count += size / 8;
    return size % 8 == 0 ? p + size : not_plain(end);
}

/* ---- lists of indices ---- */

#if defined(__SSE2__)
/* A lane contains two consecutive bytes. They are an index, or begin with an index of one byte, or
 * begin with the second byte of an index, which is less than the index. So the highest of all pairs
 * gives the highest index, wherever indices begin. */
struct lanes {
    __m128i highest;
    __m128i broken; /* uppermost bit of a lane: an index has more than two bytes */
};

static inline void look_at_lanes(struct lanes *lanes, const uint8_t *p)
{
    __m128i pairs = _mm_loadu_si128((const __m128i *)p);
    __m128i goes_on = _mm_srai_epi16(_mm_slli_epi16(pairs, 8), 15);
    __m128i low = _mm_and_si128(pairs, _mm_set1_epi16(0x7f));
    __m128i high = _mm_and_si128(_mm_srli_epi16(pairs, 1), _mm_set1_epi16(0x3f80));

    lanes->broken = _mm_or_si128(lanes->broken, _mm_and_si128(goes_on, pairs));
    lanes->highest = _mm_max_epi16(lanes->highest, _mm_or_si128(low, _mm_and_si128(goes_on, high)));
}

static inline uint32_t highest_lane(__m128i lanes)
{
    lanes = _mm_max_epi16(lanes, _mm_srli_si128(lanes, 8));
    lanes = _mm_max_epi16(lanes, _mm_srli_si128(lanes, 4));
    lanes = _mm_max_epi16(lanes, _mm_srli_si128(lanes, 2));
    return (uint32_t)_mm_extract_epi16(lanes, 0);
}

enum { LONG = 17 }; /* bytes: 16 pairs */

static inline uint32_t needed_by_long(const uint8_t *p, size_t size)
{
    struct lanes lanes = {_mm_setzero_si128(), _mm_setzero_si128()};
    const uint8_t *last = p + size - LONG;
    uint32_t highest;

    if (p[size - 1] >= 0x80)
        return 0;
    for (; p < last; p += 16) {
        look_at_lanes(&lanes, p);
        look_at_lanes(&lanes, p + 1);
    }
    look_at_lanes(&lanes, last); /* reads some bytes twice, which does no harm */
    look_at_lanes(&lanes, last + 1);
    if (_mm_movemask_epi8(lanes.broken) & 0xaaaa)
        return 0;
    highest = highest_lane(lanes.highest);
    if (highest < last[LONG - 1]) /* no pair begins with the last byte, which may be an index */
        highest = last[LONG - 1];
    return highest + 1;
}
#endif

static inline uint32_t needed_by_short(const uint8_t *p, size_t size)
{
    const uint8_t *end = p + size;
    uint32_t highest = 0;
    uint32_t value;

    while (p < end) {
        value = *p++;
        if (value >= 0x80) {
            if (p == end || *p >= 0x80)
                return 0;
            value = (value & 0x7f) | (uint32_t)*p++ << 7;
        }
        highest = value > highest ? value : highest;
    }
    return highest + 1;
}

uint32_t scan_needed_by(struct slice indices)
{
#if defined(__SSE2__)
    if (indices.size >= LONG)
        return needed_by_long(indices.data, indices.size);
#endif
    return needed_by_short(indices.data, indices.size);
}

/* ---- attributes ---- */

/* The first bytes of a small value: its tag and size, the tag of its content, and for a text its
 * size. As a little-endian number, without the sizes. */
#define VALUE_HEADER(tag) ((uint32_t)((tag) << 16 | TAG(KEY_VALUE_VALUE, WIRE_BYTES)))

static inline uint32_t text_header(uint32_t value_size)
{
    /* One multiplication puts the size into both places; the text is two bytes smaller. */
    return VALUE_HEADER(TAG(ANY_VALUE_STRING, WIRE_BYTES)) + value_size * 0x01000100u - 0x02000000u;
}

static bool is_number(const uint8_t *p, size_t size)
{
    size_t i = 0;

    while (i + 1 < size && p[i] >= 0x80)
        i++;
    return size > 0 && size <= SCAN_NUMBER_SIZE_MAX && i + 1 == size && p[i] < 0x80;
}

/* `upper`: the uppermost bits of all bytes of the attribute; `at`: index of the first byte of the
 * number. All bytes of a varint but the last have the bit. */
static inline __attribute__((always_inline)) bool
is_small_number(uint32_t header, size_t value_size, uint64_t upper, size_t at)
{
    size_t size = value_size - 1;

    switch ((header & 0xffffff) - (uint32_t)value_size * 0x100u) {
    case VALUE_HEADER(TAG(ANY_VALUE_BOOL, WIRE_VARINT)):
    case VALUE_HEADER(TAG(ANY_VALUE_INT, WIRE_VARINT)):
        return size - 1 < SCAN_NUMBER_SIZE_MAX &&
               upper == (UINT64_C(1) << (at + size - 1)) - (UINT64_C(1) << at);
    case VALUE_HEADER(TAG(ANY_VALUE_DOUBLE, WIRE_FIXED64)):
        return size == 8 && (upper & ~(UINT64_C(0xff) << at)) == 0;
    default:
        return false;
    }
}

/* Returns the uppermost bits of the first `size` bytes, which are at most 63. */
static inline uint64_t upper_of(uint64_t upper, size_t size)
{
    return upper & ((UINT64_C(1) << size) - 1);
}

/* Whether there is a plain KeyValue of 6 to 63 bytes at `p` whose value follows the key; may read
 * further. Always inlined, as most of the scan's time is spent here. */
static inline __attribute__((always_inline)) bool is_small_attribute(const uint8_t *p, size_t size)
{
    uint64_t upper = upper_64(p);
    size_t key_size = p[1];
    size_t value_size = size - 4 - key_size;
    uint32_t header;

    if (p[0] != TAG(KEY_VALUE_KEY, WIRE_BYTES) || key_size > size - 6)
        return false;
    memcpy(&header, p + 2 + key_size, sizeof header);
    header = le32toh(header);
    if (header == text_header((uint32_t)value_size))
        return upper << (64 - size) == 0;
    return is_small_number(header, value_size, upper_of(upper, size), 2 + key_size + 3);
}

/* The same for a value that precedes the key, as the Collector writes it. */
static bool is_small_attribute_reversed(const uint8_t *p, size_t size)
{
    uint64_t upper = upper_64(p);
    size_t value_size = p[1];
    size_t key_size = size - 4 - value_size;
    const uint8_t *key = p + 2 + value_size;
    uint32_t header;

    if (value_size < 2 || value_size > size - 4 || key[0] != TAG(KEY_VALUE_KEY, WIRE_BYTES) ||
        key[1] != key_size)
        return false;
    memcpy(&header, p, sizeof header);
    header = le32toh(header);
    if (header == text_header((uint32_t)value_size))
        return upper << (64 - size) == 0;
    return is_small_number(header, value_size, upper_of(upper, size), 3);
}

static bool is_plain_value(const uint8_t *p, size_t size)
{
    if (size < 2)
        return false;
    switch (p[0]) {
    case TAG(ANY_VALUE_STRING, WIRE_BYTES):
        return take_any_text(p, p + size) == p + size;
    case TAG(ANY_VALUE_BOOL, WIRE_VARINT):
    case TAG(ANY_VALUE_INT, WIRE_VARINT):
        return is_number(p + 1, size - 1);
    case TAG(ANY_VALUE_DOUBLE, WIRE_FIXED64):
        return size == 1 + 8;
    default:
        return false;
    }
}

/* Takes a value, which may occur once: *elements shows whether it has occurred. */
static inline const uint8_t *take_value(uint32_t *elements, const uint8_t *p, const uint8_t *end,
                                        unsigned tag)
{
    const uint8_t *value;
    size_t size;

    if (!stands_at(p, end, tag))
        return p;
    value = open_payload(p, end, &size);
    if (*elements > 0 || value > end || !is_plain_value(value, size))
        return not_plain(end);
    ++*elements;
    return value + size;
}

bool scan_is_plain_attribute(const uint8_t *p, size_t size)
{
    const uint8_t *value;
    size_t key_size;
    size_t value_size;

    if (size < 6 || p[0] != TAG(KEY_VALUE_KEY, WIRE_BYTES) || p[1] >= 0x80)
        return false;
    key_size = p[1];
    if (key_size + 6 > size || p[2 + key_size] != TAG(KEY_VALUE_VALUE, WIRE_BYTES))
        return false;
    value_size = p[3 + key_size];
    if (value_size >= 0x80 || key_size + value_size + 4 != size || !utf8_is_ascii(p + 2, key_size))
        return false;
    value = p + 4 + key_size;
    if (value[0] == TAG(ANY_VALUE_STRING, WIRE_BYTES))
        return value[1] == value_size - 2 && utf8_is_ascii(value + 2, value_size - 2);
    return is_plain_value(value, value_size);
}

/* Whether there is a plain attribute of any size. */
static bool is_other_attribute(const uint8_t *p, const uint8_t *end)
{
    uint32_t elements = 0;
    const uint8_t *start;

    do {
        start = p;
        p = take_text(p, end, TAG(KEY_VALUE_KEY, WIRE_BYTES));
        p = take_value(&elements, p, end, TAG(KEY_VALUE_VALUE, WIRE_BYTES));
    } while (p != start && p < end);
    return p == end && elements == 1;
}

/* Takes attributes as long as they are plain. */
static __attribute__((noinline)) const uint8_t *
take_attributes(uint32_t *elements, const uint8_t *p, const uint8_t *end, unsigned tag)
{
    while (stands_at(p, end, tag)) {
        const uint8_t *key_value = p + 2;
        size_t size = p[1];

        if (size - 6 >= 64 - 6 || (!is_small_attribute(key_value, size) &&
                                   !is_small_attribute_reversed(key_value, size))) {
            key_value = open_payload(p, end, &size);
            if (key_value > end || !is_other_attribute(key_value, key_value + size))
                break;
        }
        if (key_value + size > end)
            break;
        p = key_value + size;
        *elements += 2;
    }
    return p;
}

/* ---- messages: each function adds the elements inside the message ---- */

static bool is_plain_status(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *start;

    do {
        start = p;
        p = take_text(p, end, TAG(STATUS_MESSAGE, WIRE_BYTES));
        p = take_number(p, end, TAG(STATUS_CODE, WIRE_VARINT));
    } while (p != start && p < end);
    return p == end;
}

static bool is_plain_event(uint32_t *elements, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *start;

    do {
        start = p;
        p = take_fixed64(p, end, TAG(EVENT_TIME_UNIX_NANO, WIRE_FIXED64));
        p = take_text(p, end, TAG(EVENT_NAME, WIRE_BYTES));
        p = take_attributes(elements, p, end, TAG(EVENT_ATTRIBUTES, WIRE_BYTES));
        p = take_number(p, end, TAG(EVENT_DROPPED_ATTRIBUTES_COUNT, WIRE_VARINT));
    } while (p != start && p < end);
    return p == end;
}

static inline const uint8_t *take_events(uint32_t *elements, const uint8_t *p, const uint8_t *end)
{
    while (stands_at(p, end, TAG(SPAN_EVENTS, WIRE_BYTES))) {
        size_t size;
        const uint8_t *event = open_payload(p, end, &size);

        if (event > end || !is_plain_event(elements, event, event + size))
            return not_plain(end);
        ++*elements;
        p = event + size;
    }
    return p;
}

/* Takes a Status, of which there may be one. */
static inline const uint8_t *take_status(uint32_t *statuses, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *status;
    size_t size;

    if (!stands_at(p, end, TAG(SPAN_STATUS, WIRE_BYTES)))
        return p;
    status = open_payload(p, end, &size);
    if (*statuses > 0 || status > end || !is_plain_status(status, status + size))
        return not_plain(end);
    ++*statuses;
    return status + size;
}

static inline const uint8_t *take_flags(const uint8_t *p, const uint8_t *end)
{
    enum { FLAGS = TAG(SPAN_FLAGS, WIRE_FIXED32) }; /* the tag has two bytes */

    return stands_at(p, end, (FLAGS & 0x7f) | 0x80) && p[1] == FLAGS >> 7 ? p + 2 + 4 : p;
}

static inline bool is_plain_span(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    uint32_t elements = 0;
    uint32_t statuses = 0;
    const uint8_t *start;

    do {
        start = p;
        p = take_id(p, end, TAG(SPAN_TRACE_ID, WIRE_BYTES), TRACE_ID_SIZE);
        p = take_id(p, end, TAG(SPAN_SPAN_ID, WIRE_BYTES), SPAN_ID_SIZE);
        p = take_text(p, end, TAG(SPAN_TRACE_STATE, WIRE_BYTES));
        p = take_id(p, end, TAG(SPAN_PARENT_SPAN_ID, WIRE_BYTES), SPAN_ID_SIZE);
        p = take_text(p, end, TAG(SPAN_NAME, WIRE_BYTES));
        p = take_number(p, end, TAG(SPAN_KIND, WIRE_VARINT));
        p = take_fixed64(p, end, TAG(SPAN_START_TIME_UNIX_NANO, WIRE_FIXED64));
        p = take_fixed64(p, end, TAG(SPAN_END_TIME_UNIX_NANO, WIRE_FIXED64));
        p = take_attributes(&elements, p, end, TAG(SPAN_ATTRIBUTES, WIRE_BYTES));
        p = take_number(p, end, TAG(SPAN_DROPPED_ATTRIBUTES_COUNT, WIRE_VARINT));
        p = take_events(&elements, p, end);
        p = take_number(p, end, TAG(SPAN_DROPPED_EVENTS_COUNT, WIRE_VARINT));
        p = take_number(p, end, TAG(SPAN_DROPPED_LINKS_COUNT, WIRE_VARINT));
        p = take_status(&statuses, p, end);
        p = take_flags(p, end);
    } while (p != start && p < end);
    if (p != end)
        return false;
    found->elements += elements + statuses;
    return true;
}

static bool is_plain_exemplar(uint32_t *elements, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *start;

    do {
        start = p;
        p = take_fixed64(p, end, TAG(EXEMPLAR_TIME_UNIX_NANO, WIRE_FIXED64));
        p = take_fixed64(p, end, TAG(EXEMPLAR_AS_DOUBLE, WIRE_FIXED64));
        p = take_id(p, end, TAG(EXEMPLAR_SPAN_ID, WIRE_BYTES), SPAN_ID_SIZE);
        p = take_id(p, end, TAG(EXEMPLAR_TRACE_ID, WIRE_BYTES), TRACE_ID_SIZE);
        p = take_fixed64(p, end, TAG(EXEMPLAR_AS_INT, WIRE_FIXED64));
        p = take_attributes(elements, p, end, TAG(EXEMPLAR_FILTERED_ATTRIBUTES, WIRE_BYTES));
    } while (p != start && p < end);
    return p == end;
}

static inline const uint8_t *take_exemplars(uint32_t *elements, const uint8_t *p,
                                            const uint8_t *end, unsigned tag)
{
    while (stands_at(p, end, tag)) {
        size_t size;
        const uint8_t *exemplar = open_payload(p, end, &size);

        if (exemplar > end || !is_plain_exemplar(elements, exemplar, exemplar + size))
            return not_plain(end);
        ++*elements;
        p = exemplar + size;
    }
    return p;
}

static inline bool is_plain_number_point(struct scan_found *found, const uint8_t *p,
                                         const uint8_t *end)
{
    uint32_t elements = 0;
    const uint8_t *start;

    do {
        start = p;
        p = take_fixed64(p, end, TAG(NUMBER_POINT_START_TIME_UNIX_NANO, WIRE_FIXED64));
        p = take_fixed64(p, end, TAG(NUMBER_POINT_TIME_UNIX_NANO, WIRE_FIXED64));
        p = take_fixed64(p, end, TAG(NUMBER_POINT_AS_DOUBLE, WIRE_FIXED64));
        p = take_exemplars(&elements, p, end, TAG(NUMBER_POINT_EXEMPLARS, WIRE_BYTES));
        p = take_fixed64(p, end, TAG(NUMBER_POINT_AS_INT, WIRE_FIXED64));
        p = take_exemplars(&elements, p, end, TAG(NUMBER_POINT_EXEMPLARS, WIRE_BYTES));
        p = take_attributes(&elements, p, end, TAG(NUMBER_POINT_ATTRIBUTES, WIRE_BYTES));
        p = take_number(p, end, TAG(NUMBER_POINT_FLAGS, WIRE_VARINT));
    } while (p != start && p < end);
    if (p != end)
        return false;
    found->elements += elements;
    return true;
}

/* Java's SDK writes min and max after the sum. */
static inline bool is_plain_histogram_point(struct scan_found *found, const uint8_t *p,
                                            const uint8_t *end)
{
    uint32_t elements = 0;
    size_t numbers = 0;
    const uint8_t *start;

    do {
        start = p;
        p = take_fixed64(p, end, TAG(HISTOGRAM_POINT_START_TIME_UNIX_NANO, WIRE_FIXED64));
        p = take_fixed64(p, end, TAG(HISTOGRAM_POINT_TIME_UNIX_NANO, WIRE_FIXED64));
        p = take_fixed64(p, end, TAG(HISTOGRAM_POINT_COUNT, WIRE_FIXED64));
        p = take_fixed64(p, end, TAG(HISTOGRAM_POINT_SUM, WIRE_FIXED64));
        p = take_fixed64(p, end, TAG(HISTOGRAM_POINT_MIN, WIRE_FIXED64));
        p = take_fixed64(p, end, TAG(HISTOGRAM_POINT_MAX, WIRE_FIXED64));
        p = take_fixed64s(&numbers, p, end, TAG(HISTOGRAM_POINT_BUCKET_COUNTS, WIRE_BYTES));
        p = take_fixed64s(&numbers, p, end, TAG(HISTOGRAM_POINT_EXPLICIT_BOUNDS, WIRE_BYTES));
        p = take_exemplars(&elements, p, end, TAG(HISTOGRAM_POINT_EXEMPLARS, WIRE_BYTES));
        p = take_attributes(&elements, p, end, TAG(HISTOGRAM_POINT_ATTRIBUTES, WIRE_BYTES));
        p = take_number(p, end, TAG(HISTOGRAM_POINT_FLAGS, WIRE_VARINT));
        p = take_fixed64(p, end, TAG(HISTOGRAM_POINT_MIN, WIRE_FIXED64));
        p = take_fixed64(p, end, TAG(HISTOGRAM_POINT_MAX, WIRE_FIXED64));
    } while (p != start && p < end);
    if (p != end)
        return false;
    found->elements += elements;
    return true;
}

/* Whether the body at `p` is a text of at most 125 bytes in ASCII. */
static inline bool is_small_body(const uint8_t *p)
{
    size_t text_size = p[3];

    return text_size < 0x7e && p[1] == text_size + 2 && p[2] == TAG(ANY_VALUE_STRING, WIRE_BYTES) &&
           is_ascii(p + 4, text_size);
}

/* Takes the body of a log record, of which there may be one. */
static inline const uint8_t *take_body(uint32_t *bodies, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *body;
    size_t size;

    if (!stands_at(p, end, TAG(LOG_RECORD_BODY, WIRE_BYTES)))
        return p;
    if (++*bodies > 1)
        return not_plain(end);
    if (is_small_body(p))
        return p + 2 + p[1];
    body = open_payload(p, end, &size);
    return body <= end && is_plain_value(body, size) ? body + size : not_plain(end);
}

/* Java's SDK writes the observed time after the time. */
static inline bool is_plain_log_record(struct scan_found *found, const uint8_t *p,
                                       const uint8_t *end)
{
    uint32_t elements = 0;
    uint32_t bodies = 0;
    const uint8_t *start;

    do {
        start = p;
        p = take_fixed64(p, end, TAG(LOG_RECORD_TIME_UNIX_NANO, WIRE_FIXED64));
        p = take_fixed64(p, end, TAG(LOG_RECORD_OBSERVED_TIME_UNIX_NANO, WIRE_FIXED64));
        p = take_number(p, end, TAG(LOG_RECORD_SEVERITY_NUMBER, WIRE_VARINT));
        p = take_text(p, end, TAG(LOG_RECORD_SEVERITY_TEXT, WIRE_BYTES));
        p = take_body(&bodies, p, end);
        p = take_attributes(&elements, p, end, TAG(LOG_RECORD_ATTRIBUTES, WIRE_BYTES));
        p = take_number(p, end, TAG(LOG_RECORD_DROPPED_ATTRIBUTES_COUNT, WIRE_VARINT));
        p = take_fixed32(p, end, TAG(LOG_RECORD_FLAGS, WIRE_FIXED32));
        p = take_id(p, end, TAG(LOG_RECORD_TRACE_ID, WIRE_BYTES), TRACE_ID_SIZE);
        p = take_id(p, end, TAG(LOG_RECORD_SPAN_ID, WIRE_BYTES), SPAN_ID_SIZE);
        p = take_fixed64(p, end, TAG(LOG_RECORD_OBSERVED_TIME_UNIX_NANO, WIRE_FIXED64));
        p = take_text(p, end, TAG(LOG_RECORD_EVENT_NAME, WIRE_BYTES));
    } while (p != start && p < end);
    if (p != end)
        return false;
    found->elements += elements + bodies;
    return true;
}

static inline bool is_plain_sample(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    size_t values = 0;
    size_t timestamps = 0;
    const uint8_t *start;

    do {
        start = p;
        p = take_index(found, p, end, TAG(SAMPLE_STACK_INDEX, WIRE_VARINT), DICTIONARY_STACK_TABLE);
        p = take_indices(found, p, end, TAG(SAMPLE_ATTRIBUTE_INDICES, WIRE_BYTES),
                         DICTIONARY_ATTRIBUTE_TABLE);
        p = take_index(found, p, end, TAG(SAMPLE_LINK_INDEX, WIRE_VARINT), DICTIONARY_LINK_TABLE);
        p = take_numbers(&values, p, end, TAG(SAMPLE_VALUES, WIRE_BYTES));
        p = take_fixed64s(&timestamps, p, end, TAG(SAMPLE_TIMESTAMPS_UNIX_NANO, WIRE_BYTES));
    } while (p != start && p < end);
    return p == end && values + timestamps > 0 &&
           (values == 0 || timestamps == 0 || values == timestamps);
}

static inline bool is_plain_line(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *start;

    do {
        start = p;
        p = take_index(found, p, end, TAG(LINE_FUNCTION_INDEX, WIRE_VARINT),
                       DICTIONARY_FUNCTION_TABLE);
        p = take_number(p, end, TAG(LINE_LINE, WIRE_VARINT));
        p = take_number(p, end, TAG(LINE_COLUMN, WIRE_VARINT));
    } while (p != start && p < end);
    return p == end;
}

static inline const uint8_t *take_lines(struct scan_found *found, uint32_t *lines, const uint8_t *p,
                                        const uint8_t *end)
{
    while (stands_at(p, end, TAG(LOCATION_LINES, WIRE_BYTES))) {
        size_t size;
        const uint8_t *line = open_payload(p, end, &size);

        if (line > end || !is_plain_line(found, line, line + size))
            return not_plain(end);
        ++*lines;
        p = line + size;
    }
    return p;
}

static inline bool is_plain_location(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    uint32_t lines = 0;
    const uint8_t *start;

    do {
        start = p;
        p = take_index(found, p, end, TAG(LOCATION_MAPPING_INDEX, WIRE_VARINT),
                       DICTIONARY_MAPPING_TABLE);
        p = take_number(p, end, TAG(LOCATION_ADDRESS, WIRE_VARINT));
        p = take_lines(found, &lines, p, end);
        p = take_indices(found, p, end, TAG(LOCATION_ATTRIBUTE_INDICES, WIRE_BYTES),
                         DICTIONARY_ATTRIBUTE_TABLE);
    } while (p != start && p < end);
    if (p != end)
        return false;
    found->elements += lines;
    found->counts[SCAN_COUNT_LINES] += lines;
    return true;
}

static inline bool is_plain_function(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *start;

    do {
        start = p;
        p = take_index(found, p, end, TAG(FUNCTION_NAME_STRINDEX, WIRE_VARINT),
                       DICTIONARY_STRING_TABLE);
        p = take_index(found, p, end, TAG(FUNCTION_SYSTEM_NAME_STRINDEX, WIRE_VARINT),
                       DICTIONARY_STRING_TABLE);
        p = take_index(found, p, end, TAG(FUNCTION_FILENAME_STRINDEX, WIRE_VARINT),
                       DICTIONARY_STRING_TABLE);
        p = take_number(p, end, TAG(FUNCTION_START_LINE, WIRE_VARINT));
    } while (p != start && p < end);
    return p == end;
}

static inline bool is_plain_link(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *start;

    (void)found;
    do {
        start = p;
        p = take_id(p, end, TAG(LINK_TRACE_ID, WIRE_BYTES), TRACE_ID_SIZE);
        p = take_id(p, end, TAG(LINK_SPAN_ID, WIRE_BYTES), SPAN_ID_SIZE);
    } while (p != start && p < end);
    return p == end;
}

static inline bool is_plain_string(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    size_t size = (size_t)(end - p);

    (void)found;
    return is_ascii(p, size) || utf8_is_valid(slice_of(p, size));
}

/* Whether it is a plain entry of the attribute_table. */
static inline bool is_plain_entry(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    uint32_t elements = 0;
    const uint8_t *start;

    do {
        start = p;
        p = take_index(found, p, end, TAG(KEY_VALUE_AND_UNIT_KEY_STRINDEX, WIRE_VARINT),
                       DICTIONARY_STRING_TABLE);
        p = take_value(&elements, p, end, TAG(KEY_VALUE_AND_UNIT_VALUE, WIRE_BYTES));
        p = take_index(found, p, end, TAG(KEY_VALUE_AND_UNIT_UNIT_STRINDEX, WIRE_VARINT),
                       DICTIONARY_STRING_TABLE);
    } while (p != start && p < end);
    if (p != end)
        return false;
    found->elements += elements;
    return true;
}

static inline bool is_plain_stack(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    scan_note_stack(found, (size_t)(end - p));
    p = take_indices(found, p, end, TAG(STACK_LOCATION_INDICES, WIRE_BYTES),
                     DICTIONARY_LOCATION_TABLE);
    return p == end;
}

/* ---- the run ---- */

typedef bool is_plain_message(struct scan_found *, const uint8_t *p, const uint8_t *end);

/* Takes a run of one kind of message. Inlined for each kind, with the function for the message
 * inlined into it. */
static inline __attribute__((always_inline)) const uint8_t *
take_messages(struct scan_found *found, const uint8_t *p, const uint8_t *end,
              is_plain_message *is_plain, unsigned counter)
{
    unsigned tag = *p;
    uint32_t count = 0;

    for (; stands_at(p, end, tag); count++) {
        size_t size;
        const uint8_t *message = open_payload(p, end, &size);

        if (message > end || !is_plain(found, message, message + size))
            break;
        p = message + size;
    }
    found->elements += count;
    found->counts[counter] += count;
    return p;
}

/* ---- metrics: messages that contain runs ---- */

static inline __attribute__((always_inline)) bool is_plain_data(struct scan_found *found,
                                                                const uint8_t *p,
                                                                const uint8_t *end,
                                                                is_plain_message *is_plain_point)
{
    const uint8_t *start;

    do {
        start = p;
        if (stands_at(p, end, TAG(METRIC_DATA_DATA_POINTS, WIRE_BYTES)))
            p = take_messages(found, p, end, is_plain_point, SCAN_COUNT_ITEMS);
        p = take_number(p, end, TAG(METRIC_DATA_AGGREGATION_TEMPORALITY, WIRE_VARINT));
        p = take_number(p, end, TAG(SUM_IS_MONOTONIC, WIRE_VARINT));
    } while (p != start && p < end);
    return p == end;
}

/* Also takes a sum's fields in a gauge, where the slow path takes them as unknown fields. */
static bool is_plain_gauge_or_sum(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    return is_plain_data(found, p, end, is_plain_number_point);
}

static bool is_plain_histogram(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    return is_plain_data(found, p, end, is_plain_histogram_point);
}

/* Takes the data of a metric, of which there may be one. */
static inline const uint8_t *take_data(struct scan_found *found, uint32_t *data_count,
                                       const uint8_t *p, const uint8_t *end, unsigned number,
                                       is_plain_message *is_plain)
{
    const uint8_t *data;
    size_t size;

    if (!stands_at(p, end, TAG(number, WIRE_BYTES)))
        return p;
    data = open_payload(p, end, &size);
    if (++*data_count > 1 || data > end || !is_plain(found, data, data + size))
        return not_plain(end);
    return data + size;
}

/* A metric that is not plain leaves the counts as they were, and its points are read again. */
static inline bool is_plain_metric(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    uint32_t elements_before = found->elements;
    uint32_t items_before = found->counts[SCAN_COUNT_ITEMS];
    uint32_t data_count = 0;
    const uint8_t *start;

    do {
        start = p;
        p = take_text(p, end, TAG(METRIC_NAME, WIRE_BYTES));
        p = take_text(p, end, TAG(METRIC_DESCRIPTION, WIRE_BYTES));
        p = take_text(p, end, TAG(METRIC_UNIT, WIRE_BYTES));
        p = take_data(found, &data_count, p, end, METRIC_GAUGE, is_plain_gauge_or_sum);
        p = take_data(found, &data_count, p, end, METRIC_SUM, is_plain_gauge_or_sum);
        p = take_data(found, &data_count, p, end, METRIC_HISTOGRAM, is_plain_histogram);
    } while (p != start && p < end);
    found->elements = p == end ? found->elements + data_count : elements_before;
    if (p != end)
        found->counts[SCAN_COUNT_ITEMS] = items_before;
    return p == end;
}

/* The actions that occur only in relayed signals. Not inlined, because scan_run would become so
 * large that the compiler would no longer inline the functions for spans and samples. */
static __attribute__((noinline)) const uint8_t *take_relayed(enum scan_action action,
                                                             struct scan_found *found,
                                                             const uint8_t *p, const uint8_t *end)
{
    switch (action) {
    case SCAN_NUMBER_POINT:
        return take_messages(found, p, end, is_plain_number_point, SCAN_COUNT_ITEMS);
    case SCAN_HISTOGRAM_POINT:
        return take_messages(found, p, end, is_plain_histogram_point, SCAN_COUNT_ITEMS);
    case SCAN_METRIC:
        return take_messages(found, p, end, is_plain_metric, SCAN_COUNT_OTHER);
    case SCAN_LOG_RECORD:
        return take_messages(found, p, end, is_plain_log_record, SCAN_COUNT_ITEMS);
    default:
        return p;
    }
}

const uint8_t *scan_run(enum scan_action action, struct scan_found *found, const uint8_t *p,
                        const uint8_t *end, const uint8_t *request_end)
{
    if (request_end - p <= ROOM || *p >= 0x80)
        return p;
    if (request_end - end < ROOM)
        end = request_end - ROOM;
    switch (action) {
    case SCAN_ATTRIBUTE:
        return take_attributes(&found->elements, p, end, *p);
    case SCAN_SPAN:
        return take_messages(found, p, end, is_plain_span, SCAN_COUNT_ITEMS);
    case SCAN_SAMPLE:
        return take_messages(found, p, end, is_plain_sample, SCAN_COUNT_ITEMS);
    case SCAN_LOCATION:
        return take_messages(found, p, end, is_plain_location,
                             SCAN_COUNT_ENTRIES + DICTIONARY_LOCATION_TABLE);
    case SCAN_FUNCTION:
        return take_messages(found, p, end, is_plain_function,
                             SCAN_COUNT_ENTRIES + DICTIONARY_FUNCTION_TABLE);
    case SCAN_LINK:
        return take_messages(found, p, end, is_plain_link,
                             SCAN_COUNT_ENTRIES + DICTIONARY_LINK_TABLE);
    case SCAN_ENTRY_STRING:
        return take_messages(found, p, end, is_plain_string,
                             SCAN_COUNT_ENTRIES + DICTIONARY_STRING_TABLE);
    case SCAN_ATTRIBUTE_ENTRY:
        return take_messages(found, p, end, is_plain_entry,
                             SCAN_COUNT_ENTRIES + DICTIONARY_ATTRIBUTE_TABLE);
    case SCAN_STACK:
        return take_messages(found, p, end, is_plain_stack,
                             SCAN_COUNT_ENTRIES + DICTIONARY_STACK_TABLE);
    default:
        return take_relayed(action, found, p, end);
    }
}
