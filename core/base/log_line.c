#include "core/base/log_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

/* Longer texts of fields are cut. */
enum { FIELD_TEXT_MAX = 8192 };

/* How members of an object are separated: in the json encoding without spaces. */
struct style {
    const char *comma;
    const char *colon;
};

static const struct style styles[] = {[LOG_CONSOLE] = {", ", ": "}, [LOG_JSON] = {",", ":"}};

void log_line_print_time(char out[LOG_TIME_SIZE], uint64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / 1000000000u);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    size_t size = strftime(out, LOG_TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + size, LOG_TIME_SIZE - size, ".%03uZ", (unsigned)(wall_ns / 1000000u % 1000u));
}

/* ---- members ---- */

static void append_string(struct text *out, struct slice value)
{
    text_append_char(out, '"');
    text_append_json(out, value);
    text_append_char(out, '"');
}

/* Appends what precedes a value. */
static void append_name(struct text *out, const struct style *style, const char *name)
{
    if (out->size > 0 && out->data[out->size - 1] != '{')
        text_append(out, style->comma);
    append_string(out, slice_of_string(name));
    text_append(out, style->colon);
}

static void append_text_member(struct text *out, const struct style *style, const char *name,
                               struct slice value)
{
    append_name(out, style, name);
    append_string(out, value);
}

/* JSON has no infinities; zap writes them as texts. */
static void append_real(struct text *out, double value)
{
    if (isfinite(value))
        text_printf(out, "%.15g", value);
    else
        text_append(out, isnan(value) ? "\"NaN\"" : value > 0 ? "\"+Inf\"" : "\"-Inf\"");
}

static struct slice shorten(struct slice text)
{
    text.size = text_utf8_cut(text, FIELD_TEXT_MAX);
    return text;
}

/* quoted: texts and durations are JSON strings. */
static void append_value(struct text *out, const struct log_field *field, bool quoted)
{
    if (field->kind == LOG_KIND_UINT) {
        text_append_u64(out, field->number);
    } else if (field->kind == LOG_KIND_DOUBLE) {
        append_real(out, field->real);
    } else if (field->kind == LOG_KIND_BOOL) {
        text_append(out, field->number ? "true" : "false");
    } else {
        if (quoted)
            text_append_char(out, '"');
        if (field->kind == LOG_KIND_DURATION)
            text_append_duration(out, field->number);
        else if (quoted)
            text_append_json(out, shorten(field->text));
        else
            text_append_slice(out, shorten(field->text));
        if (quoted)
            text_append_char(out, '"');
    }
}

static void append_component(struct text *out, const struct style *style,
                             const struct log_origin *origin)
{
    const char *label = origin->component;
    const char *space = label ? strchr(label, ' ') : NULL;
    if (label)
        append_text_member(out, style, "otelcol.component.id",
                           slice_of_string(space ? space + 1 : label));
    if (space)
        append_text_member(out, style, "otelcol.component.kind",
                           slice_of(label, (size_t)(space - label)));
    if (origin->pipeline)
        append_text_member(out, style, "otelcol.pipeline.id", slice_of_string(origin->pipeline));
    if (origin->signal)
        append_text_member(out, style, "otelcol.signal", slice_of_string(origin->signal));
}

void log_line_print_context(struct text *out, const struct log_options *options)
{
    const struct style *style = &styles[options->encoding];
    for (size_t i = 0; i < options->initial_count; i++) {
        append_name(out, style, options->initial_fields[i].name);
        text_append(out, options->initial_fields[i].value);
    }
    if (options->disable_resource || options->resource_count == 0)
        return;
    append_name(out, style, "resource");
    text_append_char(out, '{');
    for (size_t i = 0; i < options->resource_count; i++)
        append_text_member(out, style, options->resource[i].name,
                           slice_of_string(options->resource[i].value));
    text_append_char(out, '}');
}

static void append_members(struct text *out, const struct log_line *line)
{
    const struct style *style = &styles[line->encoding];
    if (line->context.size > 0 && out->data[out->size - 1] != '{')
        text_append(out, style->comma);
    text_append_slice(out, line->context);
    append_component(out, style, &line->origin);
    for (const struct log_field *field = line->fields; field->kind != LOG_KIND_END; field++) {
        append_name(out, style, field->name);
        append_value(out, field, true);
    }
}

/* ---- lines ---- */

/* Appends the last folder, the file and the line: "core/run.c:12". */
static void append_caller(struct text *out, const struct log_site *site)
{
    const char *name = strrchr(site->file, '/');
    while (name && name > site->file && name[-1] != '/')
        name--;
    text_printf(out, "%s:%u", name ? name : site->file, site->line);
}

static void print_console(struct text *out, const struct log_line *line)
{
    char time[LOG_TIME_SIZE];
    log_line_print_time(time, line->wall_ns);
    text_printf(out, "%s\t%s\t", time, log_level_name(line->site->level));
    if (line->has_caller) {
        append_caller(out, line->site);
        text_append_char(out, '\t');
    }
    text_append_json(out, slice_of_string(line->site->message));
    size_t end = out->size;
    text_append(out, "\t{");
    append_members(out, line);
    if (out->size == end + 2)
        out->size = end; /* no members */
    else
        text_append_char(out, '}');
    text_append_char(out, '\n');
}

static void print_json(struct text *out, const struct log_line *line)
{
    char time[LOG_TIME_SIZE];
    log_line_print_time(time, line->wall_ns);
    text_printf(out, "{\"level\":\"%s\",\"ts\":\"%s\",", log_level_name(line->site->level), time);
    if (line->has_caller) {
        text_append(out, "\"caller\":\"");
        append_caller(out, line->site);
        text_append(out, "\",");
    }
    text_append(out, "\"msg\":");
    append_string(out, slice_of_string(line->site->message));
    append_members(out, line);
    text_append(out, "}\n");
}

void log_line_print(struct text *out, const struct log_line *line)
{
    if (line->encoding == LOG_JSON)
        print_json(out, line);
    else
        print_console(out, line);
}

void log_line_print_plain(struct text *out, const struct log_site *site,
                          const struct log_field *fields)
{
    text_append(out, site->message);
    for (const struct log_field *field = fields; field->kind != LOG_KIND_END; field++) {
        text_printf(out, "%s%s: ", field == fields ? " (" : ", ", field->name);
        append_value(out, field, false);
    }
    if (fields->kind != LOG_KIND_END)
        text_append_char(out, ')');
}
