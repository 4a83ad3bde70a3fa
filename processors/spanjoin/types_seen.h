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
#include <stdbool.h>
#include <stdint.h>

/* All-zero: nothing has come yet. */
struct types_seen {
    atomic_uint seen;
    uint64_t since_ns; /* monotonic: that of the first profile, or somewhat later; 0: none came */
    bool is_told;
};

/* Notes that profiles have come, of these types (bits of those in the settings). */
void types_seen_note(struct types_seen *types, uint32_t bits);
/* Call it at each sweep of the index. Returns once, TYPES_SEEN_AFTER_NS after the first profile,
 * which of the awaited types have not come; otherwise 0. A profiler uploads once a minute at least.
 * now_ns: monotonic. */
#define TYPES_SEEN_AFTER_NS UINT64_C(180000000000)
uint32_t types_seen_missing(struct types_seen *types, uint32_t awaited, uint64_t now_ns);

#endif
