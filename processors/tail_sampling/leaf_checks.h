/*
 * leaf_checks: says what is wrong with the settings of a policy that contains no other.
 *
 * Owner: nothing is kept.
 *
 * Thread: main, while the configuration is loaded.
 */
#ifndef PROFCOL_TAIL_SAMPLING_LEAF_CHECKS_H
#define PROFCOL_TAIL_SAMPLING_LEAF_CHECKS_H

#include "processors/tail_sampling/tail_settings.h"

/* Reports errors, and warns of settings that the Collector takes although they make no sense.
 * place: of the policy. */
void leaf_check(struct config_check *check, const char *place, enum tail_type type,
                const struct tail_leaf *leaf);

#endif
