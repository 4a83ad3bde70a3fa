/*
 * cost_stages: the processing steps of an OTLP request after its receiver, for tests of costs.
 *
 * Owner: requests belong to the caller.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_COST_STAGES_H
#define PROFCOL_TESTS_COST_STAGES_H

#include "core/base/verdict.h"
#include "core/pipeline/batch.h"

struct cost_stage {
    const char *name;
    /* Runs the stage on a scanned and normalised request. */
    void (*run)(enum signal signal, struct buffer *request, uint32_t items);
    bool is_for_profiles_only;
    size_t peak_more; /* bytes that it may hold in addition to those per byte of the request */
};

enum { COST_STAGE_COUNT = 12, COST_STAGE_PEAK_PER_BYTE = 96 };
extern const struct cost_stage cost_stages[COST_STAGE_COUNT];

/* Creates the processors that stages use, once for the program. */
void cost_stages_start(void);
void cost_stages_stop(void);
/* Reads the body as a receiver does, and runs the stage if it is accepted. Takes over the body.
 * Returns false, with *why set, if it is refused. */
bool cost_stage_take(const struct cost_stage *stage, enum signal signal, struct buffer *body,
                     bool is_json, struct verdict *why);

#endif
