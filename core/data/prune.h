/*
 * prune: takes out of a profiles request what nothing in it refers to any more.
 *
 * A component that removes or replaces something leaves its text in the dictionary: the entry of an
 * attribute that no sample has, the functions of a stack that no sample has. Pruning marks what
 * profiles, samples and other marked entries refer to. Other entries become the zero value, so that
 * indices stay valid and profiles keep their bytes; those at the end of a table are cut. What the
 * sender sent as the original of a profile (original_payload) has the removed text, too, and
 * says something else than the profile now, so it is removed.
 *
 * The work is one pass over the request, and memory of a byte for each entry. Components call
 * batch_prune (core/pipeline/batch.h).
 *
 * Owner: the new dictionary lives in the arena of the batch.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_CORE_DATA_PRUNE_H
#define PROFCOL_CORE_DATA_PRUNE_H

#include "core/data/dictionary.h"
#include "core/data/sample_marks.h"

enum prune_result {
    PRUNE_NOTHING, /* everything was referred to; the request is as before */
    PRUNE_DONE,
    /* The same, and the zero values that stay take more bytes than all other entries: writing the
     * request anew without them (core/data/profiles_merge.h) makes it much smaller. */
    PRUNE_SPARSE,
};

/* Prunes the dictionary of a scanned, normalised request, whatever was changed in it since. A
 * struct dictionary over the tree, and what was made with one, must not be used afterwards. layout:
 * what the scan knows of the bytes of the root. marks: what all samples that are left refer to;
 * NULL if it is not known. */
enum prune_result dictionary_prune(struct message *root, const struct dictionary_layout *layout,
                                   const struct sample_marks *marks, struct arena *arena);

#endif
