/*
 * tail_fields: the tables of settings of tail_sampling, and their checks.
 *
 * Owner: static data.
 *
 * Thread: main, while the configuration is loaded.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TAIL_FIELDS_H
#define PROFCOL_TAIL_SAMPLING_TAIL_FIELDS_H

#include "processors/tail_sampling/tail_settings.h"

extern const struct field tail_fields[];
/* What all policies have, wherever they are; core/components.c shows it once in the reference. */
extern const struct field tail_policy_fields[], tail_and_fields[];

/* `check` of the component type: makes settings->plan. */
void tail_check(void *settings, struct config_check *check);

#endif
