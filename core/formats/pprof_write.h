/*
 * pprof_write: converts the profiles of a request to pprofs, the reverse of pprof_read.
 *
 *     struct pprof_writer *w = pprof_writer_new(dictionary, arena, NULL);
 *     pprof_writer_begin(w, &header);                        // forgets what was added before
 *     pprof_writer_add_profiles(w, profiles, count);         // or sample types and samples
 *     while (pprof_writer_next(w, &limits, &pprof))          // usually once
 *         ...
 *     pprof_writer_free(w);
 *
 * One writer serves all pprofs of a request. It needs a few bytes for each entry of the dictionary;
 * the cost of a pprof depends only on what is added to it. Samples with equal stack, link and
 * labels become one, with a value for each sample type. The caller chooses which attributes of a
 * sample become labels, and their names. Links become the labels span_id and trace_id, which take
 * precedence over attributes of those names. Attributes whose value is not a string, integer or
 * bool are left out, and so are labels beyond PPROF_LABELS_MAX. Mappings without any pprof.mapping
 * attribute get their has_ flags from their locations.
 *
 * Every pprof is complete in itself. The string_table comes last, so that a truncated pprof is
 * noticed.
 *
 * Owner: the caller owns the writer. Added data must live as long as the arena. A pprof is valid
 * until the next call.
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
/* Returns the header for a Profile, with its attributes pprof.profile.*; lists live in the
 * arena. */
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
    /* Returns whether this attribute becomes a label; may change its name and text. Called once for
     * each attribute, until pprof_writer_forget_labels. New names and texts must live as long as
     * the writer. */
    bool (*keep)(void *context, struct pprof_label *label);
    void *context;
};

/* Creates a writer. labels is copied; NULL: every attribute becomes a label with its own name. */
struct pprof_writer *pprof_writer_new(struct dictionary *dictionary, struct arena *arena,
                                      const struct pprof_labels *labels);
void pprof_writer_free(struct pprof_writer *writer); /* NULL is allowed */

/* Begins a pprof, and forgets everything that was added before. */
void pprof_writer_begin(struct pprof_writer *writer, const struct pprof_header *header);
/* Makes the writer call `keep` again for each attribute, from the next pprof on: for callers whose
 * result depends on the series. Costs nothing for attributes that do not occur again. */
void pprof_writer_forget_labels(struct pprof_writer *writer);
/* Adds a sample type, and returns its number for the samples. Add all before the first sample, at
 * most OTLP_SIBLINGS_MAX. */
uint32_t pprof_writer_sample_type(struct pprof_writer *writer, struct slice type,
                                  struct slice unit);
/* Adds a sample with `value`, which may be in another unit than sample->value, which is ignored.
 * Sums stop at INT64_MIN and INT64_MAX. */
void pprof_writer_add(struct pprof_writer *writer, uint32_t sample_type,
                      const struct otlp_sample *sample, int64_t value);
/* Adds siblings (otlp_profile_siblings): their sample types, the first one last, and all
 * samples. */
void pprof_writer_add_profiles(struct pprof_writer *writer, const struct otlp_profile *profiles,
                               uint32_t count);

struct pprof_limits {
    uint32_t samples_max; /* of a pprof; 0: no limit */
    size_t size_max;      /* its bytes; one sample alone may be larger. 0: no limit */
    uint32_t frames_max;  /* of a stack: keeps those nearest the root. 0: no limit */
    uint32_t lines_max;   /* of a location: keeps the first ones. 0: no limit */
    uint32_t text_max;    /* bytes of a text; longer ones are truncated. 0: no limit */
};
/* Writes the next part of the added samples. Samples whose values are all 0 are left out. Returns
 * false if nothing is left. */
bool pprof_writer_next(struct pprof_writer *writer, const struct pprof_limits *limits,
                       struct slice *pprof_out);
/* Returns the number of mappings, locations, functions and strings of the last pprof. */
uint32_t pprof_writer_entries(const struct pprof_writer *writer);

#endif
