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
/* Votes since an id is watched that are enough to forget its thread: for another one, or if they
 * are no more than chance. After so many it is watched anew; sooner, if its thread still fits best.
 */
enum {
    WATCH_HITS_MIN = 12,
    WATCH_VOTES_MIN = 16,
    WATCH_LOST = 64,
    WATCH_AGAIN = 16,
    WATCH_MAX = 256
};
/* An id fits its thread no more than others if it has at most so many times their part. */
#define LOST_PART 1.5

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

static void watch_anew(struct match_id *id)
{
    for (int i = 0; i < MATCH_THREADS_MAX; i++)
        id->scores[i].recent_hits = id->scores[i].recent_misses = 0;
}

void thread_match_remove(struct thread_match *match, uint32_t number)
{
    for (int i = 0; i < MATCH_THREADS_MAX; i++) {
        if (match->threads[i] != number + 1)
            continue;
        match->threads[i] = 0;
        for (uint32_t k = 0; k < match->id_count; k++) {
            match->ids[k].scores[i] = (struct match_score){.trace = 0};
            if (match->ids[k].thread != i)
                continue;
            match->ids[k].thread = -1;
            watch_anew(&match->ids[k]); /* it may get a thread again (thread_spans) */
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
    if (found->first_ns == 0)
        found->first_ns = time_ns;
    if (found->newest_ns < time_ns)
        found->newest_ns = time_ns;
    return found;
}

/* Returns whether the vote counts. */
static bool add_vote(struct match_score *score, struct match_vote vote)
{
    if (!vote.is_known || (vote.trace != 0 && vote.trace == score->trace))
        return false;
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
    return true;
}

static void add_recent(struct match_score *score, bool is_hit)
{
    assert(score->recent_hits + score->recent_misses < WATCH_MAX);
    if (is_hit)
        score->recent_hits++;
    else
        score->recent_misses++;
}

/* For an id's own thread, all votes in a trace are recent ones: a long span is no reason to forget
 * it. Nothing is watched while its own spans have not arrived. */
void thread_match_vote(struct match_id *id, const struct match_vote votes[MATCH_THREADS_MAX])
{
    bool is_watched = id->thread >= 0 && votes[id->thread].is_known;
    for (int i = 0; i < MATCH_THREADS_MAX; i++) {
        bool counts = add_vote(&id->scores[i], votes[i]) || i == id->thread;
        if (is_watched && counts)
            add_recent(&id->scores[i], votes[i].trace != 0);
    }
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

static bool is_less(struct chance a, struct chance b)
{
    double apart = b.part - a.part;
    double variance = a.part * (1 - a.part) / a.votes + b.part * (1 - b.part) / b.votes;
    return a.part <= LESS_PART * b.part &&
           apart * apart >= LESS_DEVIATIONS * LESS_DEVIATIONS * variance;
}

static bool is_clearly_less(struct chance a, struct chance b)
{
    return a.votes >= VOTES_MIN && is_less(a, b);
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

/* Whether an id has not voted since another one does: then it may have ended. */
static bool is_silent_since(const struct match_id *id, const struct match_id *other)
{
    return id->newest_ns < other->first_ns;
}

/* The chance of the samples of other ids that vote to be in spans of a thread. */
static struct chance chance_of_others(const struct thread_match *match, const struct match_id *id,
                                      int thread)
{
    uint32_t hits = 0, misses = 0;
    for (uint32_t i = 0; i < match->id_count; i++) {
        const struct match_id *other = &match->ids[i];
        if (other == id || is_silent_since(other, id))
            continue;
        hits += other->scores[thread].hits;
        misses += other->scores[thread].misses;
    }
    return chance_of(hits, misses);
}

/* Whether another id is this thread, or fits it as well as one with this chance. */
static bool fits_as_well(const struct match_id *other, int thread, struct chance chance)
{
    if (other->thread >= 0)
        return other->thread == thread;
    return thread_of_most(other) == thread && other->scores[thread].hits >= HITS_MIN / 2 &&
           chance_in(other, thread).part > LESS_PART * chance.part;
}

/* Whether the samples of other ids are in spans of the thread much more rarely, and no other one
 * fits it as well. */
static bool is_the_only_id(const struct thread_match *match, const struct match_id *id, int thread)
{
    struct chance chance = chance_in(id, thread);
    for (uint32_t i = 0; i < match->id_count; i++) {
        const struct match_id *other = &match->ids[i];
        if (other != id && !is_silent_since(other, id) && fits_as_well(other, thread, chance))
            return false;
    }
    return is_clearly_less(chance_of_others(match, id, thread), chance);
}

static bool is_sure(const struct thread_match *match, const struct match_id *id, int thread)
{
    return id->scores[thread].hits >= HITS_MIN && chance_in(id, thread).part >= HIT_PART &&
           is_the_only_thread(match, id, thread) && is_the_only_id(match, id, thread);
}

/* ---- watching ---- */

static void begin_anew(struct match_id *id)
{
    memset(id->scores, 0, sizeof id->scores);
    id->first_ns = 0;
    id->thread = -1;
}

static void forget(struct thread_match *match, struct match_id *id)
{
    if (id->thread >= 0)
        match->changed |= UINT64_C(1) << id->thread;
    begin_anew(id);
}

static uint32_t recent_votes(const struct match_id *id, int thread)
{
    return (uint32_t)id->scores[thread].recent_hits + id->scores[thread].recent_misses;
}

static struct chance recent_chance(const struct match_id *id, int thread)
{
    return chance_of(id->scores[thread].recent_hits, id->scores[thread].recent_misses);
}

/* Returns the thread that the id fits best of late. */
static int best_of_late(const struct match_id *id)
{
    int best = id->thread;
    for (int i = 0; i < MATCH_THREADS_MAX; i++)
        if (id->scores[i].recent_hits >= WATCH_HITS_MIN &&
            recent_chance(id, i).part > recent_chance(id, best).part)
            best = i;
    return best;
}

/* The chance of late of the samples of other ids to be in spans of this one's thread. */
static struct chance recent_chance_of_others(const struct thread_match *match,
                                             const struct match_id *id)
{
    uint32_t hits = 0, misses = 0;
    for (uint32_t i = 0; i < match->id_count; i++) {
        const struct match_score *score = &match->ids[i].scores[id->thread];
        if (&match->ids[i] == id)
            continue;
        hits += score->recent_hits;
        misses += score->recent_misses;
    }
    return chance_of(hits, misses);
}

/* Whether the last votes of an id say that it is another thread. */
static bool is_another(const struct match_id *id, int best)
{
    struct chance own = recent_chance(id, id->thread), other = recent_chance(id, best);
    return recent_votes(id, id->thread) >= WATCH_VOTES_MIN && other.part >= HIT_PART &&
           is_less(own, other);
}

/* Whether they are not more for its thread than those of other ids. */
static bool is_lost(const struct thread_match *match, const struct match_id *id)
{
    struct chance own = recent_chance(id, id->thread), others = recent_chance_of_others(match, id);
    return recent_votes(id, id->thread) >= WATCH_LOST && others.votes >= VOTES_MIN &&
           own.part < HIT_PART && own.part <= LOST_PART * others.part;
}

/* An id that is another thread shows that the program has started again, most likely: all its ids
 * are learnt anew. */
static void forget_all(struct thread_match *match)
{
    for (uint32_t i = 0; i < match->id_count; i++)
        forget(match, &match->ids[i]);
}

static void watch(struct thread_match *match, struct match_id *id)
{
    int best = best_of_late(id);
    uint32_t votes = recent_votes(id, id->thread);
    bool fits = best == id->thread && recent_chance(id, best).part >= HIT_PART;
    if (is_another(id, best))
        forget_all(match);
    else if (is_lost(match, id))
        forget(match, id);
    else if (votes == WATCH_MAX || (votes % WATCH_AGAIN == 0 && fits))
        watch_anew(id);
}

const struct match_id *thread_match_id_of(const struct thread_match *match, int place)
{
    for (uint32_t i = 0; i < match->id_count; i++)
        if (match->ids[i].thread == place)
            return &match->ids[i];
    return NULL;
}

/* Gives an id its thread, even if one that has ended had it. */
static void give(struct thread_match *match, struct match_id *id, int thread)
{
    assert(match->threads[thread] != 0);
    for (uint32_t i = 0; i < match->id_count; i++)
        if (match->ids[i].thread == thread)
            begin_anew(&match->ids[i]);
    id->thread = thread;
    watch_anew(id);
    match->changed |= UINT64_C(1) << thread;
}

bool thread_match_judge(struct thread_match *match, struct match_id *id)
{
    match->changed = 0;
    int thread = thread_of_most(id);
    if (id->thread >= 0)
        watch(match, id);
    else if (is_sure(match, id, thread))
        give(match, id, thread);
    return match->changed != 0;
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
