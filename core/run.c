#include "core/run.h"

#include "core/base/budget.h"
#include "core/base/clock.h"
#include "core/base/job.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/source_accounts.h"
#include "core/config_log.h"
#include "core/data/scan.h"
#include "core/kept_memory.h"
#include "core/memory_limit.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/join_feed.h"
#include "core/process_log.h"
#include "core/process_resource.h"
#include "core/reload.h"
#include "core/telemetry.h"
#include "version.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct server_process {
    sigset_t signals; /* that are waited for */
    struct kept_memory kept;
    struct process process;
    struct budget budget;
    struct source_accounts accounts;
    struct component_status configuration;
    struct process_resource *resource; /* until the telemetry has it */
    struct telemetry *telemetry;
    struct graph *graph;
    struct reload *reload;
};

static unsigned count_workers(unsigned wanted)
{
    unsigned count =
        wanted ? wanted : uv_available_parallelism(); /* the processors that this process may use */
    return count > WORKERS_MAX ? WORKERS_MAX : count;
}

/* Blocks the signals in all threads, which inherit the mask; wait_for_signal receives them. */
static void block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
}

static int wait_for_signal_until(const sigset_t *signals, uint64_t wait_ns)
{
    const uint64_t second_ns = 1000000000;
    const struct timespec wait = {.tv_sec = (time_t)(wait_ns / second_ns),
                                  .tv_nsec = (long)(wait_ns % second_ns)};
    return sigtimedwait(signals, NULL, &wait);
}

/* Reloads on SIGHUP; returns on the other signals. */
static void wait_for_end(const sigset_t *signals, struct kept_memory *kept, struct reload *reload)
{
    static const char *const names[] = {
        [SIGHUP] = "hangup", [SIGINT] = "interrupt", [SIGTERM] = "terminated"};
    for (;;) {
        int number = wait_for_signal_until(signals, kept_memory_look(kept));
        reload_look(reload);
        if (number < 0)
            continue;
        assert((size_t)number < sizeof names / sizeof *names && names[number]);
        log_info(LOG_PROCESS, "Received signal from OS", LOG_TEXT("signal", names[number]));
        if (number != SIGHUP)
            return;
        reload_now(reload);
    }
}

/* Raises the limit on descriptors to the hard limit; max_connections limits connections. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static struct histogram *make_lag(struct metrics *metrics)
{
    static const double bounds[] = {0.001, 0.01, 0.1, 1, 10};
    return metrics_histogram(
        metrics, "profcol_loop_lag_seconds",
        "Duration of each turn of a worker's event loop, during which other connections wait.", "",
        bounds, sizeof bounds / sizeof *bounds);
}

/* Sets the size of libuv's pool, before its first use, unless the user has set it. */
static void size_pool(unsigned workers)
{
    char size[16];
    snprintf(size, sizeof size, "%u", job_pool_size(workers));
    setenv("UV_THREADPOOL_SIZE", size, 0);
}

static bool start_workers(struct process *process, struct error *err)
{
    for (unsigned i = 0; i < process->worker_count; i++)
        if (!worker_init(&process->workers[i], i, err))
            return false;
    for (unsigned i = 0; i < process->worker_count; i++)
        process->workers[i].lag = make_lag(process->metrics);
    for (unsigned i = 0; i < process->worker_count; i++)
        if (!worker_start(&process->workers[i], err))
            return false;
    return true;
}

static void stop_workers(struct process *process)
{
    for (unsigned i = 0; i < process->worker_count; i++)
        worker_stop(&process->workers[i]);
    for (unsigned i = 0; i < process->worker_count; i++)
        worker_join(&process->workers[i]);
    workers_settle(process->workers, process->worker_count);
    for (unsigned i = 0; i < process->worker_count; i++)
        worker_deinit(&process->workers[i]);
}

static bool start_pipelines(struct server_process *self, const struct config *config,
                            struct error *err)
{
    struct process_resource *resource = self->resource;
    self->resource = NULL;
    self->telemetry = telemetry_new(&config->telemetry, resource, &self->process, err);
    if (!self->telemetry)
        return false;
    self->graph = graph_new(config, &self->process, err);
    if (!self->graph || !graph_start(self->graph, err))
        return false;
    telemetry_start(self->telemetry);
    return true;
}

static void drain(struct server_process *self, int64_t timeout_ns)
{
    assert(self->graph && timeout_ns >= 0);
    log_info(LOG_PROCESS, "Starting shutdown...");
    atomic_store_explicit(&self->process.phase, PROCESS_DRAINING, memory_order_release);
    graph_drain(self->graph);
    if (!graph_wait_drained(self->graph, (uint64_t)timeout_ns))
        log_error(LOG_PROCESS, "Could not deliver everything within --drain-timeout",
                  LOG_DURATION("drain_timeout", timeout_ns));
}

/* After graph_stop: whether no acknowledged data was lost, except data that an exporter dropped by
 * its own settings. */
static bool kept_promises(struct server_process *self)
{
    uint64_t lost = atomic_load(&self->process.lost_items);
    if (lost > 0)
        log_error(LOG_PROCESS, "Acknowledged data is lost", LOG_U64("lost_items", lost));
    return lost == 0;
}

static void stop_pipelines(struct server_process *self)
{
    if (self->graph)
        graph_stop(self->graph);
    if (self->telemetry)
        telemetry_stop(self->telemetry);
}

static void free_process(struct server_process *self)
{
    graph_free(self->graph);
    reload_free(self->reload);
    if (self->telemetry)
        telemetry_free(self->telemetry);
    metrics_free(self->process.metrics);
    join_feed_free(self->process.join_feed);
    free(self->process.workers);
    source_accounts_deinit(&self->accounts);
    process_resource_free(self->resource);
}

static void init_process(struct server_process *self, unsigned workers)
{
    assert(workers > 0 && workers <= WORKERS_MAX);
    size_t memory = memory_limit_bytes();
    self->budget.limit_bytes = memory / 4;
    source_accounts_init(&self->accounts, &self->budget);
    self->process = (struct process){
        .workers = memory_array(workers, sizeof(struct worker)),
        .worker_count = workers,
        .metrics = metrics_new(workers),
        .budget = &self->budget,
        .accounts = &self->accounts,
        .configuration = &self->configuration,
        .system_memory_bytes = memory,
        .memory_limit_bytes = memory,
        .version = PROFCOL_VERSION,
        .join_feed = join_feed_new(),
    };
    log_info(LOG_PROCESS, "Starting profcol...", LOG_TEXT("Version", PROFCOL_VERSION),
             LOG_U64("NumCPU", uv_available_parallelism()), LOG_U64("workers", workers),
             LOG_U64("memory_limit_mib", memory >> 20),
             LOG_U64("requests_mib", self->budget.limit_bytes >> 20));
}

/* Opens the log; before it, lines go to standard error and have no resource. */
static bool open_log(struct server_process *self, const struct config *config, struct error *err)
{
    const struct config_telemetry *settings = &config->telemetry;
    self->resource = process_resource_new(&settings->resource, PROFCOL_VERSION, NULL);
    log_init(settings->log.level, settings->log.encoding); /* in case it cannot be opened */
    struct log_setup *made = process_log_new(settings, self->resource, err);
    if (made)
        log_use(made);
    return made;
}

/* Always returns 1, the exit status. */
static int refuse_to_start(const struct error *err)
{
    log_error(LOG_PROCESS, "Cannot start", LOG_TEXT("error", err->text));
    return 1;
}

/* Before any thread starts. */
static void prepare(struct server_process *self)
{
    block_signals(&self->signals);
    raise_descriptor_limit();
    kept_memory_init(&self->kept, memory_limit_bytes());
    scan_init();
}

/* Serves until a signal ends it, and drains. */
static void serve(struct server_process *self, struct config_sources *sources,
                  const struct run_options *options)
{
    self->reload = reload_new(&self->process, self->telemetry, sources, options->watch);
    self->process.running_since_ns = clock_monotonic_ns();
    atomic_store_explicit(&self->process.phase, PROCESS_RUNNING, memory_order_release);
    log_info(LOG_PROCESS, "Everything is ready. Begin running and processing data.");
    wait_for_end(&self->signals, &self->kept, self->reload);
    self->graph = self->process.graph;
    drain(self, options->drain_timeout_ns);
}

/* Stops what runs, and returns the exit status. */
static int end(struct server_process *self, bool has_served)
{
    stop_pipelines(self);
    bool is_fine = kept_promises(self) && has_served;
    stop_workers(&self->process);
    free_process(self);
    if (is_fine)
        log_info(LOG_PROCESS, "Shutdown complete.");
    log_close();
    return is_fine ? 0 : 1;
}

int run(const struct config *config, const char *warnings, struct config_sources *sources,
        const struct run_options *options)
{
    struct server_process self = {0};
    struct error err;
    prepare(&self);
    if (!open_log(&self, config, &err)) {
        process_resource_free(self.resource);
        return refuse_to_start(&err);
    }
    config_log(warnings);
    config_log_unused(config);
    init_process(&self, count_workers(options->workers));
    size_pool(self.process.worker_count);
    if (!start_workers(&self.process, &err))
        return refuse_to_start(&err); /* threads may run already, so nothing is freed */
    bool starts = start_pipelines(&self, config, &err);
    if (starts)
        serve(&self, sources, options);
    else
        refuse_to_start(&err);
    return end(&self, starts);
}
