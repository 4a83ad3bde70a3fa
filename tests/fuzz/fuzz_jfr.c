/*
 * jfr_read with any bytes: an accepted recording must give a request that passes the scan, and a
 * refusal must have a text. The input is a byte of flags, a byte with the size of the labels, the
 * labels, the recording. Flag 1: the size of the first chunk is set to that of the input; otherwise
 * mutations that change the size would never get past the header. Flag 2: use the recording's own
 * period. Flag 4: add threads, and times of samples that name no span. Flag 8: of those that do.
 */
#include "core/base/budget.h"
#include "core/base/memory.h"
#include "core/data/normalise.h"
#include "core/data/sample_threads.h"
#include "core/data/scan.h"
#include "core/formats/jfr_read.h"

#include <assert.h>

enum { FLAG_SIZE = 1, FLAG_OWN_PERIOD = 2, FLAG_THREADS = 4, FLAG_TIMES = 8, SIZE_AT = 8 };

static void set_size(uint8_t *jfr, size_t size)
{
    for (size_t i = 0; size >= SIZE_AT + 8 && i < 8; i++)
        jfr[SIZE_AT + i] = (uint8_t)((uint64_t)size >> (56 - 8 * i));
}

static void check_request(struct profiles_builder *builder)
{
    struct scan_result scan;
    struct error err;
    uint32_t samples;
    struct buffer *request = profiles_builder_finish(builder, &samples);
    assert(!request == (profiles_builder_state(builder) != PROFILES_BUILDER_FINE));
    if (!request)
        return;
    assert(scan_profiles(buffer_slice(request), &scan_limits_default, &scan, &err));
    assert(!normalise_needed(&scan) && scan.items == samples);
    buffer_unref(request);
}

static unsigned added_threads(uint8_t flags)
{
    return (flags & FLAG_THREADS ? ADD_TIMES_OF_UNNAMED : 0u) |
           (flags & FLAG_TIMES ? ADD_TIMES_OF_NAMED : 0u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size - 2 < data[1])
        return 0;
    struct slice labels = slice_of(data + 2, data[1]);
    size_t jfr_size = size - 2 - labels.size;
    uint8_t *jfr = memory_alloc(jfr_size + 1);
    memcpy(jfr, data + 2 + labels.size, jfr_size);
    if (data[0] & FLAG_SIZE)
        set_size(jfr, jfr_size);

    scan_init();
    struct budget budget = {0};
    struct error err = {0};
    struct jfr_options options = {.sample_rate_hz = data[0] & FLAG_OWN_PERIOD ? 0 : 100,
                                  .budget = &budget,
                                  .added_threads = added_threads(data[0])};
    struct profiles_builder *builder = profiles_builder_new(&budget, 1 << 20);
    profiles_builder_resource(builder, &(struct built_resource){.attributes = NULL});
    if (jfr_read(builder, slice_of(jfr, jfr_size), labels, &options, &err))
        check_request(builder);
    else
        assert(err.text[0] != '\0');
    profiles_builder_free(builder);
    free(jfr);
    assert(budget_used(&budget) == 0);
    return 0;
}
