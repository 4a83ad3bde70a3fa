/*
 * sample_ids: which span each sample of a request names, and what the samples of each span sum up
 * to.
 *
 * A plan is made from the bytes of a profiles request in one pass: every distinct id becomes a
 * key, every sample refers to one (or none). The index is then asked about the keys, and
 * enrich_samples.c changes the request by the plan.
 *
 * Owner: the node that made it, until the request goes on: a plan is several times as large as
 * what it says, too much to stand in a queue with the request.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_SPANJOIN_SAMPLE_IDS_H
#define PROFCOL_SPANJOIN_SAMPLE_IDS_H

#include "core/base/index_table.h"
#include "core/pipeline/batch.h"
#include "processors/spanjoin/joined_values.h"
#include "processors/spanjoin/request_source.h"

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

/* An entry of the attribute table, by its key. */
enum attribute_role {
    ATTRIBUTE_UNREAD,
    ATTRIBUTE_PLAIN,
    ATTRIBUTE_SPAN_ID,
    ATTRIBUTE_TRACE_ID,
    ATTRIBUTE_SPAN_NAME, /* as it stands beside an id */
};
struct attribute_class {
    uint8_t role;
    uint8_t rank;   /* in sources or trace_sources */
    uint8_t joined; /* position in samples.attributes of the same key; JOIN_ATTRIBUTES_MAX: none */
    bool is_plain;  /* none of all this: it stays with its samples whatever they gain */
    bool has_id;    /* its value is the id of a span or a trace, by its role */
    uint8_t id[TRACE_ID_SIZE];
};

/* In sample_plan.samples; the rest is a key's position + 1, or 0. */
#define SAMPLE_PROMOTED (1u << 31)
#define SAMPLE_IS_PLAIN (1u << 30) /* all of its attributes are */
#define SAMPLE_KEY (SAMPLE_IS_PLAIN - 1)

/* Of one request: what the join remembers of it stays small beside it. */
enum { SAMPLE_KEYS_MAX = 65536 };

/* Of a sample or a profile; one with more goes on as it is. */
enum { JOINED_ATTRIBUTES_MAX = 4096 };

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

/* A sample as far as the join reads it. */
struct sample_view {
    const uint32_t *attributes; /* valid until the next one is read */
    uint32_t attribute_count;   /* JOINED_ATTRIBUTES_MAX + 1: as many, or more */
    uint32_t link;
    uint64_t timestamps;
    uint64_t values;
    uint64_t sum;
    uint64_t from_ns; /* of the timestamps */
    uint64_t to_ns;
};
struct sample_view sample_view_read(struct sample_plan *plan, struct slice raw);

/* batch must be unchanged. index: totals are computed, except for profiles whose id came in another
 * request (a number that no other request has); NULL: no totals. sender: of this batch. */
struct sample_plan *sample_plan_new(struct batch *batch, const struct request_sender *sender,
                                    struct span_index *index, uint64_t request);
void sample_plan_free(struct sample_plan *plan);
/* After span_index_find_many on plan->finds: decides which span each key means. Keys without a
 * trace id take that of their span. */
void sample_plan_choose(struct sample_plan *plan);
/* Keys whose span did not come yet. */
uint32_t sample_plan_missing(const struct sample_plan *plan);
/* Tells the index about the profile ids, once the request is admitted. */
void sample_plan_remember_profiles(const struct sample_plan *plan);

bool profile_has_samples(struct slice profile);
bool resource_has_samples(struct slice resource_profiles);

const struct attribute_class *sample_plan_classify(struct sample_plan *plan, uint32_t attribute);
static inline const struct attribute_class *sample_plan_class(struct sample_plan *plan,
                                                              uint32_t attribute)
{
    if (attribute < plan->class_count && plan->classes[attribute].role != ATTRIBUTE_UNREAD)
        return &plan->classes[attribute];
    return sample_plan_classify(plan, attribute);
}

#endif
