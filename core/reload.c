#include "core/reload.h"

#include "config/diff.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/metrics.h"
#include "core/pipeline/graph.h"

#include <assert.h>
#include <string.h>

#define WATCH_INTERVAL_NS UINT64_C(1000000000)

enum outcome { APPLIED, UNCHANGED, REFUSED, FAILED, OUTCOME_COUNT };

struct reload {
    struct process *process;
    struct graph *graph;
    struct config_sources *sources;
    const struct config *config; /* of the graph */
    bool watch;
    uint64_t looked_ns; /* for changed files */
    struct counter *counters[OUTCOME_COUNT];
    struct gauge *successful;
    struct gauge *success_time;
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

static void log_line(const char *line, size_t size)
{
    bool is_error = memmem(line, size, " error: ", 8) != NULL;
    log_write_all(is_error ? LOG_ERROR : LOG_WARN, NULL, "%.*s", (int)size, line);
}

static void log_lines(const char *report)
{
    while (*report) {
        size_t size = strcspn(report, "\n");
        log_line(report, size);
        report += size + (report[size] == '\n');
    }
}

static void refuse(struct reload *reload, const char *report)
{
    struct text why = {0};
    text_printf(&why, "the changed configuration is not used: %.*s", (int)strcspn(report, "\n"),
                report);
    log_error(NULL, "The changed configuration has errors; profcol goes on with the old one. "
                    "`profcol validate` shows them, too.");
    record(reload, REFUSED, text_string(&why));
    text_deinit(&why);
}

/* Returns NULL, after saying so, if it has errors. */
static struct config *load(struct reload *reload)
{
    struct text report = {0};
    struct config *config = config_sources_load(reload->sources, &report);
    log_lines(text_string(&report));
    if (!config)
        refuse(reload, text_string(&report));
    text_deinit(&report);
    return config;
}

/* ---- applying ---- */

static void apply(struct reload *reload, struct config *config)
{
    struct arena arena = {0};
    const struct config_diff *diff = config_diff_new(&arena, reload->config, config);
    if (config_diff_is_empty(diff)) {
        log_info(NULL, "The configuration is unchanged");
        record(reload, UNCHANGED, NULL);
    } else {
        static const char why[] = "a changed configuration cannot be applied yet; restart profcol";
        log_warn(NULL, "Reloading: %s", why);
        record(reload, FAILED, why);
    }
    arena_deinit(&arena);
    config_free(config);
}

void reload_now(struct reload *reload)
{
    log_info(NULL, "Loading the configuration again");
    struct config *config = load(reload);
    if (config)
        apply(reload, config);
}

void reload_look(struct reload *reload)
{
    uint64_t now = clock_monotonic_ns();
    if (!reload->watch || now - reload->looked_ns < WATCH_INTERVAL_NS)
        return;
    reload->looked_ns = now;
    if (config_sources_have_changed(reload->sources))
        reload_now(reload);
}

/* ---- life ---- */

struct reload *reload_new(struct process *process, struct graph *graph, const struct config *config,
                          struct config_sources *sources, bool watch)
{
    struct reload *reload = memory_zalloc(sizeof *reload);
    *reload = (struct reload){.process = process,
                              .graph = graph,
                              .sources = sources,
                              .config = config,
                              .watch = watch,
                              .looked_ns = clock_monotonic_ns()};
    make_metrics(reload);
    gauge_set(reload->successful, 1);
    gauge_set(reload->success_time, (int64_t)(clock_wall_ns() / 1000000000));
    return reload;
}

void reload_free(struct reload *reload)
{
    free(reload);
}
