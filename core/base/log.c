#include "core/base/log.h"

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/text.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Like the Collector's sampler: logs the first 10 messages with the same text in 10 s, then every
 * 100th. */
enum { SAMPLE_SLOTS = 256, SAMPLE_FIRST = 10, SAMPLE_EVERY = 100 };
#define SAMPLE_TICK_NS 10000000000u

static enum log_level level_min = LOG_INFO;
static enum log_encoding encoding = LOG_CONSOLE;
static const char *const level_names[] = {"debug", "info", "warn", "error"};

static pthread_mutex_t sampler_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sample_slot {
    uint64_t hash;
    uint64_t tick_end_ns;
    uint64_t count;
} slots[SAMPLE_SLOTS];

/* The last warnings and errors, in a ring. */
static pthread_mutex_t recent_lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_record recent[LOG_RECENT_MAX];
static uint64_t recent_count; /* all that were ever kept */

const char *log_level_name(enum log_level level)
{
    return level_names[level];
}

static void keep_recent(enum log_level level, const char *component, const char *message)
{
    pthread_mutex_lock(&recent_lock);
    struct log_record *record = &recent[recent_count++ % LOG_RECENT_MAX];
    record->wall_ns = clock_wall_ns();
    record->level = level;
    snprintf(record->component, sizeof record->component, "%s", component ? component : "");
    snprintf(record->message, sizeof record->message, "%s", message);
    pthread_mutex_unlock(&recent_lock);
}

size_t log_recent(struct log_record records_out[LOG_RECENT_MAX])
{
    pthread_mutex_lock(&recent_lock);
    size_t count = recent_count < LOG_RECENT_MAX ? (size_t)recent_count : LOG_RECENT_MAX;
    for (size_t i = 0; i < count; i++)
        records_out[i] = recent[(recent_count - 1 - i) % LOG_RECENT_MAX];
    pthread_mutex_unlock(&recent_lock);
    return count;
}

void log_init(enum log_level level, enum log_encoding enc)
{
    level_min = level;
    encoding = enc;
}

bool log_enabled(enum log_level level)
{
    return level >= level_min;
}

static bool sampled_out(const char *format, const char *component)
{
    uint64_t hash =
        hash_bytes(slice_of_string(format)) ^ (hash_bytes(slice_of_string(component)) << 1);
    uint64_t now_ns = clock_monotonic_ns();
    pthread_mutex_lock(&sampler_lock);
    struct sample_slot *slot = &slots[hash % SAMPLE_SLOTS];
    if (slot->hash != hash || now_ns >= slot->tick_end_ns)
        *slot = (struct sample_slot){.hash = hash, .tick_end_ns = now_ns + SAMPLE_TICK_NS};
    uint64_t n = ++slot->count;
    pthread_mutex_unlock(&sampler_lock);
    return n > SAMPLE_FIRST && (n - SAMPLE_FIRST) % SAMPLE_EVERY != 0;
}

static void append_time(struct text *line)
{
    uint64_t now_ns = clock_wall_ns();
    time_t seconds = (time_t)(now_ns / 1000000000u);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    char date[32];
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    text_printf(line, "%s.%03uZ", date, (unsigned)(now_ns / 1000000u % 1000u));
}

static void append_member(struct text *line, const char *key, const char *value)
{
    text_printf(line, "\"%s\":\"", key);
    text_append_json(line, slice_of_string(value));
    text_append_char(line, '"');
}

/* Converts "exporter otlp/x" to the Collector's two members. */
static void append_component(struct text *line, const char *component)
{
    const char *space = strchr(component, ' ');
    if (!space) {
        append_member(line, "otelcol.component.id", component);
        return;
    }
    char kind[32];
    snprintf(kind, sizeof kind, "%.*s", (int)(space - component), component);
    append_member(line, "otelcol.component.id", space + 1);
    text_append_char(line, ',');
    append_member(line, "otelcol.component.kind", kind);
}

static void format_console(struct text *line, enum log_level level, const char *component,
                           const char *message)
{
    append_time(line);
    text_printf(line, "\t%s\t", level_names[level]);
    text_append_json(line, slice_of_string(message));
    if (component) {
        text_append(line, "\t{");
        append_component(line, component);
        text_append_char(line, '}');
    }
    text_append_char(line, '\n');
}

static void format_json(struct text *line, enum log_level level, const char *component,
                        const char *message)
{
    text_printf(line, "{\"level\":\"%s\",\"ts\":\"", level_names[level]);
    append_time(line);
    text_append(line, "\",");
    append_member(line, "msg", message);
    if (component) {
        text_append_char(line, ',');
        append_component(line, component);
    }
    text_append(line, "}\n");
}

static void write_line(enum log_level level, const char *component, const char *format,
                       va_list args)
{
    struct text message = {0};
    text_vprintf(&message, format, args);
    struct text line = {0};
    if (encoding == LOG_JSON)
        format_json(&line, level, component, text_string(&message));
    else
        format_console(&line, level, component, text_string(&message));
    if (level >= LOG_WARN)
        keep_recent(level, component, text_string(&message));
    ssize_t written = write(STDERR_FILENO, line.data, line.size);
    (void)written; /* a failure cannot be reported */
    text_deinit(&line);
    text_deinit(&message);
}

void log_write(enum log_level level, const char *component, const char *format, ...)
{
    if (!log_enabled(level) || sampled_out(format, component))
        return;
    va_list args;
    va_start(args, format);
    write_line(level, component, format, args);
    va_end(args);
}

void log_write_all(enum log_level level, const char *component, const char *format, ...)
{
    if (!log_enabled(level))
        return;
    va_list args;
    va_start(args, format);
    write_line(level, component, format, args);
    va_end(args);
}

uint64_t log_interval_add(struct log_interval *interval, uint64_t items, uint64_t now_ns)
{
    interval->unlogged += items;
    if (interval->logged_ns > 0 && now_ns - interval->logged_ns < LOG_INTERVAL_NS)
        return 0;
    uint64_t count = interval->unlogged;
    interval->logged_ns = now_ns;
    interval->unlogged = 0;
    return count;
}
