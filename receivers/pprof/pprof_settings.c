#include "receivers/pprof/pprof_settings.h"

#include "core/formats/series.h"
#include "core/pipeline/otlp_sender.h"
#include "receivers/pprof/path_pattern.h"
#include "receivers/pprof/static_labels.h"

#include <assert.h>

#define SECOND_NS INT64_C(1000000000)

const char *const scrape_kind_names[SCRAPE_KIND_COUNT] = {
    [SCRAPE_CPU] = "cpu",       [SCRAPE_HEAP] = "heap",
    [SCRAPE_ALLOCS] = "allocs", [SCRAPE_GOROUTINE] = "goroutine",
    [SCRAPE_MUTEX] = "mutex",   [SCRAPE_BLOCK] = "block",
};

/* ---- tables ---- */

#define LABELS_HELP "Added to the resource as attributes; `service_name` becomes service.name."
#define PATH_HELP "Path at the target; may include a query."
#define DELTA_HELP                                                                                 \
    "Send values that count from the start of the process (alloc_objects, alloc_space, "           \
    "contentions, delay) as the difference from the last scrape."

static const struct field cpu_fields[] = {
    FIELD_STRING(scrape_profile, path, PATH_HELP, .fallback = "/debug/pprof/profile"),
    FIELD_UINT(
        scrape_profile, seconds,
        "Length of each profile, less than the interval; 0: one second less than the interval.",
        .fallback = "0"),
    FIELD_END,
};
#define PROFILE_FIELDS(NAME, PATH)                                                                 \
    static const struct field NAME##_fields[] = {                                                  \
        FIELD_STRING(scrape_profile, path, PATH_HELP, .fallback = (PATH)),                         \
        FIELD_BOOL(scrape_profile, delta, DELTA_HELP, .fallback = "true"),                         \
        FIELD_END,                                                                                 \
    }
PROFILE_FIELDS(heap, "/debug/pprof/heap");
PROFILE_FIELDS(allocs, "/debug/pprof/allocs");
PROFILE_FIELDS(goroutine, "/debug/pprof/goroutine");
PROFILE_FIELDS(mutex, "/debug/pprof/mutex");
PROFILE_FIELDS(block, "/debug/pprof/block");

static const struct field profiles_fields[] = {
    FIELD_OPTIONAL(scrape_profiles, cpu, scrape_profile, cpu_fields, "CPU time, `process_cpu`.",
                   .fallback = "true"),
    FIELD_OPTIONAL(scrape_profiles, heap, scrape_profile, heap_fields,
                   "Allocated memory and memory in use, `memory`.", .fallback = "true"),
    FIELD_OPTIONAL(scrape_profiles, allocs, scrape_profile, allocs_fields,
                   "Go's other name for the heap profile. With both, allocations are taken from "
                   "this one and memory in use from `heap`."),
    FIELD_OPTIONAL(scrape_profiles, goroutine, scrape_profile, goroutine_fields,
                   "Stacks of all goroutines, `goroutines`.", .fallback = "true"),
    FIELD_OPTIONAL(scrape_profiles, mutex, scrape_profile, mutex_fields,
                   "Contended mutexes, `mutex` (Go: after runtime.SetMutexProfileFraction).",
                   .fallback = "true"),
    FIELD_OPTIONAL(scrape_profiles, block, scrape_profile, block_fields,
                   "Where goroutines wait, `block` (Go: after runtime.SetBlockProfileRate).",
                   .fallback = "true"),
    FIELD_END,
};

static const struct field target_fields[] = {
    FIELD_STRING(scrape_target, endpoint,
                 "URL of the target, `http://host:port`; a path in it is prepended to those of the "
                 "profiles.",
                 .required = true),
    FIELD_PAIRS(scrape_target, labels, LABELS_HELP),
    FIELD_END,
};

static const struct field scrape_fields[] = {
    FIELD_DURATION(scrape_settings, interval, "How often each profile is scraped.",
                   .fallback = "15s", .min = "100ms"),
    FIELD_DURATION(
        scrape_settings, timeout,
        "Time limit for one request, connecting included; for a CPU profile its seconds are added.",
        .fallback = "10s", .min = "1ms"),
    FIELD_LIST(scrape_settings, targets, scrape_target, target_fields, "The services to scrape.",
               .required = true),
    FIELD_BLOCK(scrape_settings, profiles, scrape_profiles, profiles_fields,
                "The profiles to scrape from each target."),
    FIELD_BLOCK(scrape_settings, tls, tls_client_settings, tls_client_fields,
                "TLS, used when a URL starts with https://."),
    FIELD_PAIRS(scrape_settings, headers, "Headers added to every request, such as Authorization."),
    FIELD_UINT(scrape_settings, max_body_size,
               "Largest profile in bytes, before and after decompression; a larger one counts as a "
               "failed scrape.",
               .fallback = "67108864", .min = "1024", .max = "1073741824"),
    FIELD_END,
};

static const struct field push_fields[] = {
    FIELD_STRING(push_settings, endpoint, HTTP_SERVER_ENDPOINT_HELP, .fallback = "localhost:4050"),
    FIELD_BLOCK(push_settings, server, http_server_settings, http_server_fields, "The listener.",
                .inlined = true),
    FIELD_PAIRS(push_settings, labels, LABELS_HELP),
    FIELD_END,
};

static const char *const after_reading_names[] = {"keep", "delete", "move", NULL};

static const struct field files_fields[] = {
    FIELD_STRING(files_settings, directory, "The folder; its subfolders are read, too.",
                 .required = true),
    FIELD_STRING(files_settings, pattern,
                 "Regular expression that a file's path has to match; named groups such as "
                 "`(?<service>...)`, `(?<trace_id>...)`, `(?<span_id>...)` become labels.",
                 .fallback = "\\.(pprof|pb|jfr)(\\.gz)?$"),
    FIELD_BOOL(files_settings, watch,
               "Keep looking for new files; otherwise the existing files are read once.",
               .fallback = "true"),
    FIELD_DURATION(
        files_settings, interval,
        "How often the folder is read; a file is read once it has not changed for this long.",
        .fallback = "5s", .min = "10ms"),
    FIELD_ENUM(files_settings, after_reading,
               "What to do with a file once the pipelines have accepted it; kept files are read "
               "again after a restart.",
               after_reading_names, .fallback = "keep"),
    FIELD_STRING(files_settings, move_to,
                 "The folder that `move` moves files to, on the same file system."),
    FIELD_PAIRS(files_settings, labels, LABELS_HELP " Labels from the path take precedence."),
    FIELD_UINT(files_settings, max_file_size,
               "Largest file in bytes, before and after decompression.", .fallback = "67108864",
               .min = "1024", .max = "1073741824"),
    FIELD_END,
};

const struct field pprof_fields[] = {
    FIELD_OPTIONAL(pprof_settings, scrape, scrape_settings, scrape_fields,
                   "Scrapes profiles from services that serve net/http/pprof or the same paths."),
    FIELD_OPTIONAL(pprof_settings, push, push_settings, push_fields,
                   "Accepts pprof profiles and JFR recordings by POST /v1/pprof."),
    FIELD_OPTIONAL(pprof_settings, files, files_settings, files_fields,
                   "Reads pprof profiles and JFR recordings from a folder."),
    FIELD_END,
};

/* ---- checks beyond the table ---- */

const struct scrape_profile *scrape_profile_of(const struct scrape_profiles *profiles,
                                               enum scrape_kind kind)
{
    assert(kind < SCRAPE_KIND_COUNT);
    const struct scrape_profile *const all[SCRAPE_KIND_COUNT] = {
        [SCRAPE_CPU] = &profiles->cpu,       [SCRAPE_HEAP] = &profiles->heap,
        [SCRAPE_ALLOCS] = &profiles->allocs, [SCRAPE_GOROUTINE] = &profiles->goroutine,
        [SCRAPE_MUTEX] = &profiles->mutex,   [SCRAPE_BLOCK] = &profiles->block,
    };
    return all[kind];
}

uint64_t scrape_cpu_seconds(const struct scrape_settings *settings)
{
    uint64_t interval = (uint64_t)(settings->interval / SECOND_NS);
    if (settings->profiles.cpu.seconds > 0)
        return settings->profiles.cpu.seconds;
    return interval > 1 ? interval - 1 : 1;
}

static void check_labels(const struct config_pairs *labels, struct config_check *check,
                         const char *key)
{
    struct series series;
    struct error err;
    if (!static_labels_read(labels, &series, &err))
        config_check_error(check, key, "%s", err.text);
}

static void check_target(struct scrape_target *target, size_t index, struct config_check *check)
{
    const char *key = config_check_item(check, "scrape::targets", index);
    struct error err;
    if (!endpoint_parse_url(config_check_arena(check), target->endpoint, &target->place, &err))
        config_check_error(check, config_check_key(check, key, "endpoint"), "%s", err.text);
    check_labels(&target->labels, check, config_check_key(check, key, "labels"));
}

static void check_profiles(const struct scrape_settings *settings, struct config_check *check)
{
    bool any = false;
    for (int kind = 0; kind < SCRAPE_KIND_COUNT; kind++) {
        const struct scrape_profile *profile =
            scrape_profile_of(&settings->profiles, (enum scrape_kind)kind);
        const char *key = config_check_key(check, "scrape::profiles", scrape_kind_names[kind]);
        any |= profile->enabled;
        if (profile->enabled && profile->path[0] != '/')
            config_check_error(check, config_check_key(check, key, "path"), "must begin with /");
    }
    if (!any)
        config_check_error(check, "scrape::profiles", "none is enabled");
    if (settings->profiles.cpu.enabled &&
        (int64_t)scrape_cpu_seconds(settings) >= settings->interval / SECOND_NS &&
        settings->interval > SECOND_NS)
        config_check_error(check, "scrape::profiles::cpu::seconds", "must be below the interval");
}

static void check_scrape(struct scrape_settings *settings, struct config_check *check)
{
    struct scrape_target *targets = settings->targets.items;
    for (size_t i = 0; i < settings->targets.count; i++)
        check_target(&targets[i], i, check);
    check_profiles(settings, check);
    tls_client_check(&settings->tls, check, "scrape::tls");
    otlp_headers_check(&settings->headers, false, check, "scrape::headers");
}

static void check_push(const struct push_settings *settings, struct config_check *check)
{
    http_server_check(&settings->server, settings->endpoint, check, "push");
    check_labels(&settings->labels, check, "push::labels");
}

static void check_files(const struct files_settings *settings, struct config_check *check)
{
    struct error err;
    struct path_pattern *pattern = path_pattern_new(settings->pattern, &err);
    size_t size = strlen(settings->directory);
    if (!pattern)
        config_check_error(check, "files::pattern", "%s", err.text);
    path_pattern_free(pattern);
    check_labels(&settings->labels, check, "files::labels");
    if (settings->after_reading != AFTER_MOVE)
        return;
    if (!settings->move_to)
        config_check_error(check, "files::move_to", "is needed for after_reading: move");
    else if (strncmp(settings->move_to, settings->directory, size) == 0 &&
             (settings->move_to[size] == '/' || settings->move_to[size] == '\0'))
        config_check_error(check, "files::move_to", "must not be inside `directory`");
}

void pprof_check(void *config, struct config_check *check)
{
    struct pprof_settings *settings = config;
    if (!settings->scrape.enabled && !settings->push.enabled && !settings->files.enabled)
        config_check_error(check, "", "must specify at least one of scrape, push and files");
    if (settings->scrape.enabled)
        check_scrape(&settings->scrape, check);
    if (settings->push.enabled)
        check_push(&settings->push, check);
    if (settings->files.enabled)
        check_files(&settings->files, check);
}

bool pprof_push_is_same(const struct push_settings *one, const struct push_settings *other)
{
    return one->enabled && other->enabled &&
           http_server_is_same(&one->server, one->endpoint, &other->server, other->endpoint);
}
