/* Neighbours mostly have as many bytes as each other, because most indices of a large table have
 * two and those of a small one have one. So a block of 16 bytes is read as eight numbers of two
 * bytes, or as 16 of one, up to the first that is not like the others. */
#include "core/data/index_list.h"

#include <assert.h>

enum { BLOCK = 16 };

#ifdef __SSE2__
#include <emmintrin.h>

static inline void write_pairs(__m128i bytes, uint32_t *out)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i low = _mm_and_si128(bytes, _mm_set1_epi16(0x007f));
    __m128i high = _mm_srli_epi16(_mm_and_si128(bytes, _mm_set1_epi16(0x7f00)), 1);
    __m128i numbers = _mm_or_si128(low, high);
    _mm_storeu_si128((__m128i *)out, _mm_unpacklo_epi16(numbers, zero));
    _mm_storeu_si128((__m128i *)(out + 4), _mm_unpackhi_epi16(numbers, zero));
}

static inline void write_singles(__m128i bytes, uint32_t *out)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i first = _mm_unpacklo_epi8(bytes, zero), second = _mm_unpackhi_epi8(bytes, zero);
    _mm_storeu_si128((__m128i *)out, _mm_unpacklo_epi16(first, zero));
    _mm_storeu_si128((__m128i *)(out + 4), _mm_unpackhi_epi16(first, zero));
    _mm_storeu_si128((__m128i *)(out + 8), _mm_unpacklo_epi16(second, zero));
    _mm_storeu_si128((__m128i *)(out + 12), _mm_unpackhi_epi16(second, zero));
}

/* Returns the last bytes before the end, 16 of which may be read. */
static inline __m128i load_last(const uint8_t *end, size_t size)
{
    uint8_t room[2 * BLOCK];
    _mm_storeu_si128((__m128i *)(void *)room,
                     _mm_loadu_si128((const __m128i *)(const void *)(end - BLOCK)));
    _mm_storeu_si128((__m128i *)(void *)(room + BLOCK), _mm_setzero_si128());
    return _mm_loadu_si128((const __m128i *)(const void *)(room + BLOCK - size));
}

/* Reads numbers that all have two bytes, or all one. Returns how many; 0 if the first has more, or
 * there are few bytes after the start. */
static inline uint32_t read_block(struct wire_cursor *packed, const uint8_t *start, uint32_t *out)
{
    size_t size = (size_t)(packed->end - packed->next);
    __m128i bytes;
    if (size >= BLOCK)
        bytes = _mm_loadu_si128((const __m128i *)(const void *)packed->next);
    else if (size > 0 && packed->end - start >= BLOCK)
        bytes = load_last(packed->end, size);
    else
        return 0;
    unsigned upper = (unsigned)_mm_movemask_epi8(bytes), count;
    if (upper & 1) { /* 01 for each number of two bytes; after the end, there are zeros */
        count = (unsigned)__builtin_ctz((upper ^ 0x5555) | 1u << BLOCK) / 2;
        write_pairs(bytes, out);
        packed->next += (size_t)2 * count;
    } else {
        count = (unsigned)__builtin_ctz(upper | 1u << BLOCK);
        count = count < size ? count : (unsigned)size;
        write_singles(bytes, out);
        packed->next += count;
    }
    return count;
}
#else
static inline uint32_t read_block(struct wire_cursor *packed, const uint8_t *start, uint32_t *out)
{
    (void)packed;
    (void)start;
    (void)out;
    return 0;
}
#endif

uint32_t index_list_read(struct wire_cursor *packed, uint32_t *out)
{
    const uint8_t *start = packed->next;
    uint32_t count = 0;
    uint64_t index;
    while (count <= INDEX_LIST_ROOM - BLOCK) {
        uint32_t read = read_block(packed, start, out + count);
        count += read;
        if (read > 0)
            continue;
        if (!wire_packed_varint(packed, &index))
            break;
        out[count++] = (uint32_t)index;
    }
    assert(!packed->broken); /* scanned */
    return count;
}
