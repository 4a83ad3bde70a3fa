#include "processors/spanjoin/spanjoin.h"

#include "config/diff.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/span_index.h"
#include "core/data/span_trees.h"
#include "processors/spanjoin/join_group.h"
#include "processors/spanjoin/root_spans.h"

#include <assert.h>
#include <inttypes.h>

enum {
    BYTES_PER_SPAN = 256,
    SPANS_MIN = 10000,
    SPANS_MAX = 4000000,
    HELD_MIN_MIB = 8,
    HELD_MAX_MIB = 512
};

/* Smaller requests take at most some 10 ms. */
static size_t large_bytes = (size_t)1024 * 1024;

void spanjoin_set_large_bytes(size_t bytes)
{
    large_bytes = bytes;
}

bool spanjoin_is_large(const struct spanjoin *join, const struct batch *batch)
{
    size_t size = 0;
    for (size_t i = 0; i < batch->part_count; i++)
        size += batch->parts[i].buffer->size;
    return size >= join->large_bytes;
}

static uint64_t clamp(uint64_t value, uint64_t min, uint64_t max)
{
    return value < min ? min : value > max ? max : value;
}

static const double lag_bounds[] = {-300, -120, -60,  -30,  -20, -15, -10, -7.5, -5,
                                    -2.5, -1,   -0.5, -0.1, 0,   0.1, 0.5, 1,    2.5,
                                    5,    7.5,  10,   15,   20,  30,  60,  120,  300};

/* labels: freed. */
static struct counter *counter_labelled(struct component *component, const char *name,
                                        const char *help, struct text *labels)
{
    struct counter *counter =
        metrics_counter(component->process->metrics, name, help, text_string(labels));
    text_deinit(labels);
    return counter;
}

static struct counter *counter_with(struct component *component, const char *name, const char *help,
                                    const char *key, const char *value)
{
    struct text labels = {0};
    metrics_label(&labels, "spanjoin", component->id);
    if (key)
        metrics_label(&labels, key, value);
    return counter_labelled(component, name, help, &labels);
}

static void make_sample_counters(struct component *component, struct spanjoin_metrics *metrics,
                                 bool has_children)
{
    static const char *const reasons[UNJOINED_COUNT] = {
        "no_id",     "no_process", "no_span_on_thread", "ambiguous_thread", "not_split",
        "not_found", "span_open",  "expired",           "overflow"};
    metrics->joined = counter_with(component, "profcol_spanjoin_samples_joined",
                                   "Samples that left with their span.", NULL, NULL);
    metrics->by_thread = counter_with(
        component, "profcol_spanjoin_samples_joined_by_thread",
        "Samples that named no span and were joined by their thread and time.", NULL, NULL);
    for (int i = 0; i < UNJOINED_COUNT; i++)
        metrics->unjoined[i] = counter_with(
            component, "profcol_spanjoin_samples_unjoined",
            "Samples that left without a span; span_open: their span arrived afterwards.", "reason",
            reasons[i]);
    if (has_children)
        metrics->to_children = counter_with(
            component, "profcol_spanjoin_samples_to_children",
            "Samples that named a local root and went on to the child that was running.", NULL,
            NULL);
    metrics->ambiguous =
        counter_with(component, "profcol_spanjoin_ambiguous",
                     "Samples whose span id belongs to several spans.", NULL, NULL);
}

static void make_span_counters(struct component *component, struct spanjoin_metrics *metrics)
{
    metrics->spans_enriched = counter_with(component, "profcol_spanjoin_spans_enriched",
                                           "Spans that gained attributes.", NULL, NULL);
    for (int i = 0; i < SPAN_EVICTION_COUNT; i++)
        metrics->evicted[i] =
            counter_with(component, "profcol_spanjoin_evicted",
                         "Entries that left the index within their window; memory: spans whose "
                         "values were given up; conflict: spans that arrived again with different "
                         "content, which was not kept.",
                         "reason", span_index_eviction_names[i]);
}

static void make_service_counters(struct component *component, struct spanjoin_metrics *metrics)
{
    metrics->renamed =
        counter_with(component, "profcol_spanjoin_service_samples",
                     "Samples whose profiles left under the service of their process's spans; "
                     "conflict: they kept theirs, because the process has spans of several "
                     "services.",
                     "result", "renamed");
    metrics->service_conflicts =
        counter_with(component, "profcol_spanjoin_service_samples", "", "result", "conflict");
}

static void make_keep_counters(struct component *component, struct spanjoin_metrics *metrics)
{
    static const char *const results[KEEP_RESULTS] = {"kept", "folded", "combined", "dropped",
                                                      "late"};
    const struct spanjoin_settings *settings = component->settings;
    for (int i = 0; i < KEEP_RESULTS; i++) {
        struct text labels = {0};
        metrics_label(&labels, "spanjoin", component->id);
        metrics_label(&labels, "result", results[i]);
        metrics_label(&labels, "dry_run", settings->keep.dry_run ? "true" : "false");
        metrics->keep[i] = counter_labelled(
            component, "profcol_spanjoin_keep_samples",
            "Samples that kept their detail, were folded into combined ones, or were dropped; "
            "late: left without it before their span turned out to be worth it. dry_run true: "
            "they would be, and all left as they were.",
            &labels);
    }
}

static void make_dropped_counters(struct component *component, struct spanjoin_metrics *metrics)
{
    metrics->dropped_refused =
        counter_with(component, "profcol_spanjoin_dropped",
                     "Held spans and samples that were lost.", "reason", "refused");
    metrics->dropped_stopped =
        counter_with(component, "profcol_spanjoin_dropped",
                     "Held spans and samples that were lost.", "reason", "stopped");
}

static void make_kept_counters(struct component *component, struct spanjoin_metrics *metrics,
                               int by, bool of_spans)
{
    const struct spanjoin_settings *settings = component->settings;
    const char *name = keep_by_name(&settings->keep, by);
    metrics->kept_samples[by] = counter_with(
        component, "profcol_spanjoin_kept_samples",
        "Samples whose span is worth its detail, by the condition.", "condition", name);
    if (of_spans)
        metrics->kept_spans[by] =
            counter_with(component, "profcol_spanjoin_kept_spans",
                         "Spans that are worth their detail when they arrive, by the condition.",
                         "condition", name);
}

/* Of several conditions that are true the first one counts. */
static void make_condition_counters(struct component *component, struct spanjoin_metrics *metrics)
{
    const struct spanjoin_settings *settings = component->settings;
    const struct config_list *list = &settings->keep.span_detail_when;
    const struct keep_condition *conditions = list->items;
    for (size_t i = 0; i < list->count; i++) {
        int by = keep_by_condition(i);
        bool of_spans = !keep_condition_reads_cpu(&conditions[i]);
        make_kept_counters(component, metrics, by, of_spans);
    }
    make_kept_counters(component, metrics, KEEP_BY_EARLIER, false);
    if (settings->attribute_children)
        make_kept_counters(component, metrics, KEEP_BY_ROOT, false);
}

static double read_entries(void *context)
{
    const struct spanjoin *join = context;
    return (double)span_index_entries(join->index);
}

static double read_entries_limit(void *context)
{
    const struct spanjoin *join = context;
    return (double)span_index_limit(join->index);
}

static double read_sources(void *context)
{
    const struct spanjoin *join = context;
    return (double)span_index_sources(join->index);
}

static double read_thread_spans(void *context)
{
    const struct spanjoin *join = context;
    return (double)thread_spans_count(span_index_threads(join->index));
}

static double read_thread_spans_limit(void *context)
{
    const struct spanjoin *join = context;
    return (double)thread_spans_limit(span_index_threads(join->index));
}

static double read_tree_spans(void *context)
{
    const struct spanjoin *join = context;
    return (double)span_trees_count(span_index_trees(join->index));
}

static double read_moved_clocks(void *context)
{
    const struct spanjoin *join = context;
    return thread_spans_clocks(span_index_threads(join->index)).moved;
}

static double read_unclear_clocks(void *context)
{
    const struct spanjoin *join = context;
    return thread_spans_clocks(span_index_threads(join->index)).unclear;
}

static void make_clock_gauge(struct component *component, struct spanjoin *join, const char *state,
                             double (*read)(void *context))
{
    struct text labels = {0};
    metrics_label(&labels, "spanjoin", component->id);
    metrics_label(&labels, "state", state);
    metrics_gauge_from(component->process->metrics, "profcol_spanjoin_clocks",
                       "Processes whose clocks of spans and samples differ: moved, by seconds that "
                       "are corrected; unclear, by an unknown time.",
                       text_string(&labels), read, join);
    text_deinit(&labels);
}

static double read_held_bytes(void *context)
{
    const struct spanjoin *join = context;
    return (double)budget_used(&join->held);
}

static double read_held_limit(void *context)
{
    const struct spanjoin *join = context;
    return (double)join->held.limit_bytes;
}

/* labels: that of the component. */
static void make_thread_gauges(struct component *component, struct spanjoin *join,
                               const char *labels)
{
    struct metrics *metrics = component->process->metrics;
    metrics_gauge_from(metrics, "profcol_spanjoin_thread_spans",
                       "Spans that are kept with their threads.", labels, read_thread_spans, join);
    metrics_gauge_from(metrics, "profcol_spanjoin_thread_spans_limit",
                       "Most spans that are kept with their threads: a quarter of max_spans.",
                       labels, read_thread_spans_limit, join);
    make_clock_gauge(component, join, "moved", read_moved_clocks);
    make_clock_gauge(component, join, "unclear", read_unclear_clocks);
}

static void make_gauges(struct component *component, struct spanjoin *join)
{
    struct metrics *metrics = component->process->metrics;
    struct text labels = {0};
    metrics_label(&labels, "spanjoin", component->id);
    const char *text = text_string(&labels);
    join->metrics.held_requests =
        metrics_gauge(metrics, "profcol_spanjoin_held_requests", "Requests held now.", text);
    join->metrics.lag =
        metrics_histogram(metrics, "profcol_spanjoin_lag_seconds",
                          "Arrival of a sample minus the arrival of its span, in seconds.", text,
                          lag_bounds, sizeof lag_bounds / sizeof *lag_bounds);
    metrics_gauge_from(metrics, "profcol_spanjoin_entries",
                       "Entries of the index: spans, and spans that only samples have named.", text,
                       read_entries, join);
    metrics_gauge_from(metrics, "profcol_spanjoin_entries_limit",
                       "Most entries that the index may have (max_spans).", text,
                       read_entries_limit, join);
    metrics_gauge_from(metrics, "profcol_spanjoin_sources",
                       "Tenants, peers and services that share the index.", text, read_sources,
                       join);
    metrics_gauge_from(metrics, "profcol_spanjoin_held_bytes", "Memory of the requests held now.",
                       text, read_held_bytes, join);
    metrics_gauge_from(metrics, "profcol_spanjoin_held_bytes_limit",
                       "Most memory of requests that are held (max_held_mib).", text,
                       read_held_limit, join);
    if (join->settings->samples.by_thread)
        make_thread_gauges(component, join, text);
    if (root_spans_are_needed(join->settings))
        metrics_gauge_from(metrics, "profcol_spanjoin_tree_spans",
                           "Spans that are kept with their parents; at most max_spans.", text,
                           read_tree_spans, join);
    text_deinit(&labels);
}

/* Of requests rather than of spans, because a request leaves as a whole. */
static void make_wait_counters(struct component *component, struct spanjoin_metrics *metrics)
{
    static const char *const results[SPANS_WAIT_ENDS] = {"covered", "timed_out", "overflow"};
    for (int i = 0; i < SPANS_WAIT_ENDS; i++)
        metrics->spans_waited[i] = counter_with(
            component, "profcol_spanjoin_spans_waited",
            "Spans of requests that waited for profiles; covered: profiles of all of them have "
            "arrived; timed_out: spans.wait was over; overflow: memory was short.",
            "result", results[i]);
}

static void make_counters(struct component *component, struct spanjoin_metrics *metrics)
{
    const struct spanjoin_settings *settings = component->settings;
    make_sample_counters(component, metrics, settings->attribute_children);
    make_span_counters(component, metrics);
    make_service_counters(component, metrics);
    make_dropped_counters(component, metrics);
    if (settings->spans.wait > 0)
        make_wait_counters(component, metrics);
    if (settings->keep.enabled) {
        make_keep_counters(component, metrics);
        make_condition_counters(component, metrics);
    }
}

/* Returns since when spans were judged by this `keep`; UINT64_MAX: none were yet. */
static uint64_t keep_since(const struct spanjoin *join, const struct spanjoin *sharer)
{
    struct arena arena;
    const struct keep_settings *keep = &join->settings->keep, *before = &sharer->settings->keep;
    arena_init(&arena, NULL);
    bool differs = config_fields_differ(&arena, keep_fields, false, keep, before);
    arena_deinit(&arena);
    return differs ? UINT64_MAX
                   : atomic_load_explicit(&sharer->keep.since_ns, memory_order_relaxed);
}

/* sharer: whose index it shares; NULL: nobody's. */
static struct span_index *make_index(const struct spanjoin *join, uint64_t spans,
                                     const struct spanjoin *sharer)
{
    const struct spanjoin_settings *settings = join->settings;
    struct span_index_options options = {.max_spans = spans,
                                         .window_ns = (uint64_t)settings->window,
                                         .threads = join->process->worker_count,
                                         .type_count = settings->type_count,
                                         .keeps_trees = root_spans_are_needed(settings),
                                         .keeps_runs = settings->attribute_children,
                                         .keeps_functions = settings->top_functions > 0,
                                         .sum_type =
                                             settings->keep.reads_cpu ? settings->cpu_type : -1};
    if (!sharer)
        return span_index_new(&options);
    span_index_set_window(sharer->index, options.window_ns);
    return span_index_ref(sharer->index);
}

struct spanjoin *spanjoin_new(struct component *component, struct spanjoin *predecessor)
{
    enum { HOLD_GENERATIONS = 1 << 24 };
    struct spanjoin *join = memory_zalloc(sizeof *join);
    const struct spanjoin_settings *settings = component->settings;
    uint64_t share = component->process->memory_limit_bytes / 8;
    uint64_t spans = settings->max_spans ? settings->max_spans
                                         : clamp(share / BYTES_PER_SPAN, SPANS_MIN, SPANS_MAX);
    uint64_t held = settings->max_held_mib ? settings->max_held_mib
                                           : clamp(share >> 20, HELD_MIN_MIB, HELD_MAX_MIB);
    assert(spans > 0 && held > 0);
    atomic_init(&join->references, 1);
    join->settings = settings;
    join->process = component->process;
    join->large_bytes = large_bytes;
    join->held.limit_bytes = (size_t)held << 20;
    bool goes_on = predecessor && spanjoin_index_goes_on(predecessor->settings, settings);
    struct spanjoin *sharer = goes_on ? predecessor : NULL;
    join->index = make_index(join, spans, sharer);
    join->group = sharer ? join_group_ref(sharer->group) : join_group_new();
    join->first_hold_generation =
        predecessor ? predecessor->first_hold_generation + HOLD_GENERATIONS : 1;
    make_counters(component, &join->metrics);
    keep_programs_init(&join->keep, &settings->keep, component->label);
    if (sharer)
        atomic_init(&join->keep.since_ns, keep_since(join, sharer));
    value_programs_init(&join->sample_values, &settings->samples, component->label);
    value_programs_init(&join->span_values, &settings->spans, component->label);
    make_gauges(component, join);
    struct text keep = {0};
    keep_describe(&settings->keep, &keep);
    log_info(log_component(component->label), "The join is configured", LOG_U64("max_spans", spans),
             LOG_U64("max_held_mib", held), LOG_TEXT("keep", text_string(&keep)),
             LOG_TEXT("index", sharer        ? "goes on"
                               : predecessor ? "new, empty"
                                             : "new"));
    text_deinit(&keep);
    return join;
}

void spanjoin_unref(struct spanjoin *join)
{
    if (!join || atomic_fetch_sub_explicit(&join->references, 1, memory_order_acq_rel) > 1)
        return;
    span_index_unref(join->index);
    join_group_unref(join->group);
    keep_programs_deinit(&join->keep);
    value_programs_deinit(&join->sample_values);
    value_programs_deinit(&join->span_values);
    free(join);
}
