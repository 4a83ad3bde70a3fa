/*
 * ottl_errors: what follows when a condition, statement or value fails at run time (`error_mode`).
 *
 *     enum ottl_result result = ottl_evaluate(evaluator, &item);
 *     if (result == OTTL_FAILED)
 *         ottl_errors_report(&errors, mode, OTTL_OF_CONDITION, text,
 *                            ottl_evaluator_error(evaluator));
 *     ...
 *     if (errors.failed)
 *         ... refuse the batch with errors.failure
 *
 * ignore logs a warning, of which the process writes the first 10 in 10 s and then each 100th;
 * silent does nothing; propagate refuses the batch with the first error, which is logged as one. In
 * all three, what failed counts as not matched, and the rest of the batch is still worked on.
 *
 * Owner: the caller; texts are copied.
 *
 * Thread: one at a time: a node's worker, or the job that works on its batch.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_ERRORS_H
#define PROFCOL_CORE_OTTL_OTTL_ERRORS_H

#include "core/base/verdict.h"

enum ottl_error_mode { OTTL_IGNORE, OTTL_SILENT, OTTL_PROPAGATE };
/* "ignore", "silent", "propagate", NULL: for a field of a table. */
extern const char *const ottl_error_modes[];

enum ottl_source { OTTL_OF_CONDITION, OTTL_OF_STATEMENT, OTTL_OF_VALUE };

/* The errors of one batch at a time. */
struct ottl_errors {
    const char *label;      /* of the component, for the log */
    uint64_t count;         /* of errors in the batch, whatever the mode */
    bool failed;            /* the batch is to be refused */
    struct verdict failure; /* with this, unless it is permanent (ottl_errors_verdict) */
};

/* Begins a batch. */
void ottl_errors_begin(struct ottl_errors *errors, const char *label);
/* Reports that a condition, statement or value failed; a value only with OTTL_IGNORE or
 * OTTL_SILENT. */
void ottl_errors_report(struct ottl_errors *errors, enum ottl_error_mode mode,
                        enum ottl_source source, const char *text, const char *error);
/* Returns the verdict for a batch that failed: its sender may try again (gRPC code 14, HTTP 503),
 * but nobody can mend a batch that was acknowledged, so that is permanent. */
struct verdict ottl_errors_verdict(const struct ottl_errors *errors, bool is_acknowledged);

#endif
