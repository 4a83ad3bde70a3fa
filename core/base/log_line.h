/*
 * log_line: prints the lines of the log (log.h) as the Collector's logger does.
 *
 * Owner: texts belong to the caller.
 *
 * Thread: any; nothing is shared.
 */
#ifndef PROFCOL_CORE_BASE_LOG_LINE_H
#define PROFCOL_CORE_BASE_LOG_LINE_H

#include "core/base/log_types.h"
#include "core/base/text.h"

/* "2026-01-02T03:04:05.006Z" and a NUL. */
enum { LOG_TIME_SIZE = 25 };
void log_line_print_time(char out[LOG_TIME_SIZE], uint64_t wall_ns);
/* Appends the fields that every line has, as members of a JSON object. */
void log_line_print_context(struct text *out, const struct log_options *options);

struct log_line {
    enum log_encoding encoding;
    uint64_t wall_ns;
    bool has_caller;
    struct slice context; /* from log_line_print_context */
    const struct log_site *site;
    struct log_origin origin;
    const struct log_field *fields;
};

/* Appends the line, with a line feed. */
void log_line_print(struct text *out, const struct log_line *line);
/* Appends the message and its fields for people: "message (error: x, dropped_items: 3)". */
void log_line_print_plain(struct text *out, const struct log_site *site,
                          const struct log_field *fields);

#endif
