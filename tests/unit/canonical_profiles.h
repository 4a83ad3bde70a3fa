/*
 * canonical_profiles: what a profiles request says, whatever its dictionary looks like.
 *
 * Reads with protobuf-c and resolves every index, so two requests that mean the same give the same
 * text: a line per profile (if wanted) and per sample, in their order. Also used by fuzz targets.
 *
 * Owner: the caller's text.
 *
 * Thread: any.
 */
#ifndef PROFCOL_TESTS_CANONICAL_PROFILES_H
#define PROFCOL_TESTS_CANONICAL_PROFILES_H

#include "core/base/text.h"

enum canonical_detail {
    CANONICAL_SAMPLES,  /* profile_id and original_payload do not count: a profile may have been cut
                         */
    CANONICAL_PROFILES, /* everything */
};

void canonical_profiles(struct slice request, enum canonical_detail detail, struct text *out);

#endif
