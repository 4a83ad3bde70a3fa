/*
 * types_seen: notices that no samples come of a type that the settings name and that no profiler is
 * known to send (type_names.h): what spans would say of it never exists.
 *
 * Owner: the join.
 *
 * Thread: types_seen_note: any. types_seen_missing: the worker that sweeps the index.
 */
#ifndef PROFCOL_SPANJOIN_TYPES_SEEN_H
#define PROFCOL_SPANJOIN_TYPES_SEEN_H

#include <stdatomic.h>
#include <stdint.h>

/* All-zero: nothing has come yet. */
struct types_seen {
    atomic_uint seen;
    unsigned turns; /* since the first profile */
};

/* Notes that profiles have come, of these types (bits of those in the settings). */
void types_seen_note(struct types_seen *types, uint32_t bits);
/* Call it at each sweep of the index. Returns once, TYPES_SEEN_TURNS calls after the first profile,
 * which of the awaited types have not come; otherwise 0. A profiler uploads once a minute at least,
 * and a sweep is every 10 s, or more often if the window is short. */
enum { TYPES_SEEN_TURNS = 18 };
uint32_t types_seen_missing(struct types_seen *types, uint32_t awaited);

#endif
