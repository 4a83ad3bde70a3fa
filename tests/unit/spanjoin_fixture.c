#include "tests/unit/spanjoin_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type spanjoin_processor_type;

static void place(struct join *join, const char *id, const char *settings)
{
    char yaml[1024];
    int size = snprintf(yaml, sizeof yaml, "processors: {%s: {%s}}", id, settings);
    assert_in_range(size, 0, sizeof yaml - 1);
    join->traces =
        fixture_place(&join->fixture, &spanjoin_processor_type, id, yaml, "traces", SIGNAL_TRACES);
    join->profiles = fixture_place(&join->fixture, &spanjoin_processor_type, id, yaml, "profiles",
                                   SIGNAL_PROFILES);
}

void join_init(struct join *join, const char *settings)
{
    fixture_init(&join->fixture, 1);
    place(join, "spanjoin", settings);
}

void join_replace(struct join *join, const char *settings)
{
    join->replaced[0] = join->traces;
    join->replaced[1] = join->profiles;
    join->fixture.predecessor = join->traces->component;
    place(join, "spanjoin/new", settings);
    join->fixture.predecessor = NULL;
}

void join_drain_replaced(struct join *join)
{
    for (int i = 0; i < 2; i++)
        fixture_drain(join->replaced[i]->nodes[0]);
    fixture_advance(&join->fixture, 0);
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
