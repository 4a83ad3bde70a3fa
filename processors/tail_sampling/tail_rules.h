/*
 * tail_rules: what a component follows: its settings, and what is made of their policies.
 *
 * A reload exchanges the rules while the component goes on. What reads by the old ones may still be
 * in a job, so it keeps them until it is done.
 *
 * Owner: rules are counted by reference. A book, which belongs to the table of traces, has the
 * current rules and knows all that are referred to. Their configuration lives as long as they do
 * (component_type.uses_config).
 *
 * Thread: any; rules_book_set on main, at the start or while all workers wait. Only a worker may
 * use `current` without a reference, until it returns to its loop.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TAIL_RULES_H
#define PROFCOL_TAIL_SAMPLING_TAIL_RULES_H

#include "core/base/list.h"
#include "processors/tail_sampling/leaf_tests.h"
#include "processors/tail_sampling/tail_metrics.h"

#include <pthread.h>

struct rules_book;

struct tail_rules {
    struct list_link link; /* of the book */
    struct rules_book *book;
    unsigned references; /* under the lock of the book */
    const struct tail_settings *settings;
    const struct config *config; /* that the settings are of */
    struct tail_metrics metrics;
    struct leaf_programs programs;
    /* Spans that were read by rules with the same number need not be read again. From 1. */
    uint64_t reading;
    uint64_t sample_reading; /* the same for samples */
};

struct rules_book {
    pthread_mutex_t lock;
    struct list all;
    struct tail_rules *current;
};

/* Returns rules that are in no book yet, with one reference; NULL with err set. */
struct tail_rules *tail_rules_new(const struct component *component,
                                  const struct tail_settings *settings, const struct config *config,
                                  struct error *err);
/* Frees the rules with the last reference. */
void tail_rules_unref(struct tail_rules *rules);

void rules_book_init(struct rules_book *book);
/* Only the book may still refer to rules. */
void rules_book_deinit(struct rules_book *book);
/* Makes the rules the current ones; takes over their reference. */
void rules_book_set(struct rules_book *book, struct tail_rules *rules);
/* Returns the current rules with another reference. */
struct tail_rules *rules_book_ref(struct rules_book *book);
/* Likewise if they are others than these; NULL if they are the same. */
struct tail_rules *rules_book_ref_if_new(struct rules_book *book, const struct tail_rules *known);
/* Whether rules are left whose settings are of this configuration. */
bool rules_book_uses(struct rules_book *book, const struct config *config);

#endif
