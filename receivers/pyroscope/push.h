/*
 * push: reads the message of push.v1.PusherService/Push.
 *
 * PushRequest{series: [{labels, samples: [{raw_profile}]}]}; a raw profile is a pprof, gzip or not.
 * One invalid series refuses the whole request, so that a client that retries sends nothing twice.
 * (Pyroscope stores the valid series and still reports an error.)
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PYROSCOPE_PUSH_H
#define PROFCOL_PYROSCOPE_PUSH_H

#include "receivers/pyroscope/upload.h"

/* Adds a PushRequest to the upload's builder. Returns false if it is refused; *why names series and
 * sample. */
bool push_read(struct upload *upload, struct slice request, struct verdict *why);
/* Like push_read, for a PushRequest in JSON. */
bool push_read_json(struct upload *upload, struct slice json, struct verdict *why);

#endif
