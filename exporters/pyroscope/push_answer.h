/*
 * push_answer: what the answer to a Push means.
 *
 * Pyroscope answers by Connect (https://connectrpc.com/docs/protocol): 200, or a status with a JSON
 * body {"code": ..., "message": ...}. It says 500 when its own parts cannot be reached, so that is
 * tried again; 400, 401, 403, 404, 413 and 501 are not.
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PYROSCOPE_PUSH_ANSWER_H
#define PROFCOL_PYROSCOPE_PUSH_ANSWER_H

#include "core/base/verdict.h"
#include "core/net/client.h"

/* url: for the text. wall_ns: now, for a Retry-After that is a date. */
struct verdict push_answer(const struct client_answer *answer, const char *url, uint64_t wall_ns);

#endif
