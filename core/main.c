/*
 * main: the command line.
 *
 * Commands, options and exit codes are those of the Collector (0: success, 1: any error).
 */
#include "config/diff.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/components.h"
#include "core/health_probe.h"
#include "core/run.h"
#include "default_config.h"
#include "version.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "profcol receives OTLP profiles and traces, joins every profile sample to its span, and sends "
    "both on.\n"
    "\n"
    "Usage:\n"
    "  profcol [options]               run; without --config, with the built-in configuration\n"
    "  profcol validate [options]      check a configuration and exit\n"
    "  profcol validate --diff OLD NEW say what a reload from one configuration to the other does\n"
    "  profcol print-config [options]  print the configuration with all defaults, secrets masked\n"
    "  profcol components              list the built-in components\n"
    "  profcol reference               print the configuration reference (Markdown)\n"
    "  profcol schema                  print the JSON schema of a configuration file\n"
    "  profcol healthcheck [URL]       ask the extension health_check of a running profcol; exit "
    "code 0: it takes data;\n"
    "                                  default: " HEALTH_PROBE_URL "\n"
    "\n"
    "Options:\n"
    "  --config URI            a file, file:PATH, env:NAME or yaml:TEXT; several are merged from "
    "left to right\n"
    "  --set KEY=VALUE         set one value after all --config, e.g. processors.batch.timeout=2s\n"
    "  --signals LIST          run only the pipelines of these signals (traces,profiles) and what "
    "they use\n"
    "  --strict                for validate: report also what no pipeline uses, and take warnings "
    "for errors\n"
    "  --diff                  for validate: compare two configurations (URIs, as for --config)\n"
    "  --watch                 reload the configuration when one of its files changes; SIGHUP "
    "always does\n"
    "  --workers N             event loops; default: one per core\n"
    "  --drain-timeout TIME    how long held data may be delivered after SIGTERM; default 20s\n"
    "  --feature-gates LIST    for the Collector's command line: profcol has none, and always "
    "carries\n"
    "                          profiles; warns about others than service.profilesSupport\n"
    "  --version, -v           print the version\n"
    "  --help, -h              print this\n";

struct arguments {
    const char *command; /* NULL: run the pipelines */
    const char *url;     /* of healthcheck; NULL: none */
    bool diff;           /* validate compares `operands` */
    const char **operands;
    size_t operand_count;
    struct config_sources sources; /* --config, then `sets` */
    const char **sets;             /* as yaml: URIs */
    size_t set_count;
    struct run_options run;
};

enum {
    OPTION_CONFIG = 256,
    OPTION_SET,
    OPTION_SIGNALS,
    OPTION_STRICT,
    OPTION_DIFF,
    OPTION_WATCH,
    OPTION_WORKERS,
    OPTION_DRAIN,
    OPTION_GATES
};

static const struct option long_options[] = {
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"set", required_argument, NULL, OPTION_SET},
    {"strict", no_argument, NULL, OPTION_STRICT},
    {"diff", no_argument, NULL, OPTION_DIFF},
    {"watch", no_argument, NULL, OPTION_WATCH},
    {"signals", required_argument, NULL, OPTION_SIGNALS},
    {"workers", required_argument, NULL, OPTION_WORKERS},
    {"drain-timeout", required_argument, NULL, OPTION_DRAIN},
    {"feature-gates", required_argument, NULL, OPTION_GATES},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static bool complain(const char *format, const char *what)
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

/* Converts "a.b.c=v" to "yaml:a::b::c: v". */
static bool add_set(struct arguments *arguments, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return complain("invalid argument \"%s\" for \"--set\": missing equal sign", text);
    struct text uri = {0};
    text_append(&uri, "yaml:");
    for (const char *c = text; c < equals; c++) {
        if (*c == '.')
            text_append(&uri, "::");
        else
            text_append_char(&uri, *c);
    }
    text_printf(&uri, ": %s", equals + 1);
    add(&arguments->sets, &arguments->set_count, uri.data); /* never freed */
    return true;
}

/* "traces, profiles" */
static bool read_signals(struct arguments *arguments, const char *list)
{
    for (const char *next = list;;) {
        next += strspn(next, " ");
        struct slice name = slice_of(next, strcspn(next, ","));
        unsigned signal = 0;
        while (signal < CONFIG_SIGNAL_COUNT && !slice_is(name, config_signal_names[signal]))
            signal++;
        if (signal == CONFIG_SIGNAL_COUNT)
            return complain("--signals %s: must be a list of traces, profiles, metrics and logs",
                            list);
        arguments->sources.options.signals |= 1u << signal;
        if (next[name.size] == '\0')
            return true;
        next += name.size + 1;
    }
}

/* "a,+b,-c". Profiles need a gate in the Collector; no other gate of it means anything here. */
static void read_gates(const char *list)
{
    for (const char *next = list; *next; next += *next == ',') {
        size_t size = strcspn(next, ",");
        struct slice gate = slice_of(next, size);
        next += size;
        if (gate.size > 0 && gate.data[0] == '+')
            gate = slice_of(gate.data + 1, gate.size - 1);
        if (gate.size > 0 && !slice_is(gate, "service.profilesSupport"))
            fprintf(stderr, "Warning: --feature-gates: profcol has no gate \"%.*s\"; ignored\n",
                    SLICE_ARG(gate));
    }
}

static bool take_option(struct arguments *arguments, int option)
{
    uint64_t workers;
    char why[200];
    switch (option) {
    case OPTION_CONFIG:
        add(&arguments->sources.uris, &arguments->sources.uri_count, optarg);
        return true;
    case OPTION_SET:
        return add_set(arguments, optarg);
    case OPTION_STRICT:
        arguments->sources.options.strict = true;
        return true;
    case OPTION_DIFF:
        arguments->diff = true;
        return true;
    case OPTION_WATCH:
        arguments->run.watch = true;
        return true;
    case OPTION_SIGNALS:
        return read_signals(arguments, optarg);
    case OPTION_WORKERS:
        if (!config_parse_uint(slice_of_string(optarg), &workers) || workers < 1 || workers > 64)
            return complain("--workers %s: must be a number from 1 to 64", optarg);
        arguments->run.workers = (unsigned)workers;
        return true;
    case OPTION_DRAIN:
        if (!config_parse_duration(slice_of_string(optarg), &arguments->run.drain_timeout_ns, why,
                                   sizeof why) ||
            arguments->run.drain_timeout_ns < 0)
            return complain("--drain-timeout %s: must be a duration like 20s", optarg);
        return true;
    case OPTION_GATES:
        read_gates(optarg);
        return true;
    default:
        fprintf(stderr, "Run `profcol --help` for the usage.\n"); /* getopt has printed the error */
        return false;
    }
}

static bool parse_arguments(struct arguments *arguments, int argc, char **argv)
{
    int option;
    while ((option = getopt_long(argc, argv, "vh", long_options, NULL)) != -1) {
        if (option == 'v') {
            printf("profcol version %s\n", PROFCOL_VERSION);
            exit(0);
        }
        if (option == 'h') {
            fputs(usage, stdout);
            exit(0);
        }
        if (!take_option(arguments, option))
            return false;
    }
    if (optind < argc)
        arguments->command = argv[optind++];
    if (optind < argc && strcmp(arguments->command, "healthcheck") == 0)
        arguments->url = argv[optind++];
    while (arguments->diff && optind < argc)
        add(&arguments->operands, &arguments->operand_count, argv[optind++]);
    if (optind < argc)
        return complain("unexpected argument \"%s\"", argv[optind]);
    return true;
}

static void add_sets(const struct arguments *arguments, struct config_sources *sources)
{
    for (size_t i = 0; i < arguments->set_count; i++)
        add(&sources->uris, &sources->uri_count, arguments->sets[i]);
}

/* Loads the configuration, and prints warnings and errors. Returns NULL if there were errors. */
static struct config *load_sources(struct config_sources *sources)
{
    struct text report = {0};
    struct config *config = config_sources_load(sources, &report);
    fputs(text_string(&report), stderr);
    text_deinit(&report);
    return config;
}

static struct config *load(struct arguments *arguments)
{
    struct config_sources *sources = &arguments->sources;
    if (sources->uri_count == 0) /* --set changes the built-in default, too */
        add(&sources->uris, &sources->uri_count, default_config);
    add_sets(arguments, sources);
    return load_sources(sources);
}

static int print_text(struct text *text)
{
    bool written =
        fwrite(text_string(text), 1, text->size, stdout) == text->size && fflush(stdout) == 0;
    text_deinit(text);
    return written ? 0 : 1;
}

static int command_run(struct arguments *arguments)
{
    struct config *config = load(arguments);
    if (!config)
        return 1;
    int status = run(config, &arguments->sources, &arguments->run);
    config_free(config);
    return status;
}

static struct config *load_operand(const struct arguments *arguments, size_t i)
{
    struct config_sources sources = {.options = arguments->sources.options};
    add(&sources.uris, &sources.uri_count, arguments->operands[i]);
    add_sets(arguments, &sources);
    struct config *config = load_sources(&sources);
    config_sources_deinit(&sources);
    free(sources.uris);
    return config;
}

static int command_diff(const struct arguments *arguments)
{
    struct arena arena = {0};
    struct text out = {0};
    if (arguments->operand_count != 2 || arguments->sources.uri_count > 0) {
        complain("%s needs two configurations, OLD and NEW", "validate --diff");
        return 1;
    }
    struct config *before = load_operand(arguments, 0), *after = load_operand(arguments, 1);
    bool are_valid = before && after;
    if (are_valid)
        config_diff_print(config_diff_new(&arena, before, after), &out);
    arena_deinit(&arena);
    config_free(before);
    config_free(after);
    return print_text(&out) == 0 && are_valid ? 0 : 1;
}

static int command_validate(struct arguments *arguments)
{
    bool is_built_in = arguments->sources.uri_count == 0;
    arguments->sources.options.files = true;
    if (arguments->diff)
        return command_diff(arguments);
    struct config *config = load(arguments);
    if (config && is_built_in)
        printf("The built-in configuration is valid%s; --config names another one.\n",
               arguments->set_count > 0 ? " with --set" : "");
    config_free(config);
    return config ? 0 : 1;
}

static int command_print_config(struct arguments *arguments)
{
    struct config *config = load(arguments);
    if (!config)
        return 1;
    struct text out = {0};
    config_print(config, &out);
    config_free(config);
    return print_text(&out);
}

static int command_components(struct arguments *arguments)
{
    (void)arguments;
    struct text out = {0};
    config_print_components(component_types, &out);
    return print_text(&out);
}

static int command_reference(struct arguments *arguments)
{
    (void)arguments;
    struct text out = {0};
    config_print_reference(component_types, &out);
    return print_text(&out);
}

static int command_schema(struct arguments *arguments)
{
    (void)arguments;
    struct text out = {0};
    config_print_schema(component_types, &out);
    return print_text(&out);
}

static int command_healthcheck(struct arguments *arguments)
{
    struct error err;
    if (health_probe(arguments->url ? arguments->url : HEALTH_PROBE_URL, &err))
        return 0;
    fprintf(stderr, "Error: %s\n", err.text);
    return 1;
}

static const struct {
    const char *name;
    int (*run)(struct arguments *arguments);
} commands[] = {
    {"validate", command_validate},
    {"print-config", command_print_config},
    {"print-initial-config", command_print_config}, /* its older name in the Collector */
    {"components", command_components},
    {"reference", command_reference},
    {"schema", command_schema},
    {"healthcheck", command_healthcheck},
};

static int run_command(struct arguments *arguments)
{
    if (!arguments->command)
        return command_run(arguments);
    const char *names[sizeof commands / sizeof commands[0]];
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        names[i] = commands[i].name;
        if (strcmp(arguments->command, commands[i].name) == 0)
            return commands[i].run(arguments);
    }
    const char *near = config_suggest(arguments->command, names, sizeof names / sizeof names[0]);
    fprintf(stderr, "Error: unknown command \"%s\"%s%s%s\nRun `profcol --help` for the usage.\n",
            arguments->command, near ? ", did you mean \"" : "", near ? near : "",
            near ? "\"?" : "");
    return 1;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.run.drain_timeout_ns = 20000000000};
    hash_init();
    int status = parse_arguments(&arguments, argc, argv) ? run_command(&arguments) : 1;
    for (size_t i = 0; i < arguments.set_count; i++)
        free((char *)arguments.sets[i]);
    free(arguments.sets);
    free(arguments.operands);
    config_sources_deinit(&arguments.sources);
    free(arguments.sources.uris);
    return status;
}
