/*
 * request_content: identifies a profiles request by its bytes, for profiles without an id. A client
 * that was refused sends the same bytes again.
 *
 * Owner: the plan's.
 *
 * Thread: that of the plan.
 */
#ifndef PROFCOL_SPANJOIN_REQUEST_CONTENT_H
#define PROFCOL_SPANJOIN_REQUEST_CONTENT_H

#include "processors/spanjoin/sample_plan.h"

/* Returns PROFILE_ID_SIZE bytes. They are computed by the first call, which must be made while the
 * request is as it arrived. time_ns: of its first profile; 0: none. */
const uint8_t *request_content(struct sample_plan *plan, uint64_t time_ns);

#endif
