#include "tests/unit/known_samples.h"

#include "core/data/otlp.h"
#include "core/data/sample_fields.h"

struct knowing {
    struct arena *arena;
    struct fold_known_sample *samples;
    struct slice *lists;
    uint32_t sample_count, sample_capacity, list_count, list_capacity;
    uint32_t unknown;
};

static bool may_be_known(const struct sample_fields *sample, uint64_t *value_out)
{
    const struct sample_layout *layout = &sample->layout;
    return layout->link == 0 && sample->others.size == 0 &&
           layout->timestamps.size <= sizeof(uint64_t) &&
           sample_single_value(layout->values, value_out);
}

static void know_sample(struct knowing *knowing, struct slice raw)
{
    struct fold_known_sample known = {.list = 0};
    struct sample_fields sample;
    uint64_t value;
    sample_fields_read(raw, knowing->arena, &sample);
    bool is_left_out = knowing->unknown > 0 && knowing->sample_count % knowing->unknown == 0;
    if (may_be_known(&sample, &value) && !is_left_out) {
        knowing->lists = arena_grow(knowing->arena, knowing->lists, knowing->list_count,
                                    &knowing->list_capacity, sizeof *knowing->lists);
        knowing->lists[knowing->list_count++] = sample.layout.attributes;
        known =
            (struct fold_known_sample){sample.layout.stack, knowing->list_count, (int64_t)value};
    }
    knowing->samples = arena_grow(knowing->arena, knowing->samples, knowing->sample_count,
                                  &knowing->sample_capacity, sizeof known);
    knowing->samples[knowing->sample_count++] = known;
}

struct fold_known known_samples(struct slice request, uint32_t unknown, struct arena *arena)
{
    struct knowing knowing = {.arena = arena, .unknown = unknown};
    struct wire_cursor resources = wire_cursor(request);
    struct wire_field resource, scope, profile, sample;
    while (wire_next_bytes(&resources, PROFILES_RESOURCE_PROFILES, &resource)) {
        struct wire_cursor scopes = wire_cursor(resource.bytes);
        while (wire_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope)) {
            struct wire_cursor profiles = wire_cursor(scope.bytes);
            while (wire_next_bytes(&profiles, SCOPE_PROFILES_PROFILES, &profile)) {
                struct wire_cursor samples = wire_cursor(profile.bytes);
                while (wire_next_bytes(&samples, PROFILE_SAMPLES, &sample))
                    know_sample(&knowing, sample.bytes);
            }
        }
    }
    return (struct fold_known){knowing.samples, knowing.lists, knowing.list_count};
}
