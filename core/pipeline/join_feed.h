/*
 * join_feed: what the join saw, for one subscriber inside the process.
 *
 * spanjoin offers each request that leaves it: the bytes, shared by reference, for profiles what
 * became of each span that its samples name, and for traces what spans have gained. Offers wait in
 * a mailbox that is bounded in bytes; when it is full they are dropped and counted, and the join
 * goes on. While nobody listens, a request costs one comparison (join_feed_is_open).
 *
 * A request whose sender waits for the verdict comes into the mailbox when it is settled. If the
 * sender will send it again, it does not, so that it counts once.
 *
 * A feed lives as long as its process. A reload changes who offers and who listens, so components
 * before and after it may use the feed side by side.
 *
 * Owner: the process owns the feed; whoever takes an offer owns it.
 *
 * Thread: join_feed_is_open and join_feed_offer: any, also jobs. The others: any, one subscriber at
 * a time.
 */
#ifndef PROFCOL_CORE_PIPELINE_JOIN_FEED_H
#define PROFCOL_CORE_PIPELINE_JOIN_FEED_H

#include "core/base/slice.h"
#include "core/data/otlp.h"
#include "core/pipeline/receipt.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch;
struct buffer;
struct join_feed;

enum join_outcome {
    JOIN_FOUND,
    JOIN_FOUND_BY_THREAD,
    JOIN_NOT_FOUND, /* its span has not arrived */
    JOIN_EXPIRED,   /* its span arrived longer ago than the window */
    JOIN_OVERFLOW,  /* memory was short, so that the request did not wait for it */
    JOIN_OUTCOMES
};

/* A span that samples of a request name. */
struct join_key {
    uint8_t trace_id[TRACE_ID_SIZE]; /* all zero: not known */
    uint8_t span_id[SPAN_ID_SIZE];
    int64_t lag_ns;       /* of found ones: arrival of the samples minus arrival of the span */
    int64_t cpu_ns;       /* of all samples of its span so far; -1: not known */
    uint32_t samples;     /* Sample messages */
    uint16_t condition;   /* of `keep`, that is true of its span (join_report_condition) */
    uint8_t outcome;      /* enum join_outcome */
    bool is_promoted;     /* an attribute named it, not a Link */
    bool is_from_root;    /* samples named its local root, and went on to it (attribute_children) */
    bool is_ambiguous;    /* several spans have the id */
    bool is_kept_out_dry; /* it would be kept out, but for `dry_run` */
    bool is_kept_out;     /* `keep` took the detail of its span from the samples, or dropped them */
};

/* Samples that name no span but a thread and times, and were not joined by them. */
struct unnamed_samples {
    uint32_t ambiguous_thread;  /* it is not sure which span ran on their thread */
    uint32_t no_process;        /* their process is that of no spans that name threads */
    uint32_t no_span_on_thread; /* none ran on their thread */
};

/* A span of a traces request for which samples had been seen when it left. */
struct join_span {
    uint8_t trace_id[TRACE_ID_SIZE];
    uint8_t span_id[SPAN_ID_SIZE];
    int64_t cpu_ns;        /* of these samples; -1: not known */
    bool has_gained;       /* attributes */
    bool gains_profile_id; /* one of them opens its profile */
    bool is_incomplete;    /* samples may arrive later */
};

/* When samples were taken on a thread of which it is not known which span they are of. */
enum { JOIN_DOUBTS_MAX = 128, JOIN_DOUBT_NAME_MAX = 15, JOIN_DOUBT_IDS = 2 };
struct join_doubt {
    uint64_t from_ns, to_ns;     /* since 1970, by the clock of the spans */
    int64_t ids[JOIN_DOUBT_IDS]; /* as samples name the thread: of the operating system, and of the
                                    runtime */
    bool has_id[JOIN_DOUBT_IDS];
    uint8_t name_size;
    char name[JOIN_DOUBT_NAME_MAX]; /* likewise; cut as the operating system does */
    uint32_t resource;              /* of the request: one of its process */
};

/* How many of each a report has. */
struct join_report_size {
    uint32_t keys;
    uint32_t doubts;
    uint32_t resources; /* with samples that name no span; 0: the request has none of these */
    uint32_t spans;
    uint32_t condition_bytes;
};

/* What became of the samples of a profiles request, or what the spans of a traces request gained.
 */
struct join_report {
    struct join_report_size size;
    uint64_t window_ns, wait_ns;        /* settings of the join */
    struct unnamed_samples *unnamed_of; /* for each resource of the request that arrived */
    uint64_t beyond_keys;               /* samples of spans beyond the limit of a request */
    struct join_span *spans;
    struct join_doubt *doubts; /* of its threads */
    bool doubts_are_cut;       /* there are more than JOIN_DOUBTS_MAX */
    char *conditions;          /* names of those of `keep`, each with its NUL; the first is empty */
    struct join_key keys[];
};

/* Returns a report with room for these, all zero. Free it with free(). */
struct join_report *join_report_new(struct join_report_size size);
/* Returns the name of a condition; empty: none. */
static inline const char *join_report_condition(const struct join_report *report,
                                                uint16_t condition)
{
    return condition < report->size.condition_bytes ? report->conditions + condition : "";
}

struct join_offer {
    struct join_offer *next;
    enum signal signal;
    uint32_t items;
    char component[96];         /* id of the spanjoin component; cut if it is longer */
    uint64_t tenant;            /* keyed hash of the tenant that a header names; 0: none */
    uint64_t arrived_ns;        /* monotonic: when the request came */
    uint64_t offered_ns;        /* when it left the join */
    struct join_report *report; /* of profiles; NULL: of traces */
    size_t bytes;               /* memory that it keeps */
    struct join_feed *feed;     /* until the verdict, and the next one */
    struct receipt_watch watch;
    /* Changed profiles until join_feed_take: runs of the received bytes, and copies of the rest. */
    struct slice *pieces; /* NULL: `parts` are complete */
    size_t piece_count;
    struct buffer *changed;
    size_t part_count;
    struct buffer *parts[]; /* encoded requests, one reference each; immutable */
};
void join_offer_free(struct join_offer *offer);

struct join_feed_stats {
    uint64_t offers;  /* since the start, with those that were dropped or withdrawn */
    uint64_t dropped; /* because the mailbox was full */
    size_t bytes;     /* in the mailbox, and before it until their verdict */
};

struct join_feed *join_feed_new(void);
/* Frees the feed, which must not be open. NULL is allowed. */
void join_feed_free(struct join_feed *feed);

/* ---- for the join ---- */

/* Whether somebody listens. NULL is allowed: false. */
bool join_feed_is_open(const struct join_feed *feed);
/* Offers a request that is about to leave, and shares its received bytes. What the join has changed
 * in profiles is copied; spans are offered as they came to the join, without the attributes that it
 * adds. component: the id of the join. report: taken over; NULL: none. Does nothing but free the
 * report if nobody listens, or if the mailbox is full. The caller owns the batch, and its worker
 * settles it. feed may be NULL. */
void join_feed_offer(struct join_feed *feed, struct batch *batch, const char *component,
                     uint64_t tenant, struct join_report *report);

/* ---- for the subscriber ---- */

struct join_subscriber {
    size_t limit_bytes; /* of the mailbox; one offer alone may be larger */
    /* An offer has arrived in an empty mailbox. Called on any thread with the feed locked: must not
     * block, and not call the feed. */
    void (*wake)(void *context);
    void *context;
};
/* Begins to listen. Returns false if somebody else does. */
bool join_feed_open(struct join_feed *feed, const struct join_subscriber *subscriber);
/* Ends it, and frees what is in the mailbox. `wake` is not called any more afterwards. */
void join_feed_close(struct join_feed *feed);
/* Returns the oldest offer, its profiles written out as plain bytes; NULL: none. */
struct join_offer *join_feed_take(struct join_feed *feed);
struct join_feed_stats join_feed_stats(struct join_feed *feed);

#endif
