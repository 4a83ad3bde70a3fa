#include "core/command_line.h"

#include "core/base/memory.h"
#include "core/base/text.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { OPTION_LIMIT = 32 };

bool command_line_complain(const char *format, const char *what)
{
    fprintf(stderr, "Error: ");
    fprintf(stderr, format, what);
    fprintf(stderr, "\nRun `profcol --help` for the usage.\n");
    return false;
}

static void add(const char ***list, size_t *count, const char *item)
{
    *list = memory_grow(*list, *count + 1, sizeof(char *));
    (*list)[(*count)++] = item;
}

void command_line_add_source(struct config_sources *sources, const char *uri)
{
    add(&sources->uris, &sources->uri_count, uri);
}

/* What to write for a configuration that was given without --config. */
#define CONFIG_IS_GIVEN "; a configuration is given as --config "

static bool is_yaml(const char *written)
{
    const char *end = strrchr(written, '.');
    return end && (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0);
}

/* Reports an unknown command or option, with the name that was probably meant. */
static void report_unknown(const char *kind, const char *prefix, const char *written,
                           const char *near)
{
    fprintf(stderr, "Error: unknown %s \"%s%s\"", kind, prefix, written);
    if (near)
        fprintf(stderr, ", did you mean \"%s%s\"?", prefix, near);
    else if (is_yaml(written))
        fprintf(stderr, CONFIG_IS_GIVEN "%s", written);
    fprintf(stderr, "\nRun `profcol --help` for the usage.\n");
}

/* ---- options ---- */

/* Converts "a.b.c=v" to "yaml:a::b::c: v". */
static bool add_set(struct command_line *line, const char *written)
{
    const char *equals = strchr(written, '=');
    if (!equals)
        return command_line_complain("invalid argument \"%s\" for \"--set\": missing equal sign",
                                     written);
    struct text uri = {0};
    text_append(&uri, "yaml:");
    for (const char *c = written; c < equals; c++) {
        if (*c == '.')
            text_append(&uri, "::");
        else
            text_append_char(&uri, *c);
    }
    text_printf(&uri, ": %s", equals + 1);
    add(&line->sets, &line->set_count, uri.data); /* freed by command_line_deinit */
    return true;
}

/* "traces, profiles" */
static bool read_signals(struct command_line *line, const char *list)
{
    for (const char *next = list;;) {
        next += strspn(next, " ");
        struct slice name = slice_of(next, strcspn(next, ","));
        unsigned signal = 0;
        while (signal < CONFIG_SIGNAL_COUNT && !slice_is(name, config_signal_names[signal]))
            signal++;
        if (signal == CONFIG_SIGNAL_COUNT)
            return command_line_complain(
                "--signals %s: must be a list of traces, profiles, metrics and logs", list);
        line->sources.options.signals |= 1U << signal;
        if (next[name.size] == '\0')
            return true;
        next += name.size + 1;
    }
}

/* Gates of the Collector that mean something here. `lacks`: what somebody who opens it would miss;
 * NULL: profcol does what it asks for, always. */
static const struct known_gate {
    const char *name, *lacks;
} known_gates[] = {
    {"service.profilesSupport", NULL},
    {"processor.tailsamplingprocessor.metricstatcountspanssampled", NULL},
    {"processor.tailsamplingprocessor.recordpolicy",
     "recordpolicy: tail_sampling does not write into spans which policy sampled them"},
    {"processor.tailsamplingprocessor.usetracestate",
     "usetracestate: tail_sampling does not use the randomness and threshold in tracestate"},
};

static const struct known_gate *find_gate(struct slice name)
{
    for (size_t i = 0; i < sizeof known_gates / sizeof *known_gates; i++)
        if (slice_is(name, known_gates[i].name))
            return &known_gates[i];
    return NULL;
}

/* "a" or "-a" */
static bool read_gate(struct slice gate)
{
    bool closes = gate.size > 0 && gate.data[0] == '-';
    const struct known_gate *known = find_gate(slice_of(gate.data + closes, gate.size - closes));
    if (known && known->lacks && !closes)
        return command_line_complain("--feature-gates: not supported: %s", known->lacks);
    bool is_as_asked = known && closes == (known->lacks != NULL);
    if (gate.size > 0 && !is_as_asked)
        fprintf(stderr, "Warning: --feature-gates: profcol has no gate \"%.*s\"; ignored\n",
                SLICE_ARG(gate));
    return true;
}

/* "a,+b,-c" */
static bool read_gates(const char *list)
{
    for (const char *next = list; *next; next += *next == ',') {
        next += *next == '+';
        size_t size = strcspn(next, ",");
        if (!read_gate(slice_of(next, size)))
            return false;
        next += size;
    }
    return true;
}

static bool read_workers(struct command_line *line, const char *written)
{
    uint64_t workers;
    if (!config_parse_uint(slice_of_string(written), &workers) || workers < 1 || workers > 64)
        return command_line_complain("--workers %s: must be a number from 1 to 64", written);
    line->run.workers = (unsigned)workers;
    return true;
}

static bool read_drain_timeout(struct command_line *line, const char *written)
{
    char why[200];
    int64_t *ns = &line->run.drain_timeout_ns;
    if (!config_parse_duration(slice_of_string(written), ns, why, sizeof why) || *ns < 0)
        return command_line_complain("--drain-timeout %s: must be a duration like 20s", written);
    return true;
}

static bool take_option(struct command_line *line, enum option_id id, const char *value)
{
    switch (id) {
    case OPTION_CONFIG:
        command_line_add_source(&line->sources, value);
        return true;
    case OPTION_SET:
        return add_set(line, value);
    case OPTION_SIGNALS:
        return read_signals(line, value);
    case OPTION_STRICT:
        return line->sources.options.strict = true;
    case OPTION_DIFF:
        return line->diff = true;
    case OPTION_WATCH:
        return line->run.watch = true;
    case OPTION_WORKERS:
        return read_workers(line, value);
    case OPTION_DRAIN_TIMEOUT:
        return read_drain_timeout(line, value);
    case OPTION_FEATURE_GATES:
        return read_gates(value);
    case OPTION_DRY_RUN:
        return line->dry_run = true;
    case OPTION_PROCESSOR:
        line->processor = value;
        return true;
    case OPTION_CA_FILE:
        line->http.ca_file = value;
        return true;
    case OPTION_SKIP_VERIFY:
        return line->http.skip_verify = true;
    case OPTION_VERSION:
        return line->version = true;
    case OPTION_HELP:
        return line->help = true;
    }
    assert(!"every option is in the switch");
    return false;
}

/* Fills what getopt_long needs from the table. */
static void list_options(struct option options[OPTION_LIMIT], char letters[OPTION_LIMIT])
{
    assert(command_option_count < OPTION_LIMIT - 1);
    *letters++ = ':'; /* a missing value is reported as ':' */
    for (size_t i = 0; i < command_option_count; i++) {
        const struct command_option *option = &command_options[i];
        assert(!option->letter || !option->argument); /* else the letter needs a ':' */
        options[i] =
            (struct option){option->name, option->argument ? required_argument : no_argument, NULL,
                            option->letter ? option->letter : (int)option->id};
        if (option->letter)
            *letters++ = option->letter;
    }
}

/* Returns the option of this letter or id; NULL if there is none. */
static const struct command_option *find_option(int found)
{
    for (size_t i = 0; i < command_option_count; i++)
        if ((int)command_options[i].id == found || (found && command_options[i].letter == found))
            return &command_options[i];
    return NULL;
}

static void report_unknown_option(const char *written)
{
    const char *names[OPTION_LIMIT];
    struct text name = {0};
    for (size_t i = 0; i < command_option_count; i++)
        names[i] = command_options[i].name;
    text_append_slice(&name, slice_of(written, strcspn(written, "=")));
    report_unknown("option", "--", text_string(&name),
                   config_suggest(text_string(&name), names, command_option_count));
    text_deinit(&name);
}

/* Reports what getopt_long did not accept; `code` is ':' or '?'. Returns false. */
static bool report_option(int code, const char *written)
{
    const struct command_option *option = find_option(optopt);
    if (code == ':')
        return command_line_complain("option \"%s\" needs a value", written);
    if (option)
        return command_line_complain("option \"--%s\" takes no value", option->name);
    if (optopt != 0)
        return command_line_complain("unknown option \"-%s\"", (char[]){(char)optopt, '\0'});
    report_unknown_option(written + 2);
    return false;
}

/* Reads the options. `used` gets those that were written, in their order in the table. */
static bool read_options(struct command_line *line, int argc, char **argv, bool used[OPTION_LIMIT])
{
    struct option options[OPTION_LIMIT] = {0};
    char letters[OPTION_LIMIT] = "";
    int code;
    list_options(options, letters);
    opterr = 0;
    while ((code = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        const struct command_option *option = find_option(code);
        if (!option)
            return report_option(code, argv[optind - 1]);
        used[option - command_options] = true;
        if (!take_option(line, option->id, optarg))
            return false;
    }
    return true;
}

/* ---- commands ---- */

static bool is_command(const struct command *command, const char *name)
{
    return command->name && (strcmp(command->name, name) == 0 ||
                             (command->alias && strcmp(command->alias, name) == 0));
}

enum command_id command_line_find(const char *name)
{
    const char *names[COMMAND_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (is_command(&commands[i], name))
            return (enum command_id)i;
        if (commands[i].name)
            names[count++] = commands[i].name;
    }
    report_unknown("command", "", name, config_suggest(name, names, count));
    return COMMAND_COUNT;
}

/* An option that the command does not know is an error, not ignored. */
static bool check_options(const struct command_line *line, const bool used[OPTION_LIMIT])
{
    const char *command = commands[line->command].name;
    for (size_t i = 0; i < command_option_count; i++) {
        const struct command_option *option = &command_options[i];
        if (!used[i] || (option->commands | option->accepted) >> line->command & 1U)
            continue;
        fprintf(stderr, "Error: %s%s does not take the option --%s\n",
                command ? "the command " : "a run", command ? command : "", option->name);
        fprintf(stderr, "Run `profcol help%s%s` for the usage.\n", command ? " " : "",
                command ? command : "");
        return false;
    }
    return true;
}

static bool report_unexpected(const struct command_line *line, const char *written)
{
    bool takes_config = find_option(OPTION_CONFIG)->commands >> line->command & 1U;
    fprintf(stderr, "Error: unexpected argument \"%s\"", written);
    if (takes_config && line->operand_count == 0)
        fprintf(stderr, CONFIG_IS_GIVEN "%s", written);
    fprintf(stderr, "\nRun `profcol --help` for the usage.\n");
    return false;
}

/* Takes what follows the command. */
static bool read_operands(struct command_line *line, int argc, char **argv)
{
    size_t limit = commands[line->command].argument_limit;
    if (line->command == COMMAND_VALIDATE && !line->diff)
        limit = 0;
    for (; optind < argc; optind++) {
        if (line->operand_count == limit)
            return report_unexpected(line, argv[optind]);
        add(&line->operands, &line->operand_count, argv[optind]);
    }
    return true;
}

bool command_line_parse(struct command_line *line, int argc, char **argv)
{
    bool used[OPTION_LIMIT] = {false};
    line->run.drain_timeout_ns = 20000000000;
    if (!read_options(line, argc, argv, used))
        return false;
    if (optind < argc)
        line->command = command_line_find(argv[optind++]);
    return line->command != COMMAND_COUNT && check_options(line, used) &&
           read_operands(line, argc, argv);
}

void command_line_deinit(struct command_line *line)
{
    for (size_t i = 0; i < line->set_count; i++)
        free((char *)line->sets[i]);
    free(line->sets);
    free(line->operands);
    config_sources_deinit(&line->sources);
    free(line->sources.uris);
}
