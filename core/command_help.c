#include "core/command_help.h"

#include <assert.h>
#include <string.h>

enum { WIDTH = 80, COMMAND_INDENT = 28, OPTION_INDENT = 26 };

static void append_spaces(struct text *out, size_t count)
{
    while (count-- > 0)
        text_append_char(out, ' ');
}

/* Appends the words from `column` on, in lines that begin at `indent`. */
static void append_wrapped(struct text *out, size_t column, size_t indent, const char *words)
{
    if (column > indent) {
        text_append_char(out, '\n');
        column = 0;
    }
    append_spaces(out, indent - column);
    column = indent;
    while (*words) {
        size_t size = strcspn(words, " ");
        if (column > indent && column + 1 + size > WIDTH) {
            text_append_char(out, '\n');
            append_spaces(out, indent);
            column = indent;
        } else if (column > indent) {
            text_append_char(out, ' ');
            column++;
        }
        text_append_slice(out, slice_of(words, size));
        column += size;
        words += size;
        words += strspn(words, " ");
    }
    text_append_char(out, '\n');
}

static void append_command(struct text *out, const struct command *command)
{
    size_t start = out->size;
    text_append(out, "  profcol");
    if (command->name)
        text_printf(out, " %s", command->name);
    append_wrapped(out, out->size - start, COMMAND_INDENT, command->summary);
}

static void append_option(struct text *out, const struct command_option *option)
{
    size_t start = out->size;
    text_printf(out, "  --%s", option->name);
    if (option->letter)
        text_printf(out, ", -%c", option->letter);
    if (option->argument)
        text_printf(out, " %s", option->argument);
    append_wrapped(out, out->size - start, OPTION_INDENT, option->help);
}

static void append_options(struct text *out, enum command_id command)
{
    text_append(out, "\nOptions:\n");
    for (size_t i = 0; i < command_option_count; i++)
        if (command_options[i].commands >> command & 1U)
            append_option(out, &command_options[i]);
}

static void print_program(struct text *out)
{
    append_wrapped(out, 0, 0, command_description);
    text_append(out, "\nUsage:\n  profcol [COMMAND] [OPTIONS]\n\nCommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        append_command(out, &commands[i]);
    append_options(out, COMMAND_RUN);
    text_append(out, "\nExit codes:\n");
    for (size_t i = 0; i < command_exit_code_count; i++) {
        text_printf(out, "  %d", command_exit_codes[i].code);
        append_wrapped(out, 3, 5, command_exit_codes[i].help);
    }
    text_append(out, "\n`profcol help COMMAND` prints the help of one command.\n");
}

void command_help_print(enum command_id command, struct text *out)
{
    assert(command < COMMAND_COUNT);
    const struct command *about = &commands[command];
    if (command == COMMAND_RUN) {
        print_program(out);
        return;
    }
    append_wrapped(out, 0, 0, about->help);
    text_printf(out, "\nUsage:\n  profcol %s%s%s [OPTIONS]\n", about->name,
                about->arguments ? " " : "", about->arguments ? about->arguments : "");
    append_options(out, command);
}
