/* Which spans and profiles are of one process (docs/spanjoin.md, "When a span's costs are
 * complete"). An upload without samples covers the spans of its process only. */
#include "core/net/peer_key.h"
#include "tests/unit/spanjoin_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { HERE = INADDR_LOOPBACK, ELSEWHERE = 0x0a000001 };
#define SHORT_ID "0123456789abcdef0123456789abcde" /* 31 characters */
#define LONG_ID SHORT_ID "f"

static const struct {
    const char *spans, *profiles; /* attributes of their resources; #7: a number */
    bool is_same;
    bool is_local; /* the sender is on this host */
} cases[] = {
    /* by all that they say */
    {"service.name=shop", "service.name=shop", true, false},
    {"service.name=shop", "service.name=app", false, false},
    {"service.name=shop host.name=a", "service.name=shop host.name=a color=red", true, false},
    {"service.name=shop host.name=a", "service.name=shop host.name=b", false, false},
    /* by instance; a short id only within its service */
    {"service.name=shop service.instance.id=" LONG_ID,
     "service.name=app service.instance.id=" LONG_ID, true, false},
    {"service.name=shop service.instance.id=" SHORT_ID,
     "service.name=app service.instance.id=" SHORT_ID, false, false},
    {"service.name=shop service.instance.id=1",
     "service.name=shop service.instance.id=1 host.name=a", true, false},
    {"service.name=shop service.instance.id=1", "service.name=shop service.instance.id=2", false,
     false},
    /* by number and container, where number 1 is one, too */
    {"service.name=shop container.id=c process.pid=#7",
     "service.name=app container.id=c process.pid=#7", true, false},
    {"service.name=shop container.id=c process.pid=#1",
     "service.name=app container.id=c process.pid=#1", true, false},
    {"service.name=shop container.id=c process.pid=#7",
     "service.name=app container.id=d process.pid=#7", false, false},
    {"service.name=shop container.id=c process.pid=#7",
     "service.name=app container.id=c process.pid=#8", false, false},
    /* by number and host */
    {"service.name=shop host.id=h process.pid=#7", "service.name=app host.id=h process.pid=#7",
     true, false},
    {"service.name=shop host.id=h process.pid=#7", "service.name=app host.id=g process.pid=#7",
     false, false},
    {"service.name=shop host.id=h process.pid=#1", "service.name=app host.id=h process.pid=#1",
     false, false},
    {"service.name=shop host.id=h host.name=web.example.com process.pid=#7",
     "service.name=app host.id=h host.name=web process.pid=#7", true, false},
    /* if nothing contradicts */
    {"service.name=shop host.id=h process.pid=#7 service.instance.id=1",
     "service.name=app host.id=h process.pid=#7 service.instance.id=2", false, false},
    {"service.name=shop host.id=h process.pid=#7 k8s.pod.uid=1",
     "service.name=app host.id=h process.pid=#7 k8s.pod.uid=2", false, false},
    {"service.name=shop host.id=h process.pid=#7 k8s.pod.name=1",
     "service.name=app host.id=h process.pid=#7 k8s.pod.name=2", false, false},
    {"service.name=shop host.id=h process.pid=#7 host.name=a.b",
     "service.name=app host.id=h process.pid=#7 host.name=b.b", false, false},
    /* by number, of this host */
    {"service.name=shop process.pid=#7", "service.name=app process.pid=#7", false, false},
    {"service.name=shop process.pid=#7", "service.name=app process.pid=#7", true, true},
    {"service.name=shop process.pid=#7", "process.pid=#7 container.id=c", false, true},
    {"service.name=shop process.pid=#7 host.name=a", "process.pid=#7 host.name=b", false, true},
};

/* Sends a span that waits, then an upload that ends after it. Returns whether the span has left. */
static bool is_covered(const char *spans, const char *profiles, uint64_t peer)
{
    struct join join;
    struct request request;
    join_init(&join, "spans: {wait: 20s}");
    join.fixture.peer = peer;
    traces_begin(&request, NULL);
    request_resource(&request, spans);
    traces_span(&request, 7, 42, WALL, WALL + SECOND, "work");
    join_send(&join, &request);
    assert_int_equal(join.fixture.recorder.count, 0);
    profiles_begin(&request);
    request_resource(&request, profiles);
    profiles_profile(&request, "cpu", "nanoseconds")->time_unix_nano = WALL + 9 * SECOND;
    join_send(&join, &request);
    bool has_left = join.fixture.recorder.count > 0;
    fixture_deinit(&join.fixture);
    return has_left;
}

static uint64_t peer_of(uint32_t address)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(address)}};
    return peer_key((const struct sockaddr *)&in);
}

static void one_process_or_two(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int swapped = 0; swapped < 2; swapped++) {
            const char *spans = swapped ? cases[i].profiles : cases[i].spans;
            const char *profiles = swapped ? cases[i].spans : cases[i].profiles;
            uint64_t peer = peer_of(cases[i].is_local ? HERE : ELSEWHERE);
            if (is_covered(spans, profiles, peer) != cases[i].is_same)
                fail_msg("%s | %s: %s", spans, profiles, cases[i].is_same ? "two" : "one");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_process_or_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
