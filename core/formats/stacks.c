#include "core/formats/stacks.h"

#include "core/base/memory.h"

#include <assert.h>

static const struct {
    const char *suffix, *metric_name, *sample_type, *sample_unit;
    bool is_time;
} kinds[] = {
    {"cpu", "process_cpu", "cpu", "nanoseconds", true},
    {"itimer", "process_cpu", "cpu", "nanoseconds", true},
    {"wall", "wall", "wall", "nanoseconds", true},
    {"seconds", "wall", "wall", "nanoseconds", true},
    {"milliseconds", "wall", "wall", "nanoseconds", true},
    {"microseconds", "wall", "wall", "nanoseconds", true},
    {"nanoseconds", "wall", "wall", "nanoseconds", true},
    {"inuse_objects", "memory", "inuse_objects", "count", false},
    {"inuse_space", "memory", "inuse_space", "bytes", false},
    {"alloc_objects", "memory", "alloc_objects", "count", false},
    {"alloc_space", "memory", "alloc_space", "bytes", false},
    {"alloc_in_new_tlab_objects", "memory", "alloc_in_new_tlab_objects", "count", false},
    {"alloc_in_new_tlab_bytes", "memory", "alloc_in_new_tlab_bytes", "bytes", false},
    {"alloc_outside_tlab_objects", "memory", "alloc_outside_tlab_objects", "count", false},
    {"alloc_outside_tlab_bytes", "memory", "alloc_outside_tlab_bytes", "bytes", false},
    {"live", "memory", "live", "count", false},
    {"bytes", "memory", "samples", "bytes", false},
    {"goroutines", "goroutine", "goroutines", "count", false},
    {"mutex_count", "mutex", "contentions", "count", false},
    {"mutex_duration", "mutex", "delay", "nanoseconds", false},
    {"block_count", "block", "contentions", "count", false},
    {"block_duration", "block", "delay", "nanoseconds", false},
    {"lock_count", "block", "contentions", "count", false},
    {"lock_duration", "block", "delay", "nanoseconds", false},
    {"exceptions", "exceptions", "samples", "count", false},
};

bool stacks_kind_of(struct slice application, struct stacks_kind *kind, struct slice *service,
                    struct error *err)
{
    const uint8_t *dot =
        application.size > 0 ? memrchr(application.data, '.', application.size) : NULL;
    struct slice suffix = SLICE("cpu");
    *service = application;
    if (dot) {
        *service = slice_of(application.data, (size_t)(dot - application.data));
        suffix = slice_of(dot + 1, application.size - service->size - 1);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (slice_is(suffix, kinds[i].suffix)) {
            *kind = (struct stacks_kind){slice_of_string(kinds[i].metric_name),
                                         slice_of_string(kinds[i].sample_type),
                                         slice_of_string(kinds[i].sample_unit), kinds[i].is_time};
            return true;
        }
    return error_set(err, "unknown profile type: %.*s", SLICE_ARG(suffix));
}

int64_t stacks_period(const struct stacks_options *options)
{
    return options->kind.is_time
               ? 1000000000 / (options->sample_rate_hz ? options->sample_rate_hz : 100)
               : 1;
}

void stacks_begin(struct stacks *stacks, struct profiles_builder *builder,
                  const struct stacks_options *options)
{
    uint32_t name =
        profiles_builder_attribute_string(builder, SLICE("__name__"), options->kind.metric_name);
    struct built_profile profile = {
        .time_unix_nano = options->time_unix_nano,
        .duration_nano = options->duration_nano,
        .attributes = &name,
        .attribute_count = 1,
    };
    profile.sample_type = profiles_builder_string(builder, options->kind.sample_type);
    profile.sample_unit = profiles_builder_string(builder, options->kind.sample_unit);
    if (options->kind.is_time) {
        profile.period_type = profiles_builder_string(builder, SLICE("cpu"));
        profile.period_unit = profiles_builder_string(builder, SLICE("nanoseconds"));
        profile.period = stacks_period(options);
    }
    *stacks = (struct stacks){
        .builder = builder,
        .profile = profiles_builder_profile(builder, &profile),
        .link = span_labels_link(&options->upload, builder),
    };
}

void stacks_end(struct stacks *stacks)
{
    free(stacks->frames);
    free(stacks->reversed);
}

static bool count_work(const struct stacks *stacks, uint64_t work, struct error *err)
{
    return profiles_builder_work(stacks->builder, work) ||
           error_set(err, "the stacks unfold to too much");
}

bool stacks_push_location(struct stacks *stacks, uint32_t location, struct error *err)
{
    if (stacks->depth == STACKS_DEPTH_MAX)
        return error_set(err, "a stack is deeper than %d frames", STACKS_DEPTH_MAX);
    if (stacks->depth == stacks->capacity) {
        stacks->capacity = stacks->capacity ? stacks->capacity * 2 : 64;
        stacks->frames = memory_grow(stacks->frames, stacks->capacity, sizeof *stacks->frames);
        stacks->reversed =
            memory_grow(stacks->reversed, stacks->capacity, sizeof *stacks->reversed);
    }
    assert(stacks->depth < stacks->capacity);
    stacks->frames[stacks->depth++] = location;
    return true;
}

bool stacks_push(struct stacks *stacks, struct slice names, struct error *err)
{
    if (!count_work(stacks, names.size, err))
        return false;
    while (names.size > 0) {
        const uint8_t *end = memchr(names.data, ';', names.size);
        struct slice name = slice_of(names.data, end ? (size_t)(end - names.data) : names.size);
        if (name.size > 0 &&
            !stacks_push_location(stacks, profiles_builder_frame(stacks->builder, name), err))
            return false;
        size_t taken = name.size + (end ? 1 : 0);
        names = slice_of(names.data + taken, names.size - taken);
    }
    return true;
}

void stacks_pop_to(struct stacks *stacks, uint32_t depth)
{
    assert(depth <= stacks->depth);
    stacks->depth = depth;
}

bool stacks_add(struct stacks *stacks, int64_t value, struct error *err)
{
    if (value == 0)
        return true;
    if (!count_work(stacks, stacks->depth + 1, err))
        return false;
    for (uint32_t i = 0; i < stacks->depth; i++)
        stacks->reversed[i] = stacks->frames[stacks->depth - 1 - i];
    struct built_sample sample = {
        .stack = profiles_builder_stack(stacks->builder, stacks->reversed, stacks->depth),
        .link = stacks->link,
        .attributes = stacks->attributes,
        .attribute_count = stacks->attribute_count,
    };
    profiles_builder_add(stacks->builder, stacks->profile, &sample, value);
    return true;
}
