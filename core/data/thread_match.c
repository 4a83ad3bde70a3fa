#include "core/data/thread_match.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Hits that a match needs, and of other ids and threads votes at all. */
enum { HITS_MIN = 16, VOTES_MIN = 24, RARE_PART = 4 };
/* A chance is clearly less if it is at most this part, and so many standard deviations away. */
#define LESS_PART 0.85
#define LESS_DEVIATIONS 5.0
/* The least part of an id's samples in spans of its thread. */
#define HIT_PART 0.5

int thread_match_place(struct thread_match *match, uint32_t number)
{
    int free_place = -1;
    for (int i = 0; i < MATCH_THREADS_MAX; i++) {
        if (match->threads[i] == number + 1)
            return i;
        if (match->threads[i] == 0 && free_place < 0)
            free_place = i;
    }
    if (free_place >= 0)
        match->threads[free_place] = number + 1;
    return free_place;
}

void thread_match_remove(struct thread_match *match, uint32_t number)
{
    for (int i = 0; i < MATCH_THREADS_MAX; i++) {
        if (match->threads[i] != number + 1)
            continue;
        match->threads[i] = 0;
        for (uint32_t k = 0; k < match->id_count; k++) {
            match->ids[k].scores[i] = (struct match_score){.trace = 0};
            if (match->ids[k].thread == i)
                match->ids[k].thread = -1;
        }
    }
}

/* ---- votes ---- */

static struct match_id *find_id(struct thread_match *match, int64_t id)
{
    for (uint32_t i = 0; i < match->id_count; i++)
        if (match->ids[i].id == id)
            return &match->ids[i];
    return NULL;
}

/* Returns room for an id, if need be that of the one that has not voted for the longest time. */
static struct match_id *new_id(struct thread_match *match)
{
    if (match->id_count < MATCH_IDS_MAX) {
        if (match->id_count == match->id_capacity) {
            match->id_capacity = match->id_capacity ? match->id_capacity * 2 : 4;
            match->ids = memory_grow(match->ids, match->id_capacity, sizeof *match->ids);
        }
        return &match->ids[match->id_count++];
    }
    struct match_id *oldest = &match->ids[0];
    for (uint32_t i = 1; i < match->id_count; i++)
        if (match->ids[i].voted_ns < oldest->voted_ns)
            oldest = &match->ids[i];
    return oldest;
}

struct match_id *thread_match_begin(struct thread_match *match, int64_t id, uint64_t time_ns)
{
    struct match_id *found = find_id(match, id);
    if (!found) {
        found = new_id(match);
        memset(found, 0, sizeof *found);
        found->id = id;
        found->thread = -1;
    } else {
        uint64_t apart_ns =
            time_ns > found->voted_ns ? time_ns - found->voted_ns : found->voted_ns - time_ns;
        if (apart_ns < MATCH_APART_NS)
            return NULL;
    }
    found->voted_ns = time_ns;
    return found;
}

static void add_vote(struct match_score *score, struct match_vote vote)
{
    if (!vote.is_known || (vote.trace != 0 && vote.trace == score->trace))
        return;
    if (vote.trace != 0) {
        score->trace = vote.trace;
        score->hits++;
    } else {
        score->misses++;
    }
    if (score->hits == UINT16_MAX || score->misses == UINT16_MAX) {
        score->hits /= 2;
        score->misses /= 2;
    }
}

void thread_match_vote(struct match_id *id, const struct match_vote votes[MATCH_THREADS_MAX])
{
    for (int i = 0; i < MATCH_THREADS_MAX; i++)
        add_vote(&id->scores[i], votes[i]);
}

/* ---- deciding ---- */

struct chance {
    double part; /* of the votes that are hits */
    double votes;
};

static struct chance chance_of(uint32_t hits, uint32_t misses)
{
    double votes = (double)hits + misses + 2; /* as if one more of each had been */
    return (struct chance){(hits + 1) / votes, votes};
}

static bool is_clearly_less(struct chance a, struct chance b)
{
    double apart = b.part - a.part;
    double variance = a.part * (1 - a.part) / a.votes + b.part * (1 - b.part) / b.votes;
    return a.votes >= VOTES_MIN && a.part <= LESS_PART * b.part &&
           apart * apart >= LESS_DEVIATIONS * LESS_DEVIATIONS * variance;
}

static int thread_of_most(const struct match_id *id)
{
    int most = 0;
    for (int i = 1; i < MATCH_THREADS_MAX; i++)
        if (id->scores[i].hits > id->scores[most].hits)
            most = i;
    return most;
}

static struct chance chance_in(const struct match_id *id, int thread)
{
    return chance_of(id->scores[thread].hits, id->scores[thread].misses);
}

/* Whether the samples of an id were in spans of a thread much more rarely than in those of another.
 */
static bool is_rarely_in(const struct match_id *id, int thread, int than)
{
    return id->scores[thread].hits * RARE_PART <= id->scores[than].hits ||
           is_clearly_less(chance_in(id, thread), chance_in(id, than));
}

/* Whether the samples of the id are in spans of each other thread much more rarely. */
static bool is_the_only_thread(const struct thread_match *match, const struct match_id *id,
                               int thread)
{
    for (int i = 0; i < MATCH_THREADS_MAX; i++)
        if (i != thread && match->threads[i] != 0 && !is_rarely_in(id, i, thread))
            return false;
    return true;
}

/* Whether the samples of other ids are in spans of the thread much more rarely, and no other one
 * fits it as well. */
static bool is_the_only_id(const struct thread_match *match, const struct match_id *id, int thread)
{
    struct chance chance = chance_in(id, thread);
    uint32_t hits = 0, misses = 0;
    for (uint32_t i = 0; i < match->id_count; i++) {
        const struct match_id *other = &match->ids[i];
        if (other == id)
            continue;
        if (other->thread == thread || (other->thread < 0 && thread_of_most(other) == thread &&
                                        other->scores[thread].hits >= HITS_MIN / 2 &&
                                        chance_in(other, thread).part > LESS_PART * chance.part))
            return false;
        hits += other->scores[thread].hits;
        misses += other->scores[thread].misses;
    }
    return is_clearly_less(chance_of(hits, misses), chance);
}

bool thread_match_decide(struct thread_match *match, struct match_id *id)
{
    int thread = thread_of_most(id);
    if (id->thread >= 0 || id->scores[thread].hits < HITS_MIN ||
        chance_in(id, thread).part < HIT_PART || !is_the_only_thread(match, id, thread) ||
        !is_the_only_id(match, id, thread))
        return false;
    assert(match->threads[thread] != 0);
    id->thread = thread;
    return true;
}

void thread_match_deinit(struct thread_match *match)
{
    free(match->ids);
    *match = (struct thread_match){.ids = NULL};
}

size_t thread_match_memory(const struct thread_match *match)
{
    return match->id_capacity * sizeof *match->ids;
}
