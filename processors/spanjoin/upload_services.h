/*
 * upload_services: gives the profiles of a request the service of their process's spans
 * (`service_from`).
 *
 * Only resources with samples change, and as many as there is room for (sample_plan.room): a small
 * resource may gain a long name.
 *
 * Owner: what is written lives in the batch's arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_SPANJOIN_UPLOAD_SERVICES_H
#define PROFCOL_SPANJOIN_UPLOAD_SERVICES_H

#include "processors/spanjoin/hold_state.h"
#include "processors/spanjoin/sample_plan.h"

/* Call it after sample_plan_apply, and before samples are folded. */
void upload_services_apply(struct sample_plan *plan, struct service_counts *counts);

#endif
