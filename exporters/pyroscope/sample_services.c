#include "exporters/pyroscope/sample_services.h"

#include "core/base/arena.h"
#include "core/data/otlp.h"
#include "exporters/pyroscope/series_labels.h"

#include <assert.h>

/* Returns the index of "service.name" in the string_table; 0 if no attribute has this key. */
static uint32_t find_key(struct dictionary *dictionary)
{
    uint32_t count = dictionary_count(dictionary, DICTIONARY_STRING_TABLE);
    while (count > 0 && !slice_is(dictionary_string(dictionary, count - 1), "service.name"))
        count--;
    return count > 0 ? count - 1 : 0;
}

struct sample_services sample_services_of(struct dictionary *dictionary, struct arena *arena)
{
    uint32_t key = find_key(dictionary);
    if (key == 0)
        return (struct sample_services){0};
    uint32_t count = dictionary_count(dictionary, DICTIONARY_ATTRIBUTE_TABLE);
    struct slice *names = arena_array(arena, count, sizeof *names);
    struct texts texts = {.arena = arena};
    for (uint32_t i = 0; i < count; i++) {
        struct key_value_and_unit attribute = dictionary_attribute(dictionary, i);
        if (attribute.key == key && !label_value(attribute.value, arena, &names[i]))
            names[i] = (struct slice){0};
        names[i] = texts_of(&texts, names[i]);
    }
    return (struct sample_services){names, texts};
}

/* Returns the service that a sample names; empty if it names none. */
static struct slice own_service(const struct sample_services *services,
                                const struct otlp_sample *sample)
{
    assert(services->names); /* without names, nothing is split */
    for (uint32_t i = 0; i < sample->attribute_count; i++)
        if (services->names[sample->attributes[i]].size > 0)
            return services->names[sample->attributes[i]];
    return (struct slice){0};
}

/* Returns the index of a name; split->count if it is absent. */
static uint32_t find_name(const struct service_split *split, struct slice name)
{
    uint32_t i = 0;
    while (i < split->count &&
           (split->names[i].data != name.data || split->names[i].size != name.size))
        i++;
    return i;
}

struct service_split sample_services_split(const struct sample_services *services,
                                           struct slice service)
{
    struct slice known = texts_find(&services->texts, service);
    return (struct service_split){.names = {known.size > 0 ? known : service}, .count = 1};
}

void sample_services_collect(const struct sample_services *services,
                             const struct otlp_profile *profile, struct arena *arena,
                             struct service_split *split)
{
    assert(split->count > 0); /* the first service is that of the resource */
    struct otlp_samples samples = otlp_profile_samples(profile, arena);
    struct otlp_sample sample;
    if (!services->names)
        return;
    while (split->count < SERVICE_SPLIT_MAX && otlp_samples_next(&samples, &sample)) {
        struct slice name = own_service(services, &sample);
        if (name.size > 0 && find_name(split, name) == split->count)
            split->names[split->count++] = name;
    }
}

uint32_t sample_services_find(const struct sample_services *services,
                              const struct service_split *split, const struct otlp_sample *sample)
{
    assert(split->count <= SERVICE_SPLIT_MAX);
    uint32_t found = find_name(split, own_service(services, sample));
    return found < split->count ? found : 0;
}
