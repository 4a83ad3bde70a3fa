#include "core/data/profile_measure.h"

#include "core/base/saturate.h"

#include <assert.h>

/* The first is preferred. */
static const char *const cpu_names[] = {"cpu", "ctimer", "itimer", NULL};
static const char *const wall_names[] = {"wall", NULL};

enum { UNITS = 4, NAMES_MAX = 3 };

/* pprof's names of units. */
static const struct {
    const char *names[4];
    int64_t ns;
} units[UNITS] = {
    {{"nanoseconds", "ns", "nanosecond"}, 1},
    {{"microseconds", "us", "microsecond", "\u00b5s"}, 1000},
    {{"milliseconds", "ms", "millisecond"}, 1000000},
    {{"seconds", "s", "second", "sec"}, 1000000000},
};

/* Returns 1 + the position of a name; 0: it is none of them. */
static uint8_t name_position(const char *const *names, struct slice text)
{
    for (uint8_t i = 0; names[i]; i++)
        if (slice_is(text, names[i]))
            return i + 1;
    return 0;
}

static bool is_unit(unsigned unit, struct slice text)
{
    for (size_t i = 0; i < sizeof units->names / sizeof *units->names; i++)
        if (units[unit].names[i] && slice_is(text, units[unit].names[i]))
            return true;
    return false;
}

/* Returns 1 + the number of a unit of time; 0: it is none. */
static uint8_t unit_of_time(struct slice text)
{
    for (unsigned i = 0; i < UNITS; i++)
        if (is_unit(i, text))
            return (uint8_t)(i + 1);
    return 0;
}

static bool is_samples(const struct profile_values *values)
{
    return slice_is(values->type, "samples") && slice_is(values->unit, "count");
}

/* Numbers of samples of a period. Their ranks are above those of times. */
static struct measured_time time_of_counts(const struct profile_values *values, uint8_t name,
                                           const char *const *names)
{
    enum { FIRST = 1 + NAMES_MAX * UNITS, SAMPLES = NAMES_MAX };
    uint8_t period_name = name_position(names, values->period_type);
    uint8_t unit = unit_of_time(values->period_unit);
    if (period_name == 0 || unit == 0 || values->period <= 0)
        return (struct measured_time){0};
    uint8_t of_type = name > 0 ? name - 1 : SAMPLES;
    return (struct measured_time){
        .ns_per_value = saturate_multiply(values->period, units[unit - 1].ns),
        .rank = (uint8_t)(FIRST + (period_name - 1) * (SAMPLES + 1) + of_type),
    };
}

static struct measured_time time_of(const struct profile_values *values, const char *const *names)
{
    uint8_t name = name_position(names, values->type);
    assert(name <= NAMES_MAX);
    if (is_samples(values) || (name > 0 && slice_is(values->unit, "count")))
        return time_of_counts(values, name, names);
    uint8_t unit = name > 0 ? unit_of_time(values->unit) : 0;
    if (unit == 0)
        return (struct measured_time){0};
    return (struct measured_time){.ns_per_value = units[unit - 1].ns,
                                  .rank = (uint8_t)((name - 1) * UNITS + unit)};
}

struct measured_time measured_cpu_time(const struct profile_values *values)
{
    return time_of(values, cpu_names);
}

struct measured_time measured_wall_time(const struct profile_values *values)
{
    struct measured_time wall = time_of(values, wall_names);
    wall.is_wall = wall.rank > 0;
    return wall;
}

struct measured_time measured_time_of(const struct profile_values *values)
{
    struct measured_time cpu = measured_cpu_time(values);
    return cpu.rank > 0 ? cpu : measured_wall_time(values);
}

struct measured_time timed_profile_settle(const struct timed_profile *profiles, size_t count,
                                          size_t i)
{
    assert(i < count);
    const struct timed_profile *own = &profiles[i];
    struct profile_range range = profile_upload_range(i, count);
    for (size_t k = range.begin; own->measured.rank > 0 && k < range.end; k++)
        if (profiles[k].time_ns == own->time_ns &&
            measured_time_yields(own->measured, profiles[k].measured))
            return (struct measured_time){0};
    return own->measured;
}

struct profile_measure profile_measure_of(const struct profile_values *values)
{
    struct profile_measure measure = {.cpu = measured_cpu_time(values),
                                      .has_period_type = values->period_type.size > 0};
    if (is_samples(values))
        measure.counts = 2;
    else if (measure.cpu.rank > 0 && slice_is(values->unit, "count"))
        measure.counts = 1;
    return measure;
}

static bool may_be_of_cpu(const struct profile_measure *measure)
{
    return measure->cpu.rank > 0 || (measure->counts > 0 && !measure->has_period_type);
}

/* A sender may leave the period type out. Without one, only profiles of CPU time are known to be of
 * the same samples. */
static bool are_same_samples(const struct profile_measure *own, const struct profile_measure *other,
                             bool same_period)
{
    if (own->has_period_type && other->has_period_type)
        return same_period;
    return may_be_of_cpu(own) && may_be_of_cpu(other);
}

void profile_role_compare(struct profile_role *role, const struct profile_measure *own,
                          const struct profile_measure *other, bool is_later, bool same_period)
{
    role->yields_cpu |= measured_time_yields(own->cpu, other->cpu);
    if (are_same_samples(own, other, same_period))
        role->yields_samples |=
            other->counts > own->counts || (other->counts == 0 && own->counts == 0 && is_later);
}
