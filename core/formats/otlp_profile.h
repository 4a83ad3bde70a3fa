/*
 * otlp_profile: a Profile and its samples, read by those who turn them into something else.
 *
 *     struct otlp_profile profile;
 *     otlp_profile_read(&profile, &field, arena);     // a field of ScopeProfiles
 *     struct otlp_samples samples = otlp_profile_samples(&profile, arena);
 *     struct otlp_sample sample;
 *     while (otlp_samples_next(&samples, &sample))
 *         ...
 *
 * Of a request that was scanned and normalised; changes that were made to its tree are seen.
 *
 * Owner: lists live in the arena, the rest borrows from the request.
 *
 * Thread: the worker that owns the batch.
 */
#ifndef PROFCOL_CORE_FORMATS_OTLP_PROFILE_H
#define PROFCOL_CORE_FORMATS_OTLP_PROFILE_H

#include "core/data/message.h"

/* Attributes of a profile or a sample that are read; further ones are left out. */
enum { OTLP_ATTRIBUTES_MAX = 4096 };

struct otlp_profile {
    uint32_t sample_type, sample_unit, period_type, period_unit; /* in the string table */
    int64_t period;
    uint64_t time_unix_nano, duration_nano;
    const uint32_t *attributes; /* in the attribute table */
    uint32_t attribute_count;
    struct message_iter fields; /* in front of the first */
};
void otlp_profile_read(struct otlp_profile *profile, const struct message_field *field,
                       struct arena *arena);

enum { OTLP_SIBLINGS_MAX = 64 };
/* How many of the profiles, from the first on, are one measurement in several sample types, as
 * those of one pprof: all else but the samples is equal, and no type appears twice. At least 1. */
uint32_t otlp_profile_siblings(const struct otlp_profile *profiles, uint32_t count);

struct otlp_sample {
    uint32_t stack, link;
    const uint32_t *attributes; /* until the next sample */
    uint32_t attribute_count;
    int64_t value; /* the sum of its values; without values, how many timestamps it has */
};
struct otlp_samples {
    struct message_iter fields;
    struct arena *arena;
    uint32_t *attributes;
    uint32_t attribute_capacity;
};
struct otlp_samples otlp_profile_samples(const struct otlp_profile *profile, struct arena *arena);
bool otlp_samples_next(struct otlp_samples *samples, struct otlp_sample *sample);

#endif
