/*
 * tail_plan: makes the plan of the policies that were written, and says what is wrong with them.
 *
 * Owner: the plan lives in the configuration's arena.
 *
 * Thread: main, while the configuration is loaded.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TAIL_PLAN_H
#define PROFCOL_TAIL_SAMPLING_TAIL_PLAN_H

#include "processors/tail_sampling/tail_settings.h"

/* Makes settings->plan, and reports errors. */
void tail_plan_make(struct tail_settings *settings, struct config_check *check);

#endif
