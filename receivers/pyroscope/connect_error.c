#include "receivers/pyroscope/connect_error.h"

#include "core/base/text.h"
#include "core/pipeline/received.h"

#include <assert.h>

static const struct {
    const char *name;
    int http_status;
} codes[] = {
    [GRPC_OK] = {"ok", 200},
    [GRPC_CANCELLED] = {"canceled", 499},
    [GRPC_UNKNOWN] = {"unknown", 500},
    [GRPC_INVALID_ARGUMENT] = {"invalid_argument", 400},
    [GRPC_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
    [GRPC_NOT_FOUND] = {"not_found", 404},
    [GRPC_ALREADY_EXISTS] = {"already_exists", 409},
    [GRPC_PERMISSION_DENIED] = {"permission_denied", 403},
    [GRPC_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
    [GRPC_FAILED_PRECONDITION] = {"failed_precondition", 400},
    [GRPC_ABORTED] = {"aborted", 409},
    [GRPC_OUT_OF_RANGE] = {"out_of_range", 400},
    [GRPC_UNIMPLEMENTED] = {"unimplemented", 501},
    [GRPC_INTERNAL] = {"internal", 500},
    [GRPC_UNAVAILABLE] = {"unavailable", 503},
    [GRPC_DATA_LOSS] = {"data_loss", 500},
    [GRPC_UNAUTHENTICATED] = {"unauthenticated", 401},
};

/* Returns GRPC_UNKNOWN for a code that does not exist: a backend may send any number. */
static unsigned known_code(enum grpc_code code)
{
    return (unsigned)code < sizeof codes / sizeof codes[0] ? (unsigned)code : GRPC_UNKNOWN;
}

const char *connect_code_name(enum grpc_code code)
{
    assert(codes[known_code(code)].name);
    return codes[known_code(code)].name;
}

int connect_http_status(enum grpc_code code)
{
    return codes[known_code(code)].http_status;
}

struct verdict connect_verdict(const struct verdict *verdict)
{
    struct verdict said = *verdict;
    if (verdict_is_ok(verdict))
        return said;
    int status = connect_http_status(verdict->code);
    if (verdict_is_retryable(verdict)) {
        if (verdict->code != GRPC_RESOURCE_EXHAUSTED)
            said.code = GRPC_UNAVAILABLE;
    } else if (status == 429 || status >= 500) {
        said.code = GRPC_FAILED_PRECONDITION;
    }
    return said;
}

void connect_respond_error(struct exchange *exchange, int http_status,
                           const struct verdict *verdict)
{
    struct text json = {0};
    text_printf(&json, "{\"code\":\"%s\",\"message\":\"", connect_code_name(verdict->code));
    text_append_json(&json, slice_of_string(verdict->text));
    text_append(&json, "\"}");
    char seconds[24];
    struct http_header retry;
    size_t retry_count = received_retry_after(verdict, http_status, &retry, seconds);
    exchange_respond(exchange, http_status, "application/json", slice_of(json.data, json.size),
                     &retry, retry_count);
    text_deinit(&json);
}
