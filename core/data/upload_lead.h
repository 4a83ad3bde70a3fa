/*
 * upload_lead: how far the clock of a profiler is ahead.
 *
 * An upload cannot arrive before it ends. If it seems to, its times are later than they should be:
 * the profiler's clock is ahead, or it sends the end where the begin is meant. The largest such
 * lead of the last uploads is taken off the times of all of them, so that one which is slow does
 * not seem to contain what came after it.
 *
 * A lead is remembered for one to two windows. Several profilers of one process have different
 * forms of uploads, and each has its own lead.
 *
 * Owner: an instance.
 *
 * Thread: whoever holds the lock of the instances.
 */
#ifndef PROFCOL_CORE_DATA_UPLOAD_LEAD_H
#define PROFCOL_CORE_DATA_UPLOAD_LEAD_H

#include "core/data/upload_slot.h"

#include <stdbool.h>
#include <stdint.h>

/* Of one upload or several. All-zero: they have none. */
struct upload_ahead {
    uint64_t ns;      /* of the clock, at least */
    uint64_t ends_ns; /* duration of the longest one that sends its end where the begin is meant */
};

/* Of the uploads of one form. All-zero is none. */
struct upload_lead {
    struct upload_ahead newer; /* since `since_ns` */
    struct upload_ahead older; /* in the window before */
    uint64_t since_ns;         /* monotonic */
    uint32_t form;             /* as in upload_slot.h */
};

/* Of all uploads of a process. All-zero is none. */
struct upload_leads {
    struct upload_lead of[UPLOAD_FORMS_MAX];
};

static inline bool upload_is_ahead(struct upload_ahead ahead)
{
    return ahead.ns > 0 || ahead.ends_ns > 0;
}

/* Returns what is true of either. */
static inline struct upload_ahead upload_ahead_union(struct upload_ahead a, struct upload_ahead b)
{
    return (struct upload_ahead){a.ns > b.ns ? a.ns : b.ns,
                                 a.ends_ns > b.ends_ns ? a.ends_ns : b.ends_ns};
}

/* Whether an upload of this duration sends its end. A short one only seems to if the clock is ahead
 * by most of its duration. */
static inline bool upload_sends_end(struct upload_ahead ahead, uint64_t duration_ns)
{
    return duration_ns / 2 < ahead.ends_ns;
}

/* Notes the lead of one upload. */
void upload_lead_note(struct upload_leads *leads, uint32_t form, struct upload_ahead ahead,
                      uint64_t now_ns, uint64_t window_ns);
/* Returns the lead of the sender whose uploads have this form. */
struct upload_ahead upload_lead_largest(const struct upload_leads *leads, uint32_t form,
                                        uint64_t now_ns, uint64_t window_ns);

#endif
