/*
 * pprof_write: profiles of a request become pprofs; what pprof_read makes, undone.
 *
 *     struct pprof_writer *w = pprof_writer_new(dictionary, arena, NULL);
 *     pprof_writer_begin(w, &header);                        // forgets what was added before
 *     pprof_writer_add_profiles(w, profiles, count);         // or sample types and samples
 *     while (pprof_writer_next(w, &limits, &pprof))          // usually once
 *         ...
 *     pprof_writer_free(w);
 *
 * One writer serves a request, one pprof after the other: making it costs a few bytes for each
 * entry of the dictionary, a pprof costs what is added to it. Samples of equal stack, link and
 * labels become one, with a value for each sample type. What a sample's attributes are called as
 * labels, and which are left out, says the caller; Links become the labels span_id and trace_id and
 * go before attributes of those names. Attributes with other values than text, integer and bool are
 * left out, and what is over PPROF_LABELS_MAX labels. Mappings without any pprof.mapping attribute
 * get their has_ flags from what their locations have.
 *
 * Every pprof is whole in itself, sorted so that one that was cut is noticed: the string_table
 * comes last.
 *
 * Owner: the caller; what is added lives in the arena, a pprof until the writer is used again.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_PPROF_WRITE_H
#define PROFCOL_CORE_FORMATS_PPROF_WRITE_H

#include "core/data/dictionary.h"
#include "core/formats/otlp_profile.h"

struct pprof_writer;

struct pprof_header {
    struct slice period_type, period_unit;
    int64_t period;
    uint64_t time_unix_nano, duration_nano;
    struct slice drop_frames, keep_frames, default_sample_type, doc_url;
    const struct slice *comments;
    uint32_t comment_count;
};
/* Of a Profile, with its attributes pprof.profile.*; lists in the arena. */
struct pprof_header pprof_header_of(const struct otlp_profile *profile,
                                    struct dictionary *dictionary, struct arena *arena);

/* An attribute of samples as a label. */
struct pprof_label {
    struct slice name;
    struct slice text; /* empty: a number */
    int64_t number;
    struct slice unit;
};
struct pprof_labels {
    /* Whether this attribute becomes a label; may give it another name and text. Asked once for
     * each, until pprof_writer_forget_labels; what it gives lives as long as the writer. */
    bool (*keep)(void *context, struct pprof_label *label);
    void *context;
};

/* labels is copied; NULL: every attribute under its own name. */
struct pprof_writer *pprof_writer_new(struct dictionary *dictionary, struct arena *arena,
                                      const struct pprof_labels *labels);
void pprof_writer_free(struct pprof_writer *writer); /* NULL is allowed */

void pprof_writer_begin(struct pprof_writer *writer, const struct pprof_header *header);
/* From the next pprof on, keep is asked again: where its answer depends on whose samples they are.
 * Costs nothing for attributes that are not met again. */
void pprof_writer_forget_labels(struct pprof_writer *writer);
/* Its number for the samples; all of them before the first sample, at most OTLP_SIBLINGS_MAX. */
uint32_t pprof_writer_sample_type(struct pprof_writer *writer, struct slice type,
                                  struct slice unit);
/* sample->value does not count here, value does: it may be in another unit. Sums stay at the ends
 * of int64. */
void pprof_writer_add(struct pprof_writer *writer, uint32_t sample_type,
                      const struct otlp_sample *sample, int64_t value);
/* Siblings (otlp_profile_siblings): their sample types, the first one last, and all samples. */
void pprof_writer_add_profiles(struct pprof_writer *writer, const struct otlp_profile *profiles,
                               uint32_t count);

struct pprof_limits {
    uint32_t samples_max; /* of a pprof; 0: no limit */
    size_t size_max;      /* its bytes; one sample alone may be larger. 0: no limit */
    uint32_t frames_max;  /* of a stack: the last ones, towards the root. 0: no limit */
    uint32_t lines_max;   /* of a location: the first ones. 0: no limit */
    uint32_t text_max;    /* bytes of a text, which is cut. 0: no limit */
};
/* The next part of what was added. Samples of which all values are 0 are left out. False: there is
 * no more. */
bool pprof_writer_next(struct pprof_writer *writer, const struct pprof_limits *limits,
                       struct slice *pprof_out);
/* Mappings, locations, functions and strings of the last one. */
uint32_t pprof_writer_entries(const struct pprof_writer *writer);

#endif
