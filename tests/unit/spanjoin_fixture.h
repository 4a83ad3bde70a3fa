/*
 * spanjoin_fixture: a processor spanjoin in a traces and a profiles pipeline of its own, for tests
 * of the join.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_UNIT_SPANJOIN_FIXTURE_H
#define PROFCOL_TESTS_UNIT_SPANJOIN_FIXTURE_H

#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/spanjoin_requests.h"

struct join {
    struct fixture fixture;
    struct fixture_place *traces;
    struct fixture_place *profiles;
    struct fixture_place *replaced[2];
};

/* settings: YAML, what stands in the braces of `spanjoin: {}`. fixture_deinit(&join->fixture) ends
 * it. */
void join_init(struct join *join, const char *settings);

/* Replaces the component by another one, as a reload does. What the old one holds stays there until
 * join_drain_replaced. At most once. */
void join_replace(struct join *join, const char *settings);
void join_drain_replaced(struct join *join);

/* Sends a request into its pipeline, expects success, and frees the request. Jobs are done then. */
void join_send(struct join *join, struct request *request);

#endif
