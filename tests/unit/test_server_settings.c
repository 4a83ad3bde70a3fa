#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/pipeline/component.h"
#include "core/pipeline/server_settings.h"

/* The number of connections follows the memory limit, unless it is set. */
static void connections_follow_the_memory(void **state)
{
    (void)state;
    static const struct {
        size_t memory_mib;
        uint64_t setting;
        uint32_t expected;
    } cases[] = {
        {0, 0, 64},        {8, 0, 64},          {16, 0, 64},
        {64, 0, 256},      {256, 0, 1024},      {2048, 0, 8192},
        {16384, 0, 65536}, {1 << 20, 0, 65536}, {64, 5000, 5000},
        {16384, 500, 500}, {64, 1, 1},          {64, UINT32_MAX, UINT32_MAX},
        {0, 7, 7},         {400, 0, 1600},      {64, UINT64_MAX, UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct process process = {.memory_limit_bytes = cases[i].memory_mib << 20,
                                  .metrics = metrics_new(1)};
        struct grpc_server_settings grpc = {.endpoint = "localhost:1",
                                            .max_connections = cases[i].setting};
        struct http_server_settings http = {.max_connections = cases[i].setting};
        assert_int_equal(grpc_server_options(&grpc, &process, "receiver").max_connections,
                         cases[i].expected);
        assert_int_equal(
            http_server_options(&http, "localhost:2", &process, "receiver").max_connections,
            cases[i].expected);
        metrics_free(process.metrics);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(connections_follow_the_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
