/*
 * reread_turns: reads the requests that a node holds again, after a reload, one at a time.
 *
 * A turn of the loop reads some bytes or tells the table of some traces; a large request is read in
 * a job. What is read, and what becomes of it, the steps say: reread_traces, reread_profiles. If
 * the rules change again meanwhile, the request is read again by the new ones.
 *
 * Owner: the node.
 *
 * Thread: the node's worker, but for the step `read`.
 */
#ifndef PROFCOL_TAIL_SAMPLING_REREAD_TURNS_H
#define PROFCOL_TAIL_SAMPLING_REREAD_TURNS_H

#include "processors/tail_sampling/tail_sampling.h"

struct reread_steps {
    bool (*take_next)(struct tail_node *node); /* takes a request; false: there is none */
    size_t (*bytes_of_taken)(struct tail_node *node);
    void (*init_reader)(struct tail_node *node); /* for reread_turns.rules */
    void (*deinit_reader)(struct tail_node *node);
    void (*read)(struct tail_node *node);        /* on any thread; the reader gets what it finds */
    bool (*tell_table)(struct tail_node *node);  /* of some traces; true: these were the last */
    void (*end_request)(struct tail_node *node); /* the table knows all */
    void (*catch_up)(struct tail_node *node);    /* no request is left to read */
};

/* steps: in static memory. */
void reread_turns_init(struct reread_turns *turns, struct tail_node *node,
                       const struct reread_steps *steps);
/* Begins, or goes on, in the next turn of the loop. */
void reread_turns_begin(struct reread_turns *turns);
/* The caller takes back a request that was taken. */
void reread_turns_stop(struct reread_turns *turns);

#endif
