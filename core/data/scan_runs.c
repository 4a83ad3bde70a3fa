/*
 * How it is fast: the next field of a message is compared with the ones that may come, which is
 * nearly always guessed right, and numbers and texts are looked at many bytes at once, without a
 * branch for each. Where a message ends is known from its length, so a field that fits is taken
 * without asking whether it is still inside; if it was not, the end is missed, which is asked once.
 * That may read behind a message, so those that end in the last ROOM bytes are left to the walk.
 */
#include "core/data/scan_runs.h"

#include "core/data/utf8.h"
#include "core/data/wire.h"

#include <endian.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define ROOM 512 /* more than any field is looked at without asking */
#define TAG(number, type) ((number) << 3 | (type))

/* Bytes */

/* The upper bits of 16 bytes, and of 64. */

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

/* The first `count` bits, of which there may be up to 63. */
static inline uint64_t first_bits(size_t count)
{
    return (UINT64_C(1) << count) - 1;
}

/* Up to 64 bytes may be read. */
static inline bool is_ascii(const uint8_t *p, size_t size)
{
    return size < 64 ? (upper_64(p) & first_bits(size)) == 0 : utf8_is_ascii(p, size);
}

/* Fields: each of these takes one if it has this tag. Behind it; `p` when it is another one, or the
 * message is over; behind the end when it is not plain, whereupon nothing else is taken. */

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

static inline const uint8_t *take_id(const uint8_t *p, const uint8_t *end, unsigned tag,
                                     unsigned size)
{
    if (!stands_at(p, end, tag))
        return p;
    if (p[1] == size)
        return p + 2 + size;
    return p[1] == 0 ? p + 2 : not_plain(end);
}

static inline const uint8_t *take_text(const uint8_t *p, const uint8_t *end, unsigned tag)
{
    if (!stands_at(p, end, tag))
        return p;
    return p[1] < 0x80 && is_ascii(p + 2, p[1]) ? p + 2 + p[1] : not_plain(end);
}

/* An index of up to five bytes. */
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

/* A length of one byte or two. Behind it; behind the end when what it announces is not there. */
static inline const uint8_t *read_size(const uint8_t *p, const uint8_t *end, size_t *size)
{
    *size = *p++;
    if (*size >= 0x80) {
        *size = (*size & 0x7f) | (size_t)*p << 7;
        if (*p++ >= 0x80)
            return not_plain(end);
    }
    return p <= end && *size <= (size_t)(end - p) ? p : not_plain(end);
}

static inline const uint8_t *take_indices(struct scan_found *found, const uint8_t *p,
                                          const uint8_t *end, unsigned tag, unsigned table)
{
    uint32_t needed;
    size_t size;

    if (!stands_at(p, end, tag))
        return p;
    p = read_size(p + 1, end, &size);
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

/* Packed numbers, of which all but the last byte of each go on; adds how many they are. */
static inline const uint8_t *take_values(size_t *count, const uint8_t *p, const uint8_t *end)
{
    uint64_t word;
    size_t size;

    if (!stands_at(p, end, TAG(SAMPLE_VALUES, WIRE_BYTES)))
        return p;
    p = read_size(p + 1, end, &size);
    if (p > end || size == 0)
        return p;
    if (size > sizeof word)
        return scan_count_numbers(slice_of(p, size), count) ? p + size : not_plain(end);
    memcpy(&word, p, sizeof word);
    word = ~le64toh(word) & UINT64_C(0x8080808080808080) >> (64 - 8 * size);
    *count = (word >> 7) * UINT64_C(0x0101010101010101) >> 56;
    return p[size - 1] < 0x80 ? p + size : not_plain(end);
}

static inline const uint8_t *take_timestamps(size_t *count, const uint8_t *p, const uint8_t *end)
{
    size_t size;

    if (!stands_at(p, end, TAG(SAMPLE_TIMESTAMPS_UNIX_NANO, WIRE_BYTES)))
        return p;
    p = read_size(p + 1, end, &size);
    if (p > end)
        return p;
    *count = size / 8;
    return size % 8 == 0 ? p + size : not_plain(end);
}

static inline const uint8_t *take_status(uint32_t *elements, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *status_end;

    if (!stands_at(p, end, TAG(SPAN_STATUS, WIRE_BYTES)))
        return p;
    if (p[1] >= 0x80)
        return not_plain(end);
    ++*elements;
    status_end = p + 2 + p[1];
    p = take_text(p + 2, status_end, TAG(STATUS_MESSAGE, WIRE_BYTES));
    p = take_number(p, status_end, TAG(STATUS_CODE, WIRE_VARINT));
    return p == status_end ? p : not_plain(end);
}

static inline const uint8_t *take_flags(const uint8_t *p, const uint8_t *end)
{
    enum { FLAGS = TAG(SPAN_FLAGS, WIRE_FIXED32) }; /* takes two bytes */

    return stands_at(p, end, (FLAGS & 0x7f) | 0x80) && p[1] == FLAGS >> 7 ? p + 2 + 4 : p;
}

/* Lists of indices */

#if defined(__SSE2__)
/* Every lane begins with another byte, `indices` and the byte behind in turns, and holds that byte
 * and the next: an index of two bytes, or of one byte and something else, or the second byte of an
 * index, which is less than the index. So the highest of all is the highest index, wherever they
 * begin. */
struct lanes {
    __m128i highest;
    __m128i broken; /* in the uppermost bit of a lane: an index goes on behind two bytes */
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

/* A list of at least BLOCK bytes. */
enum { BLOCK = 17 }; /* 16 pairs */

static inline uint32_t needed_by_long(const uint8_t *p, size_t size)
{
    struct lanes lanes = {_mm_setzero_si128(), _mm_setzero_si128()};
    const uint8_t *last = p + size - BLOCK;

    if (p[size - 1] >= 0x80)
        return 0;
    for (; p < last; p += 16) {
        look_at_lanes(&lanes, p);
        look_at_lanes(&lanes, p + 1);
    }
    look_at_lanes(&lanes, last); /* some of it once more, which does no harm */
    look_at_lanes(&lanes, last + 1);
    return _mm_movemask_epi8(lanes.broken) & 0xaaaa ? 0 : highest_lane(lanes.highest) + 1;
}
#else
enum { BLOCK = INT32_MAX }; /* no list is taken for a long one */

static inline uint32_t needed_by_long(const uint8_t *p, size_t size)
{
    (void)p, (void)size;
    return 0;
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
    return indices.size >= BLOCK ? needed_by_long(indices.data, indices.size)
                                 : needed_by_short(indices.data, indices.size);
}

/* Attributes */

/* The header of a value of `size` bytes, and of what is in it: read as one little-endian number. */
static inline uint32_t value_header(unsigned tag, uint32_t size)
{
    return (uint32_t)TAG(KEY_VALUE_VALUE, WIRE_BYTES) | size << 8 | tag << 16;
}

/* At `p` a KeyValue of up to 63 bytes; 64 may be read. */
static inline bool is_small_attribute(const uint8_t *p, size_t size)
{
    uint64_t upper = upper_64(p);
    size_t key_size = p[1];
    size_t value_size = size - 4 - key_size;
    uint32_t header;

    if (size < 6 || p[0] != TAG(KEY_VALUE_KEY, WIRE_BYTES) || key_size > size - 6)
        return false;
    memcpy(&header, p + 2 + key_size, sizeof header);
    header = le32toh(header);
    if (header == (value_header(TAG(ANY_VALUE_STRING, WIRE_BYTES), (uint32_t)value_size) |
                   (uint32_t)(value_size - 2) << 24))
        return (upper & first_bits(size)) == 0;
    if (upper & first_bits(2 + key_size))
        return false;
    header &= 0xffffff;
    if (header == value_header(TAG(ANY_VALUE_INT, WIRE_VARINT), (uint32_t)value_size) ||
        header == value_header(TAG(ANY_VALUE_BOOL, WIRE_VARINT), (uint32_t)value_size)) {
        /* All bytes of a number but its last one go on. */
        uint64_t number = first_bits(size) & ~first_bits(5 + key_size);
        return value_size - 1 <= SCAN_NUMBER_SIZE_MAX && (upper & number) == (number & number >> 1);
    }
    return value_size == 9 && header == value_header(TAG(ANY_VALUE_DOUBLE, WIRE_FIXED64), 9);
}

static bool is_number(const uint8_t *p, size_t size)
{
    size_t i = 0;

    while (i + 1 < size && p[i] >= 0x80)
        i++;
    return size > 0 && size <= SCAN_NUMBER_SIZE_MAX && i + 1 == size && p[i] < 0x80;
}

bool scan_is_plain_attribute(const uint8_t *p, size_t size)
{
    size_t key_size;
    size_t value_size;
    const uint8_t *value;

    if (size < 6 || p[0] != TAG(KEY_VALUE_KEY, WIRE_BYTES) || p[1] >= 0x80)
        return false;
    key_size = p[1];
    if (key_size + 6 > size || p[2 + key_size] != TAG(KEY_VALUE_VALUE, WIRE_BYTES))
        return false;
    value_size = p[3 + key_size];
    if (value_size >= 0x80 || key_size + value_size + 4 != size)
        return false;
    value = p + 4 + key_size;
    switch (value[0]) {
    case TAG(ANY_VALUE_STRING, WIRE_BYTES):
        return value[1] == value_size - 2 && utf8_is_ascii(p, size);
    case TAG(ANY_VALUE_BOOL, WIRE_VARINT):
    case TAG(ANY_VALUE_INT, WIRE_VARINT):
        return is_number(value + 1, value_size - 1) && utf8_is_ascii(p + 2, key_size);
    case TAG(ANY_VALUE_DOUBLE, WIRE_FIXED64):
        return value_size == 9 && utf8_is_ascii(p + 2, key_size);
    default:
        return false;
    }
}

/* Behind the attributes that stand at `p`, as far as they are plain. */
static inline const uint8_t *take_attributes(uint32_t *elements, const uint8_t *p,
                                             const uint8_t *end, unsigned tag)
{
    while (stands_at(p, end, tag)) {
        size_t size;
        const uint8_t *key_value = read_size(p + 1, end, &size);

        if (key_value > end || !(size < 64 ? is_small_attribute(key_value, size)
                                           : scan_is_plain_attribute(key_value, size)))
            break;
        p = key_value + size;
        *elements += 2;
    }
    return p;
}

/* Messages; each adds what it holds besides itself. */

static inline bool is_plain_span(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    uint32_t elements = 0;

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
    p = take_number(p, end, TAG(SPAN_DROPPED_EVENTS_COUNT, WIRE_VARINT));
    p = take_number(p, end, TAG(SPAN_DROPPED_LINKS_COUNT, WIRE_VARINT));
    p = take_status(&elements, p, end);
    p = take_flags(p, end);
    found->elements += p == end ? elements : 0;
    return p == end;
}

static inline bool is_plain_sample(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    size_t values = 0;
    size_t timestamps = 0;

    p = take_index(found, p, end, TAG(SAMPLE_STACK_INDEX, WIRE_VARINT), DICTIONARY_STACK_TABLE);
    p = take_indices(found, p, end, TAG(SAMPLE_ATTRIBUTE_INDICES, WIRE_BYTES),
                     DICTIONARY_ATTRIBUTE_TABLE);
    p = take_index(found, p, end, TAG(SAMPLE_LINK_INDEX, WIRE_VARINT), DICTIONARY_LINK_TABLE);
    p = take_values(&values, p, end);
    p = take_timestamps(&timestamps, p, end);
    return p == end && values + timestamps > 0 &&
           (values == 0 || timestamps == 0 || values == timestamps);
}

static inline bool is_plain_line(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    p = take_index(found, p, end, TAG(LINE_FUNCTION_INDEX, WIRE_VARINT), DICTIONARY_FUNCTION_TABLE);
    p = take_number(p, end, TAG(LINE_LINE, WIRE_VARINT));
    p = take_number(p, end, TAG(LINE_COLUMN, WIRE_VARINT));
    return p == end;
}

static inline bool is_plain_location(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *line;
    uint32_t lines = 0;
    size_t size;

    p = take_index(found, p, end, TAG(LOCATION_MAPPING_INDEX, WIRE_VARINT),
                   DICTIONARY_MAPPING_TABLE);
    p = take_number(p, end, TAG(LOCATION_ADDRESS, WIRE_VARINT));
    for (; stands_at(p, end, TAG(LOCATION_LINES, WIRE_BYTES)); p = line + size, lines++) {
        line = read_size(p + 1, end, &size);
        if (line > end || !is_plain_line(found, line, line + size))
            return false;
    }
    p = take_indices(found, p, end, TAG(LOCATION_ATTRIBUTE_INDICES, WIRE_BYTES),
                     DICTIONARY_ATTRIBUTE_TABLE);
    if (p != end)
        return false;
    found->elements += lines;
    found->counts[SCAN_COUNT_LINES] += lines;
    return true;
}

static inline bool is_plain_function(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    p = take_index(found, p, end, TAG(FUNCTION_NAME_STRINDEX, WIRE_VARINT),
                   DICTIONARY_STRING_TABLE);
    p = take_index(found, p, end, TAG(FUNCTION_SYSTEM_NAME_STRINDEX, WIRE_VARINT),
                   DICTIONARY_STRING_TABLE);
    p = take_index(found, p, end, TAG(FUNCTION_FILENAME_STRINDEX, WIRE_VARINT),
                   DICTIONARY_STRING_TABLE);
    p = take_number(p, end, TAG(FUNCTION_START_LINE, WIRE_VARINT));
    return p == end;
}

static inline bool is_plain_link(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    (void)found;
    p = take_id(p, end, TAG(LINK_TRACE_ID, WIRE_BYTES), TRACE_ID_SIZE);
    p = take_id(p, end, TAG(LINK_SPAN_ID, WIRE_BYTES), SPAN_ID_SIZE);
    return p == end;
}

static inline bool is_plain_string(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    size_t size = (size_t)(end - p);

    (void)found;
    return is_ascii(p, size) || utf8_is_valid(slice_of(p, size));
}

static inline bool is_plain_stack(struct scan_found *found, const uint8_t *p, const uint8_t *end)
{
    p = take_indices(found, p, end, TAG(STACK_LOCATION_INDICES, WIRE_BYTES),
                     DICTIONARY_LOCATION_TABLE);
    return p == end;
}

/* The run */

typedef bool is_plain_message(struct scan_found *, const uint8_t *p, const uint8_t *end);

/* Inlined with each kind of message, and that into it. */
static inline __attribute__((always_inline)) const uint8_t *
take_messages(struct scan_found *found, const uint8_t *p, const uint8_t *end,
              is_plain_message *is_plain, unsigned counter)
{
    unsigned tag = *p;
    uint32_t count = 0;

    for (; stands_at(p, end, tag); count++) {
        size_t size;
        const uint8_t *message = read_size(p + 1, end, &size);

        if (message > end || !is_plain(found, message, message + size))
            break;
        p = message + size;
    }
    found->elements += count;
    found->counts[counter] += count;
    return p;
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
    case SCAN_STACK:
        return take_messages(found, p, end, is_plain_stack,
                             SCAN_COUNT_ENTRIES + DICTIONARY_STACK_TABLE);
    default:
        return p;
    }
}
