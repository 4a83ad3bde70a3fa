#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/data/normalise.h"
#include "core/data/scan.h"
#include "core/formats/profiles_builder.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    request_message;
#define unpack_request                                                                             \
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack
#define free_request                                                                               \
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked

static struct profiles_builder *begin(struct budget *budget, size_t max_bytes)
{
    struct profiles_builder *b = profiles_builder_new(budget, max_bytes);
    struct built_attribute service = {SLICE("service.name"), SLICE("shop")};
    struct built_resource resource = {.attributes = &service,
                                      .attribute_count = 1,
                                      .scope_name = SLICE("sdk"),
                                      .scope_version = SLICE("1")};
    profiles_builder_resource(b, &resource);
    return b;
}

static uint32_t add_profile(struct profiles_builder *b, bool is_sibling)
{
    uint32_t type = profiles_builder_string(b, SLICE("cpu"));
    uint32_t unit = profiles_builder_string(b, SLICE("nanoseconds"));
    struct built_profile cpu = {
        .sample_type = type,
        .sample_unit = unit,
        .period_type = type,
        .period_unit = unit,
        .period = 10000000,
        .time_unix_nano = 1700000000000000000u,
        .duration_nano = 10000000000u,
        .is_sibling = is_sibling,
    };
    return profiles_builder_profile(b, &cpu);
}

/* Checks that the result passes the scan and needs no normalising, and unpacks it. */
static request_message *check_and_unpack(struct buffer *request)
{
    struct scan_result scan;
    struct error err;
    assert_non_null(request);
    assert_true(scan_profiles(buffer_slice(request), &scan_limits_default, &scan, &err));
    assert_false(normalise_needed(&scan));
    request_message *message = unpack_request(NULL, request->size, request->data);
    assert_non_null(message);
    return message;
}

static void test_what_was_put_in_comes_out(void **state)
{
    (void)state;
    struct profiles_builder *b = begin(NULL, 1 << 20);
    uint32_t profile = add_profile(b, false);
    uint32_t frames[] = {profiles_builder_frame(b, SLICE("leaf")),
                         profiles_builder_frame(b, SLICE("root")),
                         profiles_builder_frame(b, SLICE("leaf"))};
    assert_int_equal(frames[0], frames[2]);
    const uint8_t trace[16] = {1}, span[8] = {2};
    uint32_t bytes = profiles_builder_string(b, SLICE("bytes"));
    uint32_t attributes[] = {profiles_builder_attribute_string(b, SLICE("thread"), SLICE("a\xff")),
                             profiles_builder_attribute_int(b, bytes, 0, bytes),
                             profiles_builder_attribute_bool(b, SLICE("folded"), true)};
    struct built_sample sample = {.stack = profiles_builder_stack(b, frames, 2),
                                  .link = profiles_builder_link(b, trace, span),
                                  .attributes = attributes,
                                  .attribute_count = 3};
    profiles_builder_sample(b, profile, &sample, 0);
    profiles_builder_add(b, profile, &sample, 40);
    profiles_builder_add(b, profile, &sample, 2);
    uint32_t samples;
    struct buffer *request = profiles_builder_finish(b, &samples);
    assert_int_equal(samples, 2);
    request_message *message = check_and_unpack(request);
    const __auto_type r = message->resource_profiles[0];
    assert_string_equal(r->resource->attributes[0]->value->string_value, "shop");
    assert_string_equal(r->scope_profiles[0]->scope->name, "sdk");
    const __auto_type p = r->scope_profiles[0]->profiles[0];
    const __auto_type d = message->dictionary;
    assert_string_equal(d->string_table[p->sample_type->type_strindex], "cpu");
    assert_string_equal(d->string_table[p->period_type->unit_strindex], "nanoseconds");
    assert_int_equal(p->period, 10000000);
    assert_int_equal(p->time_unix_nano, 1700000000000000000u);
    assert_int_equal(p->n_samples, 2);
    assert_int_equal(p->samples[0]->n_values, 1);
    assert_int_equal(p->samples[0]->values[0], 0);
    assert_int_equal(p->samples[1]->values[0], 42);
    assert_int_equal(d->n_stack_table, 2);
    assert_int_equal(d->stack_table[1]->location_indices[0], frames[0]);
    assert_memory_equal(d->link_table[p->samples[1]->link_index]->span_id.data, span, 8);
    const __auto_type bad = d->attribute_table[p->samples[0]->attribute_indices[0]];
    assert_string_equal(bad->value->string_value, "a\xef\xbf\xbd");
    const __auto_type number = d->attribute_table[p->samples[0]->attribute_indices[1]];
    assert_int_equal(number->value->value_case,
                     OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE);
    assert_string_equal(d->string_table[number->unit_strindex], "bytes");
    free_request(message, NULL);
    buffer_unref(request);
    profiles_builder_free(b);
}

static void test_sums_keep_apart_what_differs_and_stay_at_the_ends(void **state)
{
    (void)state;
    struct profiles_builder *b = begin(NULL, 64 << 20);
    uint32_t profile = add_profile(b, false);
    uint32_t other = add_profile(b, false);
    uint32_t attribute = profiles_builder_attribute_string(b, SLICE("k"), SLICE("v"));
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 3000; i++) {
            struct built_sample sample = {.stack = 0, .link = 0};
            char name[16];
            snprintf(name, sizeof name, "f%u", i);
            uint32_t frame = profiles_builder_frame(b, slice_of_string(name));
            sample.stack = profiles_builder_stack(b, &frame, 1);
            profiles_builder_add(b, profile, &sample, i);
            sample.attributes = &attribute;
            sample.attribute_count = 1;
            profiles_builder_add(b, other, &sample, INT64_MAX);
        }
    uint32_t samples;
    struct buffer *request = profiles_builder_finish(b, &samples);
    assert_int_equal(samples, 6000);
    request_message *message = check_and_unpack(request);
    const __auto_type scope = message->resource_profiles[0]->scope_profiles[0];
    assert_int_equal(scope->n_profiles, 2);
    for (uint32_t i = 0; i < 3000; i++) {
        assert_int_equal(scope->profiles[0]->samples[i]->values[0], 2 * i);
        assert_true(scope->profiles[1]->samples[i]->values[0] == INT64_MAX);
    }
    free_request(message, NULL);
    buffer_unref(request);
    profiles_builder_free(b);
}

static void test_profiles_and_resources_without_samples_are_left_out(void **state)
{
    (void)state;
    struct profiles_builder *b = begin(NULL, 1 << 20);
    add_profile(b, false);
    struct built_resource resource = {.scope_name = {0}};
    profiles_builder_resource(b, &resource);
    add_profile(b, false);
    uint32_t full = add_profile(b, false);
    struct built_sample sample = {.stack = 0};
    profiles_builder_sample(b, full, &sample, 1);
    uint32_t samples;
    struct buffer *request = profiles_builder_finish(b, &samples);
    request_message *message = check_and_unpack(request);
    assert_int_equal(message->n_resource_profiles, 1);
    assert_int_equal(message->resource_profiles[0]->scope_profiles[0]->n_profiles, 1);
    free_request(message, NULL);
    buffer_unref(request);
    profiles_builder_free(b);
}

static void test_without_any_samples_all_profiles_are_there(void **state)
{
    (void)state;
    struct profiles_builder *b = begin(NULL, 1 << 20);
    add_profile(b, false);
    add_profile(b, false);
    struct built_resource resource = {.scope_name = {0}};
    profiles_builder_resource(b, &resource); /* without profiles */
    uint32_t samples;
    struct buffer *request = profiles_builder_finish(b, &samples);
    request_message *message = check_and_unpack(request);
    assert_int_equal(samples, 0);
    assert_int_equal(message->n_resource_profiles, 1);
    assert_int_equal(message->resource_profiles[0]->scope_profiles[0]->n_profiles, 2);
    free_request(message, NULL);
    buffer_unref(request);
    profiles_builder_free(b);
}

static void test_empty_profiles_are_kept_beside_others(void **state)
{
    (void)state;
    struct profiles_builder *b = begin(NULL, 1 << 20);
    profiles_builder_keep_empty(b);
    add_profile(b, false);
    uint32_t full = add_profile(b, false);
    struct built_sample sample = {.stack = 0};
    profiles_builder_sample(b, full, &sample, 1);
    uint32_t samples;
    struct buffer *request = profiles_builder_finish(b, &samples);
    request_message *message = check_and_unpack(request);
    assert_int_equal(samples, 1);
    assert_int_equal(message->resource_profiles[0]->scope_profiles[0]->n_profiles, 2);
    free_request(message, NULL);
    buffer_unref(request);
    profiles_builder_free(b);
}

static void test_siblings_leave_together(void **state)
{
    (void)state;
    struct profiles_builder *b = begin(NULL, 1 << 20);
    struct built_sample sample = {.stack = 0};
    uint32_t samples;
    for (int measurement = 0; measurement < 3; measurement++) {
        add_profile(b, false);
        add_profile(b, true);
        uint32_t last = add_profile(b, true);
        if (measurement == 1)
            profiles_builder_sample(b, last, &sample, 1);
    }
    struct buffer *request = profiles_builder_finish(b, &samples);
    request_message *message = check_and_unpack(request);
    assert_int_equal(samples, 1);
    const __auto_type scope = message->resource_profiles[0]->scope_profiles[0];
    assert_int_equal(scope->n_profiles, 3);
    assert_int_equal(scope->profiles[0]->n_samples + scope->profiles[1]->n_samples, 0);
    assert_int_equal(scope->profiles[2]->n_samples, 1);
    free_request(message, NULL);
    buffer_unref(request);
    profiles_builder_free(b);
}

static void fill(struct profiles_builder *b)
{
    uint32_t profile = add_profile(b, false);
    for (uint32_t i = 0; i < 100000; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        uint32_t frame = profiles_builder_frame(b, slice_of_string(name));
        struct built_sample sample = {.stack = profiles_builder_stack(b, &frame, 1)};
        profiles_builder_add(b, profile, &sample, 1);
    }
}

static void test_stops_at_its_bounds(void **state)
{
    (void)state;
    uint32_t samples;
    struct profiles_builder *b = begin(NULL, 1 << 20);
    fill(b);
    assert_int_equal(profiles_builder_state(b), PROFILES_BUILDER_TOO_LARGE);
    assert_null(profiles_builder_finish(b, &samples));
    profiles_builder_free(b);

    struct budget budget = {.limit_bytes = 1 << 20};
    b = begin(&budget, 1 << 30);
    fill(b);
    assert_int_equal(profiles_builder_state(b), PROFILES_BUILDER_OVER_BUDGET);
    assert_null(profiles_builder_finish(b, &samples));
    assert_in_range(budget_used(&budget), 1 << 20, 2 << 20);
    profiles_builder_free(b);
    assert_int_equal(budget_used(&budget), 0);
}

/* Admitted data raises the limits, up to those of the builder. */
static void test_bounds_follow_what_is_admitted(void **state)
{
    (void)state;
    struct profiles_builder *b = begin(NULL, 8 << 20);
    assert_true(profiles_builder_has_room(b, 4 << 19));
    assert_true(profiles_builder_work(b, PROFILES_BUILDER_WORK_MIN));
    profiles_builder_admit(b, 1 << 16);
    assert_true(profiles_builder_has_room(b, 5 << 20));
    assert_true(profiles_builder_work(b, PROFILES_BUILDER_WORK_PER_BYTE << 16));
    assert_false(profiles_builder_work(b, 1));
    assert_int_equal(profiles_builder_state(b), PROFILES_BUILDER_TOO_LARGE);
    profiles_builder_free(b);

    b = begin(NULL, 8 << 20);
    profiles_builder_admit(b, 1 << 30);
    assert_true(profiles_builder_has_room(b, 7 << 20));
    assert_true(profiles_builder_work(b, PROFILES_BUILDER_WORK_MAX));
    assert_false(profiles_builder_has_room(b, 9 << 20));
    profiles_builder_free(b);
}

int main(void)
{
    hash_init();
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_put_in_comes_out),
        cmocka_unit_test(test_sums_keep_apart_what_differs_and_stay_at_the_ends),
        cmocka_unit_test(test_profiles_and_resources_without_samples_are_left_out),
        cmocka_unit_test(test_without_any_samples_all_profiles_are_there),
        cmocka_unit_test(test_empty_profiles_are_kept_beside_others),
        cmocka_unit_test(test_siblings_leave_together),
        cmocka_unit_test(test_stops_at_its_bounds),
        cmocka_unit_test(test_bounds_follow_what_is_admitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
