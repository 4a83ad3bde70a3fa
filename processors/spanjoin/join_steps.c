#include "processors/spanjoin/join_steps.h"

#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/data/left_samples.h"
#include "processors/spanjoin/child_samples.h"
#include "processors/spanjoin/empty_uploads.h"
#include "processors/spanjoin/enrich_samples.h"
#include "processors/spanjoin/hold.h"
#include "processors/spanjoin/join_doubts.h"
#include "processors/spanjoin/join_group.h"
#include "processors/spanjoin/keep_samples.h"
#include "processors/spanjoin/left_by_thread.h"
#include "processors/spanjoin/request_instance.h"
#include "processors/spanjoin/root_spans.h"
#include "processors/spanjoin/sample_functions.h"
#include "processors/spanjoin/thread_pairs.h"
#include "processors/spanjoin/thread_samples.h"
#include "processors/spanjoin/upload_services.h"
#include "processors/spanjoin/upload_times.h"

#include <assert.h>

static struct request_sender sender_of(const struct spanjoin *join, const struct batch *batch,
                                       uint64_t now_ns)
{
    return (struct request_sender){.settings = join->settings,
                                   .index = join->index,
                                   .tenants = &join->group->tenants,
                                   .batch = batch,
                                   .now_ns = now_ns,
                                   .keep = &join->keep,
                                   .sample_values = &join->sample_values};
}

static struct instance_clock clock_of(const struct spanjoin *join, uint64_t now_ns)
{
    struct request_sender sender = {
        .settings = join->settings, .index = join->index, .now_ns = now_ns};
    return request_clock(&sender);
}

/* ---- messages to waiting requests ---- */

struct wake_post {
    struct post post;
    struct spanjoin *join;
    size_t count;
    struct woken {
        uint64_t hold;
        enum signal signal;
    } items[];
};

static void wake_hold(struct spanjoin *join, unsigned worker, const struct woken *woken)
{
    struct list_link *link = join->group->nodes[worker][woken->signal].first;
    for (; link; link = link->next)
        holds_wake(container_of(link, struct spanjoin_node, link), woken->hold);
}

static void on_wake(struct worker *worker, struct post *post)
{
    struct wake_post *wake = container_of(post, struct wake_post, post);
    for (size_t i = 0; i < wake->count; i++)
        wake_hold(wake->join, worker->index, &wake->items[i]);
    spanjoin_unref(wake->join);
    free(wake);
}

static void post_to_worker(struct spanjoin *join, unsigned worker, size_t count,
                           const struct span_wakeups *wakeups)
{
    struct wake_post *wake = memory_alloc(sizeof *wake + count * sizeof *wake->items);
    wake->post.on_post = on_wake;
    wake->join = join;
    wake->count = 0;
    for (size_t i = 0; i < wakeups->count; i++) {
        const struct span_wakeup *wakeup = &wakeups->items[i];
        if (wakeup->waiter.worker != worker)
            continue;
        enum signal signal =
            wakeup->waits_for == SPAN_WAITS_FOR_SPAN ? SIGNAL_PROFILES : SIGNAL_TRACES;
        wake->items[wake->count++] = (struct woken){wakeup->waiter.hold, signal};
    }
    assert(wake->count == count);
    atomic_fetch_add_explicit(&join->references, 1, memory_order_relaxed);
    worker_post(&join->process->workers[worker], &wake->post);
}

/* Sends one message to each worker, however many requests wait there. */
static void post_wakeups(struct spanjoin *join, struct span_wakeups *wakeups)
{
    size_t counts[WORKERS_MAX] = {0};
    for (size_t i = 0; i < wakeups->count; i++) {
        assert(wakeups->items[i].waiter.worker < join->process->worker_count);
        counts[wakeups->items[i].waiter.worker]++;
    }
    for (unsigned worker = 0; wakeups->count > 0 && worker < join->process->worker_count; worker++)
        if (counts[worker] > 0)
            post_to_worker(join, worker, counts[worker], wakeups);
    span_wakeups_deinit(wakeups);
}

static void count_evictions(struct spanjoin_node *node)
{
    assert(node->node.worker->index < node->join->process->worker_count);
    for (unsigned i = 0; i < SPAN_EVICTION_COUNT; i++) {
        uint64_t evicted = span_index_take_evicted(node->join->index, i);
        if (evicted > 0)
            counter_add(node->join->metrics.evicted[i], node->node.worker->index, evicted);
    }
}

/* ---- traces ---- */

static struct upload_range ran_of(const struct span_put *put)
{
    return (struct upload_range){put->facts.start_ns, put->facts.end_ns};
}

/* Marks the spans that ran when samples of unknown spans were taken. */
static void mark_unjoined(struct span_put *puts, size_t count, struct upload_range unjoined)
{
    for (size_t i = 0; i < count; i++)
        puts[i].ran_unjoined = upload_ranges_overlap(unjoined, ran_of(&puts[i]));
}

static void mark_unasked(struct span_put *puts, size_t count,
                         const struct instance_coverage *coverage)
{
    for (size_t i = 0; i < count; i++)
        puts[i].ran_unasked = instance_was_unasked(coverage, ran_of(&puts[i]));
}

/* Whether a span names its thread. */
static bool has_thread(const struct span_put *put)
{
    return attribute_value(put->raw, SPAN_ATTRIBUTES, SLICE("thread.id")).size > 0;
}

static bool is_covered(const struct instance_coverage *coverage, const struct span_put *put)
{
    return instance_covers(coverage, ran_of(put),
                           coverage->thread_gaps.count > 0 && has_thread(put));
}

/* Marks the spans that profiles do not cover yet. puts: of one instance. Called before their totals
 * are read, so that a span that is not marked has all of its samples. A process that no upload
 * covers is marked, too: a span that has samples all the same has them of an upload that waits, or
 * that nothing connects with the process. */
static void mark_incomplete(struct spanjoin *join, struct span_put *puts, size_t count,
                            const struct instance_clock *clock)
{
    struct instance_coverage coverage =
        instances_coverage(span_index_instances(join->index), puts->instance, clock);
    for (size_t i = 0; i < count; i++)
        puts[i].is_incomplete =
            puts[i].instance != 0 &&
            (coverage.until_ns < puts[i].facts.end_ns || puts[i].facts.start_ns < coverage.from_ns);
    bool has_gaps = coverage.gaps.count + coverage.thread_gaps.count > 0;
    for (size_t i = 0; i < count && has_gaps; i++)
        puts[i].is_incomplete |= !is_covered(&coverage, &puts[i]);
    if (coverage.unjoined.to_ns > 0)
        mark_unjoined(puts, count, coverage.unjoined);
    if (coverage.unasked[0].to_ns > 0 || coverage.unasked[1].to_ns > 0)
        mark_unasked(puts, count, &coverage);
}

/* Returns when those of the spans ran that are marked. */
static struct upload_ranges ranges_of_marked(const struct span_put *puts, size_t count)
{
    struct upload_ranges marked;
    marked.count = 0;
    for (size_t i = 0; i < count; i++)
        if (puts[i].is_incomplete)
            upload_ranges_add(&marked, ran_of(&puts[i]));
    return marked;
}

/* Returns how many of the first spans are of one instance. */
static size_t count_of_instance(const struct span_put *puts, size_t count)
{
    size_t same = 1;
    while (same < count && puts[same].instance == puts->instance)
        same++;
    return same;
}

struct learning {
    struct span_reader reader;
    struct spanjoin *join;
    struct instance_clock clock;
    const struct span_waiter *waiter;
    struct learned_spans *learned;
};

/* Waits for the profiles that cover spans of one instance, which are marked. All of them name their
 * threads or none does, as SDKs do it. */
static void wait_for_profiles(struct learning *learning, const struct span_put *puts, size_t count)
{
    struct learned_spans *learned = learning->learned;
    struct upload_ranges marked = ranges_of_marked(puts, count);
    struct instance_waiter *waiter =
        instances_wait(span_index_instances(learning->join->index), puts->instance, &marked,
                       has_thread(puts), learning->waiter, &learning->clock);
    if (!waiter)
        return;
    waiter->next = learned->waiters;
    learned->waiters = waiter;
    learned->waiting++;
}

static void mark_and_wait(struct learning *learning, struct span_put *puts, size_t count)
{
    for (size_t same; count > 0; puts += same, count -= same) {
        same = count_of_instance(puts, count);
        mark_incomplete(learning->join, puts, same, &learning->clock);
        if (learning->waiter)
            wait_for_profiles(learning, puts, same);
    }
}

static void add_lag(struct learned_spans *learned, int64_t lag_ns, struct arena *arena)
{
    learned->lags = arena_grow(arena, learned->lags, learned->lag_count, &learned->lag_capacity,
                               sizeof *learned->lags);
    learned->lags[learned->lag_count++] = lag_ns;
}

/* Whether samples that wait for a span will be sent on with its detail for their CPU time. */
static bool awaits_detail(const struct spanjoin_settings *settings, const struct span_put *put)
{
    if (!settings->keep.reads_cpu || !put->was_awaited || !put->totals)
        return false;
    int64_t cpu_ns = (int64_t)put->totals[2 + 2 * settings->cpu_type];
    return keep_by_cpu(&settings->keep, &put->facts, cpu_ns) != 0;
}

static void learn_block(struct span_reader *reader, struct span_put *puts, size_t count,
                        struct arena *arena)
{
    struct learning *learning = container_of(reader, struct learning, reader);
    struct learned_spans *learned = learning->learned;
    mark_and_wait(learning, puts, count);
    for (size_t i = 0; i < count; i++)
        puts[i].keeps_awaited =
            puts[i].facts.kept_by || learning->join->settings->keep.otherwise == KEEP_PASS;
    span_index_put_many(learning->join->index, learning->clock.now_ns, puts, count, arena,
                        &learned->wakeups);
    for (size_t i = 0; i < count; i++) {
        learned->late += puts[i].samples_left;
        learned->late_detail += puts[i].facts.kept_by ? puts[i].samples_bare : 0;
        learned->kept_by[puts[i].facts.kept_by]++;
        puts[i].has_detail |= awaits_detail(learning->join->settings, &puts[i]);
        if (puts[i].has_lag)
            add_lag(learned, puts[i].lag_ns, arena);
    }
}

struct collecting {
    struct span_reader reader;
    struct spanjoin *join;
    struct instance_clock clock;
};

static void collect_block(struct span_reader *reader, struct span_put *puts, size_t count,
                          struct arena *arena)
{
    struct collecting *collecting = container_of(reader, struct collecting, reader);
    for (size_t first = 0, same; first < count; first += same) {
        same = count_of_instance(puts + first, count - first);
        mark_incomplete(collecting->join, puts + first, same, &collecting->clock);
    }
    span_index_collect_many(collecting->join->index, collecting->clock.now_ns, puts, count, arena);
    for (size_t i = 0; i < count; i++)
        puts[i].has_detail |= awaits_detail(collecting->join->settings, &puts[i]);
}

struct request_spans join_collect_spans(struct spanjoin *join, struct batch *batch, uint64_t now_ns)
{
    struct request_sender sender = sender_of(join, batch, now_ns);
    struct collecting collecting = {
        .reader.read = collect_block, .join = join, .clock = request_clock(&sender)};
    return request_spans_read(batch, &sender, &collecting.reader);
}

/* Reads the totals again, which samples that had left have changed. */
static void collect_again(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                          struct learned_spans *learned)
{
    struct request_spans spans = join_collect_spans(join, batch, now_ns);
    int64_t *lags = arena_array(&spans.arena, learned->lag_count, sizeof *lags);
    if (learned->lag_count > 0)
        memcpy(lags, learned->lags, learned->lag_count * sizeof *lags);
    learned->lags = lags;
    learned->lag_capacity = learned->lag_count;
    request_spans_deinit(&learned->spans);
    learned->spans = spans;
}

/* Gives to the spans the samples that have left without them by thread. takings: how many had been
 * given before the spans were read: what others gave since is not in their totals. */
static void give_what_left(struct spanjoin *join, struct batch *batch,
                           const struct request_sender *sender, uint64_t takings,
                           struct learned_spans *learned)
{
    struct left_given given;
    uint32_t late = learned->spans.late_count;
    left_samples_give(&learned->spans, sender, &given);
    learned->late += given.samples;
    learned->late_detail += given.kept_samples;
    for (uint32_t i = 0; i < given.lag_count; i++)
        add_lag(learned, given.lags[i], &learned->spans.arena);
    bool others = late > 0 && left_samples_takings(span_index_left(join->index)) != takings + 1;
    if ((given.changed || others) && learned->waiting == 0) /* else they are read when it leaves */
        collect_again(join, batch, sender->now_ns, learned);
}

void join_learn_spans(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                      const struct span_waiter *waiter, struct learned_spans *learned_out)
{
    struct request_sender sender = sender_of(join, batch, now_ns);
    struct learning learning = {.reader = {.read = learn_block, .wants_values = true},
                                .join = join,
                                .clock = request_clock(&sender),
                                .waiter = waiter,
                                .learned = learned_out};
    *learned_out = (struct learned_spans){.late = 0};
    uint64_t takings = left_samples_takings(span_index_left(join->index));
    learned_out->spans = request_spans_read(batch, &sender, &learning.reader);
    give_what_left(join, batch, &sender, takings, learned_out);
    assert(waiter || !learned_out->waiters);
}

static void count_kept_spans(struct spanjoin_node *node, uint32_t kept_by[KEEP_BY_END])
{
    for (int by = 1; by < KEEP_BY_END; by++) {
        struct counter *counter = node->join->metrics.kept_spans[by];
        if (counter && kept_by[by] > 0)
            counter_add(counter, node->node.worker->index, kept_by[by]);
        kept_by[by] = 0;
    }
}

void join_tell_learned(struct spanjoin_node *node, struct learned_spans *learned)
{
    assert(node->node.signal == SIGNAL_TRACES);
    const struct spanjoin_metrics *metrics = &node->join->metrics;
    unsigned worker = node->node.worker->index;
    post_wakeups(node->join, &learned->wakeups);
    count_evictions(node);
    for (uint32_t i = 0; i < learned->lag_count; i++)
        histogram_record(metrics->lag, worker, (double)learned->lags[i] / 1e9);
    if (learned->late > 0)
        counter_add(metrics->unjoined[UNJOINED_SPAN_OPEN], worker, learned->late);
    count_kept_spans(node, learned->kept_by);
    if (learned->late_detail > 0 && node->join->settings->keep.unjoined != KEEP_PASS)
        counter_add(metrics->keep[KEEP_RESULT_LATE], worker, learned->late_detail);
    learned->late = learned->late_detail = 0;
    learned->lag_count = 0;
}

/* ---- profiles ---- */

/* before: of a request that was held; NULL: it has just arrived. */
static struct sample_plan *new_plan(struct spanjoin *join, struct batch *batch,
                                    const struct request_sender *sender,
                                    const struct plan_totals *totals,
                                    const struct plan_before *before)
{
    struct sample_plan *plan = sample_plan_new(batch, sender, totals, before);
    struct instance_clock clock = request_clock(sender);
    thread_pairs_tell(plan, span_index_threads(join->index));
    upload_times_find_several(plan, span_index_instances(join->index), &clock, !before);
    return plan;
}

/* Notes the types of profiles, as far as it is to be told if some do not come. */
static void note_types(struct spanjoin *join, const struct sample_plan *plan)
{
    uint32_t types = 0;
    if (!join->settings->foreign_types || plan->profile_count == 0)
        return;
    for (uint32_t i = 0; i < plan->profile_count; i++)
        if (plan->profiles[i].sums.type_position >= 0)
            types |= UINT32_C(1) << plan->profiles[i].sums.type_position;
    types_seen_note(&join->types, types);
}

struct sample_plan *join_plan_samples(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                                      bool with_totals, uint64_t request)
{
    struct request_sender sender = sender_of(join, batch, now_ns);
    struct plan_totals totals = {.index = with_totals ? join->index : NULL, .request = request};
    sender.arrived_ns = clock_wall_ns();
    struct sample_plan *plan = new_plan(join, batch, &sender, &totals, NULL);
    note_types(join, plan);
    return plan;
}

struct sample_plan *join_plan_held(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                                   uint64_t arrived_ns, const struct plan_before *before)
{
    struct request_sender sender = sender_of(join, batch, now_ns);
    struct plan_totals totals = {.content = before->content};
    sender.arrived_ns = arrived_ns;
    return new_plan(join, batch, &sender, &totals, before);
}

bool join_has_threads(const struct sample_plan *plan)
{
    return plan->with_thread > 0;
}

bool join_waits_for_threads(const struct sample_plan *plan)
{
    assert(plan->with_thread >= plan->with_presumed);
    return plan->with_thread > plan->with_presumed;
}

/* Marks the keys of samples that were given their Link. */
static void mark_linked(struct sample_plan *plan, const uint8_t *is_linked)
{
    for (uint32_t i = 0; i < plan->sample_count; i++) {
        uint32_t key = plan->samples[i] & SAMPLE_KEY;
        if (is_linked[i] && key > 0)
            plan->keys[key - 1].by_thread = true;
    }
}

/* Looks up the keys from `first` on. */
static void find_spans(struct spanjoin *join, struct sample_plan *plan, uint32_t first,
                       uint64_t now_ns)
{
    if (first < plan->key_count)
        span_index_find_many(join->index, now_ns, plan->finds + first, plan->key_count - first,
                             &plan->arena);
    sample_plan_choose(plan);
    if (plan->settings->samples.root_count > 0)
        root_spans_find_for_samples(plan, join->index, now_ns);
    keep_samples_decide(plan, atomic_load_explicit(&join->keep.since_ns, memory_order_relaxed));
}

void join_find_spans(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns)
{
    find_spans(join, plan, 0, now_ns);
}

/* Returns by how much each upload moves those before it. Only the first plan of a request says so:
 * for the next one, the lead of the clock is known already. */
static uint64_t *copy_moved(const struct sample_plan *plan)
{
    uint64_t *moved_ns = memory_zalloc(plan->upload_count * sizeof *moved_ns);
    for (uint32_t i = 0; i < plan->upload_count; i++)
        moved_ns[i] = plan->uploads[i].moved_ns;
    return moved_ns;
}

static void take_moved(struct sample_plan *plan, uint64_t *moved_ns)
{
    for (uint32_t i = 0; i < plan->upload_count; i++)
        plan->uploads[i].moved_ns = moved_ns[i];
    free(moved_ns);
}

/* Plans the request anew, because its samples were written with their Links. Frees the old plan.
 */
static struct sample_plan *plan_linked(struct spanjoin *join, struct sample_plan *plan,
                                       uint64_t now_ns, uint64_t request,
                                       const struct thread_links *links)
{
    struct batch *batch = plan->batch;
    struct request_sender sender = sender_of(join, batch, now_ns);
    struct plan_totals totals = {.index = join->index,
                                 .counts = plan->index ? NULL : links->is_linked,
                                 .request = request,
                                 .content = plan->content};
    struct left_upload *left = plan->left;
    uint64_t *moved_ns = copy_moved(plan);
    bool overflow = plan->overflow;
    sender.arrived_ns = plan->arrived_ns;
    plan->left = NULL;
    sample_plan_free(plan);
    batch_flatten(batch);
    plan = sample_plan_new(batch, &sender, &totals, NULL);
    take_moved(plan, moved_ns);
    plan->left = left;
    plan->overflow = overflow;
    plan->counts = NULL;
    mark_linked(plan, links->is_linked);
    join_find_spans(join, plan, now_ns);
    return plan;
}

static void take_unnamed(struct sample_plan *plan, const struct unnamed_samples *unnamed_of)
{
    plan->unnamed = (struct unnamed_samples){.no_process = 0};
    for (uint32_t i = 0; i < plan->upload_count; i++) {
        plan->uploads[i].unnamed = unnamed_of[i];
        plan->unnamed.ambiguous_thread += unnamed_of[i].ambiguous_thread;
        plan->unnamed.no_process += unnamed_of[i].no_process;
        plan->unnamed.no_span_on_thread += unnamed_of[i].no_span_on_thread;
    }
}

struct sample_plan *join_link_threads(struct spanjoin *join, struct sample_plan *plan,
                                      uint64_t now_ns, uint64_t request)
{
    struct thread_links links = {.linked = 0};
    struct plan_totals totals = {.index = join->index, .request = request};
    uint32_t keys = plan->key_count;
    if (!join_has_threads(plan))
        return plan;
    plan->left = left_upload_new(plan, join->index, request);
    if (thread_samples_link(plan, &totals, &links))
        plan = plan_linked(join, plan, now_ns, request, &links);
    else if (links.linked > 0)
        find_spans(join, plan, keys, now_ns);
    plan->by_thread = links.linked;
    plan->not_split = links.not_split;
    take_unnamed(plan, links.unnamed_of);
    thread_links_deinit(&links);
    if (join_feed_is_open(join->process->join_feed))
        join_doubts_note(plan);
    return plan;
}

void join_leave_threads(struct sample_plan *plan, uint64_t now_ns, struct left_counts *counts_out)
{
    struct left_given given;
    *counts_out = (struct left_counts){.late = 0};
    if (!plan->left)
        return;
    left_upload_leave(plan->left, plan->settings, now_ns, &given);
    counts_out->late = given.samples;
    if (plan->settings->keep.unjoined != KEEP_PASS)
        counts_out->late_detail = given.kept_samples;
    left_upload_free(plan->left);
    plan->left = NULL;
}

void join_stop_waiting(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns,
                       const struct span_waiter *waiter)
{
    struct span_find *waiting = arena_array(&plan->arena, plan->key_count, sizeof *waiting);
    size_t count = 0;
    for (uint32_t k = 0; k < plan->key_count; k++) {
        struct span_find *find = &plan->finds[k];
        if (find->place != 0 && !find->chosen)
            waiting[count++] = *find;
        find->place = 0;
    }
    for (size_t i = 0; i < count; i++)
        waiting[i].samples_left = 0;
    span_index_leave_many(join->index, now_ns, waiting, count, waiter);
}

void join_add_linked(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns)
{
    if (!plan->index)
        return;
    span_index_add_many(join->index, now_ns, plan->finds, plan->key_count, NULL);
    sample_functions_add(plan, join->index, now_ns);
}

void join_move_samples(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns,
                       uint64_t request, struct moved_samples *out)
{
    struct batch *batch = plan->batch;
    *out = (struct moved_samples){.plan = NULL};
    if (!join->settings->attribute_children || !child_samples_link(plan, join->index, &out->links))
        return;
    struct request_sender sender = sender_of(join, batch, now_ns);
    struct plan_totals totals = {.index = join->index,
                                 .counts = out->links.is_linked,
                                 .request = request,
                                 .content = plan->content};
    sender.arrived_ns = plan->arrived_ns;
    out->before = buffer_ref(batch->parts[0].buffer);
    batch_flatten(batch);
    out->plan = sample_plan_new(batch, &sender, &totals, NULL);
    out->plan->counts = NULL;
    out->plan->overflow = plan->overflow;
    join_find_spans(join, out->plan, now_ns);
    child_samples_decide(out->plan, plan, &out->links);
}

/* Notes how many of the samples that a trace view shows went on from each root. */
static void note_moved(struct spanjoin *join, struct sample_plan *plan)
{
    struct tree_moved *moved = arena_array(&plan->arena, plan->key_count, sizeof *moved);
    const struct tree_place *places = root_spans_places(plan);
    size_t count = 0;
    for (uint32_t k = 0; k < plan->key_count; k++)
        if (plan->keys[k].match && plan->finds[k].totals)
            moved[count++] = (struct tree_moved){
                places[k], sample_totals_shown(plan->settings, plan->finds[k].totals)};
    span_trees_note_moved(span_index_trees(join->index), moved, count);
}

void join_add_moved(struct spanjoin *join, const struct moved_samples *moved, uint64_t now_ns)
{
    if (!moved->plan)
        return;
    join_add_linked(join, moved->plan, now_ns);
    note_moved(join, moved->plan);
}

void join_tell_moved(struct spanjoin *join, const struct moved_samples *moved, uint64_t now_ns)
{
    struct sample_plan *plan = moved->plan;
    if (!plan || !keep_takes_any(&plan->settings->keep) || plan->key_count == 0)
        return;
    struct span_find *finds = arena_array(&plan->arena, plan->key_count, sizeof *finds);
    size_t count = 0;
    keep_samples_note_detail(plan);
    for (uint32_t k = 0; k < plan->key_count; k++) {
        if (!plan->finds[k].with_detail || !plan->finds[k].chosen)
            continue;
        finds[count] = plan->finds[k];
        finds[count].kept_by = 0; /* it may be that of the root */
        finds[count++].samples_left = 0;
    }
    span_index_leave_many(join->index, now_ns, finds, count, NULL);
}

/* Marks the keys of samples that went on to children. */
static void mark_moved(const struct moved_samples *moved)
{
    struct sample_plan *plan = moved->plan;
    for (uint32_t i = 0; i < plan->sample_count; i++) {
        uint32_t key = plan->samples[i] & SAMPLE_KEY;
        if (key > 0 && (moved->links.is_linked[i] & SAMPLE_IS_LINKED))
            plan->keys[key - 1].from_root = true;
    }
}

struct sample_plan *join_moved_plan(struct moved_samples *moved, struct sample_plan *plan,
                                    struct join_counts *counts)
{
    if (!moved->plan)
        return plan;
    child_samples_finish(moved->plan, plan);
    mark_moved(moved);
    counts->joined += moved->links.more;
    counts->to_children += moved->links.linked;
    return moved->plan;
}

void moved_samples_deinit(struct moved_samples *moved)
{
    if (moved->plan)
        sample_plan_free(moved->plan);
    if (moved->before)
        buffer_unref(moved->before);
    thread_links_deinit(&moved->links);
    *moved = (struct moved_samples){.plan = NULL};
}

static bool has_unjoined(const struct sample_plan *plan)
{
    for (uint32_t k = 0; k < plan->key_count; k++)
        if (!plan->keys[k].match)
            return true;
    return false;
}

bool join_records_samples(const struct sample_plan *plan)
{
    const struct keep_settings *keep = &plan->settings->keep;
    /* without unjoined samples, join_add_samples says which spans have detail */
    bool tells_detail = keep_takes_any(keep) && (!plan->index || has_unjoined(plan));
    return keep->reads_cpu || tells_detail || sample_plan_missing(plan) > 0;
}

uint64_t join_leave_samples(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns,
                            const struct span_waiter *waiter)
{
    const struct keep_settings *keep = &plan->settings->keep;
    bool cpu_takes_detail = keep->reads_cpu && keep->otherwise != KEEP_PASS;
    bool passes_early = plan->overflow && keep->enabled && keep->unjoined != KEEP_PASS;
    uint64_t late = 0;
    keep_samples_note_detail(plan);
    for (uint32_t k = 0; k < plan->key_count; k++) {
        bool is_joined = plan->keys[k].match;
        bool leaves = !is_joined || (cpu_takes_detail && !plan->finds[k].kept_by);
        plan->finds[k].samples_left = leaves ? plan->keys[k].samples : 0;
        plan->finds[k].passes = !is_joined && passes_early;
    }
    span_index_leave_many(join->index, now_ns, plan->finds, plan->key_count, waiter);
    for (uint32_t k = 0; k < plan->key_count; k++)
        late += plan->finds[k].samples_late;
    return late;
}

void join_note_unjoined(struct spanjoin *join, const struct sample_plan *plan, uint64_t now_ns)
{
    struct instance_clock clock = clock_of(join, now_ns);
    if (join->settings->attribute_children && sample_plan_missing(plan) > 0)
        upload_times_note_unjoined(plan, span_index_instances(join->index), &clock);
}

struct join_counts join_count_samples(const struct sample_plan *plan)
{
    const struct unnamed_samples *unnamed = &plan->unnamed;
    uint64_t explained = plan->not_split + unnamed->ambiguous_thread + unnamed->no_process +
                         unnamed->no_span_on_thread;
    assert(plan->without_id >= explained);
    struct join_counts counts = {.no_id = plan->without_id - explained,
                                 .by_thread = plan->by_thread,
                                 .unnamed = *unnamed,
                                 .not_split = plan->not_split,
                                 .overflow = plan->beyond_keys};
    for (uint32_t k = 0; k < plan->key_count; k++) {
        const struct sample_key *key = &plan->keys[k];
        if (key->match)
            counts.joined += key->samples;
        else if (plan->finds[k].presence == SPAN_EXPIRED)
            counts.expired += key->samples;
        else if (plan->overflow)
            counts.overflow += key->samples;
        else
            counts.not_found += key->samples;
        counts.ambiguous += key->ambiguous ? key->samples : 0;
    }
    return counts;
}

static void tell_uploads(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns,
                         bool waits)
{
    struct span_wakeups wakeups = {0};
    struct instance_clock clock = clock_of(join, now_ns);
    upload_times_tell(plan, span_index_instances(join->index), &clock, waits, &wakeups);
    post_wakeups(join, &wakeups);
}

void join_tell_uploads(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns)
{
    tell_uploads(join, plan, now_ns, false);
}

void spanjoin_settle(struct spanjoin_node *node)
{
    struct spanjoin *join = node->join;
    struct worker *worker = node->node.worker;
    struct span_wakeups wakeups = {0};
    struct instance_clock clock = clock_of(join, worker->now_ns);
    if (join->settings->spans.wait == 0)
        return;
    uint64_t next_ns = instances_settle(span_index_instances(join->index), &clock, &wakeups);
    post_wakeups(join, &wakeups);
    if (next_ns != UINT64_MAX)
        worker_set_timer(worker, &node->settle,
                         next_ns > worker->now_ns ? next_ns - worker->now_ns : 0);
}

void join_add_samples(struct spanjoin_node *node, struct sample_plan *plan,
                      const struct span_waiter *waiter)
{
    assert(node->node.signal == SIGNAL_PROFILES && plan->index == node->join->index);
    sample_plan_remember_profiles(plan);
    span_index_add_many(node->join->index, node->node.worker->now_ns, plan->finds, plan->key_count,
                        waiter);
    sample_functions_add(plan, node->join->index, node->node.worker->now_ns);
    count_evictions(node);
    tell_uploads(node->join, plan, node->node.worker->now_ns, waiter != NULL);
}

void join_hold_unread(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                      struct held_uploads *held_out)
{
    struct request_sender sender = sender_of(join, batch, now_ns);
    sender.arrived_ns = clock_wall_ns();
    upload_times_hold_unread(&sender, held_out);
}

void join_hold_uploads(struct spanjoin *join, const struct sample_plan *plan,
                       struct held_uploads *held_out)
{
    upload_times_hold(plan, span_index_instances(join->index), held_out);
}

void join_end_hold(struct spanjoin *join, struct held_uploads *held, uint64_t now_ns)
{
    struct span_wakeups wakeups = {0};
    struct instance_clock clock = clock_of(join, now_ns);
    upload_times_end_hold(held, span_index_instances(join->index), &clock, &wakeups);
    post_wakeups(join, &wakeups);
}

void join_learn_services(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns)
{
    struct instance_clock clock = clock_of(join, now_ns);
    upload_times_learn_services(plan, span_index_instances(join->index), &clock);
}

void join_apply(struct sample_plan *plan, struct join_counts *counts)
{
    sample_plan_apply(plan);
    upload_services_apply(plan, &counts->service);
    bool removed = empty_uploads_remove(plan->batch);
    keep_samples_apply(plan, &counts->keep);
    if (removed && !plan->has_added_threads && plan->batch->items > 0)
        batch_prune(plan->batch);
}
