/*
 * pprof_fixture: the recorded pprofs of tests/data/pprof, and what a request says in the words of
 * tests/oracle/pprof.py.
 *
 * Owner: buffers are the caller's.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_PPROF_FIXTURE_H
#define PROFCOL_TESTS_PPROF_FIXTURE_H

#include "core/base/buffer.h"
#include "core/base/text.h"
#include "core/formats/pprof_read.h"
#include "core/formats/pprof_write.h"

/* A file of tests/data/pprof, or any other with a slash in its path; not compressed any more. */
struct buffer *pprof_load(const char *name);
/* Calls with the name of each recording. */
void pprof_each(void (*on_pprof)(const char *name));

/* With a resource of one attribute, service.name = shop. NULL: refused, or no room. */
struct buffer *pprof_to_otlp(struct slice pprof, const struct pprof_options *options,
                             struct error *err);

/* "name type unit samples sum crc" of each Profile, a line each. */
void pprof_report(struct slice request, const char *name, struct text *out);
/* "type/unit time+duration every period type/unit attributes" of each Profile, and a line for each
 * sample: "value {mapping @address [function]} attributes trace/span", sorted. */
void pprof_describe(struct slice request, struct text *out);
/* The same with equal samples summed, without those that are 0 then, and without the has_ flags of
 * mappings if they are not wanted. */
void pprof_describe_sums(struct slice request, bool flags, struct text *out);

/* The Profiles of a request as pprofs, siblings together: one call each. */
void pprof_from_otlp(struct slice request, const struct pprof_labels *labels,
                     const struct pprof_limits *limits,
                     void (*on_pprof)(struct slice pprof, void *context), void *context);

#endif
