/*
 * profile_intake: a profile as it came, from wherever, becomes OTLP profiles.
 *
 * gzip is told by its first bytes, and so is a JFR recording; the rest is a pprof.
 *
 * Owner: results are the caller's.
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
    struct slice name;         /* `__name__` of what does not say it; empty: by its sample types */
    size_t max_size;           /* decompressed */
    size_t first_try_bytes;    /* decompressed, of profile_intake_read with unfolds_out */
    uint64_t time_unix_nano;   /* of what does not say when it was */
    struct pprof_delta *delta; /* NULL: as it is */
    uint64_t delta_base_ns;    /* when that was kept last; wall clock */
    struct budget *budget;
};

/* NULL: *why says why. *samples_out may be 0: there is nothing for a pipeline. unfolds_out: NULL,
 * or it is only tried: nothing is read, and *unfolds_out says so, when it has more than
 * first_try_bytes. */
struct buffer *profile_intake_read(const struct profile_intake *intake, bool *unfolds_out,
                                   uint32_t *samples_out, struct verdict *why);

#endif
