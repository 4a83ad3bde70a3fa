/*
 * profile_intake: converts a received profile, from any of the receiver's inputs, to OTLP profiles.
 *
 * gzip and JFR recordings are recognised by their first bytes; anything else is a pprof.
 *
 * Owner: results belong to the caller.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PROFILE_INTAKE_H
#define PROFCOL_PROFILE_INTAKE_H

#include "core/base/verdict.h"
#include "core/formats/pprof_delta.h"
#include "core/formats/series.h"

struct buffer;

struct profile_intake {
    struct slice bytes;
    const struct series *series;
    struct slice name;         /* default `__name__`; empty: see profile_name.h */
    size_t max_size;           /* decompressed */
    size_t first_try_bytes;    /* decompressed, of profile_intake_read with unfolds_out */
    uint64_t time_unix_nano;   /* if the profile has no time */
    struct pprof_delta *delta; /* NULL: values are sent unchanged */
    uint64_t delta_base_ns;    /* time of the last pprof_delta_keep, wall clock */
    struct budget *budget;
    unsigned added_threads; /* which samples get threads and times: bits of enum added_threads
                               (core/data/sample_threads.h); 0: none */
};

/* Returns the request; NULL, with *why set, if it is refused. If *samples_out is 0,
 * empty_profiles.h says whether to pass it on. unfolds_out may be NULL. Otherwise this is only a
 * try: if the profile decompresses to more than first_try_bytes, nothing is read and *unfolds_out
 * is true. */
struct buffer *profile_intake_read(const struct profile_intake *intake, bool *unfolds_out,
                                   uint32_t *samples_out, struct verdict *why);

#endif
