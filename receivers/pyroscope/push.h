/*
 * push: push.v1.PusherService/Push, the message behind its protocol.
 *
 * PushRequest{series: [{labels, samples: [{raw_profile}]}]}; a raw profile is a pprof, gzip or not.
 * One bad series refuses all, where Pyroscope stores the good ones and reports an error all the
 * same: then a client that sends again would not send them twice.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PYROSCOPE_PUSH_H
#define PROFCOL_PYROSCOPE_PUSH_H

#include "receivers/pyroscope/upload.h"

/* Puts a PushRequest into the upload's builder. False: *why names series and sample. */
bool push_read(struct upload *upload, struct slice request, struct verdict *why);
/* The same from its JSON. */
bool push_read_json(struct upload *upload, struct slice json, struct verdict *why);

#endif
