/*
 * node: the types of which pipelines are made: components, their nodes, and the outlets and
 * branches that connect them.
 *
 * graph.h builds them, component.h says what a component implements, outlet.h how data passes from
 * node to node.
 *
 * Owner: the graph owns components and nodes. An outlet is a member of the node that it starts at,
 * and owns its branches and the batches that they keep.
 *
 * Thread: a node is used on its worker only. Components are read-only once the workers run, except
 * for members that say otherwise.
 */
#ifndef PROFCOL_CORE_PIPELINE_NODE_H
#define PROFCOL_CORE_PIPELINE_NODE_H

#include "core/base/budget.h"
#include "core/base/list.h"
#include "core/base/log.h"
#include "core/data/otlp.h"
#include "core/pipeline/backoff.h"
#include "core/pipeline/component_status.h"
#include "core/pipeline/pace.h"
#include "core/pipeline/share.h"

struct batch;
struct component_type;
struct config;
struct counter;
struct histogram;
struct delivery;
struct graph;
struct join_feed;
struct metrics;
struct node;
struct outlet;
struct queue;
struct worker;
struct worker_piece;

enum process_phase {
    PROCESS_STARTING,
    PROCESS_RUNNING, /* every node has started */
    PROCESS_DRAINING
};

/* What components may use of the process. */
struct process {
    struct worker *workers;
    unsigned worker_count;
    struct metrics *metrics;
    struct budget *budget;            /* of the whole process */
    struct source_accounts *accounts; /* the clients' parts of it; NULL: none */
    struct share_pool loans;          /* the part of it that exporters may borrow */
    size_t system_memory_bytes;       /* of the cgroup or the machine */
    size_t memory_limit_bytes;        /* the same, or the limit of a memory_limiter */
    bool is_limited;                  /* a memory_limiter is configured */
    const char *version;
    /* Those of service::extensions. The graph sets them before the first init. */
    struct component **extensions;
    size_t extension_count;
    _Atomic uint64_t lost_items; /* acknowledged items that were given up at the stop */
    atomic_int phase;            /* enum process_phase */
    uint64_t running_since_ns;   /* monotonic; valid from PROCESS_RUNNING on */
    uint64_t started_ns;         /* since 1970: when the graph was made */
    /* What runs, for components that tell about it; set while the graph exists. */
    const struct config *config;
    struct graph *graph;
    struct component_status *configuration; /* an error if the last reload failed; NULL: none */
    struct join_feed *join_feed; /* what the join saw, for who listens; NULL: none (tests) */
};

struct component {
    const struct component_type *type;
    const char *id; /* "otlphttp/traces" */
    char label[96]; /* "exporter otlphttp/traces": for log_component */
    const void *settings;
    const struct config *config;    /* that the settings are of */
    const struct config *pipelines; /* whose pipelines contain it; of a retired component not the
                                       process's */
    struct process *process;
    size_t pipeline_count[SIGNAL_COUNT]; /* pipelines of each signal that contain it */
    size_t next_count[SIGNAL_COUNT];     /* the same in a graph that is being built; for main */
    bool is_carried;                     /* during the switch of a reload */
    /* From init to the switch of a reload: the one with the same id and type that it replaces by
     * this one; NULL: none. */
    struct component *predecessor;
    /* For exporters and connectors: bytes that are queued, being sent or kept for it, over all
     * workers. graph.h sets the limits. */
    struct share held[SIGNAL_COUNT];
    struct share_borrower borrower; /* for all signals */
    struct component_status status;
};

/* Connects a node to one of those that come next. */
struct branch {
    struct outlet *outlet;
    struct node *to;
    size_t users;           /* batches that it may get back, and fan-outs with a part for it */
    struct pace pace;       /* of `ready` */
    struct list ready;      /* kept batches, offered in this order */
    struct list later;      /* kept batches, each with a timer of its own */
    struct backoff backoff; /* while it is full */
    struct verdict refusal; /* the last "try later" */
    struct counter *lost;
    struct gauge *kept;
    struct verdict loss; /* why the last one was lost */
    struct log_interval losses;
    unsigned added_threads; /* what components behind it join by (threads_behind.h) */
};

struct outlet {
    struct node *from;
    enum signal signal;
    struct branch **branches;
    size_t count;
    /* Branches that a reload has ended, for the batches on their way: nothing new enters them. */
    struct branch **past;
    size_t past_count;
    bool blocks;            /* a queue behind it has block_on_overflow */
    unsigned added_threads; /* what components behind it join by (threads_behind.h) */
    struct pace rooms;      /* of `waiting` */
    struct list waiting;    /* kept batches that wait for room in all branches, in order */
    struct queue *full;     /* the last queue found without room */
    size_t fanouts;         /* batches with parts not yet settled */
    _Atomic uint64_t items; /* that the node passed on; the worker writes, any thread may read */
    struct log_interval rejections;
    bool draining;
    bool stopped;
};

struct node {
    struct component *component;
    struct worker *worker;
    enum signal signal;       /* of processors and exporters */
    const char *pipeline;     /* of processors: "profiles/slow"; else NULL */
    struct log_origin origin; /* for log_ functions; with the signal of a node that has only one */
    /* From the component's type (component.h): */
    void (*consume)(struct node *node, struct batch *batch);
    unsigned (*joins_threads)(const struct component *component);
    bool reads_empty;
    bool passes_empty;
    bool holds;
    struct outlet outlets[SIGNAL_COUNT];
    struct delivery *delivery;  /* of an exporter that has one */
    struct queue *queue;        /* that of its delivery */
    _Atomic uint64_t items;     /* offered to it and not refused; as in struct outlet */
    struct counter *incoming;   /* items, of processors: each offer counts; else NULL */
    struct counter *outgoing;   /* items that a processor passed on; else NULL */
    struct histogram *duration; /* of a processor's work on each batch; NULL: not measured */
    uint64_t consuming_ns;      /* since when; 0: no batch, or it has been passed on */
    bool draining;              /* at the end of the process, or because a reload has retired it */
    bool drained;
    bool stopping; /* those behind it are being stopped first */
    bool stopped;
};

/* Adds to a count of items that only the node's worker writes. */
static inline void node_count_items(_Atomic uint64_t *count, uint64_t items)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + items,
                          memory_order_relaxed);
}

/* Begin and end the measurement of a processor's work on a batch (level detailed). What is behind
 * the processor, and what it does later, does not count. */
void node_begin_timed(struct node *node);
void node_end_timed(struct node *node);
static inline void node_begin_duration(struct node *node)
{
    if (node->duration)
        node_begin_timed(node);
}
static inline void node_end_duration(struct node *node)
{
    if (node->consuming_ns)
        node_end_timed(node);
}

/* Marks the beginning of the node's work on the batch, so that the log can name the component
 * that blocked the loop. Call worker_end_piece at the end. Does nothing for a small batch. */
void node_begin_piece(const struct node *node, const struct batch *batch,
                      struct worker_piece *piece);
/* A component without is_idle calls this once, after node_drain, when it no longer holds anything.
 */
void node_drained(struct node *node);

#endif
