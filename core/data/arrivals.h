/*
 * arrivals: when something arrived, and how often it does, to know when it has ended.
 *
 * Owner: the caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_ARRIVALS_H
#define PROFCOL_CORE_DATA_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns a time as members keep it in which 0 means never. */
static inline uint64_t happened_at(uint64_t now_ns)
{
    return now_ns ? now_ns : 1;
}

/* Whether something was so short a time ago. then_ns: 0: never. */
static inline bool is_within(uint64_t then_ns, uint64_t now_ns, uint64_t span_ns)
{
    return then_ns != 0 && (then_ns >= now_ns || now_ns - then_ns <= span_ns);
}

/* All-zero: nothing has arrived. */
struct arrivals {
    uint64_t last_ns;  /* 0: none */
    uint64_t pause_ns; /* about the longest time between two of them; 0: there was only one */
};

/* Notes that something has arrived. now_ns: of one clock, always the same. */
void arrivals_note(struct arrivals *arrivals, uint64_t now_ns);
/* Whether it has been silent for longer than it usually is: for 10 s and twice the longest pause.
 * false if there was only one arrival. */
bool arrivals_have_ended(const struct arrivals *arrivals, uint64_t now_ns);

#endif
