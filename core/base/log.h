/*
 * log: messages for the operator on standard error, one record per line, each written with one
 * write.
 *
 * The format is the Collector's (service.telemetry.logs): console is
 * `time<TAB>level<TAB>message<TAB>{json}`, json is one object per line. Control bytes are escaped,
 * so data from outside cannot forge a line. Repeated messages are sampled as in the Collector
 * (the first 10 of a text in 10 s, then every 100th). Never log a secret.
 *
 * The last warnings and errors that were written are kept, for a page that shows them.
 *
 * Owner: level, encoding and the state of sampling belong to the process; texts to the caller.
 *
 * Thread: log_init once at start, then any.
 */
#ifndef PROFCOL_CORE_BASE_LOG_H
#define PROFCOL_CORE_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_encoding { LOG_CONSOLE, LOG_JSON };

/* Sets the level and the encoding; called once at start. */
void log_init(enum log_level level, enum log_encoding encoding);
/* Whether messages of this level are written. */
bool log_enabled(enum log_level level);

/* component: kind and id, "exporter otlp/profiles", or NULL for the process itself. */
void log_write(enum log_level level, const char *component, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes without sampling, for records that are a component's output (exporter debug). */
void log_write_all(enum log_level level, const char *component, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum { LOG_RECENT_MAX = 100 };
/* A warning or an error that was written. Longer texts are cut. */
struct log_record {
    uint64_t wall_ns; /* since 1970 */
    enum log_level level;
    char component[96]; /* "": the process */
    char message[512];
};
/* Copies the last warnings and errors, newest first, at most LOG_RECENT_MAX. Returns their
 * number. */
size_t log_recent(struct log_record records_out[LOG_RECENT_MAX]);
/* Returns "debug", "info", "warn" or "error". */
const char *log_level_name(enum log_level level);

#define log_debug(component, ...)                                                                  \
    do {                                                                                           \
        if (log_enabled(LOG_DEBUG))                                                                \
            log_write(LOG_DEBUG, component, __VA_ARGS__);                                          \
    } while (0)
#define log_info(component, ...) log_write(LOG_INFO, component, __VA_ARGS__)
#define log_warn(component, ...) log_write(LOG_WARN, component, __VA_ARGS__)
#define log_error(component, ...) log_write(LOG_ERROR, component, __VA_ARGS__)

/* An event that affects many items and is logged once per interval, with their sum. With an
 * all-zero struct, the first event is logged at once. */
struct log_interval {
    uint64_t logged_ns; /* 0: never */
    uint64_t unlogged;  /* items */
};
#define LOG_INTERVAL_NS UINT64_C(10000000000)
/* Adds items at now_ns (monotonic). Returns the number of items to log now; 0: it is too early. */
uint64_t log_interval_add(struct log_interval *interval, uint64_t items, uint64_t now_ns);

#endif
