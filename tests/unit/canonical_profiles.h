/*
 * canonical_profiles: prints the content of a profiles request independently of the order of its
 * dictionary.
 *
 * It reads with protobuf-c and resolves every index, so two requests with the same meaning give the
 * same text: a line per profile (with CANONICAL_PROFILES) and per sample, in their order. Fuzz
 * targets use it, too.
 *
 * Owner: the text belongs to the caller.
 *
 * Thread: any.
 */
#ifndef PROFCOL_TESTS_CANONICAL_PROFILES_H
#define PROFCOL_TESTS_CANONICAL_PROFILES_H

#include "core/base/text.h"
#include "opentelemetry/proto/profiles/v1development/profiles.pb-c.h"

enum canonical_detail {
    CANONICAL_SAMPLES,  /* without profile_id and original_payload, because a profile may have been
                           split */
    CANONICAL_PROFILES, /* everything */
    CANONICAL_TEXT,     /* everything, in full: the other two print a hash of each line */
};

/* Appends the content of a request. */
void canonical_profiles(struct slice request, enum canonical_detail detail, struct text *out);
/* Appends what a stack says: nothing, if it has no locations. */
void canonical_stack(const Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary *of,
                     int32_t index, struct text *out);

#endif
