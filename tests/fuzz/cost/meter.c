#include "tests/fuzz/cost/meter.h"

#include "tests/unit/cost_memory.h"

#include <math.h>
#include <string.h>

enum { STEP_BYTES = 32, ALLOCATION_STEPS = 8 };

static uint64_t edges, library_bytes;

#ifdef PROFCOL_COUNTS_EDGES

/* The linker's --wrap puts these before those of libFuzzer, which would end the program, and of the
 * C library; __real_ names the latter. NOLINTBEGIN(bugprone-reserved-identifier) */
void __wrap___sanitizer_cov_trace_pc_guard(uint32_t *guard);
void __wrap___sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop);

void __wrap___sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
    (void)guard;
    edges++;
}

void __wrap___sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop)
{
    (void)start;
    (void)stop;
}

void *__real_memcpy(void *to, const void *from, size_t size);
void *__real_memmove(void *to, const void *from, size_t size);
void *__real_memset(void *to, int c, size_t size);
int __real_memcmp(const void *a, const void *b, size_t size);
int __real_bcmp(const void *a, const void *b, size_t size);
void *__real_memchr(const void *in, int c, size_t size);
size_t __real_strlen(const char *text);
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memset(void *to, int c, size_t size);
int __wrap_memcmp(const void *a, const void *b, size_t size);
int __wrap_bcmp(const void *a, const void *b, size_t size);
void *__wrap_memchr(const void *in, int c, size_t size);
size_t __wrap_strlen(const char *text);

void *__wrap_memcpy(void *to, const void *from, size_t size)
{
    library_bytes += size;
    return __real_memcpy(to, from, size);
}

void *__wrap_memmove(void *to, const void *from, size_t size)
{
    library_bytes += size;
    return __real_memmove(to, from, size);
}

void *__wrap_memset(void *to, int c, size_t size)
{
    library_bytes += size;
    return __real_memset(to, c, size);
}

/* Counts only equal bytes, because the library stops at the first difference. */
static size_t common_bytes(const uint8_t *a, const uint8_t *b, size_t size)
{
    size_t i = 0;
    while (i < size && a[i] == b[i])
        i++;
    return i;
}

int __wrap_memcmp(const void *a, const void *b, size_t size)
{
    library_bytes += common_bytes(a, b, size);
    return __real_memcmp(a, b, size);
}

int __wrap_bcmp(const void *a, const void *b, size_t size)
{
    library_bytes += common_bytes(a, b, size);
    return __real_bcmp(a, b, size);
}

void *__wrap_memchr(const void *in, int c, size_t size)
{
    const uint8_t *found = __real_memchr(in, c, size);
    library_bytes += found ? (size_t)(found - (const uint8_t *)in) : size;
    return (void *)found;
}

size_t __wrap_strlen(const char *text)
{
    size_t size = __real_strlen(text);
    library_bytes += size;
    return size;
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- what libFuzzer sees ---- */

enum { BUCKETS = 80 };
enum { STEPS, PEAK, KINDS };
__attribute__((section("__libfuzzer_extra_counters"),
               used)) static uint8_t extra[KINDS][METER_SIZE_CLASSES][BUCKETS];

static void tell(unsigned kind, uint64_t amount, size_t size)
{
    double quarters = 4 * log2(meter_ratio(amount, size) + 1);
    unsigned bucket = quarters < BUCKETS ? (unsigned)quarters : BUCKETS - 1;
    extra[kind][meter_size_class(size)][bucket] = 1;
}

void meter_tell(struct measured measured, size_t size)
{
    tell(STEPS, measured.steps, size);
    tell(PEAK, measured.peak_bytes, size);
}
#else
void meter_tell(struct measured measured, size_t size)
{
    (void)measured;
    (void)size;
}
#endif

unsigned meter_size_class(size_t size)
{
    unsigned class = 0;
    for (size_t top = METER_SIZE_MIN; top < size && class + 1 < METER_SIZE_CLASSES; top *= 2)
        class ++;
    return class;
}

double meter_ratio(uint64_t amount, size_t size)
{
    return (double)amount / (double)(size > METER_SIZE_MIN ? size : METER_SIZE_MIN);
}

void meter_begin(void)
{
    edges = library_bytes = 0;
    cost_memory_begin();
}

struct measured meter_end(void)
{
    uint64_t bytes = library_bytes + cost_memory_written();
    uint64_t steps = edges + bytes / STEP_BYTES + cost_memory_calls() * ALLOCATION_STEPS;
    return (struct measured){.steps = edges > 0 ? steps : 0, .peak_bytes = cost_memory_peak()};
}
