#include "core/command_table.h"

#include "core/explain_report.h"
#include "core/health_probe.h"

#define BIT(COMMAND) (1U << (COMMAND))

enum {
    LOADS = BIT(COMMAND_RUN) | BIT(COMMAND_VALIDATE) | BIT(COMMAND_PRINT_CONFIG),
    CHECKS = BIT(COMMAND_VALIDATE) | BIT(COMMAND_PRINT_CONFIG),
    ALL = BIT(COMMAND_COUNT) - 1
};

const char command_description[] =
    "profcol receives OTLP profiles and traces, joins every profile sample to its span, and sends "
    "both on.";

static const char *const shells[] = {"bash", "zsh", "fish", NULL};
static const char *const manuals[] = {"profcol", "profcol.yaml", NULL};
static const char *const signals[] = {"traces", "profiles", "metrics", "logs", NULL};
static const char *const gates[] = {"service.profilesSupport", NULL};

const struct command commands[COMMAND_COUNT] = {
    [COMMAND_RUN] = {.summary = "run",
                     .help = "Runs the pipelines of the configuration until SIGTERM or SIGINT. "
                             "Without --config, the built-in configuration is used."},
    [COMMAND_VALIDATE] =
        {.name = "validate",
         .arguments = "[--diff OLD NEW]",
         .argument_limit = 2,
         .value = COMMAND_VALUE_FILE,
         .summary = "check a configuration and exit",
         .help = "Checks a configuration and exits. Errors and warnings name the file, the line "
                 "and the setting. Nothing is printed if all is well. With --diff, it prints what "
                 "a reload from the configuration OLD to NEW does."},
    [COMMAND_PRINT_CONFIG] =
        {.name = "print-config",
         .alias = "print-initial-config", /* its older name in the Collector */
         .summary = "print the configuration with all defaults, secrets masked",
         .help = "Prints the merged configuration as YAML, with all defaults. Secrets are masked."},
    [COMMAND_COMPONENTS] =
        {.name = "components",
         .summary = "list the built-in components",
         .help = "Prints the built-in components as YAML, with the stability of each signal."},
    [COMMAND_REFERENCE] =
        {.name = "reference",
         .arguments = "[COMPONENT]",
         .argument_limit = 1,
         .summary = "print the configuration reference (Markdown)",
         .help = "Prints docs/reference.md: every setting of every component, with its kind, "
                 "default and bounds. With the name of a component, such as spanjoin, only that "
                 "part."},
    [COMMAND_SCHEMA] = {.name = "schema",
                        .summary = "print the JSON schema of a configuration file",
                        .help = "Prints the JSON schema of a configuration file, for editors."},
    [COMMAND_HEALTHCHECK] =
        {.name = "healthcheck",
         .arguments = "[URL]",
         .argument_limit = 1,
         .summary = "ask a running profcol whether it takes data",
         .help = "Asks the extension health_check of a running profcol, by default at "
                 "" HEALTH_PROBE_URL ". The URL may be https:// or a Unix socket, too: "
                 "unix:///run/profcol.sock, or unix:///run/profcol.sock:/path. The exit code is 0 "
                 "if it takes data."},
    [COMMAND_REDACT] =
        {.name = "redact",
         .arguments = "--dry-run FILE|URL",
         .argument_limit = 1,
         .value = COMMAND_VALUE_FILE,
         .summary = "list what the processor redaction would change in a file or at a URL",
         .help =
             "Prints what the processor redaction would change in a file or the answer of a URL, a "
             "line for each match: what it is, the rule and the text. The data is an OTLP request "
             "of profiles or traces, in protobuf or JSON, or a pprof, such as "
             "http://localhost:6060/debug/pprof/heap. Without --config, the rules are "
             "secret_words with its default words."},
    [COMMAND_EXPLAIN] =
        {.name = "explain",
         .arguments = "ID [URL]",
         .argument_limit = 2,
         .summary = "say why a span or trace has a profile, or has none",
         .help =
             "Asks the extension explore of a running profcol what it knows of a span (16 hex "
             "digits) or trace (32), or of the span in a traceparent: its samples, what "
             "they cost, when they came, and why they were or were not joined. By default it asks "
             "" EXPLAIN_URL ". If that wants a token, set PROFCOL_EXPLORE_TOKEN; if it wants a "
             "user, write http://USER:PASSWORD@HOST:PORT. The exit code is 0 if there is an "
             "answer."},
    [COMMAND_VERSION] =
        {.name = "version",
         .summary = "print the version, the build and the libraries",
         .help = "Prints the version, the commit, the compiler, and the versions of the libraries "
                 "in use. The option --version prints the version only."},
    [COMMAND_HELP] = {.name = "help",
                      .arguments = "[COMMAND]",
                      .argument_limit = 1,
                      .value = COMMAND_VALUE_COMMAND,
                      .summary = "print the help, or that of a command",
                      .help = "Prints the help of the program, or of one command."},
    [COMMAND_COMPLETION] =
        {.name = "completion",
         .arguments = "bash|zsh|fish",
         .argument_limit = 1,
         .value = COMMAND_VALUE_CHOICE,
         .choices = shells,
         .summary = "print the completion script of a shell",
         .help = "Prints a script that completes commands, options and files. For the current "
                 "bash: source <(profcol completion bash)."},
    [COMMAND_MAN] = {.name = "man",
                     .arguments = "[profcol|profcol.yaml]",
                     .argument_limit = 1,
                     .value = COMMAND_VALUE_CHOICE,
                     .choices = manuals,
                     .summary = "print a manual page (roff)",
                     .help = "Prints the manual page profcol(1), or profcol.yaml(5), which "
                             "describes every setting. To read it: profcol man | man -l -."},
};

const struct command_option command_options[] = {
    {.id = OPTION_CONFIG,
     .name = "config",
     .argument = "URI",
     .value = COMMAND_VALUE_FILE,
     .commands = LOADS | BIT(COMMAND_REDACT),
     .help = "A file, file:PATH, env:NAME or yaml:TEXT. Several are merged from left to right."},
    {.id = OPTION_SET,
     .name = "set",
     .argument = "KEY=VALUE",
     .commands = LOADS,
     .help = "Set one value after all --config, for example processors.batch.timeout=2s."},
    {.id = OPTION_SIGNALS,
     .name = "signals",
     .argument = "LIST",
     .value = COMMAND_VALUE_CHOICE,
     .choices = signals,
     .commands = LOADS,
     .help = "Use only the pipelines of these signals (traces,profiles) and what they need."},
    {.id = OPTION_STRICT,
     .name = "strict",
     .commands = BIT(COMMAND_VALIDATE),
     .accepted = LOADS,
     .help = "Report also what no pipeline uses, and take warnings for errors."},
    {.id = OPTION_DIFF,
     .name = "diff",
     .commands = BIT(COMMAND_VALIDATE),
     .help = "Compare two configurations (URIs, as for --config)."},
    {.id = OPTION_WATCH,
     .name = "watch",
     .commands = BIT(COMMAND_RUN),
     .accepted = CHECKS,
     .help = "Reload the configuration when one of its files changes. SIGHUP always does."},
    {.id = OPTION_WORKERS,
     .name = "workers",
     .argument = "N",
     .commands = BIT(COMMAND_RUN),
     .accepted = CHECKS,
     .help = "Number of event loops, 1 to 64. Default: one per core."},
    {.id = OPTION_DRAIN_TIMEOUT,
     .name = "drain-timeout",
     .argument = "TIME",
     .commands = BIT(COMMAND_RUN),
     .accepted = CHECKS,
     .help = "How long held data may be delivered after SIGTERM. Default: 20s."},
    {.id = OPTION_FEATURE_GATES,
     .name = "feature-gates",
     .argument = "LIST",
     .value = COMMAND_VALUE_CHOICE,
     .choices = gates,
     .commands = LOADS,
     .help =
         "For the Collector's command line: profcol has no gates and always carries "
         "profiles. It warns about other gates, or refuses them if something would be missing."},
    {.id = OPTION_DRY_RUN,
     .name = "dry-run",
     .commands = BIT(COMMAND_REDACT),
     .help = "Change nothing. It must be given."},
    {.id = OPTION_PROCESSOR,
     .name = "processor",
     .argument = "ID",
     .commands = BIT(COMMAND_REDACT),
     .help = "Use the rules of this processor, such as redaction/names. Default: the only one."},
    {.id = OPTION_CA_FILE,
     .name = "ca-file",
     .argument = "FILE",
     .value = COMMAND_VALUE_FILE,
     .commands = BIT(COMMAND_HEALTHCHECK) | BIT(COMMAND_REDACT) | BIT(COMMAND_EXPLAIN),
     .help = "Trust these certificate authorities for https://, not the system's."},
    {.id = OPTION_SKIP_VERIFY,
     .name = "skip-verify",
     .commands = BIT(COMMAND_HEALTHCHECK) | BIT(COMMAND_REDACT) | BIT(COMMAND_EXPLAIN),
     .help = "Accept any certificate."},
    {.id = OPTION_VERSION,
     .name = "version",
     .letter = 'v',
     .commands = BIT(COMMAND_RUN),
     .accepted = ALL,
     .help = "Print the version."},
    {.id = OPTION_HELP,
     .name = "help",
     .letter = 'h',
     .commands = ALL,
     .help = "Print the help, after a command that of the command."},
};
const size_t command_option_count = sizeof command_options / sizeof command_options[0];

const struct command_exit_code command_exit_codes[] = {
    {0, "Success. For a run: it ended after SIGTERM or SIGINT, and no acknowledged data was left. "
        "What exporters gave up before, as their settings say, does not count: metrics show it. "
        "For healthcheck: the other profcol takes data."},
    {1, "Failure: a wrong command line, a configuration with errors (with warnings, too, if "
        "--strict is given), a port or file that cannot be used, output that cannot be written. "
        "For a run: it could not start, or acknowledged data was left when the drain ended. For "
        "healthcheck: the other profcol takes no data, or gives no answer."},
};
const size_t command_exit_code_count = sizeof command_exit_codes / sizeof command_exit_codes[0];
