/*
 * cost_stages: the ways of an OTLP request behind its receiver, one by one, for tests of costs.
 *
 * Owner: requests are the caller's.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_COST_STAGES_H
#define PROFCOL_TESTS_COST_STAGES_H

#include "core/base/verdict.h"
#include "core/pipeline/batch.h"

struct cost_stage {
    const char *name;
    /* The request is scanned and normalised. */
    void (*run)(enum signal signal, struct buffer *request, uint32_t items);
    bool is_for_profiles_only;
    size_t peak_more; /* bytes that it may hold besides those for each byte of the request */
};

enum { COST_STAGE_COUNT = 11, COST_STAGE_PEAK_PER_BYTE = 96 };
extern const struct cost_stage cost_stages[COST_STAGE_COUNT];

/* Makes the processors that stages use, once for the program. */
void cost_stages_start(void);
void cost_stages_stop(void);
/* Takes the body as a receiver does, and the stage if it is taken. Owns the body from then on.
 * False: refused, *why says why. */
bool cost_stage_take(const struct cost_stage *stage, enum signal signal, struct buffer *body,
                     bool is_json, struct verdict *why);

#endif
