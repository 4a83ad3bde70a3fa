/*
 * redact_profiles: redacts what the dictionary of a profiles request has: names of functions, files
 * and mappings, and the attributes of samples, profiles, locations and mappings.
 *
 * Every entry is tested once, however many samples refer to it. Names change in the string table
 * (redact_names). An attribute gets its new value in place. If one is removed, the lists that refer
 * to it are written anew.
 *
 * Owner: the caller's batch and its arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_REDACT_PROFILES_H
#define PROFCOL_PROCESSORS_REDACTION_REDACT_PROFILES_H

#include "processors/redaction/redactor.h"

/* `prunes`: batch_prune will be called in any case. Returns whether it has to be: what was replaced
 * may still be in the dictionary, where nothing refers to it. What nobody can search, the original
 * of a profile, is removed. */
bool redact_profiles_batch(struct redactor *redactor, struct batch *batch, bool prunes);

#endif
