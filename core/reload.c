#include "core/reload.h"

#include "config/diff.h"
#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/list.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/metrics.h"
#include "core/config_log.h"
#include "core/net/server.h"
#include "core/pipeline/graph.h"
#include "core/telemetry.h"

#include <assert.h>
#include <string.h>

#define WATCH_INTERVAL_NS UINT64_C(1000000000)
#define DRAINING_INTERVAL_NS UINT64_C(50000000)

enum outcome { APPLIED, UNCHANGED, REFUSED, FAILED, OUTCOME_COUNT };

/* A configuration that a reload has loaded. It lives as long as a component that it made. */
struct loaded {
    struct list_link link;
    struct config *config;
};

struct reload {
    struct process *process; /* its graph is replaced */
    struct telemetry *telemetry;
    struct config_sources *sources;
    const struct config *config; /* of the graph */
    struct list loaded;
    bool is_draining; /* something is retired and not drained yet */
    bool watch;
    uint64_t looked_ns; /* for changed files */
    struct counter *counters[OUTCOME_COUNT];
    struct gauge *successful;
    struct gauge *success_time;
    struct gauge *retired;
};

/* ---- metrics ---- */

static void make_counters(struct reload *reload)
{
    static const char *const results[OUTCOME_COUNT] = {
        [APPLIED] = "applied",
        [UNCHANGED] = "unchanged",
        [REFUSED] = "refused",
        [FAILED] = "failed",
    };
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        struct text labels = {0};
        metrics_label(&labels, "result", results[i]);
        reload->counters[i] =
            metrics_counter(reload->process->metrics, "profcol_config_reloads",
                            "Reloads of the configuration: applied; unchanged, so that nothing was "
                            "done; refused because of errors in it; failed when it was applied.",
                            text_string(&labels));
        text_deinit(&labels);
    }
}

static void make_metrics(struct reload *reload)
{
    make_counters(reload);
    reload->successful = metrics_gauge(
        reload->process->metrics, "profcol_config_last_reload_successful",
        "Whether the last reload of the configuration succeeded; 1 if there was none.", "");
    reload->success_time = metrics_gauge(
        reload->process->metrics, "profcol_config_last_reload_success_timestamp_seconds",
        "When the configuration was last loaded without errors, in seconds since 1970.", "");
    reload->retired =
        metrics_gauge(reload->process->metrics, "profcol_config_retired_components",
                      "Components that a reload has replaced or removed, and that still deliver "
                      "what they hold.",
                      "");
}

/* why: of a reload that is not successful; else NULL. */
static void record(struct reload *reload, enum outcome outcome, const char *why)
{
    bool is_successful = outcome == APPLIED || outcome == UNCHANGED;
    assert(is_successful == !why);
    counter_add(reload->counters[outcome], 0, 1);
    gauge_set(reload->successful, is_successful);
    if (is_successful)
        gauge_set(reload->success_time, (int64_t)(clock_wall_ns() / 1000000000));
    component_status_set(reload->process->configuration,
                         is_successful ? STATUS_OK : STATUS_RECOVERABLE_ERROR, why);
}

/* ---- loading ---- */

static void refuse(struct reload *reload, const char *report)
{
    struct text why = {0};
    text_printf(&why, "the changed configuration is not used: %.*s", (int)strcspn(report, "\n"),
                report);
    log_each_error(LOG_PROCESS,
                   "The changed configuration has errors; profcol goes on with the old "
                   "one. `profcol validate` shows them, too.");
    record(reload, REFUSED, text_string(&why));
    text_deinit(&why);
}

/* Returns NULL, after saying so, if it has errors. */
static struct config *load(struct reload *reload)
{
    struct text report = {0};
    struct config *config = config_sources_load(reload->sources, &report);
    config_log(text_string(&report));
    if (!config)
        refuse(reload, text_string(&report));
    text_deinit(&report);
    return config;
}

/* ---- what is retired ---- */

static void free_unused(struct reload *reload)
{
    for (struct list_link *link = reload->loaded.first, *next; link; link = next) {
        struct loaded *loaded = container_of(link, struct loaded, link);
        next = link->next;
        if (reload->process->graph && graph_uses(reload->process->graph, loaded->config))
            continue;
        list_remove(&reload->loaded, &loaded->link);
        config_free(loaded->config);
        free(loaded);
    }
}

static void reap(struct reload *reload)
{
    if (!reload->is_draining)
        return;
    struct graph *graph = reload->process->graph;
    bool is_draining = graph_reap(graph);
    reload->is_draining = telemetry_reap(reload->telemetry) || is_draining;
    gauge_set(reload->retired, (int64_t)graph_count_retired(graph));
    free_unused(reload);
    if (!reload->is_draining)
        log_each_info(LOG_PROCESS, "What the reload replaced or removed is drained");
}

/* ---- applying ---- */

static void log_changes(const struct config_diff *diff)
{
    size_t counts[CONFIG_FATE_COUNT] = {0};
    for (size_t i = 0; i < diff->count; i++)
        counts[diff->changes[i].fate]++;
    log_each_info(LOG_PROCESS, "The changed configuration is in use",
                  LOG_U64("unchanged_components", counts[CONFIG_KEPT] + counts[CONFIG_UPDATED]),
                  LOG_U64("replaced_components", counts[CONFIG_REPLACED]),
                  LOG_U64("new_components", counts[CONFIG_ADDED]),
                  LOG_U64("removed_components", counts[CONFIG_REMOVED]));
    if (diff->level_needs_restart)
        log_each_warn(
            LOG_PROCESS,
            "The change of service::telemetry::metrics::level takes full effect when profcol "
            "is restarted: components that go on do not count what the level detailed adds");
}

static void fail(struct reload *reload, const struct error *err)
{
    struct text why = {0};
    text_printf(&why, "the changed configuration cannot be applied: %s", err->text);
    log_each_error(LOG_PROCESS,
                   "The changed configuration cannot be applied; profcol goes on with the old one",
                   LOG_TEXT("error", err->text));
    record(reload, FAILED, text_string(&why));
    text_deinit(&why);
}

/* Takes over the configuration. */
static void keep(struct reload *reload, struct config *config)
{
    struct loaded *loaded = memory_zalloc(sizeof *loaded);
    loaded->config = config;
    list_append(&reload->loaded, &loaded->link);
    reload->config = config;
}

/* Returns whether the process now has the configuration. */
static bool apply_changes(struct reload *reload, const struct config_diff *diff)
{
    struct error err;
    struct telemetry_change *telemetry = NULL;
    if (diff->telemetry_differs) {
        graph_offer_addresses(reload->process->graph, diff);
        telemetry = telemetry_prepare(reload->telemetry, &diff->after->telemetry, &err);
        if (!telemetry) {
            server_withdraw_addresses();
            fail(reload, &err);
            return false;
        }
        telemetry_offer_address(telemetry);
    }
    if (!graph_reload(reload->process->graph, diff, &err)) {
        if (telemetry)
            telemetry_discard(telemetry);
        fail(reload, &err);
        return false;
    }
    if (telemetry)
        telemetry_apply(telemetry);
    reload->is_draining = true;
    log_changes(diff);
    config_log_unused(diff->after);
    return true;
}

static void apply(struct reload *reload, struct config *config)
{
    struct arena arena = {0};
    const struct config_diff *diff = config_diff_new(&arena, reload->config, config);
    if (config_diff_is_empty(diff)) {
        log_each_info(LOG_PROCESS, "The configuration is unchanged");
        record(reload, UNCHANGED, NULL);
        config_free(config);
    } else if (apply_changes(reload, diff)) {
        keep(reload, config);
        reap(reload);
        record(reload, APPLIED, NULL);
    } else {
        config_free(config);
    }
    arena_deinit(&arena);
}

void reload_now(struct reload *reload)
{
    struct error err;
    if (!log_reopen(&err))
        log_each_warn(LOG_PROCESS,
                      "A file of the log cannot be opened again; the one that is open stays in use",
                      LOG_TEXT("error", err.text));
    log_each_info(LOG_PROCESS, "Loading the configuration again");
    struct config *config = load(reload);
    if (config)
        apply(reload, config);
}

static void watch(struct reload *reload)
{
    uint64_t now = clock_monotonic_ns();
    if (!reload->watch || now - reload->looked_ns < WATCH_INTERVAL_NS)
        return;
    reload->looked_ns = now;
    if (config_sources_have_changed(reload->sources))
        reload_now(reload);
}

uint64_t reload_look(struct reload *reload)
{
    reap(reload);
    watch(reload);
    return reload->is_draining ? DRAINING_INTERVAL_NS : WATCH_INTERVAL_NS;
}

/* ---- life ---- */

struct reload *reload_new(struct process *process, struct telemetry *telemetry,
                          struct config_sources *sources, bool watch)
{
    struct reload *reload = memory_zalloc(sizeof *reload);
    *reload = (struct reload){.process = process,
                              .telemetry = telemetry,
                              .sources = sources,
                              .config = process->config,
                              .watch = watch,
                              .looked_ns = clock_monotonic_ns()};
    make_metrics(reload);
    gauge_set(reload->successful, 1);
    gauge_set(reload->success_time, (int64_t)(clock_wall_ns() / 1000000000));
    return reload;
}

void reload_free(struct reload *reload)
{
    if (!reload)
        return;
    assert(!reload->process->graph);
    free_unused(reload);
    free(reload);
}
