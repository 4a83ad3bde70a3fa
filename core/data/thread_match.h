/*
 * thread_match: which of several threads the samples with an id are of, by their times.
 *
 * Threads of a pool often have names that are equal in what the operating system keeps of them, and
 * spans may name them by ids that samples do not have. But a thread is sampled while its own spans
 * run, and while those of others run only by chance. So each sample of an id votes: for the threads
 * whose spans cover its time, and against all others.
 *
 * It is sure which thread an id is if its samples were in spans of that thread in many traces, if
 * they were so in those of each other thread much more rarely, if samples of other ids were in its
 * spans much more rarely, and if no other id fits it as well. Votes in one trace count once,
 * because one chance is enough for all of them.
 *
 * A program may start again, and give its ids to other threads. So an id whose thread is known is
 * watched: it is forgotten if its last votes are clearly more for another thread, or no more for
 * its own than those of other ids. A thread whose id is silent since another one votes may become
 * that one's.
 *
 * Owner: thread_spans.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_THREAD_MATCH_H
#define PROFCOL_CORE_DATA_THREAD_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MATCH_THREADS_MAX = 64, MATCH_IDS_MAX = 64 };
_Static_assert(MATCH_THREADS_MAX <= 64, "bits of `changed`");
/* Votes of one id that are nearer to each other do not count. */
#define MATCH_APART_NS UINT64_C(200000000)

/* What the samples of an id say of a thread. */
struct match_score {
    uint32_t trace; /* hash of the last one that counted; 0: none */
    uint16_t hits;
    uint16_t misses;
    uint16_t recent_hits; /* of an id whose thread is known: since it is watched anew */
    uint16_t recent_misses;
};
struct match_id {
    int64_t id;
    uint64_t voted_ns;  /* the time of its last vote; 0: it is not in use */
    uint64_t first_ns;  /* that of the first one that its scores contain; 0: there is none */
    uint64_t newest_ns; /* the latest time of a vote */
    int thread;         /* that it is; -1: not known */
    struct match_score scores[MATCH_THREADS_MAX];
};
/* All-zero is empty. */
struct thread_match {
    uint32_t threads[MATCH_THREADS_MAX]; /* their numbers + 1, as the caller likes; 0: none */
    uint64_t changed; /* bits of the places whose id changed in the last thread_match_judge */
    struct match_id *ids;
    uint32_t id_count;
    uint32_t id_capacity;
};

/* Returns the place of a thread with this number, which it gets if it has none; -1: there is no
 * room. */
int thread_match_place(struct thread_match *match, uint32_t number);
/* Forgets a thread. */
void thread_match_remove(struct thread_match *match, uint32_t number);

/* What ran on a thread when a sample was taken. */
struct match_vote {
    bool is_known;
    uint32_t trace; /* hash of the trace, not 0; 0: no span */
};
/* Returns the id if a sample of this time may vote; NULL: it does not count. It is valid until the
 * next call. */
struct match_id *thread_match_begin(struct thread_match *match, int64_t id, uint64_t time_ns);
/* Adds the votes, one for each place. */
void thread_match_vote(struct match_id *id, const struct match_vote votes[MATCH_THREADS_MAX]);
/* Decides which thread an id is, if that is not known, or whether it still is the one that it was.
 * Returns whether places have other ids now: `changed`. */
bool thread_match_judge(struct thread_match *match, struct match_id *id);
/* Returns the id that is this thread; NULL: none is known. */
const struct match_id *thread_match_id_of(const struct thread_match *match, int place);

void thread_match_deinit(struct thread_match *match);
/* Returns the memory in bytes, without the struct itself. */
size_t thread_match_memory(const struct thread_match *match);

#endif
