#include "core/base/log.h"

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/log_line.h"
#include "core/base/log_output.h"
#include "core/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SAMPLE_SLOTS = 256 };

static struct log_output standard_error = {.path = "stderr", .fd = STDERR_FILENO};

struct log_setup {
    enum log_level level;
    enum log_encoding encoding;
    bool has_caller;
    struct log_sampling sampling;
    struct text context; /* what every line has */
    struct log_outputs outputs;
    struct log_outputs error_outputs;
};

/* Before log_use, and after log_close. */
static struct log_setup defaults = {
    .level = LOG_INFO,
    .has_caller = true,
    .sampling = {true, 10, 100, UINT64_C(10000000000)},
    .outputs = {&standard_error, 1},
    .error_outputs = {&standard_error, 1},
};

/* A line is printed and written with the lock for reading, and so entirely by one setup. A writer
 * goes first: threads that log all the time must not keep it waiting. */
static pthread_rwlock_t setup_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static struct log_setup *setup = &defaults;
/* The same as in the setup, for those who have no lock. */
static atomic_int level_now = LOG_INFO;
static atomic_int encoding_now = LOG_CONSOLE;

/* Of writing: one line at a time. Taken with setup_lock. */
static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_interval output_failures;

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

bool log_enabled(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&level_now, memory_order_relaxed);
}

/* ---- options ---- */

static bool open_outputs(const struct log_options *options, struct log_outputs *outputs,
                         struct log_outputs *error_outputs, struct error *err)
{
    if (!log_outputs_init(outputs, options->output_paths, options->output_count, err))
        return false;
    if (log_outputs_init(error_outputs, options->error_output_paths, options->error_output_count,
                         err))
        return true;
    log_outputs_deinit(outputs);
    return false;
}

struct log_setup *log_setup_new(const struct log_options *options, struct error *err)
{
    struct log_outputs outputs, error_outputs;
    if (!open_outputs(options, &outputs, &error_outputs, err))
        return NULL;
    struct log_setup *made = memory_alloc(sizeof *made);
    *made = (struct log_setup){.level = options->level,
                               .encoding = options->encoding,
                               .has_caller = !options->disable_caller,
                               .sampling = options->sampling,
                               .outputs = outputs,
                               .error_outputs = error_outputs};
    log_line_print_context(&made->context, options);
    return made;
}

void log_setup_free(struct log_setup *unused)
{
    assert(unused != setup);
    if (!unused || unused == &defaults)
        return;
    log_outputs_deinit(&unused->outputs);
    log_outputs_deinit(&unused->error_outputs);
    text_deinit(&unused->context);
    free(unused);
}

void log_use(struct log_setup *next)
{
    pthread_rwlock_wrlock(&setup_lock);
    struct log_setup *older = setup;
    assert(next && (next != older || next == &defaults));
    setup = next;
    atomic_store_explicit(&level_now, (int)next->level, memory_order_relaxed);
    atomic_store_explicit(&encoding_now, (int)next->encoding, memory_order_relaxed);
    pthread_rwlock_unlock(&setup_lock);
    if (older != next)
        log_setup_free(older);
}

bool log_open(const struct log_options *options, struct error *err)
{
    struct log_setup *made = log_setup_new(options, err);
    if (made)
        log_use(made);
    return made;
}

static void use_defaults(enum log_level level, enum log_encoding encoding)
{
    pthread_rwlock_wrlock(&setup_lock);
    defaults.level = level;
    defaults.encoding = encoding;
    pthread_rwlock_unlock(&setup_lock);
    log_use(&defaults);
}

void log_close(void)
{
    use_defaults(LOG_INFO, LOG_CONSOLE);
}

void log_init(enum log_level level, enum log_encoding encoding)
{
    use_defaults(level, encoding);
}

bool log_reopen(struct error *err)
{
    bool fine = true;
    pthread_rwlock_wrlock(&setup_lock);
    if (setup != &defaults) {
        fine = log_outputs_reopen(&setup->outputs, err);
        fine = log_outputs_reopen(&setup->error_outputs, err) && fine;
    }
    pthread_rwlock_unlock(&setup_lock);
    return fine;
}

/* ---- the last ones ---- */

/* Copies what fits, without splitting a character. */
static void copy_cut(char *to, size_t size, struct slice from)
{
    from.size = text_utf8_cut(from, size - 1);
    snprintf(to, size, "%.*s", SLICE_ARG(from));
}

static void keep_recent(const struct log_line *line)
{
    struct text message = {0};
    log_line_print_plain(&message, line->site, line->fields);
    struct slice shown = {(const uint8_t *)text_string(&message), message.size};
    pthread_mutex_lock(&recent_lock);
    struct log_record *record = &recent[recent_count++ % LOG_RECENT_MAX];
    record->wall_ns = line->wall_ns;
    record->level = line->site->level;
    const char *component = line->origin.component;
    copy_cut(record->component, sizeof record->component,
             slice_of_string(component ? component : ""));
    copy_cut(record->message, sizeof record->message, shown);
    pthread_mutex_unlock(&recent_lock);
    text_deinit(&message);
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

/* ---- writing ---- */

/* Like the Collector's sampler, but for each component: writes the first messages with the same
 * text in a tick, then every n-th. */
static bool sampled_out(const struct log_site *site, const char *component)
{
    const struct log_sampling *sampling = &setup->sampling;
    if (!sampling->enabled || !site->is_sampled)
        return false;
    uint64_t hash =
        hash_bytes(slice_of_string(site->message)) ^ (hash_bytes(slice_of_string(component)) << 1);
    uint64_t now_ns = clock_monotonic_ns();
    pthread_mutex_lock(&sampler_lock);
    struct sample_slot *slot = &slots[hash % SAMPLE_SLOTS];
    if (slot->hash != hash || now_ns >= slot->tick_end_ns)
        *slot = (struct sample_slot){.hash = hash, .tick_end_ns = now_ns + sampling->tick_ns};
    uint64_t n = ++slot->count;
    pthread_mutex_unlock(&sampler_lock);
    if (n <= sampling->initial)
        return false;
    return sampling->thereafter == 0 || (n - sampling->initial) % sampling->thereafter != 0;
}

static void print_line(struct text *out, const struct log_site *site, struct log_origin origin,
                       const struct log_field *fields)
{
    const struct log_line line = {
        .encoding = setup->encoding,
        .wall_ns = clock_wall_ns(),
        .has_caller = setup->has_caller && site->file,
        .context = {(const uint8_t *)text_string(&setup->context), setup->context.size},
        .site = site,
        .origin = origin,
        .fields = fields,
    };
    log_line_print(out, &line);
    if (site->level >= LOG_WARN)
        keep_recent(&line);
}

/* With the lock: says on the error outputs that a line could not be written. */
static void report_failure(const struct log_output *failed, int number)
{
    static const struct log_site site = {LOG_ERROR, "Cannot write the log", __FILE__, __LINE__, 0};
    uint64_t lines = log_interval_add(&output_failures, 1, clock_monotonic_ns());
    if (lines == 0)
        return;
    const struct log_field fields[] = {LOG_TEXT("path", failed->path),
                                       LOG_TEXT("error", strerror(number)),
                                       LOG_U64("dropped_lines", lines),
                                       {.kind = LOG_KIND_END}};
    struct text text = {0};
    print_line(&text, &site, LOG_PROCESS, fields);
    log_outputs_write(&setup->error_outputs, (struct slice){(const uint8_t *)text.data, text.size});
    text_deinit(&text);
}

static void write_out(const struct text *text)
{
    pthread_mutex_lock(&output_lock);
    const struct log_output *failed =
        log_outputs_write(&setup->outputs, (struct slice){(const uint8_t *)text->data, text->size});
    if (failed)
        report_failure(failed, errno);
    pthread_mutex_unlock(&output_lock);
}

void log_write(const struct log_site *site, struct log_origin origin,
               const struct log_field *fields)
{
    struct text text = {0};
    pthread_rwlock_rdlock(&setup_lock);
    if (site->level >= setup->level && !sampled_out(site, origin.component)) {
        print_line(&text, site, origin, fields);
        write_out(&text);
    }
    pthread_rwlock_unlock(&setup_lock);
    text_deinit(&text);
}

/* With the setup lock. */
static void print_text(struct text *out, struct log_origin origin, struct slice text)
{
    if (setup->encoding != LOG_JSON) {
        text_append_slice(out, text);
        return;
    }
    struct text message = {0};
    text_append_slice(&message, text);
    const struct log_site site = {.level = LOG_INFO, .message = text_string(&message)};
    print_line(out, &site, origin, &(const struct log_field){.kind = LOG_KIND_END});
    text_deinit(&message);
}

void log_write_text(struct log_origin origin, struct slice text)
{
    struct text out = {0};
    pthread_rwlock_rdlock(&setup_lock);
    if (setup->level <= LOG_INFO) {
        print_text(&out, origin, text);
        write_out(&out);
    }
    pthread_rwlock_unlock(&setup_lock);
    text_deinit(&out);
}

void log_fatal(const char *message, const char *field, uint64_t value)
{
    char line[256], time[LOG_TIME_SIZE];
    log_line_print_time(time, clock_wall_ns());
    int size = snprintf(line, sizeof line,
                        atomic_load(&encoding_now) == LOG_JSON
                            ? "{\"level\":\"fatal\",\"ts\":\"%s\",\"msg\":\"%s\",\"%s\":%llu}\n"
                            : "%s\tfatal\t%s\t{\"%s\": %llu}\n",
                        time, message, field, (unsigned long long)value);
    assert(size > 0 && (size_t)size < sizeof line);
    ssize_t written = write(STDERR_FILENO, line, (size_t)size);
    (void)written; /* the process ends anyway */
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
