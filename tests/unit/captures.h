/*
 * captures: calls a function for each recorded request of tests/data/captures, decompressed.
 *
 * Recordings that are not OTLP traces or profiles requests are left out.
 *
 * Owner: the body is valid during the call.
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

/* Returns the number of requests; fails the test if there are none. */
unsigned captures_each(void (*on_capture)(const struct capture *capture, void *context),
                       void *context);

#endif
