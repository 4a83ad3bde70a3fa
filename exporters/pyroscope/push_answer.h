/*
 * push_answer: interprets the answer to a Push request.
 *
 * Pyroscope answers by Connect (https://connectrpc.com/docs/protocol): 200, or a status with a JSON
 * body {"code": ..., "message": ...}. It answers 500 if it cannot reach its own components, so 500
 * is retried; 400, 401, 403, 404, 413 and 501 are not.
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PYROSCOPE_PUSH_ANSWER_H
#define PROFCOL_PYROSCOPE_PUSH_ANSWER_H

#include "core/base/verdict.h"
#include "core/net/client.h"

/* Returns the verdict for an answer. url: for messages. wall_ns: the present time since 1970, for a
 * Retry-After that is a date. */
struct verdict push_answer(const struct client_answer *answer, const char *url, uint64_t wall_ns);

#endif
