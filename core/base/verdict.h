/*
 * verdict: the outcome for some data, in terms of gRPC's status codes.
 *
 * A component that takes responsibility for a batch, or refuses it, settles its receipt with a
 * verdict. verdict_http_status is the only place where a verdict becomes an HTTP status.
 *
 * Owner: a plain value, which contains its text.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_BASE_VERDICT_H
#define PROFCOL_CORE_BASE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* https://grpc.github.io/grpc/core/md_doc_statuscodes.html */
enum grpc_code {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_ABORTED = 10,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15,
    GRPC_UNAUTHENTICATED = 16,
};

struct verdict {
    enum grpc_code code;
    int64_t retry_after_ns; /* the sender should wait so long (RetryInfo, Retry-After); -1: no time
                               given */
    const char *error_type; /* of a failure that the Collector does not describe by a code, in
                               static memory: "_OTHER"; NULL: the code */
    char text[256];
};

extern const struct verdict verdict_ok;
/* Try later: this process is ending. */
extern const struct verdict verdict_shutting_down;
/* Try later: there is no memory for the data now. UNAVAILABLE, as in the Collector, because some
 * SDKs drop what RESOURCE_EXHAUSTED or HTTP 429 refuses. */
extern const struct verdict verdict_over_budget;
/* For data whose sender has given up waiting for the answer, and will send it again. */
extern const struct verdict verdict_sender_is_gone;

/* Returns a verdict with this code and text, without a delay. */
struct verdict verdict_of(enum grpc_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns a verdict that asks the sender to send the same data again, after retry_after_ns; -1: no
 * time given. */
struct verdict verdict_try_later(enum grpc_code code, int64_t retry_after_ns, const char *format,
                                 ...) __attribute__((format(printf, 3, 4)));

static inline bool verdict_is_ok(const struct verdict *verdict)
{
    return verdict->code == GRPC_OK;
}

/* Whether a client may send the data again, by OTLP's rule: CANCELLED, DEADLINE_EXCEEDED, ABORTED,
 * OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS, and RESOURCE_EXHAUSTED with a delay. */
bool verdict_is_retryable(const struct verdict *verdict);
/* Returns the HTTP status: 200, 400, 401, 403, 404, 413 (permanent RESOURCE_EXHAUSTED), 429, 500 or
 * 503, as in the Collector's internal/httphelper. */
int verdict_http_status(const struct verdict *verdict);
/* Returns the verdict for a backend's HTTP status: OTLP/HTTP retries 429, 502, 503, 504; all other
 * errors are permanent. */
struct verdict verdict_from_http(int status, int64_t retry_after_ns);
/* Return the name of a code: "UNAVAILABLE", or "Unavailable" as Go prints it, which people search
 * for in logs. */
const char *grpc_code_name(enum grpc_code code);
const char *grpc_code_go_name(enum grpc_code code);

enum { VERDICT_ERROR_MAX = 320 };
/* Returns what the Collector's attribute error.type has for the verdict: "Unavailable", "_OTHER".
 */
const char *verdict_error_type(const struct verdict *verdict);
/* Prints the verdict as the Collector logs it: "rpc error: code = Unavailable desc = TEXT". Returns
 * out. */
const char *verdict_print(const struct verdict *verdict, char out[VERDICT_ERROR_MAX]);

#endif
