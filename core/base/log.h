/*
 * log: messages for the operator, one record per line, each written with one write.
 *
 * The lines are the Collector's (service.telemetry.logs). Console is
 * `time<TAB>level<TAB>caller<TAB>message<TAB>{"resource": {...}, "name": value, ...}`; json is one
 * object per line. A message is a constant; what varies is in fields. All values are escaped, so
 * data from outside cannot forge a line. Repeated messages are sampled. Never log a secret.
 *
 * The last warnings and errors that were written are kept, for a page that shows them.
 *
 * Owner: options and the state of sampling belong to the process, which copies what it is given;
 * texts of origins and fields to the caller.
 *
 * Thread: log_open, log_use, log_init, log_reopen and log_close on main, while others may log; the
 * others any.
 */
#ifndef PROFCOL_CORE_BASE_LOG_H
#define PROFCOL_CORE_BASE_LOG_H

#include "core/base/error.h"
#include "core/base/log_types.h"

#include <stddef.h>
#include <stdint.h>

/* ---- options ---- */

/* How lines are written. */
struct log_setup;
/* Opens the files, and changes nothing yet. Returns NULL, with err set, if one cannot be opened. */
struct log_setup *log_setup_new(const struct log_options *options, struct error *err);
/* Frees a setup that is not used. NULL is allowed. */
void log_setup_free(struct log_setup *unused);
/* Takes over the setup: lines that are begun from now on are written by it, each line entirely by
 * one setup. Closes the files of the one before. */
void log_use(struct log_setup *next);
/* Both in one. Returns false, with err set and nothing changed, if a file cannot be opened. */
bool log_open(const struct log_options *options, struct error *err);
/* Opens the files again, for a tool that has renamed them. A file that cannot be opened stays;
 * then it returns false, with err set. */
bool log_reopen(struct error *err);
/* Closes the files and frees everything; further lines are written as before log_open. */
void log_close(void);
/* The default options with this level and encoding: standard error, no resource. */
void log_init(enum log_level level, enum log_encoding encoding);
/* Whether messages of this level are written. One relaxed load. */
bool log_enabled(enum log_level level);

/* ---- messages ---- */

/* fields: ends with LOG_KIND_END. */
void log_write(const struct log_site *site, struct log_origin origin,
               const struct log_field *fields);

/* Writes a text of several lines that a component prints (level info): in the console encoding as
 * it is, in json as one message. The text has no control characters but tabs and line feeds. */
void log_write_text(struct log_origin origin, struct slice text);

/* The fields are evaluated only if the level is enabled. */
#define log_at(level_, sampled, origin, message_, ...)                                             \
    do {                                                                                           \
        static const struct log_site log_site_ = {.level = (level_),                               \
                                                  .message = "" message_,                          \
                                                  .file = __FILE__,                                \
                                                  .line = __LINE__,                                \
                                                  .is_sampled = (sampled)};                        \
        if (log_enabled(level_))                                                                   \
            log_write(                                                                             \
                &log_site_, (origin),                                                              \
                (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.kind = LOG_KIND_END}});     \
    } while (0)
#define log_debug(...) log_at(LOG_DEBUG, true, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, true, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, true, __VA_ARGS__)
#define log_error(...) log_at(LOG_ERROR, true, __VA_ARGS__)
/* Without sampling, for messages of which each counts. */
#define log_each_info(...) log_at(LOG_INFO, false, __VA_ARGS__)
#define log_each_warn(...) log_at(LOG_WARN, false, __VA_ARGS__)
#define log_each_error(...) log_at(LOG_ERROR, false, __VA_ARGS__)

/* Writes a line to standard error before the process aborts. Needs no memory and no lock. */
void log_fatal(const char *message, const char *field, uint64_t value);

/* ---- the last ones ---- */

enum { LOG_RECENT_MAX = 100 };
/* A warning or an error that was written. Longer texts are cut. */
struct log_record {
    uint64_t wall_ns; /* since 1970 */
    enum log_level level;
    char component[96]; /* "": the process */
    char message[512];  /* with the fields: "message (name: value, ...)" */
};
/* Copies the last warnings and errors, newest first, at most LOG_RECENT_MAX. Returns their
 * number. */
size_t log_recent(struct log_record records_out[LOG_RECENT_MAX]);

/* ---- events that affect many items ---- */

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
