#include "processors/spanjoin/attribute_classes.h"

#include "core/data/sample_threads.h"
#include "processors/spanjoin/id_source.h"

#include <assert.h>

static uint8_t position_of(struct slice key, const struct id_source *sources, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(key, sources[i].key))
            return (uint8_t)i;
    return UINT8_MAX;
}

static uint8_t thread_attribute_of(struct slice key)
{
    if (slice_is(key, "thread.id") || slice_is(key, SAMPLE_THREAD_OS_ID))
        return THREAD_ATTRIBUTE_ID;
    if (slice_is(key, "thread.name") || slice_is(key, SAMPLE_THREAD_NAME))
        return THREAD_ATTRIBUTE_NAME;
    return slice_is(key, SAMPLE_THREAD_RUNTIME_ID) ? THREAD_ATTRIBUTE_RUNTIME_ID
                                                   : THREAD_ATTRIBUTE_NONE;
}

static struct attribute_class class_of_key(const struct spanjoin_settings *settings,
                                           struct slice key)
{
    struct attribute_class class = {.role = ATTRIBUTE_PLAIN, .joined = JOIN_ATTRIBUTES_MAX};
    for (size_t i = 0; i < settings->samples.joined_count; i++)
        if (slice_equal(key, settings->samples.joined[i].key))
            class.joined = (uint8_t)i;
    class.thread = thread_attribute_of(key);
    class.rank = position_of(key, settings->span_ids, settings->sources.count);
    if (class.rank != UINT8_MAX) {
        class.role = ATTRIBUTE_SPAN_ID;
        return class;
    }
    class.rank = position_of(key, settings->trace_ids, settings->trace_sources.count);
    if (class.rank != UINT8_MAX) {
        class.role = ATTRIBUTE_TRACE_ID;
        return class;
    }
    for (size_t i = 0; i < settings->beside_count; i++)
        if (slice_equal(key, settings->beside[i]))
            class.role = ATTRIBUTE_SPAN_NAME;
    return class;
}

static void read_id(struct sample_plan *plan, struct attribute_class *class, struct slice value)
{
    const struct spanjoin_settings *settings = plan->settings;
    if (class->role == ATTRIBUTE_SPAN_ID)
        class->has_id =
            id_source_read(&settings->span_ids[class->rank], value, class->id, SPAN_ID_SIZE);
    else if (class->role == ATTRIBUTE_TRACE_ID)
        class->has_id =
            id_source_read(&settings->trace_ids[class->rank], value, class->id, TRACE_ID_SIZE);
}

static uint8_t traits_of(const struct attribute_class *class)
{
    bool is_plain = class->role == ATTRIBUTE_PLAIN && class->joined == JOIN_ATTRIBUTES_MAX;
    bool names_span = class->role == ATTRIBUTE_SPAN_ID && class->has_id;
    return (uint8_t)((is_plain ? 0 : TRAIT_IS_NOT_PLAIN) | (names_span ? TRAIT_NAMES_SPAN : 0) |
                     (class->thread != THREAD_ATTRIBUTE_NONE ? TRAIT_THREAD : 0) |
                     (class->thread == THREAD_ATTRIBUTE_RUNTIME_ID ? TRAIT_UNPAIRED : 0));
}

const struct attribute_class *sample_plan_classify(struct sample_plan *plan, uint32_t attribute)
{
    if (!plan->classes) {
        plan->class_count = dictionary_count(plan->dictionary, DICTIONARY_ATTRIBUTE_TABLE);
        plan->classes = arena_array(&plan->arena, plan->class_count + 1, sizeof *plan->classes);
    }
    assert(attribute < plan->class_count || attribute == 0);
    struct attribute_class *class = &plan->classes[attribute];
    if (class->role == ATTRIBUTE_UNREAD) {
        struct key_value_and_unit entry = dictionary_attribute(plan->dictionary, attribute);
        struct slice key = dictionary_string(plan->dictionary, entry.key);
        *class = class_of_key(plan->settings, key);
        read_id(plan, class, entry.value);
        class->traits = traits_of(class);
        if (class->thread != THREAD_ATTRIBUTE_NONE && sample_threads_is_key(key))
            class->traits |= TRAIT_ADDED;
        plan->has_added_threads |= (class->traits & TRAIT_ADDED) != 0;
    }
    return class;
}
