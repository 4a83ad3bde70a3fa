#include "tests/unit/spanjoin_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type spanjoin_processor_type;

void join_init(struct join *join, const char *settings)
{
    char yaml[1024];
    int size = snprintf(yaml, sizeof yaml, "processors: {spanjoin: {%s}}", settings);
    assert_in_range(size, 0, sizeof yaml - 1);
    fixture_init(&join->fixture, 1);
    join->traces = fixture_place(&join->fixture, &spanjoin_processor_type, "spanjoin", yaml,
                                 "traces", SIGNAL_TRACES);
    join->profiles = fixture_place(&join->fixture, &spanjoin_processor_type, "spanjoin", yaml,
                                   "profiles", SIGNAL_PROFILES);
}

void join_send(struct join *join, struct request *request)
{
    struct fixture_place *place = request->traces ? join->traces : join->profiles;
    struct probe probe;
    fixture_consume(&join->fixture, place->nodes[0], request_encode(request), request->items,
                    &probe);
    fixture_advance(&join->fixture, 0);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_OK);
    request_free(request);
}
