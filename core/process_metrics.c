#include "core/process_metrics.h"

#include "core/base/budget.h"
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/base/source_accounts.h"

#include <assert.h>
#include <ctype.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct process_metrics {
    struct process *process;
    uint64_t started_ns;
    const struct config_pairs *resource; /* shown by target_info; NULL: none */
};

static double read_uptime(void *context)
{
    const struct process_metrics *own = context;
    return (double)(clock_monotonic_ns() - own->started_ns) / 1e9;
}

static double read_cpu_seconds(void *context)
{
    (void)context;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double read_rss(void *context)
{
    (void)context;
    unsigned long total, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%lu %lu", &total, &resident) != 2)
            resident = 0;
        fclose(file);
    }
    return (double)resident * (double)sysconf(_SC_PAGE_SIZE);
}

static double read_heap(void *context)
{
    (void)context;
    struct mallinfo2 info = mallinfo2();
    return (double)info.uordblks + (double)info.hblkhd;
}

static double read_allocated(void *context)
{
    (void)context;
    return (double)memory_allocated();
}

/* What the allocator has of the system: used, free and mapped blocks. */
static double read_system_memory(void *context)
{
    (void)context;
    struct mallinfo2 info = mallinfo2();
    return (double)info.arena + (double)info.hblkhd;
}

static double read_budget(void *context)
{
    const struct process_metrics *own = context;
    return (double)budget_used(own->process->budget);
}

static double read_budget_limit(void *context)
{
    const struct process_metrics *own = context;
    return (double)own->process->budget->limit_bytes;
}

static double read_most_held(void *context)
{
    const struct process_metrics *own = context;
    return (double)source_accounts_most_used(own->process->accounts);
}

static void add_process_metrics(struct process_metrics *own)
{
    struct metrics *metrics = own->process->metrics;
    metrics_counter_from(metrics, "otelcol_process_uptime", "Uptime of the process in seconds.", "",
                         read_uptime, own);
    metrics_counter_from(metrics, "otelcol_process_cpu_seconds",
                         "Total CPU user and system time in seconds.", "", read_cpu_seconds, own);
    metrics_gauge_from(metrics, "otelcol_process_memory_rss",
                       "Total physical memory (resident set size).", "", read_rss, own);
    metrics_gauge_from(metrics, "otelcol_process_runtime_heap_alloc_bytes",
                       "Bytes of allocated heap objects.", "", read_heap, own);
    metrics_counter_from(metrics, "otelcol_process_runtime_total_alloc_bytes",
                         "Cumulative bytes allocated by profcol's own code, freed or not.", "",
                         read_allocated, own);
    metrics_gauge_from(metrics, "otelcol_process_runtime_total_sys_memory_bytes",
                       "Bytes of memory that the allocator has from the system.", "",
                       read_system_memory, own);
    metrics_gauge_from(metrics, "profcol_budget_used_bytes", "Memory in use for received data.", "",
                       read_budget, own);
    metrics_gauge_from(metrics, "profcol_budget_limit_bytes",
                       "Most memory that received data may use; beyond it, requests are refused.",
                       "", read_budget_limit, own);
    if (!own->process->accounts)
        return;
    metrics_gauge_from(metrics, "profcol_budget_largest_source_bytes",
                       "Memory in use for the data of the client that uses the most.", "",
                       read_most_held, own);
}

/* ---- target_info: the resource of the process ---- */

/* Returns the name of the label for an attribute. */
static const char *label_name(struct arena *arena, const char *attribute)
{
    char *name =
        arena_printf(arena, "%s%s", isdigit((unsigned char)attribute[0]) ? "key_" : "", attribute);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return name;
}

static const struct config_pair *find_pair(const struct config_pair *pairs, size_t count,
                                           const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(pairs[i].name, name) == 0)
            return &pairs[i];
    return NULL;
}

static int compare_names(const void *one, const void *other)
{
    const struct config_pair *left = one, *right = other;
    return strcmp(left->name, right->name);
}

static double read_one(void *context)
{
    (void)context;
    return 1;
}

static void add_target_info(struct metrics *metrics, const struct config_pairs *resource)
{
    struct arena arena;
    struct text text = {0};
    arena_init(&arena, NULL);
    struct config_pair *labels = arena_array(&arena, resource->count, sizeof *labels);
    size_t count = 0;
    for (size_t i = 0; i < resource->count; i++) {
        const char *name = label_name(&arena, resource->items[i].name);
        if (!find_pair(labels, count, name))
            labels[count++] = (struct config_pair){name, resource->items[i].value};
    }
    qsort(labels, count, sizeof *labels, compare_names);
    for (size_t i = 0; i < count; i++)
        metrics_label(&text, labels[i].name, labels[i].value);
    metrics_gauge_from(metrics, "target_info", "Target metadata", text_string(&text), read_one,
                       (void *)(uintptr_t)resource);
    text_deinit(&text);
    arena_deinit(&arena);
}

void process_metrics_show_resource(struct process_metrics *own, const struct config_pairs *resource)
{
    struct metrics *metrics = own->process->metrics;
    assert(resource && resource != own->resource);
    if (own->resource)
        metrics_forget(metrics, own->resource);
    own->resource = resource;
    add_target_info(metrics, resource);
}

struct process_metrics *process_metrics_new(struct process *process)
{
    struct process_metrics *own = memory_zalloc(sizeof *own);
    *own = (struct process_metrics){.process = process, .started_ns = clock_monotonic_ns()};
    add_process_metrics(own);
    return own;
}

void process_metrics_free(struct process_metrics *own)
{
    if (own->resource)
        metrics_forget(own->process->metrics, own->resource);
    metrics_forget(own->process->metrics, own);
    free(own);
}
