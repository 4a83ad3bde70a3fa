/*
 * process_group: which process runs, of several that have the same service, container, or number on
 * a host.
 *
 * A process that was restarted is another one than before, and profiles may say nothing by which
 * they could be told apart. Times of spans show it: the first span of the new process began after
 * the last one of the old process had ended, and the old one has been silent for longer than it
 * usually is. Of replicas that run side by side, the older one sends spans again, so that both run.
 *
 * Owner: instances.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_PROCESS_GROUP_H
#define PROFCOL_CORE_DATA_PROCESS_GROUP_H

#include "core/data/arrivals.h"
#include "core/data/upload_slot.h"

/* The spans of a process that name their threads. All-zero: there were none. */
struct process_spans {
    struct upload_range ran;  /* from the begin of the first one to the end of the last one */
    struct arrivals arrivals; /* monotonic */
};
/* Notes spans that have arrived. ran: of all of them. */
void process_spans_note(struct process_spans *spans, struct upload_range ran, uint64_t now_ns);

enum { GROUP_MEMBERS_MAX = 4 };

/* A process of a group that has sent spans within the window. */
struct group_member {
    uint16_t number; /* not 0 */
    const struct process_spans *spans;
};

enum group_state {
    GROUP_IS_EMPTY,
    GROUP_RUNS_ONE,
    GROUP_MAY_RUN_ONE, /* others may have ended */
    GROUP_RUNS_SEVERAL,
};
/* What is known of a group. */
struct group_finding {
    enum group_state state;
    uint16_t number; /* the process that began last; 0: GROUP_IS_EMPTY */
    uint16_t before; /* the process that ran before that time; 0: none, or GROUP_RUNS_SEVERAL */
    uint64_t since_ns;
};
struct group_finding process_group_judge(const struct group_member *members, unsigned count,
                                         uint64_t now_ns);

#endif
