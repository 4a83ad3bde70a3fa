/*
 * pprof_fixture: the recorded pprofs of tests/data/pprof, and descriptions of requests in the
 * format of tests/oracle/pprof.py.
 *
 * Owner: buffers belong to the caller.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_PPROF_FIXTURE_H
#define PROFCOL_TESTS_PPROF_FIXTURE_H

#include "core/base/buffer.h"
#include "core/base/text.h"
#include "core/formats/pprof_read.h"
#include "core/formats/pprof_write.h"

/* Loads and decompresses a file of tests/data/pprof, or any file if the name contains a slash. */
struct buffer *pprof_load(const char *name);
/* Calls on_pprof with the name of each recording. */
void pprof_each(void (*on_pprof)(const char *name));

/* Converts a pprof, with the resource attribute service.name = shop. Returns NULL if it is refused
 * or there is no room. */
struct buffer *pprof_to_otlp(struct slice pprof, const struct pprof_options *options,
                             struct error *err);

/* Appends a line "name type unit samples sum crc" for each Profile. */
void pprof_report(struct slice request, const char *name, struct text *out);
/* Appends a line "type/unit time+duration every period type/unit attributes" for each Profile, and
 * a line "value {mapping @address [function]} attributes trace/span" for each sample, sorted. */
void pprof_describe(struct slice request, struct text *out);
/* Like pprof_describe, with equal samples summed, without those whose sum is 0. flags: include the
 * has_ flags of mappings. */
void pprof_describe_sums(struct slice request, bool flags, struct text *out);

/* Converts the Profiles of a request to pprofs, siblings together, and calls on_pprof for each. */
void pprof_from_otlp(struct slice request, const struct pprof_labels *labels,
                     const struct pprof_limits *limits,
                     void (*on_pprof)(struct slice pprof, void *context), void *context);

#endif
