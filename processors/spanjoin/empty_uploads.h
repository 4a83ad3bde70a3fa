/*
 * empty_uploads: removes profiles without samples from requests that others than the join get.
 *
 * Readers of other formats than OTLP keep them for the join, because they say up to which time
 * there were none (upload_times.h, core/pipeline/empty_profiles.h).
 *
 * Owner: nothing is allocated but in the batch's arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_SPANJOIN_EMPTY_UPLOADS_H
#define PROFCOL_SPANJOIN_EMPTY_UPLOADS_H

#include <stdbool.h>

struct batch;

/* Removes them, and resources that have no others, unless the request came as OTLP. Returns whether
 * there were any; the dictionary keeps what only they referred to. */
bool empty_uploads_remove(struct batch *batch);

#endif
