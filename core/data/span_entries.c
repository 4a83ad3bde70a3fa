#include "core/data/span_entries.h"

#include "core/base/arena.h"
#include "core/base/memory.h"
#include "core/base/saturate.h"

#include <assert.h>

enum { SPARE_MATCHES = 32 };

static const uint8_t no_trace[TRACE_ID_SIZE];

static bool trace_is_known(const uint8_t *trace_id)
{
    return memcmp(trace_id, no_trace, TRACE_ID_SIZE) != 0;
}

static bool within(const struct span_operation *op, uint64_t arrived_ns)
{
    return op->now_ns <= arrived_ns || op->now_ns - arrived_ns <= span_window_ns(op->common);
}

static bool has_span(const struct span_operation *op, const struct span_entry *entry)
{
    return (entry->flags & SPAN_ENTRY_HAS_SPAN) && within(op, entry->arrived_ns);
}

static bool has_totals(const struct span_operation *op, const struct span_entry *entry)
{
    return (entry->flags & SPAN_ENTRY_HAS_TOTALS) &&
           within(op, span_shard_samples(op->shard, entry)->last_ns);
}

void span_entries_purge(const struct span_index_common *common, struct span_shard *shard,
                        uint64_t now_ns, unsigned most)
{
    /* Entries are in the order of their arrival. One whose samples arrived later moves to the end
     * when it is the first, so that adding samples moves nothing. */
    uint64_t window_ns = span_window_ns(common);
    uint64_t linger_ns = window_ns + window_ns / 4;
    shard->now_ns = now_ns;
    shard->window_ns = window_ns;
    shard->live_since_ns = now_ns > window_ns ? now_ns - window_ns : 0;
    uint64_t gone = now_ns > linger_ns ? now_ns - linger_ns : 0;
    for (; most > 0; most--) {
        struct span_entry *oldest = span_shard_oldest(shard);
        if (!oldest || oldest->arrived_ns >= gone)
            return;
        if (span_shard_last_arrival(shard, oldest) >= gone)
            span_shard_touch(shard, oldest);
        else
            span_shard_remove(shard, oldest);
    }
}

static bool is_full(const struct span_operation *op)
{
    uint64_t entries = atomic_load_explicit(&op->common->entries, memory_order_relaxed);
    return entries + op->shard->table.live - op->live_before >= op->common->max_spans;
}

/* Adds an entry. same_id: number of entries with the same span id. */
static struct span_entry *insert(struct span_operation *op, const struct span_key *key,
                                 const struct span_source *source, uint8_t flag, unsigned same_id)
{
    if (is_full(op))
        span_shard_evict(op->shard, source);
    struct span_entry *entry =
        span_shard_insert(op->shard, op->tag, stored_span_id(key, source), flag, source, same_id);
    memcpy(entry->trace_id, key->trace_id, TRACE_ID_SIZE);
    entry->arrived_ns = op->now_ns;
    return entry;
}

/* How near an entry is to the source that looks it up. */
enum nearness { NEAR_NEVER, NEAR_OTHER, NEAR_OWNER, NEAR_OWN };

/* Stored ids of different tenants differ. The source number makes this certain, except for sources
 * that share number 0. */
static enum nearness nearness_of(const struct span_operation *op, const struct span_entry *entry,
                                 const struct span_source *source)
{
    if (entry->source == source->number)
        return NEAR_OWN;
    const struct span_share *share = &op->shard->shares.of[entry->source];
    if (share->owner == source->owner)
        return NEAR_OWNER;
    bool share_number = entry->source == 0 || source->number == 0;
    bool meet = (!share->has_scope && source->scope == 0) || share_number;
    return meet ? NEAR_OTHER : NEAR_NEVER;
}

/* The entries with the span id of a key. Entries of other tenants are ignored. */
struct candidates {
    struct span_found all[SPAN_SHARD_SAME_ID];
    unsigned count;
    unsigned same_id;         /* including ignored ones */
    struct span_entry *exact; /* of the same source, with the same trace id */
    struct span_entry *loose; /* of the same source: samples without a trace id, and no span yet */
};

static void find_candidates(const struct span_operation *op, const struct span_key *key,
                            const struct span_source *source, struct candidates *out)
{
    out->same_id = span_shard_matches(op->shard, op->tag, stored_span_id(key, source), 0, out->all);
    out->exact = out->loose = NULL;
    out->count = 0;
    for (unsigned i = 0; i < out->same_id; i++) {
        struct span_entry *entry = out->all[i].entry;
        enum nearness near = nearness_of(op, entry, source);
        if (near == NEAR_NEVER)
            continue;
        out->all[out->count++] = out->all[i];
        if (near != NEAR_OWN)
            continue;
        if (!trace_is_known(entry->trace_id))
            out->loose = entry;
        else if (memcmp(entry->trace_id, key->trace_id, TRACE_ID_SIZE) == 0)
            out->exact = entry;
    }
}

/* Wakes the requests that wait for the span. */
static void wake(struct span_operation *op, struct span_entry *entry)
{
    struct span_wakeup wakeup = {.waits_for = SPAN_WAITS_FOR_SPAN};
    while (span_shard_take_waiter(op->shard, entry, &wakeup.waiter.worker, &wakeup.waiter.hold)) {
        op->has_woken = true;
        span_wakeups_add(op->wakeups, wakeup);
    }
}

static const uint64_t *copy_totals(struct span_operation *op, const struct span_entry *entry)
{
    if (!has_totals(op, entry))
        return NULL;
    const struct span_samples *samples = span_shard_samples(op->shard, entry);
    return (const uint64_t *)(const void *)arena_copy(
               op->arena, slice_of(samples->totals, op->shard->totals_size))
        .data;
}

/* Adds totals of samples that arrived between these times. */
static void add_totals(struct span_operation *op, struct span_entry *entry, const uint64_t *more,
                       uint64_t first_ns, uint64_t last_ns)
{
    assert(op->common->totals_count * sizeof *more == op->shard->totals_size);
    bool had_totals = has_totals(op, entry);
    struct span_samples *samples = span_shard_open_samples(op->shard, entry);
    if (!had_totals) { /* or they are expired. Only writes, so that nothing waits for a new record
                        */
        memcpy(samples->totals, more, op->shard->totals_size);
        samples->first_ns = first_ns;
        samples->last_ns = last_ns;
        entry->flags |= SPAN_ENTRY_HAS_TOTALS;
        return;
    }
    for (unsigned i = 0; i < op->common->totals_count; i++)
        samples->totals[i] = saturate_sum(samples->totals[i], more[i]);
    if (first_ns < samples->first_ns)
        samples->first_ns = first_ns;
    if (last_ns > samples->last_ns)
        samples->last_ns = last_ns;
}

/* ---- spans ---- */

/* Samples that were sent on without a span. */
struct left {
    uint64_t bare;   /* without its detail */
    uint64_t passed; /* as they came */
};

/* Returns those of an entry, and forgets them. */
static struct left take_left(const struct span_operation *op, const struct span_entry *entry)
{
    struct span_samples *samples = span_shard_samples(op->shard, entry);
    if (!samples)
        return (struct left){.bare = 0};
    struct left left = {samples->left, samples->passed};
    samples->left = samples->passed = 0;
    return left;
}

static uint32_t add_up_to(uint32_t most, uint32_t count, uint64_t more)
{
    assert(count <= most);
    return more < most - count ? count + (uint32_t)more : most;
}

static void note_left(struct span_operation *op, struct span_entry *entry, struct left more)
{
    enum { LEFT_MAX = (1U << SPAN_LEFT_BITS) - 1, PASSED_MAX = (1U << SPAN_PASSED_BITS) - 1 };
    if (more.bare == 0 && more.passed == 0)
        return;
    struct span_samples *samples = span_shard_open_samples(op->shard, entry);
    samples->left = add_up_to(LEFT_MAX, samples->left, more.bare) & (LEFT_MAX + 0U);
    samples->passed = add_up_to(PASSED_MAX, samples->passed, more.passed) & (PASSED_MAX + 0U);
}

/* Moves the totals of samples from their entry to that of the span. The entry is the newest one. */
static struct span_entry *merge(struct span_operation *op, struct span_entry *entry,
                                struct span_entry *left)
{
    assert(entry != left);
    uint64_t totals[1 + 2 * SPAN_INDEX_TYPES_MAX], first_ns = 0, last_ns = 0;
    bool any = has_totals(op, left);
    assert(op->shard->totals_size <= sizeof totals);
    if (any) {
        const struct span_samples *samples = span_shard_samples(op->shard, left);
        assert(samples);
        memcpy(totals, samples->totals, op->shard->totals_size);
        first_ns = samples->first_ns;
        last_ns = samples->last_ns;
    }
    note_left(op, entry, take_left(op, left));
    wake(op, left);
    uint32_t detail = left->flags & SPAN_ENTRY_HAS_DETAIL;
    span_shard_remove(op->shard, left);
    entry = span_shard_touch(op->shard, entry);
    entry->flags |= detail & SPAN_ENTRY_FLAGS;
    if (any)
        add_totals(op, entry, totals, first_ns, last_ns);
    return entry;
}

/* Whether an entry has totals of samples for a span with this key: with its trace id or without
 * one. */
static bool awaits_span(const struct span_operation *op, const struct span_entry *entry,
                        const struct span_key *key)
{
    return !has_span(op, entry) && (!trace_is_known(entry->trace_id) ||
                                    memcmp(entry->trace_id, key->trace_id, TRACE_ID_SIZE) == 0);
}

/* Finds an entry other than `entry` with totals for the span; NULL if there is none. */
static struct span_entry *find_awaiting(struct span_operation *op, const struct span_put *put,
                                        const struct candidates *found,
                                        const struct span_entry *entry)
{
    for (unsigned i = 0; i < found->count; i++)
        if (found->all[i].entry != entry && awaits_span(op, found->all[i].entry, &put->key))
            return found->all[i].entry;
    return NULL;
}

/* Returns the entry of a span, moved to the end, with the totals of its samples from all
 * sources. */
static struct span_entry *entry_of_span(struct span_operation *op, const struct span_put *put,
                                        struct candidates *found)
{
    struct span_entry *entry = found->exact;
    if (!entry)
        entry = found->loose ? found->loose : find_awaiting(op, put, found, NULL);
    if (!entry)
        return insert(op, &put->key, &put->source, 0, found->same_id);
    struct span_entry *other = found->count > 1 ? find_awaiting(op, put, found, entry) : NULL;
    memcpy(entry->trace_id, put->key.trace_id, TRACE_ID_SIZE);
    entry = span_shard_hand_over(op->shard, entry, &put->source);
    while (other) {
        entry = merge(op, entry, other);
        find_candidates(op, &put->key, &put->source, found);
        assert(found->exact == entry);
        other = find_awaiting(op, put, found, entry);
    }
    return entry;
}

/* Whether a span has the same content as the one that arrived first. */
static bool says_the_same(const struct span_entry *entry, const struct span_put *put)
{
    return entry->set == put->set && entry->start_ns == put->facts.start_ns &&
           entry->end_ns == put->facts.end_ns;
}

static void store_span(struct span_operation *op, struct span_entry *entry,
                       const struct span_put *put)
{
    entry->arrived_ns = op->now_ns;
    entry->start_ns = put->facts.start_ns;
    entry->end_ns = put->facts.end_ns;
    entry->set = put->set;
    entry->instance = put->instance;
    entry->flags |= SPAN_ENTRY_HAS_SPAN;
    assert(put->facts.kept_by <= SPAN_INDEX_KEPT_BY_MAX);
    if (put->facts.kept_by)
        entry->kept_by = put->facts.kept_by & (SPAN_INDEX_KEPT_BY_MAX + 0U);
    if (put->lacks)
        entry->flags |= SPAN_ENTRY_LACKS;
    if (!put->totals) /* they are expired */
        entry->flags &= SPAN_ENTRY_FLAGS & ~(SPAN_ENTRY_HAS_TOTALS | SPAN_ENTRY_HAS_DETAIL);
}

/* Returns how many samples of a span that has arrived were sent on without it. */
static uint64_t unlinked_of(const struct span_operation *op, const struct span_entry *entry)
{
    const struct span_samples *samples = span_shard_samples(op->shard, entry);
    return samples ? samples->left : 0;
}

/* Says which samples of a span were sent on without it, or without its Link. again: it has arrived
 * before, so that none of these are new. */
static void tell_left(struct span_operation *op, struct span_entry *entry, struct span_put *put,
                      bool again)
{
    struct left left = {.bare = 0};
    if (!again)
        left = take_left(op, entry);
    put->samples_left = left.bare + left.passed;
    put->samples_bare = left.bare;
    put->unlinked = unlinked_of(op, entry);
    if (put->left_bare && !put->facts.kept_by)
        note_left(op, entry, (struct left){.bare = left.bare});
}

/* Adds a span whose id nothing in the index has, as usual. */
static struct span_entry *put_new(struct span_operation *op, struct span_put *put)
{
    struct span_entry *entry = insert(op, &put->key, &put->source, 0, 0);
    put->totals = NULL;
    put->samples_left = put->samples_bare = put->unlinked = 0;
    put->lacks = span_shard_lost_totals(op->shard, op->tag);
    put->has_lag = false;
    put->lag_ns = 0;
    put->was_awaited = put->has_detail = false;
    store_span(op, entry, put);
    return entry;
}

static __attribute__((noinline)) struct span_entry *put_again(struct span_operation *op,
                                                              struct span_put *put)
{
    struct candidates found;
    op->has_woken = false;
    find_candidates(op, &put->key, &put->source, &found);
    bool again = found.exact && has_span(op, found.exact);
    bool conflict = again && !says_the_same(found.exact, put);
    struct span_entry *entry = conflict ? found.exact : entry_of_span(op, put, &found);
    wake(op, entry);
    put->totals = copy_totals(op, entry);
    tell_left(op, entry, put, again);
    put->has_lag = put->totals != NULL && !again;
    put->lag_ns =
        put->has_lag ? (int64_t)(span_shard_samples(op->shard, entry)->first_ns - op->now_ns) : 0;
    if (!again) { /* an expired span may have left it */
        entry->flags &= SPAN_ENTRY_FLAGS & ~SPAN_ENTRY_LACKS;
        entry->kept_by = 0;
    }
    put->lacks =
        (entry->flags & SPAN_ENTRY_LACKS) || (!again && span_shard_lost_totals(op->shard, op->tag));
    if (conflict)
        span_shard_note_conflict(op->shard);
    else
        store_span(op, entry, put);
    put->was_awaited = op->has_woken;
    if (put->was_awaited && put->keeps_awaited)
        entry->flags |= SPAN_ENTRY_HAS_DETAIL;
    entry->awaits |= put->was_awaited && !put->keeps_awaited;
    put->has_detail = entry->flags & SPAN_ENTRY_HAS_DETAIL;
    return entry;
}

void span_entries_put(struct span_operation *op, void *item)
{
    struct span_put *put = item;
    struct span_found found;
    bool is_new = span_shard_match(op->shard, op->tag, stored_span_id(&put->key, &put->source), 0,
                                   &found) == 0;
    if (is_new)
        put_new(op, put);
    else
        put_again(op, put);
}

void span_entries_collect(struct span_operation *op, void *item)
{
    struct span_put *put = item;
    put->totals = NULL;
    put->unlinked = 0;
    put->lacks = true;
    put->was_awaited = put->has_detail = false;
    struct candidates found;
    find_candidates(op, &put->key, &put->source, &found);
    if (!found.exact)
        return;
    put->totals = copy_totals(op, found.exact);
    put->unlinked = unlinked_of(op, found.exact);
    uint32_t flags = found.exact->flags & (SPAN_ENTRY_HAS_SPAN | SPAN_ENTRY_LACKS);
    put->lacks = flags != SPAN_ENTRY_HAS_SPAN;
    put->was_awaited = found.exact->awaits;
    put->has_detail = found.exact->flags & SPAN_ENTRY_HAS_DETAIL;
}

/* ---- samples ---- */

static int64_t sum_of(const struct span_operation *op, const struct span_entry *entry)
{
    if (op->common->sum_place == 0 || !has_totals(op, entry))
        return 0;
    return (int64_t)span_shard_samples(op->shard, entry)->totals[op->common->sum_place];
}

/* Returns false if the set of the span is gone, and so is the span. */
static bool copy_match(struct span_operation *op, const struct span_found *found,
                       const struct span_source *source, struct span_match *out)
{
    const struct span_entry *entry = found->entry;
    out->facts.start_ns = entry->start_ns;
    out->facts.end_ns = entry->end_ns;
    out->arrived_ns = entry->arrived_ns;
    out->number = found->number;
    out->source = (uint16_t)entry->source;
    out->instance = (uint16_t)entry->instance;
    out->set = entry->set;
    out->sum = sum_of(op, entry);
    out->facts.kept_by = entry->kept_by;
    memcpy(out->key.trace_id, entry->trace_id, TRACE_ID_SIZE);
    uint64_t span_id = entry->span_id ^ source->scope;
    memcpy(out->key.span_id, &span_id, SPAN_ID_SIZE);
    return span_sets_read(op->sets, entry->set, &out->facts);
}

static bool arrived_before(const struct span_found *a, const struct span_found *b)
{
    return a->entry->arrived_ns < b->entry->arrived_ns;
}

/* Finds the spans that a key of a sample means: within their window, and nearest to its source.
 * Newest first; with a trace id, only the one that arrived first. */
static unsigned live_spans(struct span_operation *op, const struct span_find *find,
                           const struct candidates *found, struct span_found *out,
                           bool *expired_out)
{
    bool has_trace = trace_is_known(find->key.trace_id);
    enum nearness nearest = NEAR_NEVER;
    unsigned count = 0;
    *expired_out = false;
    for (unsigned i = 0; i < found->count; i++) {
        struct span_entry *entry = found->all[i].entry;
        if (!(entry->flags & SPAN_ENTRY_HAS_SPAN) ||
            (has_trace && memcmp(entry->trace_id, find->key.trace_id, TRACE_ID_SIZE) != 0))
            continue;
        if (!has_span(op, entry)) {
            *expired_out = true;
            continue;
        }
        enum nearness near = nearness_of(op, entry, &find->source);
        if (near < nearest)
            continue;
        count = near > nearest ? 0 : count;
        nearest = near;
        if (has_trace && count > 0) {
            out[0] = arrived_before(&found->all[i], &out[0]) ? found->all[i] : out[0];
            continue;
        }
        unsigned at = count++;
        for (; at > 0 && !arrived_before(&found->all[i], &out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = found->all[i];
    }
    return count;
}

static enum span_presence presence_of(unsigned live, bool expired)
{
    return live > 0 ? SPAN_FOUND : expired ? SPAN_EXPIRED : SPAN_MISSING;
}

/* Returns room for some matches. Takes that for many at once from the arena. */
static struct span_match *take_matches(struct span_operation *op, unsigned count)
{
    assert(count > 0 && count <= SPARE_MATCHES);
    if (count > op->spare_count) {
        op->spare_count = SPARE_MATCHES;
        op->spare = arena_alloc(op->arena, SPARE_MATCHES * sizeof *op->spare);
    }
    op->spare_count -= count;
    return op->spare + op->spare_count;
}

/* Whether a key of a sample means the only entry with its span id, as usual. */
static bool is_only_match(const struct span_operation *op, const struct span_find *find,
                          const struct span_entry *entry)
{
    return has_span(op, entry) && nearness_of(op, entry, &find->source) != NEAR_NEVER &&
           (memcmp(entry->trace_id, find->key.trace_id, TRACE_ID_SIZE) == 0 ||
            !trace_is_known(find->key.trace_id));
}

static __attribute__((noinline)) void find_many(struct span_operation *op, struct span_find *find)
{
    struct candidates found;
    struct span_found live[SPAN_SHARD_SAME_ID];
    bool expired;
    find_candidates(op, &find->key, &find->source, &found);
    unsigned count = live_spans(op, find, &found, live, &expired);
    struct span_match *matches = count > 0 ? take_matches(op, count) : NULL;
    find->matches = matches;
    find->match_count = 0;
    for (unsigned i = 0; i < count; i++)
        find->match_count += copy_match(op, &live[i], &find->source, &matches[find->match_count]);
    find->presence = presence_of(find->match_count, expired);
}

void span_entries_find(struct span_operation *op, void *item)
{
    struct span_find *find = item;
    struct span_found found;
    if (find->skip)
        return;
    if (span_shard_match(op->shard, op->tag, stored_span_id(&find->key, &find->source), 0,
                         &found) != 1 ||
        !is_only_match(op, find, found.entry)) {
        find_many(op, find);
        return;
    }
    struct span_match *match = take_matches(op, 1);
    find->matches = match;
    find->match_count = copy_match(op, &found, &find->source, match);
    find->presence = presence_of(find->match_count, false);
}

/* Returns the entry found shortly before, if it is still there: its source has no other one with
 * the same ids. */
static struct span_entry *same_span(struct span_operation *op, const struct span_match *match,
                                    const struct span_source *source)
{
    struct span_entry *entry = span_shard_numbered(op->shard, match->number);
    bool is_same = entry && !(entry->flags & SPAN_ENTRY_PROFILE) &&
                   entry->source == match->source &&
                   entry->span_id == stored_span_id(&match->key, source) &&
                   memcmp(entry->trace_id, match->key.trace_id, TRACE_ID_SIZE) == 0;
    return is_same && has_span(op, entry) ? entry : NULL;
}

static void add_anywhere(struct span_operation *op, struct span_find *find)
{
    struct candidates found;
    find_candidates(op, &find->key, &find->source, &found);
    struct span_found live[SPAN_SHARD_SAME_ID];
    bool expired;
    unsigned count = live_spans(op, find, &found, live, &expired);
    find->presence = presence_of(count, expired);
    find->waits = find->presence == SPAN_MISSING && op->waiter != NULL;
    if (!find->totals && !find->waits)
        return;

    bool has_trace = trace_is_known(find->key.trace_id);
    struct span_entry *entry = count > 0 ? live[0].entry : has_trace ? found.exact : found.loose;
    if (!entry)
        entry = insert(op, &find->key, &find->source, 0, found.same_id);
    if (find->waits)
        find->place = span_shard_add_waiter(op->shard, entry, op->waiter->worker, op->waiter->hold);
    if (find->totals)
        add_totals(op, entry, find->totals, op->now_ns, op->now_ns);
}

void span_entries_add(struct span_operation *op, void *item)
{
    struct span_find *find = item;
    struct span_entry *entry = find->chosen ? same_span(op, find->chosen, &find->source) : NULL;
    if (!entry)
        add_anywhere(op, find);
    else if (find->totals)
        add_totals(op, entry, find->totals, op->now_ns, op->now_ns);
    if (entry)
        note_left(op, entry, (struct left){.bare = find->unlinked});
    if (entry && find->lacks)
        entry->flags |= SPAN_ENTRY_LACKS;
    if (entry && find->with_detail)
        entry->flags |= SPAN_ENTRY_HAS_DETAIL;
}

/* Records whether samples of a chosen span are sent on with its detail. */
static void leave_chosen(struct span_operation *op, struct span_find *find)
{
    struct span_entry *entry = same_span(op, find->chosen, &find->source);
    assert(find->kept_by <= SPAN_INDEX_KEPT_BY_MAX);
    find->samples_late = entry && find->kept_by ? take_left(op, entry).bare : 0;
    if (entry && find->kept_by && !entry->kept_by)
        entry->kept_by = find->kept_by & (SPAN_INDEX_KEPT_BY_MAX + 0U);
    if (entry && !find->kept_by)
        note_left(op, entry, (struct left){.bare = find->samples_left});
    if (entry)
        entry->awaits = 0;
    if (entry && find->with_detail)
        entry->flags |= SPAN_ENTRY_HAS_DETAIL;
}

void span_entries_leave(struct span_operation *op, void *item)
{
    struct span_find *find = item;
    struct candidates found;
    if (find->chosen) {
        leave_chosen(op, find);
        return;
    }
    find_candidates(op, &find->key, &find->source, &found);
    struct span_entry *entry = trace_is_known(find->key.trace_id) ? found.exact : found.loose;
    if (!entry || has_span(op, entry))
        return;
    if (op->waiter)
        span_shard_drop_waiter(op->shard, entry, find->place, op->waiter->worker, op->waiter->hold);
    note_left(op, entry,
              find->passes ? (struct left){.passed = find->samples_left}
                           : (struct left){.bare = find->samples_left});
    if (find->with_detail)
        entry->flags |= SPAN_ENTRY_HAS_DETAIL;
}

/* ---- profile ids ---- */

void span_entries_see_profile(struct span_operation *op, void *item)
{
    struct profile_sight *sight = item;
    struct span_found same[SPAN_SHARD_SAME_ID];
    unsigned count = span_shard_matches(
        op->shard, op->tag, stored_span_id(&sight->key, &sight->source), SPAN_ENTRY_PROFILE, same);
    struct span_entry *entry = NULL;
    for (unsigned i = 0; i < count; i++)
        if (same[i].entry->source == sight->source.number &&
            memcmp(same[i].entry->trace_id, sight->key.trace_id, TRACE_ID_SIZE) == 0)
            entry = same[i].entry;
    sight->seen = entry && within(op, entry->arrived_ns) && entry->request != sight->request;
    if (sight->seen || !sight->remember)
        return;
    entry = entry ? span_shard_touch(op->shard, entry)
                  : insert(op, &sight->key, &sight->source, SPAN_ENTRY_PROFILE, count);
    entry->request = sight->request;
    entry->arrived_ns = op->now_ns;
}
