/*
 * sample_plan: what the join finds out about a request of profiles before it changes it.
 *
 * sample_ids.h makes a plan and has it decided, enrich_samples.h carries it out. The other files
 * that take one read parts of the request: its attributes (attribute_classes.h, named_ids.h), its
 * samples (sample_view.h), its profiles (sample_totals.h).
 *
 * Owner: the node that made it, until the request goes on: a plan is several times as large as
 * its result, too much to stand in a queue with the request.
 *
 * Thread: that of whoever has the batch: its worker, or a job.
 */
#ifndef PROFCOL_SPANJOIN_SAMPLE_PLAN_H
#define PROFCOL_SPANJOIN_SAMPLE_PLAN_H

#include "core/base/index_table.h"
#include "core/pipeline/batch.h"
#include "processors/spanjoin/joined_values.h"
#include "processors/spanjoin/request_source.h"

struct attribute_class;

/* What the samples of a joined key gain. Keys whose spans give the same values share one. */
struct sample_gain {
    uint32_t *attributes; /* dictionary index of each in samples.attributes; 0: none */
    struct slice packed;  /* all of them, as numbers on the wire */
    bool has_name;        /* of the span */
};

/* What samples name: ids, and where there is no trace id, the time in which they were taken. */
struct sample_key {
    uint64_t from_ns;
    uint64_t to_ns;
    const struct span_match *match; /* NULL: not joined */
    const struct sample_gain *gain; /* of a joined one */
    uint32_t link;                  /* that its samples are to have; 0: the one they came with */
    uint32_t asks; /* the key that the index is asked about for this one: itself, or the one of its
                      span id without a time */
    uint32_t samples; /* Sample messages */
    bool trace_given;
    bool promoted;  /* some sample named it by an attribute */
    bool ambiguous; /* several spans have the id */
};

/* In sample_plan.samples; the rest is a key's position + 1, or 0. */
#define SAMPLE_PROMOTED (1u << 31)
#define SAMPLE_IS_PLAIN (1u << 30) /* all of its attributes are */
#define SAMPLE_KEY (SAMPLE_IS_PLAIN - 1)

/* Of one request: what the join remembers of it stays small beside it. */
enum { SAMPLE_KEYS_MAX = 65536 };

/* Profiles and resources without samples have no plan. */
struct profile_plan {
    uint32_t first_sample;
    uint32_t sample_count;
    const uint8_t *profile_id; /* NULL: none */
    struct span_source source; /* who sends it */
    bool span_taken;           /* its attributes named the span of a sample */
    bool trace_taken;
};

struct resource_plan {
    uint32_t first_profile;
    uint32_t profile_count;
    bool span_taken;
    bool trace_taken;
};

struct sample_plan {
    struct batch *batch;
    struct arena arena; /* of the plan alone; what the request gains is in the batch's */
    struct dictionary *dictionary;
    const struct spanjoin_settings *settings;

    struct span_find *finds; /* one per key, for the index */
    struct sample_key *keys;
    uint32_t key_count;
    uint32_t *samples; /* in wire order */
    uint32_t sample_count;
    uint32_t without_id;
    uint32_t beyond_keys; /* samples that name a span when there were keys enough; they go on as
                             they are */
    struct profile_plan *profiles;
    uint32_t profile_count;
    struct resource_plan *resources;
    uint32_t resource_count;
    struct attribute_class *classes; /* of the attribute table, when first asked for */

    /* workings of the pass */
    uint32_t key_capacity;
    uint32_t sample_capacity;
    uint32_t profile_capacity;
    uint32_t resource_capacity;
    struct index_table keys_by_hash; /* of the ids and times */
    uint32_t *link_keys; /* of the link table: position + 2; 1: names no span; 0: not asked yet */
    uint32_t link_count;
    uint32_t class_count;
    uint32_t *long_texts; /* of the string table: the first equal entry + 1; 0: not asked yet */
    uint32_t long_text_count;
    uint32_t *attributes; /* of one sample */
    uint32_t attribute_capacity;
    uint32_t *scratch; /* of one sample on its way out */
    size_t scratch_capacity;
    size_t room;              /* for values that samples gain; what does not fit is missing */
    struct span_index *index; /* NULL: no totals */
    const struct request_sender *sender;
    struct span_source source; /* of the resource that is being read */
    uint64_t now_ns;
    uint64_t request;
};

#endif
