/*
 * span_trees: which spans of a process belong to one trace, and which of them is above which.
 *
 * The spans of a trace within one process form a tree, whose top is the *local root*: the span
 * without a parent, or whose parent is in another process. A span is known to be one by itself
 * (tree_span.is_root), so that a tree whose top has not arrived yet has no local root.
 *
 * Spans stay for the window after the newest of their tree has arrived. At the limit, the owner
 * with the most spans loses the trees that have been without new spans for the longest time.
 *
 * Owner: a span_index, if its options ask for it.
 *
 * Thread: any (it locks); called once for many spans.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_TREES_H
#define PROFCOL_CORE_DATA_SPAN_TREES_H

#include "core/data/thread_spans.h"

enum {
    SPAN_TREE_SPANS_MAX = 1024, /* of one tree; further ones are left out */
    SPAN_TREE_DEPTH_MAX = 64,   /* a local root is searched no further above a span */
};

struct span_trees;

/* Creates an empty table for so many spans. keeps_runs: it also keeps when and on which thread each
 * span ran, for span_trees_find_running. */
struct span_trees *span_trees_new(uint64_t max_spans, bool keeps_runs);
void span_trees_free(struct span_trees *trees); /* NULL is allowed */

/* A span, and where it belongs. */
struct tree_place {
    struct span_key key; /* with both ids */
    struct span_source source;
    uint16_t instance; /* number of its process (instances.h); 0: not known */
};

/* Whether a span that has a parent is a local root all the same: its flags say that the parent is
 * remote; if they do not say whether it is, the kind tells. flags, kind: as in OTLP's Span. */
bool span_parent_is_remote(uint64_t flags, uint64_t kind);

struct tree_span {
    struct tree_place place;
    bool is_root;                    /* it is a local root */
    bool is_late;                    /* samples that named it have left before it arrived */
    uint8_t parent_id[SPAN_ID_SIZE]; /* all zero: none */
    /* Only needed if the table keeps runs: */
    uint64_t start_ns; /* since 1970 */
    uint64_t end_ns;
    struct sample_thread thread; /* on which it began */
};
/* Adds spans. now_ns: monotonic. */
void span_trees_put(struct span_trees *trees, const struct tree_span *spans, size_t count,
                    uint64_t now_ns);

/* A question: which local root is above this span, or is it? */
struct root_ask {
    struct tree_place place;
    /* Samples that name it leave, taken between these times (0: the begin is not known). Noted if
     * it is alone, for spans that arrive later (struct tree_ask): */
    uint64_t left_from_ns;
    uint64_t left_to_ns; /* 0: none leave */
    bool is_known;       /* result; this and the next two */
    bool has_others;     /* there are other spans in its tree */
    uint8_t root_id[SPAN_ID_SIZE];
};
void span_trees_find_roots(struct span_trees *trees, struct root_ask *asks, size_t count);

/* Answers which span below a local root was running at the times of the asks, on the thread of
 * their sample as far as both name theirs: the innermost one. THREAD_NO_SPAN: only the root, if
 * any. THREAD_AMBIGUOUS: several that are not above each other. *steps limits the work, and is
 * taken from; without any left, the answer is THREAD_NO_SPAN. The samples then leave: spans that
 * arrive later lack them (struct tree_ask). */
void span_trees_find_running(struct span_trees *trees, const struct tree_place *root,
                             const struct sample_thread *thread, struct thread_ask *asks,
                             size_t count, uint64_t *steps);

/* Samples that went on to a span below its local root. */
struct tree_moved {
    struct tree_place place; /* of that span */
    uint64_t samples;
};
/* Takes them from the roots: notes how many went on from each. */
void span_trees_note_moved(struct span_trees *trees, const struct tree_moved *moved, size_t count);

/* A question about a span: what happened to its samples. */
struct tree_ask {
    struct tree_place place;
    uint64_t moved; /* result: samples that went on from it */
    bool lacks;     /* result: which samples are its own would be answered differently now, since
                       another span below its root has arrived, or itself; or its root is not known,
                       and others of its tree were asked for */
    bool has_late_root; /* result: samples that named its root may have left before the root
                           arrived, which it has not yet, or too late */
};
void span_trees_ask(struct span_trees *trees, struct tree_ask *asks, size_t count);

/* Frees trees that got their newest span more than window_ns ago. Call it regularly. */
void span_trees_sweep(struct span_trees *trees, uint64_t now_ns, uint64_t window_ns);
/* Returns the number of spans. */
uint64_t span_trees_count(struct span_trees *trees);
/* Returns the memory in bytes. */
size_t span_trees_memory(struct span_trees *trees);

#endif
