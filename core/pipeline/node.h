/*
 * node: what stands in a pipeline: components, their nodes, and the outlets and branches that
 * connect them.
 *
 * These are types; the graph builds them (graph.h), component.h says what a component is, outlet.h
 * how data passes from node to node.
 *
 * Owner: the graph owns components and nodes. An outlet is a member of the node that it starts at,
 * and owns its branches and the batches that they keep.
 *
 * Thread: everything with a node on the node's worker. Components are read-only once the workers
 * run, except for what says otherwise.
 */
#ifndef PROFCOL_CORE_PIPELINE_NODE_H
#define PROFCOL_CORE_PIPELINE_NODE_H

#include "core/base/budget.h"
#include "core/base/list.h"
#include "core/base/log.h"
#include "core/data/otlp.h"
#include "core/pipeline/backoff.h"
#include "core/pipeline/pace.h"

struct batch;
struct component_type;
struct delivery;
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

/* What a component sees of the process. */
struct process {
    struct worker *workers;
    unsigned worker_count;
    struct metrics *metrics;
    struct budget *budget;            /* the process-wide one */
    struct source_accounts *accounts; /* of it, one for each client; NULL: none */
    size_t system_memory_bytes;       /* of the cgroup or the machine */
    size_t memory_limit_bytes;        /* the same, or what a memory_limiter says */
    bool is_limited;                  /* a memory_limiter says so */
    const char *version;
    /* Those of service::extensions. The graph sets them before the first init. */
    struct component **extensions;
    size_t extension_count;
    _Atomic uint64_t lost_items; /* acknowledged, and given up at the stop */
    atomic_int phase;            /* enum process_phase */
    uint64_t running_since_ns;   /* monotonic; valid from PROCESS_RUNNING on */
};

struct component {
    const struct component_type *type;
    const char *id; /* "otlphttp/traces" */
    char label[96]; /* "exporter otlphttp/traces": for log_ functions */
    const void *settings;
    struct process *process;
    size_t pipeline_count[SIGNAL_COUNT]; /* in how many pipelines of each signal it stands */
    /* Of exporters: memory of what is queued, being sent or kept for it, over all workers. The
     * limit is this exporter's share of half the process's budget (graph.h). */
    struct budget held[SIGNAL_COUNT];
};

/* Connects a node to one of those that come next. */
struct branch {
    struct outlet *outlet;
    struct node *to;
    struct pace pace;       /* of `ready` */
    struct list ready;      /* of kept: offered in this order */
    struct list later;      /* of kept: each waits for its own timer */
    struct backoff backoff; /* while it is full */
    struct verdict refusal; /* the last "try later" */
    struct counter *lost;
    struct gauge *kept;
    struct verdict loss; /* why the last one was lost */
    struct log_interval losses;
};

struct outlet {
    struct node *from;
    enum signal signal;
    struct branch **branches;
    size_t count;
    bool blocks;         /* a queue behind it has block_on_overflow */
    struct pace rooms;   /* of `waiting` */
    struct list waiting; /* of kept, for room in all branches, in order */
    struct queue *full;  /* where there was no room last */
    size_t fanouts;      /* batches of which a branch has not settled its part */
    struct log_interval rejections;
    bool draining;
    bool stopped;
};

struct node {
    struct component *component;
    struct worker *worker;
    enum signal signal;   /* of processors and exporters */
    const char *pipeline; /* of processors: "profiles/slow"; else NULL */
    /* From the component's type (component.h): */
    void (*consume)(struct node *node, struct batch *batch);
    bool holds;
    struct outlet outlets[SIGNAL_COUNT];
    struct delivery *delivery; /* of an exporter that has one */
    struct queue *queue;       /* that of its delivery */
    bool draining;
    bool drained;
    bool stopped;
};

/* Marks the beginning of the node's work on the batch, so that the log can name the component that
 * blocked the loop; does nothing for a small batch. End it with worker_end_piece. */
void node_begin_piece(const struct node *node, const struct batch *batch,
                      struct worker_piece *piece);
/* A component without is_idle calls this once, after node_drain, when it no longer holds anything.
 */
void node_drained(struct node *node);

#endif
