/*
 * pprof_settings: the settings of the receiver pprof.
 *
 * Owner: the configuration.
 *
 * Thread: read-only after parsing.
 */
#ifndef PROFCOL_PPROF_SETTINGS_H
#define PROFCOL_PPROF_SETTINGS_H

#include "core/pipeline/endpoint.h"
#include "core/pipeline/server_settings.h"

enum scrape_kind {
    SCRAPE_CPU,
    SCRAPE_HEAP,
    SCRAPE_ALLOCS,
    SCRAPE_GOROUTINE,
    SCRAPE_MUTEX,
    SCRAPE_BLOCK,
    SCRAPE_KIND_COUNT,
};
extern const char *const scrape_kind_names[SCRAPE_KIND_COUNT]; /* "cpu", as in YAML */

struct scrape_profile {
    bool enabled;
    const char *path;
    bool delta;       /* ignored for cpu */
    uint64_t seconds; /* for cpu; 0: one less than the interval */
};

/* One for each kind. */
struct scrape_profiles {
    struct scrape_profile cpu, heap, allocs, goroutine, mutex, block;
};

struct scrape_target {
    const char *endpoint;
    struct config_pairs labels;
    struct endpoint place; /* derived from endpoint */
};

struct scrape_settings {
    bool enabled;
    int64_t interval;
    int64_t timeout;
    struct config_list targets; /* of scrape_target */
    struct scrape_profiles profiles;
    struct tls_client_settings tls;
    struct config_pairs headers;
    uint64_t max_body_size;
};

struct push_settings {
    bool enabled;
    const char *endpoint;
    struct http_server_settings server;
    struct config_pairs labels;
};

enum after_reading { AFTER_KEEP, AFTER_DELETE, AFTER_MOVE };

struct files_settings {
    bool enabled;
    const char *directory;
    const char *pattern;
    bool watch;
    int64_t interval;
    int after_reading;
    const char *move_to;
    struct config_pairs labels;
    uint64_t max_file_size;
};

struct pprof_settings {
    struct scrape_settings scrape;
    struct push_settings push;
    struct files_settings files;
};

extern const struct field pprof_fields[];
/* The component's check. */
void pprof_check(void *config, struct config_check *check);

/* Whether a reload passes the listener on: it is enabled in both, and its settings are equal. */
bool pprof_push_is_same(const struct push_settings *one, const struct push_settings *other);

/* Returns the settings of a kind of profile. */
const struct scrape_profile *scrape_profile_of(const struct scrape_profiles *profiles,
                                               enum scrape_kind kind);
/* Returns the length of a CPU profile in seconds. */
uint64_t scrape_cpu_seconds(const struct scrape_settings *settings);

#endif
