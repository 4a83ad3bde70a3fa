/*
 * captures: the recorded requests of tests/data/captures, decompressed, one call each.
 *
 * Metrics and whatever is no OTLP traces or profiles request is left out.
 *
 * Owner: the body belongs to the walk.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_CAPTURES_H
#define PROFCOL_TESTS_CAPTURES_H

#include "core/base/slice.h"
#include "core/data/otlp.h"

struct capture {
    const char *name; /* "go-grpc/otlp-grpc/001" */
    enum signal signal;
    bool json;
    struct slice body;
};

/* Returns how many there were; fails the test when there are none. */
unsigned captures_each(void (*on_capture)(const struct capture *capture, void *context),
                       void *context);

#endif
