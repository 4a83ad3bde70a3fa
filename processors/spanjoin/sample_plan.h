/*
 * sample_plan: what the join finds in a profiles request before it changes the request.
 *
 * sample_ids.h builds a plan and chooses the spans; enrich_samples.h applies it. The other files
 * with a plan as argument read parts of the request: attributes (attribute_classes.h, named_ids.h),
 * samples (sample_view.h), profiles (sample_totals.h).
 *
 * Owner: the node that created it, until the request is sent on. A plan is several times as large
 * as its results, too large to be queued with the request.
 *
 * Thread: that of the batch: its worker, or a job.
 */
#ifndef PROFCOL_SPANJOIN_SAMPLE_PLAN_H
#define PROFCOL_SPANJOIN_SAMPLE_PLAN_H

#include "core/base/index_table.h"
#include "core/data/fold.h"
#include "core/data/profile_measure.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/join_feed.h"
#include "processors/spanjoin/joined_values.h"
#include "processors/spanjoin/request_source.h"

struct attribute_class;
struct left_upload;
struct sample_functions;
struct resource_upload;
struct thread_pair;

/* The attributes that the samples of a joined key gain. Keys whose spans give the same values share
 * one struct. */
struct sample_gain {
    uint32_t *attributes; /* dictionary index of each in samples.attributes; 0: none */
    struct slice packed;  /* all of them, as packed indices */
    bool has_name;        /* one of them is the name of the span */
};

/* What samples name: ids, and without a trace id also the time in which the samples were taken. */
struct sample_key {
    uint64_t from_ns;
    uint64_t to_ns;
    const struct span_match *match; /* NULL: not joined */
    const struct sample_gain *gain; /* set if joined */
    uint32_t link;                  /* the link that its samples get; 0: they keep theirs */
    uint32_t asks; /* the key that is looked up for this one: itself, or the key with the same span
                      id and no time */
    uint32_t samples; /* Sample messages */
    bool trace_given;
    bool promoted;  /* a sample named it by an attribute */
    bool ambiguous; /* several spans have the id */
    bool by_thread; /* samples were given its Link by thread and time */
    bool from_root; /* some samples named its local root, and went on to it */
    bool is_shown;  /* some are of a type that a trace view shows (spans.profile_types) */
};

/* Bits in sample_plan.samples: the index of a key + 1, or 0; of a usual sample (sample_view.h),
 * where its attributes begin, and the bytes of the packed list; flags. */
enum {
    SAMPLE_START_SHIFT = 17,
    SAMPLE_START_MAX = 7,
    SAMPLE_LIST_SHIFT = 20,
    SAMPLE_LIST_MAX = 63
};
#define SAMPLE_KEY ((1u << SAMPLE_START_SHIFT) - 1)
#define SAMPLE_IS_STRIPPED (1u << 26) /* it has a key, and attributes that the reader added */
#define SAMPLE_IS_USUAL (1u << 27)    /* the places of its attributes are known */
#define SAMPLE_CHANGES (1u << 28)     /* it is rewritten; set by sample_plan_apply */
#define SAMPLE_HAS_THREAD                                                                          \
    (1u << 29)                     /* it names no span, but a thread of a process, and times; with \
                                      a key: that of the span that was found by them */
#define SAMPLE_IS_PLAIN (1u << 30) /* all of its attributes are plain */
#define SAMPLE_PROMOTED (1u << 31)

/* Whether a sample with these bits gets the Link of its key. */
static inline bool sample_gains_link(uint32_t named)
{
    bool by_thread = (named & SAMPLE_HAS_THREAD) && (named & SAMPLE_KEY);
    return by_thread || (named & SAMPLE_PROMOTED);
}

/* What samples of the profile that is being read add to a key, until its end: small, because
 * samples name keys in any order. */
struct key_tally {
    uint64_t count; /* as in struct sample_amount, of the samples that totals contain */
    uint64_t sum;
    uint32_t samples; /* Sample messages; 0: none of this profile has named the key */
};

/* Keys of one request. The limit keeps a plan small in comparison to its request. */
enum { SAMPLE_KEYS_MAX = 65536 };
_Static_assert(SAMPLE_KEYS_MAX <= SAMPLE_KEY, "the bits suffice");

/* Identifies a request by its bytes, for profiles without an id: a client that was refused sends
 * the same bytes again. It is computed when it is needed. */
struct content_id {
    bool is_known;
    uint8_t bytes[PROFILE_ID_SIZE];
};

/* Profiles and resources without samples have no plan. */
struct profile_plan {
    uint32_t first_sample;
    uint32_t sample_count;
    uint32_t changes;          /* samples with SAMPLE_CHANGES */
    const uint8_t *profile_id; /* its own, or that of the request's content; NULL: none */
    struct profile_sums sums;
    struct span_source source; /* of its sender */
    uint16_t process; /* number of the instance whose spans' threads are known; 0: of none */
    uint16_t sampler; /* that of the profiles, if its ids are of another pid namespace; 0: they are
                         not */
    bool span_taken;  /* its attributes named the span of a sample, and are removed */
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
    struct arena arena; /* for the plan only; data added to the request is in the batch's arena */
    struct dictionary *dictionary;
    const struct spanjoin_settings *settings;

    struct span_find *finds; /* one per key, for the index */
    struct sample_key *keys;
    const struct span_match **roots; /* by key: the local root above its span, NULL: not known.
                                        NULL: nobody needs them */
    const int64_t *span_cpu; /* by key: CPU time in ns of all known samples of its span; NULL:
                                `keep` does not read it */
    uint32_t span_cpu_count; /* of the keys that were there then */
    struct sample_functions *functions; /* of the samples that totals contain; NULL: none, or nobody
                                           needs them */
    uint32_t key_count;
    uint32_t *samples; /* in wire order */
    uint32_t sample_count;
    uint32_t without_id;
    uint32_t with_thread;           /* those of them with SAMPLE_HAS_THREAD */
    uint32_t threads_before;        /* of these, in the resources before the present one */
    uint32_t without_before;        /* likewise, of those without an id */
    uint32_t with_presumed;         /* those with SAMPLE_HAS_THREAD whose process is presumed
                                       (instances.h), so that they do not wait; not counted down */
    bool may_have_threads;          /* some may get it when it is known which process they are of */
    uint64_t by_thread;             /* samples that thread_samples.h gave a Link */
    struct unnamed_samples unnamed; /* of samples without an id, those that it gave none */
    uint64_t not_split;        /* samples without an id that stay without their spans, because they
                                  cannot be split */
    struct left_upload *left;  /* what thread_samples.h found no span for (left_upload.h); NULL:
                                  none */
    struct join_doubt *doubts; /* for the feed (join_doubts.h) */
    uint32_t doubt_count;
    bool doubts_are_cut;
    bool has_added_threads;    /* samples have attributes of core/data/sample_threads.h */
    struct fold_known known;   /* samples that timed_reading.h has read, for the removal of these;
                                  samples: NULL: it has read none */
    struct thread_pair *pairs; /* ids of the same threads (thread_pairs.h) */
    uint32_t pair_count;
    uint16_t pairs_process; /* the first process with one; 0: none */
    uint32_t beyond_keys;   /* samples that name a span beyond SAMPLE_KEYS_MAX; they are sent on
                               unchanged */
    bool overflow;          /* it leaves before its spans had time to arrive: memory was short */
    struct profile_plan *profiles;
    uint32_t profile_count;
    struct resource_plan *resources;
    uint32_t resource_count;
    struct resource_upload *uploads; /* of all resources */
    uint32_t upload_count;
    struct attribute_class *classes; /* by index in the attribute_table; read when first needed */

    /* used while the plan is built */
    uint32_t key_capacity;
    uint32_t sample_capacity;
    uint32_t profile_capacity;
    uint32_t resource_capacity;
    uint32_t upload_capacity;
    uint32_t pair_capacity;
    struct index_table keys_by_hash; /* hash of ids and times */
    struct key_tally *tallies;       /* one per key */
    uint32_t *tallied;               /* keys with samples in them */
    uint32_t tallied_count;
    struct known_link {
        uint32_t turn; /* of the source that named it; 0: not known yet */
        uint32_t key;
    } * links; /* by index in the link_table: the key of a Link with both ids */
    uint32_t link_count;
    uint32_t class_count;
    uint32_t
        *long_texts; /* by index in the string_table: the first equal entry + 1; 0: not read yet */
    uint32_t long_text_count;
    struct remembered_traits *lists; /* of the samples read last; NULL: not needed yet */
    uint32_t *attributes;            /* of one sample */
    uint32_t attribute_capacity;
    const struct slice **more; /* by key + 1: what its samples gain if they keep the attributes and
                                  the Link that they have; NULL: they do not */
    uint32_t *scratch;         /* of one sample being written */
    size_t scratch_capacity;
    uint32_t *joined_keys; /* by index in samples.attributes: its key in the string_table; 0: not
                              there yet */
    size_t room; /* bytes left for values that samples gain; values that do not fit are left out */
    struct span_index *index; /* NULL: no totals */
    const uint8_t *counts;    /* for each sample: whether totals contain it; NULL: all of them */
    const struct request_sender *sender;
    struct span_source source; /* of the resource being read */
    uint32_t source_turn;      /* counts its changes, from 1 */
    uint16_t process;          /* likewise, as in profile_plan */
    uint16_t sampler;          /* likewise */
    bool awaits_process;       /* it is not known, but may turn out to be */
    bool is_of_several;        /* it is one of several, but not known which one */
    bool is_doubted;           /* likewise, but it may turn out to be this one */
    bool only_threads; /* known before: no sample names a span, all have threads and times */
    uint64_t now_ns;
    uint64_t arrived_ns; /* of the request, since 1970 */
    uint64_t request;
    struct content_id content;
};

#endif
