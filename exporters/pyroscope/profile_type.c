#include "exporters/pyroscope/profile_type.h"

#include "core/formats/profile_name.h"

enum { TYPES_MAX = 64 };

static struct profile_type time_type(const char *name, const char *type, int64_t scale)
{
    return (struct profile_type){
        .name = slice_of_string(name),
        .sample_type = slice_of_string(type),
        .sample_unit = SLICE("nanoseconds"),
        .period_type = slice_of_string(type),
        .period_unit = SLICE("nanoseconds"),
        .scale = scale,
    };
}

/* Names in async-profiler's OTLP output that differ from those of Pyroscope's SDKs. */
static const struct {
    const char *type, *unit;
    struct profile_type is;
} renamed[] = {
#define TEXT(literal)                                                                              \
    {                                                                                              \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                         \
    }
    {"allocations",
     "count",
     {TEXT("memory"), TEXT("alloc_objects"), TEXT("count"), TEXT("space"), TEXT("bytes"), 1}},
    {"allocations",
     "bytes",
     {TEXT("memory"), TEXT("alloc_space"), TEXT("bytes"), TEXT("space"), TEXT("bytes"), 1}},
    {"lock",
     "count",
     {TEXT("mutex"), TEXT("contentions"), TEXT("count"), TEXT("mutex"), TEXT("count"), 1}},
    {"lock",
     "ns",
     {TEXT("mutex"), TEXT("delay"), TEXT("nanoseconds"), TEXT("mutex"), TEXT("count"), 1}},
    {"lock",
     "nanoseconds",
     {TEXT("mutex"), TEXT("delay"), TEXT("nanoseconds"), TEXT("mutex"), TEXT("count"), 1}},
    {"off_cpu",
     "nanoseconds",
     {TEXT("off_cpu"), TEXT("off_cpu"), TEXT("nanoseconds"), TEXT(""), TEXT(""), 1}},
#undef TEXT
};

static struct slice name_of(const struct profile_facts *profile, struct profile_siblings *siblings)
{
    struct sample_type_name types[TYPES_MAX];
    size_t count = 0;
    if (profile->name.size > 0)
        return profile->name;
    for (; !siblings->is_named && count < siblings->count && count < TYPES_MAX; count++)
        types[count] = (struct sample_type_name){.type = siblings->facts[count].values.type,
                                                 .unit = siblings->facts[count].values.unit};
    if (!siblings->is_named)
        siblings->name = profile_name(types, count);
    siblings->is_named = true;
    return siblings->name;
}

struct profile_type profile_type_of(const struct profile_facts *profile,
                                    struct profile_siblings *siblings)
{
    const struct profile_values *values = &profile->values;
    if (profile->time.rank > 0)
        return profile->time.is_wall ? time_type("wall", "wall", profile->time.ns_per_value)
                                     : time_type("process_cpu", "cpu", profile->time.ns_per_value);
    if (profile->name.size == 0)
        for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
            if (slice_is(values->type, renamed[i].type) && slice_is(values->unit, renamed[i].unit))
                return renamed[i].is;
    return (struct profile_type){
        .name = name_of(profile, siblings),
        .sample_type = values->type,
        .sample_unit = values->unit,
        .period_type = values->period_type,
        .period_unit = values->period_unit,
        .scale = 1,
    };
}
