#include "core/command_manual.h"

#include "config/config.h"
#include "core/command_table.h"
#include "core/components.h"
#include "version.h"

#include <stdbool.h>
#include <string.h>

/* ---- roff ---- */

static void append_char(struct text *out, char c)
{
    if (c == '\\')
        text_append(out, "\\e");
    else if (c == '-' || c == '\'' || c == '`' || c == '^' || c == '~') /* else typeset */
        text_append(out, c == '-'    ? "\\-"
                         : c == '\'' ? "\\(aq"
                         : c == '`'  ? "\\(ga"
                         : c == '^'  ? "\\(ha"
                                     : "\\(ti");
    else
        text_append_char(out, c);
}

/* Appends text so that no character of it is a command of roff. */
static void append_escaped(struct text *out, struct slice words)
{
    if (words.size > 0 && words.data[0] == '.') /* a line that begins with a dot is a command */
        text_append(out, "\\&");
    for (size_t i = 0; i < words.size; i++)
        append_char(out, (char)words.data[i]);
}

static void append(struct text *out, const char *words)
{
    append_escaped(out, slice_of_string(words));
}

static void append_bold(struct text *out, const char *words)
{
    text_append(out, "\\fB");
    append(out, words);
    text_append(out, "\\fR");
}

static void append_line(struct text *out, const char *words)
{
    append(out, words);
    text_append_char(out, '\n');
}

static void append_header(struct text *out, const char *title, int section, const char *purpose)
{
    text_printf(out, ".TH %s %d \"\" \"profcol " PROFCOL_VERSION "\" \"profcol manual\"\n", title,
                section);
    text_append(out, ".nh\n.ad l\n.SH NAME\n");
    text_printf(out, "%s \\- %s\n", title, purpose);
}

/* ---- profcol(1) ---- */

static void append_commands(struct text *out)
{
    text_append(out, ".SH COMMANDS\n");
    for (size_t i = COMMAND_RUN + 1; i < COMMAND_COUNT; i++) {
        text_append(out, ".TP\n");
        append_bold(out, commands[i].name);
        if (commands[i].arguments) {
            text_append_char(out, ' ');
            append(out, commands[i].arguments);
        }
        text_append_char(out, '\n');
        append_line(out, commands[i].help);
    }
}

static void append_names(struct text *out, unsigned set)
{
    const char *before = "";
    for (size_t i = COMMAND_RUN + 1; i < COMMAND_COUNT; i++) {
        if (!(set >> i & 1U))
            continue;
        text_append(out, before);
        append_bold(out, commands[i].name);
        before = ", ";
    }
}

/* Appends for which commands the option is, unless for all of them. */
static void append_scope(struct text *out, unsigned set)
{
    if (set == (1U << COMMAND_COUNT) - 1)
        return;
    text_append(out, "For ");
    if (set & 1U << COMMAND_RUN)
        text_append(out, "a run");
    if (set & 1U << COMMAND_RUN && set >> 1)
        text_append(out, ", ");
    append_names(out, set);
    text_append(out, ".\n");
}

static void append_options(struct text *out)
{
    text_append(out, ".SH OPTIONS\n");
    for (size_t i = 0; i < command_option_count; i++) {
        const struct command_option *option = &command_options[i];
        text_append(out, ".TP\n\\fB\\-\\-");
        append(out, option->name);
        text_append(out, "\\fR");
        if (option->letter)
            text_printf(out, ", \\fB\\-%c\\fR", option->letter);
        if (option->argument)
            text_printf(out, " \\fI%s\\fR", option->argument);
        text_append_char(out, '\n');
        append_line(out, option->help);
        append_scope(out, option->commands);
    }
    text_append(out, ".PP\nThe commands \\fBvalidate\\fR and \\fBprint\\-config\\fR accept the "
                     "options of a run, too, so that its command line can be checked as it is.\n");
}

static void append_exit_codes(struct text *out)
{
    text_append(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < command_exit_code_count; i++) {
        text_printf(out, ".TP\n\\fB%d\\fR\n", command_exit_codes[i].code);
        append_line(out, command_exit_codes[i].help);
    }
}

static const char endings[] =
    ".SH SIGNALS\n"
    ".TP\n\\fBSIGTERM\\fR, \\fBSIGINT\\fR\n"
    "Stop the receivers, deliver what is held, and end.\n"
    ".TP\n\\fBSIGHUP\\fR\n"
    "Load the configuration again. One with errors changes nothing.\n"
    ".SH EXAMPLES\n"
    ".EX\n"
    "profcol validate \\-\\-config /etc/profcol/config.yaml\n"
    "profcol \\-\\-config /etc/profcol/config.yaml \\-\\-set processors.batch.timeout=2s\n"
    "profcol validate \\-\\-diff old.yaml new.yaml\n"
    ".EE\n"
    ".SH SEE ALSO\n"
    "\\fBprofcol.yaml\\fR(5)\n";

void command_manual_print(struct text *out)
{
    append_header(out, "profcol", 1, "collector of profiles and traces");
    text_append(out, ".SH SYNOPSIS\n\\fBprofcol\\fR [\\fICOMMAND\\fR] [\\fIOPTIONS\\fR]\n"
                     ".SH DESCRIPTION\n");
    append_line(out, command_description);
    append_line(out, commands[COMMAND_RUN].help);
    append_commands(out);
    append_options(out);
    append_exit_codes(out);
    text_append(out, endings);
}

/* ---- profcol.yaml(5) ---- */

/* Returns the size of the "](target)" that words begins with, behind the text of a link; 0: none.
 */
static size_t link_end(struct slice words)
{
    const unsigned char *end = NULL;
    if (words.size > 1 && words.data[0] == ']' && words.data[1] == '(')
        end = memchr(words.data, ')', words.size);
    return end ? (size_t)(end - words.data) + 1 : 0;
}

/* Returns whether words begins with the text of a link. */
static bool begins_link(struct slice words)
{
    const unsigned char *end =
        words.size > 0 && words.data[0] == '[' ? memchr(words.data, ']', words.size) : NULL;
    size_t size = end ? (size_t)(end - words.data) : 0;
    return end && link_end(slice_of(end, words.size - size)) > 0;
}

/* Appends a line of Markdown: `code` and **strong** become bold, "\|" becomes "|", links their
 * text.
 */
static void append_markdown(struct text *out, struct slice words)
{
    bool is_bold = false;
    if (words.size > 0 && words.data[0] == '.')
        text_append(out, "\\&");
    for (size_t i = 0; i < words.size; i++) {
        struct slice rest = slice_of(words.data + i, words.size - i);
        char c = (char)rest.data[0], next = (char)(rest.size > 1 ? rest.data[1] : 0);
        if (c == '`' || (c == '*' && next == '*')) {
            is_bold = !is_bold;
            text_append(out, is_bold ? "\\fB" : "\\fR");
            i += c == '*';
        } else if (!is_bold && link_end(rest) > 0) {
            i += link_end(rest) - 1;
        } else if (!is_bold && begins_link(rest)) {
            continue;
        } else if (c != '\\' || next != '|') {
            append_char(out, c);
        }
    }
    if (is_bold)
        text_append(out, "\\fR");
}

/* Takes the next cell of a row of a table from the front of `row`. */
static struct slice take_cell(struct slice *row)
{
    size_t end = 0;
    while (end < row->size && (row->data[end] != '|' || (end > 0 && row->data[end - 1] == '\\')))
        end++;
    struct slice cell = slice_of(row->data, end);
    end += end < row->size;
    *row = slice_of(row->data + end, row->size - end);
    while (cell.size > 0 && cell.data[0] == ' ')
        cell = slice_of(cell.data + 1, cell.size - 1);
    while (cell.size > 0 && cell.data[cell.size - 1] == ' ')
        cell.size--;
    return cell;
}

/* Appends "| key | kind | default | bounds | help |", or a row with two cells. */
static void append_row(struct text *out, struct slice row)
{
    static const char *const before[] = {"", "; default: ", "; "};
    struct slice cells[5];
    size_t count = 0;
    row = slice_of(row.data + 1, row.size - 1);
    while (row.size > 0 && count < 5)
        cells[count++] = take_cell(&row);
    if (count < 2 || slice_is(cells[0], "key") || slice_is(cells[0], "kind") ||
        cells[0].data[0] == '-')
        return;
    text_append(out, ".TP\n");
    append_markdown(out, cells[0]);
    text_append_char(out, '\n');
    for (size_t i = 1; count == 5 && i < 4; i++) {
        if (cells[i].size == 0)
            continue;
        text_append(out, before[i - 1]);
        append_markdown(out, cells[i]);
    }
    text_append(out, count == 5 ? ".\n" : "");
    append_markdown(out, cells[count - 1]);
    text_append_char(out, '\n');
}

static bool begins(struct slice line, const char *beginning)
{
    size_t size = strlen(beginning);
    return line.size >= size && memcmp(line.data, beginning, size) == 0;
}

static void append_reference_line(struct text *out, struct slice line)
{
    if (begins(line, "# ")) {
        text_append(out, ".SH DESCRIPTION\n");
    } else if (begins(line, "## ") || begins(line, "### ")) {
        size_t level = line.data[2] == '#' ? 4 : 3;
        text_append(out, level == 4 ? ".SS " : ".SH ");
        append_escaped(out, slice_of(line.data + level, line.size - level));
        text_append_char(out, '\n');
    } else if (begins(line, "- ")) {
        text_append(out, ".IP \\(bu 2\n");
        append_markdown(out, slice_of(line.data + 2, line.size - 2));
        text_append_char(out, '\n');
    } else if (begins(line, "|")) {
        append_row(out, line);
    } else if (line.size > 0) {
        append_markdown(out, line);
        text_append_char(out, '\n');
    }
}

/* An empty line begins a paragraph if text follows it, but not after a heading. */
static bool begins_paragraph(struct slice before, struct slice line)
{
    return before.size == 0 && line.size > 0 && !strchr("#|-", line.data[0]);
}

static void append_reference(struct text *out, const char *reference)
{
    struct slice before = slice_of_string("# ");
    bool after_heading = false;
    for (const char *next = reference; *next; next += *next == '\n') {
        struct slice line = slice_of(next, strcspn(next, "\n"));
        if (begins_paragraph(before, line) && !after_heading)
            text_append(out, ".PP\n");
        append_reference_line(out, line);
        if (line.size > 0)
            after_heading = begins(line, "#");
        before = line;
        next += line.size;
    }
}

void command_manual_print_config(struct text *out)
{
    struct text reference = {0};
    config_print_reference(component_types, shared_blocks, &reference);
    append_header(out, "profcol.yaml", 5, "configuration of profcol");
    append_reference(out, text_string(&reference));
    text_append(out, ".SH SEE ALSO\n\\fBprofcol\\fR(1)\n");
    text_deinit(&reference);
}
