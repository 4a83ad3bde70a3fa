/*
 * pprof_read: a pprof (https://github.com/google/pprof/blob/main/proto/profile.proto) becomes
 * profiles of a request, as docs/pyroscope.md says.
 *
 * Takes what proto3 allows: tables in any order and behind the samples, ids with gaps, repeated
 * fields packed or not, unknown fields. Refuses, naming the place: ids of tables that are 0 or
 * there twice, references to what is not in the profile, other than one value for each sample
 * type, a string_table that does not begin with "", invalid UTF-8, labels that are text and number
 * at once, a field of another wire type than its own, broken bytes, and what is over the limits
 * below. That holds for unused records too.
 *
 * A pprof that was cut: its records have no count and no fixed order, so a cut between two of them
 * leaves a valid message. It is noticed when the string_table is gone, or anything that remains
 * refers to something that was lost. The writers we know end with the string_table, or with it and
 * optional fields of the header; from those a cut can take, unnoticed, only such fields (times,
 * period, comments, default_sample_type, frames, doc_url) and strings for them, never a sample.
 * From a writer that puts samples last it can take samples. There only those who bring the bytes
 * know: a Content-Length, the length of a part, the CRC of gzip.
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
    uint64_t time_unix_nano, duration_nano; /* where the pprof says 0 or less */
    struct slice metric_name;               /* attribute `__name__` of each Profile; empty: none */
    struct span_labels upload;              /* for what samples do not say themselves */
};

/* The sample types, in their order, at most `max`; slices into the pprof, without display names. 0
 * when there are none or the bytes are broken, of which pprof_read tells more. */
size_t pprof_sample_types(struct slice pprof, struct sample_type_name *out, size_t max);

/* Plain bytes, not gzip. The caller has begun the resource. False: the builder holds a part of it
 * and is of no further use. True also when the builder is full (profiles_builder_state). */
bool pprof_read(struct profiles_builder *builder, struct slice pprof,
                const struct pprof_options *options, struct error *err);

#endif
