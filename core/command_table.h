/*
 * command_table: the commands, options and exit codes of the program.
 *
 * The only place that names them. Parsing (command_line.h), help (command_help.h), the man page
 * (command_manual.h) and shell completion (command_completion.h) all use these tables.
 *
 * Owner: static data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_COMMAND_TABLE_H
#define PROFCOL_CORE_COMMAND_TABLE_H

#include <stddef.h>

enum command_id {
    COMMAND_RUN, /* no command is written */
    COMMAND_VALIDATE,
    COMMAND_PRINT_CONFIG,
    COMMAND_COMPONENTS,
    COMMAND_REFERENCE,
    COMMAND_SCHEMA,
    COMMAND_HEALTHCHECK,
    COMMAND_REDACT,
    COMMAND_EXPLAIN,
    COMMAND_VERSION,
    COMMAND_HELP,
    COMMAND_COMPLETION,
    COMMAND_MAN,
    COMMAND_COUNT
};

/* What a shell offers for a value or an argument. */
enum command_value {
    COMMAND_VALUE_OTHER, /* nothing */
    COMMAND_VALUE_FILE,
    COMMAND_VALUE_COMMAND,
    COMMAND_VALUE_CHOICE /* one of `choices` */
};

struct command {
    const char *name;      /* NULL: COMMAND_RUN */
    const char *alias;     /* another name, only accepted; NULL: none */
    const char *arguments; /* as the usage shows them; NULL: none */
    size_t argument_limit;
    enum command_value value;   /* of its arguments */
    const char *const *choices; /* NULL-terminated */
    const char *summary;        /* without a full stop */
    const char *help;           /* sentences */
};

enum option_id {
    OPTION_CONFIG = 256, /* above all letters */
    OPTION_SET,
    OPTION_SIGNALS,
    OPTION_STRICT,
    OPTION_DIFF,
    OPTION_WATCH,
    OPTION_WORKERS,
    OPTION_DRAIN_TIMEOUT,
    OPTION_FEATURE_GATES,
    OPTION_CA_FILE,
    OPTION_SKIP_VERIFY,
    OPTION_DRY_RUN,
    OPTION_PROCESSOR,
    OPTION_VERSION,
    OPTION_HELP
};

struct command_option {
    enum option_id id;
    const char *name;     /* without "--" */
    char letter;          /* 0: none */
    const char *argument; /* as the usage shows it; NULL: the option takes none */
    enum command_value value;
    const char *const *choices;
    unsigned commands; /* a bit 1 << COMMAND_... for each command whose help lists it */
    unsigned accepted; /* the same, for those that accept it without effect: the command line of a
                          run can be checked with `validate` as it is */
    const char *help;  /* sentences */
};

struct command_exit_code {
    int code;
    const char *help;
};

extern const char command_description[];
extern const struct command commands[COMMAND_COUNT];
extern const struct command_option command_options[];
extern const size_t command_option_count;
extern const struct command_exit_code command_exit_codes[];
extern const size_t command_exit_code_count;

#endif
