/*
 * strip_attributes: takes entries of the attribute table out of the lists that refer to them.
 *
 * Profiles, samples, locations and mappings have such lists. The entries stay in the table until
 * batch_prune.
 *
 * Owner: new bytes live in the arena that is given.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_STRIP_ATTRIBUTES_H
#define PROFCOL_PROCESSORS_REDACTION_STRIP_ATTRIBUTES_H

#include "core/base/arena.h"
#include "core/data/message.h"

struct removed_entries {
    bool *is_removed; /* of each entry */
    uint32_t count;   /* entries */
    bool any;
};

/* Sets *payload_out to an entry of a table without the removed attributes. Returns false, and
 * leaves it, if the entry has none of them. */
bool strip_attributes_from_entry(int table, struct slice payload,
                                 const struct removed_entries *removed, struct arena *arena,
                                 struct slice *payload_out);
/* Strips all profiles and samples of a request. scratch: for the time of the call. */
void strip_attributes_from_profiles(struct message *root, const struct removed_entries *removed,
                                    struct arena *arena, struct arena *scratch);

#endif
