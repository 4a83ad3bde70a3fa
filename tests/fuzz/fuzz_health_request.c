#include "core/net/own_host.h"
#include "core/net/url_query.h"
#include "extensions/health_check/health_answer.h"

#include <assert.h>
#include <string.h>

/* What a stranger may send to health_check and zpages: a query, a Host, a HealthCheckRequest. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = slice_of(data, size), service;
    char value[16];
    if (url_query_get(bytes, "pipeline", value, sizeof value))
        assert(strlen(value) < sizeof value && size >= strlen("pipeline"));
    else
        assert(value[0] == '\0');
    if (health_grpc_read_service(bytes, &service))
        assert(service.size == 0 || (service.data >= data && service.size <= size));
    own_host_is("localhost", bytes);
    return 0;
}
