/*
 * command_line: reads the arguments of the program.
 *
 * Owner: the result belongs to the caller, who frees it; its texts belong to argv.
 *
 * Thread: main.
 */
#ifndef PROFCOL_CORE_COMMAND_LINE_H
#define PROFCOL_CORE_COMMAND_LINE_H

#include "core/command_table.h"
#include "core/health_probe.h"
#include "core/run.h"

struct command_line {
    enum command_id command;
    bool help;    /* --help; the other fields are valid */
    bool version; /* --version */
    bool diff;
    const char **operands; /* what follows the command */
    size_t operand_count;
    struct config_sources sources; /* --config, without `sets` */
    const char **sets;             /* as yaml: URIs */
    size_t set_count;
    struct run_options run;
    struct http_get_options http;
    bool dry_run;
    const char *processor; /* NULL: not given */
};

/* Reads the arguments into a line that is all zero. Returns false, after an error on stderr, if
 * they are wrong. */
bool command_line_parse(struct command_line *line, int argc, char **argv);
/* Appends a source that is loaded after the others. The text must live as long as the line. */
void command_line_add_source(struct config_sources *sources, const char *uri);
/* Prints "Error: WHAT" and where help is to stderr. `format` has one %s. Returns false. */
bool command_line_complain(const char *format, const char *what)
    __attribute__((format(printf, 1, 0)));
/* Returns the command of this name or alias; COMMAND_COUNT, after an error on stderr, if there is
 * none. */
enum command_id command_line_find(const char *name);
/* Frees what the line holds. */
void command_line_deinit(struct command_line *line);

#endif
