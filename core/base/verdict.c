#include "core/base/verdict.h"

#include "core/base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

const struct verdict verdict_ok = {.code = GRPC_OK, .retry_after_ns = -1};
const struct verdict verdict_shutting_down = {
    .code = GRPC_UNAVAILABLE, .retry_after_ns = -1, .text = "shutting down"};
const struct verdict verdict_over_budget = {.code = GRPC_UNAVAILABLE,
                                            .retry_after_ns = 1000000000,
                                            .text = "data refused due to high memory usage"};
const struct verdict verdict_sender_is_gone = {.code = GRPC_CANCELLED,
                                               .retry_after_ns = -1,
                                               .text = "the client no longer waits for the answer"};

/* Replaces invalid or truncated characters by question marks, because the text is used in protobuf
 * strings, which must be UTF-8. */
static void make_utf8(char *text)
{
    size_t size = strlen(text);
    for (size_t i = 0, length; i < size; i += length) {
        length = text_utf8_length((const uint8_t *)text + i, size - i);
        if (length > 0)
            continue;
        text[i] = '?';
        length = 1;
    }
}

static struct verdict make(enum grpc_code code, int64_t retry_after_ns, const char *format,
                           va_list args)
{
    struct verdict verdict = {.code = code, .retry_after_ns = retry_after_ns};
    vsnprintf(verdict.text, sizeof verdict.text, format, args);
    text_end_at_character(verdict.text);
    make_utf8(verdict.text);
    return verdict;
}

struct verdict verdict_of(enum grpc_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct verdict verdict = make(code, -1, format, args);
    va_end(args);
    return verdict;
}

struct verdict verdict_try_later(enum grpc_code code, int64_t retry_after_ns, const char *format,
                                 ...)
{
    va_list args;
    va_start(args, format);
    struct verdict verdict = make(code, retry_after_ns, format, args);
    va_end(args);
    return verdict;
}

bool verdict_is_retryable(const struct verdict *verdict)
{
    switch (verdict->code) {
    case GRPC_CANCELLED:
    case GRPC_DEADLINE_EXCEEDED:
    case GRPC_ABORTED:
    case GRPC_OUT_OF_RANGE:
    case GRPC_UNAVAILABLE:
    case GRPC_DATA_LOSS:
        return true;
    case GRPC_RESOURCE_EXHAUSTED:
        return verdict->retry_after_ns >= 0;
    default:
        return false;
    }
}

int verdict_http_status(const struct verdict *verdict)
{
    if (verdict->code == GRPC_RESOURCE_EXHAUSTED)
        return verdict->retry_after_ns >= 0 ? 429 : 413; /* a client retries 429 */
    if (verdict_is_retryable(verdict))
        return 503;
    switch (verdict->code) {
    case GRPC_OK:
        return 200;
    case GRPC_INVALID_ARGUMENT:
        return 400;
    case GRPC_UNAUTHENTICATED:
        return 401;
    case GRPC_PERMISSION_DENIED:
        return 403;
    case GRPC_UNIMPLEMENTED:
        return 404;
    default:
        return 500;
    }
}

static enum grpc_code code_from_http(int status)
{
    switch (status) {
    case 400:
        return GRPC_INVALID_ARGUMENT;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 429:
        return GRPC_RESOURCE_EXHAUSTED;
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

struct verdict verdict_from_http(int status, int64_t retry_after_ns)
{
    if (status >= 200 && status < 300)
        return verdict_ok;
    enum grpc_code code = code_from_http(status);
    /* RESOURCE_EXHAUSTED without a delay would count as permanent; 429 never is. */
    if (code == GRPC_RESOURCE_EXHAUSTED && retry_after_ns < 0)
        retry_after_ns = 0;
    return verdict_try_later(code, retry_after_ns, "HTTP status %d", status);
}

static const struct {
    const char *name;
    const char *go_name;
} codes[] = {
    [GRPC_OK] = {"OK", "OK"},
    [GRPC_CANCELLED] = {"CANCELLED", "Canceled"},
    [GRPC_UNKNOWN] = {"UNKNOWN", "Unknown"},
    [GRPC_INVALID_ARGUMENT] = {"INVALID_ARGUMENT", "InvalidArgument"},
    [GRPC_DEADLINE_EXCEEDED] = {"DEADLINE_EXCEEDED", "DeadlineExceeded"},
    [GRPC_NOT_FOUND] = {"NOT_FOUND", "NotFound"},
    [GRPC_ALREADY_EXISTS] = {"ALREADY_EXISTS", "AlreadyExists"},
    [GRPC_PERMISSION_DENIED] = {"PERMISSION_DENIED", "PermissionDenied"},
    [GRPC_RESOURCE_EXHAUSTED] = {"RESOURCE_EXHAUSTED", "ResourceExhausted"},
    [GRPC_FAILED_PRECONDITION] = {"FAILED_PRECONDITION", "FailedPrecondition"},
    [GRPC_ABORTED] = {"ABORTED", "Aborted"},
    [GRPC_OUT_OF_RANGE] = {"OUT_OF_RANGE", "OutOfRange"},
    [GRPC_UNIMPLEMENTED] = {"UNIMPLEMENTED", "Unimplemented"},
    [GRPC_INTERNAL] = {"INTERNAL", "Internal"},
    [GRPC_UNAVAILABLE] = {"UNAVAILABLE", "Unavailable"},
    [GRPC_DATA_LOSS] = {"DATA_LOSS", "DataLoss"},
    [GRPC_UNAUTHENTICATED] = {"UNAUTHENTICATED", "Unauthenticated"},
};

/* Returns GRPC_UNKNOWN for a code that does not exist: a backend may send any number. */
static unsigned known_code(enum grpc_code code)
{
    return (unsigned)code < sizeof codes / sizeof codes[0] ? (unsigned)code : GRPC_UNKNOWN;
}

const char *grpc_code_name(enum grpc_code code)
{
    return codes[known_code(code)].name;
}

const char *grpc_code_go_name(enum grpc_code code)
{
    return codes[known_code(code)].go_name;
}

const char *verdict_error_type(const struct verdict *verdict)
{
    return verdict->error_type ? verdict->error_type : grpc_code_go_name(verdict->code);
}

const char *verdict_print(const struct verdict *verdict, char out[VERDICT_ERROR_MAX])
{
    int size = snprintf(out, VERDICT_ERROR_MAX, "rpc error: code = %s desc = %s",
                        grpc_code_go_name(verdict->code), verdict->text);
    assert(size > 0 && size < VERDICT_ERROR_MAX);
    return out;
}
