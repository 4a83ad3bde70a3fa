#include "config/loading.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_same_place(struct config_place a, struct config_place b)
{
    return a.source == b.source && a.line == b.line && a.column == b.column;
}

/* Returns the text of a message. That of an error says which variable leaves the value empty. */
static const char *text_of(const struct config_check *check, bool is_error,
                           struct config_place place, const char *format, va_list args)
{
    const char *text = arena_vprintf(check->arena, format, args);
    for (size_t i = 0; i < check->message_count && is_error; i++)
        if (check->messages[i].unset && is_same_place(check->messages[i].place, place))
            return arena_printf(check->arena, "%s; the environment variable \"%s\" is not set",
                                text, check->messages[i].unset);
    return text;
}

void config_message_at(struct config_check *check, bool is_error, struct config_place place,
                       const char *path, const char *format, va_list args)
{
    if (is_error)
        check->error_count++;
    else
        check->warning_count++;
    /* Warnings leave room for errors. */
    size_t room = is_error ? CONFIG_MAX_MESSAGES : CONFIG_MAX_MESSAGES / 2;
    if (check->message_count >= room)
        return;
    if (!check->messages)
        check->messages =
            arena_array(check->arena, CONFIG_MAX_MESSAGES, sizeof(struct config_message));
    assert(check->message_count < CONFIG_MAX_MESSAGES);
    const char *text = text_of(check, is_error, place, format, args);
    size_t order = check->message_count++;
    check->messages[order] = (struct config_message){
        .place = place,
        .is_error = is_error,
        .order = order,
        .path = path,
        .text = text,
    };
}

bool config_error_at(struct config_check *check, struct config_place place,
                     const struct config_path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    config_message_at(check, true, place, config_path_text(check->arena, path), format, args);
    va_end(args);
    return false;
}

void config_warn_at(struct config_check *check, struct config_place place,
                    const struct config_path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    config_message_at(check, false, place, config_path_text(check->arena, path), format, args);
    va_end(args);
}

void config_warn_unset(struct config_check *check, struct config_place place,
                       const struct config_path *path, const char *name)
{
    size_t before = check->message_count;
    config_warn_at(check, place, path,
                   "the environment variable \"%s\" is not set, the value is empty", name);
    if (check->message_count > before)
        check->messages[before].unset = name;
}

bool config_count_nodes(struct config_check *check, struct config_place place, size_t count)
{
    if (check->stopped)
        return false;
    check->node_count += count;
    if (check->node_count <= CONFIG_MAX_NODES)
        return true;
    check->stopped = true;
    return config_error_at(check, place, NULL, "the configuration has more than %d values",
                           CONFIG_MAX_NODES);
}

static void print_path(struct text *out, const struct config_path *path)
{
    if (path->parent) {
        print_path(out, path->parent);
        text_append(out, "::");
    }
    if (path->name)
        text_append(out, path->name);
    else
        text_printf(out, "%zu", path->position);
}

const char *config_path_text(struct arena *arena, const struct config_path *path)
{
    if (!path)
        return "";
    struct text out = {0};
    print_path(&out, path);
    const char *copy = arena_strdup(arena, text_string(&out));
    text_deinit(&out);
    return copy;
}

const char *config_quote(struct arena *arena, const char *text)
{
    enum { SHOWN = 80 };
    size_t size = strlen(text);
    if (size <= SHOWN)
        return arena_printf(arena, "\"%s\"", text);
    size_t cut = text_utf8_cut(slice_of(text, size), SHOWN);
    return arena_printf(arena, "\"%.*s...\"", (int)cut, text);
}

static int compare_places(const struct config_place *a, const struct config_place *b)
{
    unsigned order_a = a->source ? a->source->order : 0;
    unsigned order_b = b->source ? b->source->order : 0;
    if (order_a != order_b)
        return order_a < order_b ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->column < b->column ? -1 : a->column > b->column;
}

static int compare_messages(const void *a, const void *b)
{
    const struct config_message *left = a;
    const struct config_message *right = b;
    int places = compare_places(&left->place, &right->place);
    if (places != 0)
        return places;
    return left->order < right->order ? -1 : 1;
}

/* Escapes control characters: a user's text must not break a line or send control sequences to the
 * terminal. */
static void append_printable(struct text *out, const char *text)
{
    for (; *text; text++) {
        uint8_t byte = (uint8_t)*text;
        if (byte == '\n')
            text_append(out, "\\n");
        else if (byte == '\t')
            text_append(out, "\\t");
        else if (byte < 0x20 || byte == 0x7f)
            text_printf(out, "\\x%02x", byte);
        else
            text_append_char(out, *text);
    }
}

static void print_message(const struct config_message *message, struct text *report)
{
    if (message->place.source)
        append_printable(report, message->place.source->name);
    if (message->place.line)
        text_printf(report, ":%u:%u", message->place.line, message->place.column);
    if (message->place.source)
        text_append(report, ": ");
    text_append(report, message->is_error ? "error: " : "warning: ");
    if (*message->path) {
        append_printable(report, message->path);
        text_append(report, ": ");
    }
    append_printable(report, message->text);
    text_append_char(report, '\n');
}

void config_report(const struct config_check *check, struct text *report)
{
    assert(check->message_count <= check->error_count + check->warning_count);
    if (check->message_count == 0)
        return;
    qsort(check->messages, check->message_count, sizeof check->messages[0], compare_messages);
    for (size_t i = 0; i < check->message_count; i++)
        print_message(&check->messages[i], report);
    size_t found = check->error_count + check->warning_count;
    if (found > check->message_count)
        text_printf(report, "... and %zu more\n", found - check->message_count);
}
