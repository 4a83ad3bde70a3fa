/*
 * pprof_read: converts a pprof (https://github.com/google/pprof/blob/main/proto/profile.proto) to
 * profiles of a request, as described in docs/pyroscope.md.
 *
 * It accepts what proto3 allows: tables in any order and after the samples, ids with gaps, repeated
 * fields packed or not, unknown fields. It refuses, and names the position: ids that are 0 or occur
 * twice, references to missing records, a sample that does not have one value for each sample type,
 * a string_table that does not begin with "", invalid UTF-8, labels that have both a text and a
 * number, fields with a wrong wire type, broken bytes, and more than the limits below. That applies
 * to unused records, too.
 *
 * A truncated pprof may be a valid message, because its records have no count and no fixed order.
 * It is noticed if the string_table is missing, or if a remaining record refers to a lost one. The
 * writers we know end with the string_table, or with it and optional fields of the header. Of
 * theirs, only such fields (times, period, comments, default_sample_type, frames, doc_url) and
 * their strings can be lost unnoticed, never a sample. If a writer puts samples last, samples can
 * be lost. Then only the transport notices it: by Content-Length, the length of a part, or the CRC
 * of gzip.
 *
 * Owner: nothing is kept; the builder copies.
 *
 * Thread: the builder's.
 */
#ifndef PROFCOL_CORE_FORMATS_PPROF_READ_H
#define PROFCOL_CORE_FORMATS_PPROF_READ_H

#include "core/base/error.h"
#include "core/formats/profile_name.h"
#include "core/formats/span_labels.h"

struct profiles_builder;

enum {
    PPROF_SAMPLE_TYPES_MAX = 64,
    PPROF_LABELS_MAX = 100,   /* of a sample, as in Pyroscope */
    PPROF_FRAMES_MAX = 65536, /* of a sample; Pyroscope keeps 1,000 */
    PPROF_LINES_MAX = 1000,   /* of a location */
    PPROF_COMMENTS_MAX = 1000,
};

struct pprof_options {
    uint64_t time_unix_nano, duration_nano; /* used if the pprof has 0 or less */
    struct slice metric_name;               /* attribute `__name__` of each Profile; empty: none */
    struct span_labels upload;              /* ids for samples without their own */
};

/* Writes the sample types, in their order, at most `max`, as slices into the pprof without display
 * names. Returns their number; 0 if there are none or the bytes are broken (pprof_read reports the
 * error). */
size_t pprof_sample_types(struct slice pprof, struct sample_type_name *out, size_t max);

/* Adds the pprof to the builder's resource. pprof: plain bytes, not gzip. Returns false, with err
 * set, if it is refused; the builder then contains a part of it and must be discarded. Returns true
 * even if the builder is full (profiles_builder_state). */
bool pprof_read(struct profiles_builder *builder, struct slice pprof,
                const struct pprof_options *options, struct error *err);

#endif
