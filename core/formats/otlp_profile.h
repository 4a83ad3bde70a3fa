/*
 * otlp_profile: reads a Profile and its samples, for conversion to other formats.
 *
 *     struct otlp_profile profile;
 *     otlp_profile_read(&profile, &field, arena);     // a field of ScopeProfiles
 *     struct otlp_samples samples = otlp_profile_samples(&profile, arena);
 *     struct otlp_sample sample;
 *     while (otlp_samples_next(&samples, &sample))
 *         ...
 *
 * The request must be scanned and normalised. Changes made to its tree are visible.
 *
 * Owner: lists live in the arena, the rest borrows from the request.
 *
 * Thread: the worker that owns the batch.
 */
#ifndef PROFCOL_CORE_FORMATS_OTLP_PROFILE_H
#define PROFCOL_CORE_FORMATS_OTLP_PROFILE_H

#include "core/data/message.h"

/* Limit on the attributes of a profile or sample; further ones are left out. */
enum { OTLP_ATTRIBUTES_MAX = 4096 };

struct otlp_profile {
    uint32_t sample_type, sample_unit, period_type, period_unit; /* indices into the string_table */
    int64_t period;
    uint64_t time_unix_nano, duration_nano;
    const uint32_t *attributes; /* indices into the attribute_table */
    uint32_t attribute_count;
    bool has_samples;
    struct message_iter fields; /* at the first field */
};
/* Reads everything but the samples. */
void otlp_profile_read(struct otlp_profile *profile, const struct message_field *field,
                       struct arena *arena);

enum { OTLP_SIBLINGS_MAX = 64 };
/* Returns how many of the profiles, beginning with the first, are one measurement in several sample
 * types, as in one pprof: everything but sample types and samples is equal, and no type occurs
 * twice. At least 1. */
uint32_t otlp_profile_siblings(const struct otlp_profile *profiles, uint32_t count);

struct otlp_sample {
    uint32_t stack, link;
    const uint32_t *attributes; /* valid until the next sample */
    uint32_t attribute_count;
    int64_t value; /* the sum of its values; without values, the number of its timestamps */
};
struct otlp_samples {
    struct message_iter fields;
    struct arena *arena;
    uint32_t *attributes;
    uint32_t attribute_capacity;
};
/* Returns an iterator over the samples of a profile. */
struct otlp_samples otlp_profile_samples(const struct otlp_profile *profile, struct arena *arena);
/* Reads the next sample; returns false at the end. */
bool otlp_samples_next(struct otlp_samples *samples, struct otlp_sample *sample);

#endif
