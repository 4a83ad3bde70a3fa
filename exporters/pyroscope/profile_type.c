#include "exporters/pyroscope/profile_type.h"

#include "core/formats/profile_name.h"

enum { TYPES_MAX = 64 };

static bool is_one_of(struct slice text, const char *const *names)
{
    for (; *names; names++)
        if (slice_is(text, *names))
            return true;
    return false;
}

static bool is_cpu(struct slice type)
{
    static const char *const names[] = {"cpu", "itimer", "ctimer", NULL};
    return is_one_of(type, names);
}

static bool is_nanoseconds(struct slice unit)
{
    static const char *const names[] = {"nanoseconds", "ns", NULL};
    return is_one_of(unit, names);
}

/* Whether the upload has a profile of the time itself, so that counts need not be converted to
 * it. */
static bool has_time(const struct profile_facts *siblings, size_t count, bool (*is)(struct slice))
{
    for (size_t i = 0; i < count; i++)
        if (is(siblings[i].sample_type) && is_nanoseconds(siblings[i].sample_unit))
            return true;
    return false;
}

static bool is_wall(struct slice type)
{
    return slice_is(type, "wall");
}

static struct profile_type time_type(const char *name, const char *type, bool times_period)
{
    return (struct profile_type){
        .name = slice_of_string(name),
        .sample_type = slice_of_string(type),
        .sample_unit = SLICE("nanoseconds"),
        .period_type = slice_of_string(type),
        .period_unit = SLICE("nanoseconds"),
        .times_period = times_period,
    };
}

/* Whether the values are this kind of time, or counts of periods of it. */
static bool is_time(const struct profile_facts *profile, const struct profile_facts *siblings,
                    size_t count, bool (*is)(struct slice), bool *times_period)
{
    if (is(profile->sample_type) && is_nanoseconds(profile->sample_unit)) {
        *times_period = false;
        return true;
    }
    *times_period = slice_is(profile->sample_unit, "count") &&
                    (slice_is(profile->sample_type, "samples") || is(profile->sample_type)) &&
                    is(profile->period_type) && is_nanoseconds(profile->period_unit) &&
                    !has_time(siblings, count, is);
    return *times_period;
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
     {TEXT("memory"), TEXT("alloc_objects"), TEXT("count"), TEXT("space"), TEXT("bytes"), false}},
    {"allocations",
     "bytes",
     {TEXT("memory"), TEXT("alloc_space"), TEXT("bytes"), TEXT("space"), TEXT("bytes"), false}},
    {"lock",
     "count",
     {TEXT("mutex"), TEXT("contentions"), TEXT("count"), TEXT("mutex"), TEXT("count"), false}},
    {"lock",
     "ns",
     {TEXT("mutex"), TEXT("delay"), TEXT("nanoseconds"), TEXT("mutex"), TEXT("count"), false}},
    {"lock",
     "nanoseconds",
     {TEXT("mutex"), TEXT("delay"), TEXT("nanoseconds"), TEXT("mutex"), TEXT("count"), false}},
    {"off_cpu",
     "nanoseconds",
     {TEXT("off_cpu"), TEXT("off_cpu"), TEXT("nanoseconds"), TEXT(""), TEXT(""), false}},
#undef TEXT
};

static struct slice name_of(const struct profile_facts *profile, struct profile_siblings *siblings)
{
    struct sample_type_name types[TYPES_MAX];
    size_t count = 0;
    if (profile->name.size > 0)
        return profile->name;
    for (; !siblings->is_named && count < siblings->count && count < TYPES_MAX; count++)
        types[count] = (struct sample_type_name){.type = siblings->facts[count].sample_type,
                                                 .unit = siblings->facts[count].sample_unit};
    if (!siblings->is_named)
        siblings->name = profile_name(types, count);
    siblings->is_named = true;
    return siblings->name;
}

struct profile_type profile_type_of(const struct profile_facts *profile,
                                    struct profile_siblings *siblings)
{
    bool times_period;
    if (is_time(profile, siblings->facts, siblings->count, is_cpu, &times_period))
        return time_type("process_cpu", "cpu", times_period);
    if (is_time(profile, siblings->facts, siblings->count, is_wall, &times_period))
        return time_type("wall", "wall", times_period);
    if (profile->name.size == 0)
        for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
            if (slice_is(profile->sample_type, renamed[i].type) &&
                slice_is(profile->sample_unit, renamed[i].unit))
                return renamed[i].is;
    return (struct profile_type){
        .name = name_of(profile, siblings),
        .sample_type = profile->sample_type,
        .sample_unit = profile->sample_unit,
        .period_type = profile->period_type,
        .period_unit = profile->period_unit,
    };
}
