/*
 * redact_profiles: redacts what the dictionary of a profiles request has: names of functions, files
 * and mappings, and the attributes of samples, profiles, locations and mappings.
 *
 * Every entry is tested once, however many samples refer to it. A name that changes gets a new
 * entry in the string table, to which functions and mappings then refer, because a key or unit may
 * be the same text; batch_prune then takes the old one out. An attribute gets its new value in
 * place. If one is removed, the lists that refer to it are written anew.
 *
 * Owner: the caller's batch and its arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_REDACT_PROFILES_H
#define PROFCOL_PROCESSORS_REDACTION_REDACT_PROFILES_H

#include "processors/redaction/redactor.h"

/* Returns whether something changed. Then call batch_prune. The dictionary of the batch
 * (batch_dictionary) must not be used before. */
bool redact_profiles_batch(struct redactor *redactor, struct batch *batch);

#endif
