#include "tests/unit/profiles_fixture.h"

#include "core/data/normalise.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct profiles_fixture profiles_fixture;

int profiles_fixture_begin(void **state)
{
    (void)state;
    profiles_fixture.budget = (struct budget){0};
    worker_init_manual(&profiles_fixture.worker, 0, 1000);
    return 0;
}

int profiles_fixture_end(void **state)
{
    (void)state;
    worker_deinit(&profiles_fixture.worker);
    return budget_used(&profiles_fixture.budget) == 0 ? 0 : -1; /* everything was released */
}

struct scan_result profiles_fixture_scan(struct slice request)
{
    struct scan_result result;
    struct error err = {0};
    if (!scan_profiles(request, &scan_limits_default, &result, &err))
        fail_msg("%s", err.text);
    assert_false(normalise_needed(&result));
    return result;
}

struct batch *profiles_fixture_batch(struct buffer *request)
{
    static unsigned count;
    const struct scan_result found = profiles_fixture_scan(buffer_slice(request));
    struct batch *batch =
        batch_new(&profiles_fixture.worker, SIGNAL_PROFILES, request, found.items, NULL, NULL);
    batch->layout.are_known = ++count % 2 == 0;
    memcpy(batch->layout.counts, found.table_sizes, sizeof batch->layout.counts);
    memcpy(batch->layout.starts, found.table_starts, sizeof batch->layout.starts);
    return batch;
}

struct batch *profiles_fixture_batch_of(struct slice request)
{
    struct buffer *buffer = buffer_new_charged(request.size, &profiles_fixture.budget);
    buffer_append(buffer, request.data, request.size, request.size);
    return profiles_fixture_batch(buffer);
}

struct text profiles_fixture_sent(struct batch *batch)
{
    struct slice_list list = {0};
    struct text bytes = {0};
    batch_gather(batch, &list);
    for (size_t i = 0; i < list.count; i++)
        text_append_slice(&bytes, list.items[i]);
    return bytes;
}

DecodedProfiles *profiles_fixture_decode(struct batch *batch)
{
    struct text bytes = profiles_fixture_sent(batch);
    profiles_fixture_scan(slice_of(bytes.data, bytes.size));
    DecodedProfiles *request =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, bytes.size, (const uint8_t *)bytes.data);
    assert_non_null(request);
    text_deinit(&bytes);
    return request;
}

void profiles_fixture_release(DecodedProfiles *request)
{
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        request, NULL);
}
