/*
 * held_state: the state of what a node holds, in the order in which traces pass through it:
 * arriving, waiting, ready; and of profiles.
 *
 * Owner: the node.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_TAIL_SAMPLING_HELD_STATE_H
#define PROFCOL_TAIL_SAMPLING_HELD_STATE_H

#include "core/base/job_queue.h"
#include "core/base/list.h"
#include "core/pipeline/large_batches.h"
#include "core/pipeline/offer.h"
#include "processors/tail_sampling/linked_samples.h"
#include "processors/tail_sampling/profile_reader.h"
#include "processors/tail_sampling/trace_ids.h"
#include "processors/tail_sampling/trace_reader.h"

/* So many traces are added, asked about or decided in a turn of the loop. */
enum { TRACES_PER_TURN = 1024 };

struct held_request;
struct piece;
struct reread_steps;
struct tail_node;
struct tail_rules;

/* A request that was read, while its traces are added, some in each turn of the loop. The reader
 * has what was read. */
struct arriving_traces {
    struct batch *batch; /* NULL: none */
    struct reservation *reservation;
    size_t size;                  /* memory that it needs */
    struct held_request *request; /* NULL: there is no room yet */
    uint32_t next;                /* trace */
};

struct waiting_traces {
    int holder;                   /* number in the table */
    struct list all;              /* of struct waiting_trace, in the order of their arrival here */
    struct list_link *asked_next; /* of `all`: those from it on are asked about again; NULL: none */
    struct timer_queue deadlines;
    struct trace_ids ids;
};

struct ready_spans {
    struct piece *first, *last;
    uint32_t spans;
    size_t bytes;
    bool is_due;
    struct timer gather;
    struct offers offers;
};

/* A node reads requests again, one at a time (reread_turns.h). */
struct reread_turns {
    const struct reread_steps *steps;
    struct tail_node *node;
    struct tail_rules *rules; /* of the reader, with a reference; NULL: there is no reader */
    struct job_queue queue;
    struct queued_job job;
    struct timer turn;
    bool has_request; /* that was taken */
    bool is_reading, is_read;
    uint32_t next; /* trace of it of which the table is told */
};

/* Requests that are read again (reread_traces.h). */
struct rereading {
    struct reread_turns turns;
    struct trace_reader reader;   /* while there are turns.rules */
    struct held_request *request; /* with a reference; NULL: none */
    bool has_first;               /* a request that is arriving is to be read */
};

struct held_traces {
    struct arriving_traces arriving;
    struct timer turn;    /* at the next deadline, or to go on in the next turn of the loop */
    struct list requests; /* all struct held_request; those that have to be read again are first */
    uint64_t ordinal;     /* of the last request */
    bool is_adapting;     /* to rules that have changed */
    uint64_t pending_dropped; /* spans, in a drain; not logged yet */
};

/* A request of profiles that waits. */
struct held_profile {
    struct offer offer;    /* first */
    struct list_link link; /* of a list of struct held_profiles */
    struct timer timer;
    struct tail_node *node;
    struct batch *batch; /* NULL once it is sent on */
    uint64_t arrived_ns;
    size_t charged;
    uint32_t items;
    uint64_t reading; /* tail_rules.sample_reading of those that have read it */
    uint32_t counted; /* traces whose sums are in the table; ALL_COUNTED: all */
    /* Traces that it waits for; while they are asked about: those done, and of these still open. */
    uint32_t id_count, asked, open;
    uint64_t until_ns; /* of the open ones */
    uint8_t ids[];     /* 16 bytes each */
};
enum { ALL_COUNTED = INT32_MAX };

/* Requests of profiles that are read again (reread_profiles.h). */
struct rereading_profiles {
    struct reread_turns turns;
    struct profile_reader reader;                  /* while there are turns.rules */
    struct held_profile *hold;                     /* which is in no list meanwhile; NULL: none */
    void (*wait_again)(struct held_profile *hold); /* with it, once it was read */
};

/* As above. */
struct arriving_profile {
    struct batch *batch; /* NULL: none */
    struct reservation *reservation;
    size_t size;
    bool is_admitted; /* its memory is reserved */
    uint32_t next;    /* trace whose samples are added */
};

struct held_profiles {
    int listener; /* number in the table */
    struct profile_reader reader;
    struct arriving_profile arriving;
    struct timer turn;   /* to go on with it */
    struct list waiting; /* oldest first, but those that have to be read again before the others */
    struct rereading_profiles rereading;
    struct list due;     /* those that leave next */
    struct list working; /* those in `leaving` */
    struct large_batches leaving;
    struct linked_result applied; /* what `leaving` did to the batch that is sent next */
    struct linked_result arrived; /* the same of one that did not wait */
    size_t leaving_bytes;         /* of `due`, `working` and those not accepted yet */
    struct offers offers;
};

#endif
