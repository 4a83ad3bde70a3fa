/*
 * main: the commands of the program. command_table.c describes them.
 *
 * Commands, options and exit codes are those of the Collector (0: success, 1: any error).
 */
#include "config/diff.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/build_info.h"
#include "core/command_completion.h"
#include "core/command_help.h"
#include "core/command_line.h"
#include "core/command_manual.h"
#include "core/components.h"
#include "core/config_log.h"
#include "core/explain_report.h"
#include "core/health_probe.h"
#include "core/redact_report.h"
#include "core/run.h"
#include "default_config.h"
#include "version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_sets(const struct command_line *line, struct config_sources *sources)
{
    for (size_t i = 0; i < line->set_count; i++)
        command_line_add_source(sources, line->sets[i]);
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

static void name_sources(struct command_line *line)
{
    if (line->sources.uri_count == 0) /* --set changes the built-in default, too */
        command_line_add_source(&line->sources, default_config);
    add_sets(line, &line->sources);
}

static struct config *load(struct command_line *line)
{
    name_sources(line);
    return load_sources(&line->sources);
}

static int print_text(struct text *text)
{
    bool written =
        fwrite(text_string(text), 1, text->size, stdout) == text->size && fflush(stdout) == 0;
    text_deinit(text);
    return written ? 0 : 1;
}

/* Without a configuration, the log has the encoding that could be read of it. */
static int refuse_to_run(enum log_encoding encoding, const char *report)
{
    log_init(LOG_INFO, encoding);
    config_log(report);
    return 1;
}

static int command_run(struct command_line *line)
{
    struct text report = {0};
    enum log_encoding encoding = LOG_CONSOLE;
    name_sources(line);
    line->sources.options.log_encoding = &encoding;
    struct config *config = config_sources_load(&line->sources, &report);
    line->sources.options.log_encoding = NULL;
    int status = config ? run(config, text_string(&report), &line->sources, &line->run)
                        : refuse_to_run(encoding, text_string(&report));
    config_free(config);
    text_deinit(&report);
    return status;
}

static struct config *load_operand(const struct command_line *line, size_t i)
{
    struct config_sources sources = {.options = line->sources.options};
    command_line_add_source(&sources, line->operands[i]);
    add_sets(line, &sources);
    struct config *config = load_sources(&sources);
    config_sources_deinit(&sources);
    free(sources.uris);
    return config;
}

static int command_diff(const struct command_line *line)
{
    struct arena arena = {0};
    struct text out = {0};
    if (line->operand_count != 2 || line->sources.uri_count > 0) {
        command_line_complain("%s needs two configurations, OLD and NEW", "validate --diff");
        return 1;
    }
    struct config *before = load_operand(line, 0), *after = load_operand(line, 1);
    bool are_valid = before && after;
    if (are_valid)
        config_diff_print(config_diff_new(&arena, before, after), &out);
    arena_deinit(&arena);
    config_free(before);
    config_free(after);
    return print_text(&out) == 0 && are_valid ? 0 : 1;
}

static int command_validate(struct command_line *line)
{
    bool is_built_in = line->sources.uri_count == 0;
    line->sources.options.files = true;
    if (line->diff)
        return command_diff(line);
    struct config *config = load(line);
    if (config && is_built_in)
        printf("The built-in configuration is valid%s; --config names another one.\n",
               line->set_count > 0 ? " with --set" : "");
    config_free(config);
    return config ? 0 : 1;
}

static int command_print_config(struct command_line *line)
{
    struct config *config = load(line);
    if (!config)
        return 1;
    struct text out = {0};
    config_print(config, &out);
    config_free(config);
    return print_text(&out);
}

static int command_components(struct command_line *line)
{
    (void)line;
    struct text out = {0};
    config_print_components(component_types, &out);
    return print_text(&out);
}

static int command_reference(struct command_line *line)
{
    struct text out = {0};
    const char *name = line->operand_count > 0 ? line->operands[0] : NULL;
    if (!name) {
        config_print_reference(component_types, shared_blocks, &out);
    } else if (!config_print_reference_of(component_types, shared_blocks, name, &out)) {
        fprintf(stderr, "Error: there is no component \"%s\": `profcol components` lists them\n",
                name);
        return 1;
    }
    return print_text(&out);
}

static int command_schema(struct command_line *line)
{
    (void)line;
    struct text out = {0};
    config_print_schema(component_types, &out);
    return print_text(&out);
}

static int command_healthcheck(struct command_line *line)
{
    struct error err;
    const char *url = line->operand_count > 0 ? line->operands[0] : HEALTH_PROBE_URL;
    if (health_probe(url, &line->http, &err))
        return 0;
    fprintf(stderr, "Error: %s\n", err.text);
    return 1;
}

static int command_version(struct command_line *line)
{
    (void)line;
    struct text out = {0};
    build_info_print(&out);
    return print_text(&out);
}

static int command_redact(struct command_line *line)
{
    struct text report = {0};
    struct error err = {0};
    struct config *config = NULL;
    if (!line->dry_run || line->operand_count == 0) {
        command_line_complain("redact needs %s and a file or URL", "--dry-run");
        return 1;
    }
    if (line->sources.uri_count > 0 && !(config = load(line)))
        return 1;
    bool done =
        redact_report(config, line->processor, line->operands[0], &line->http, &report, &err);
    if (!done)
        fprintf(stderr, "Error: %s\n", err.text);
    config_free(config);
    return print_text(&report) == 0 && done ? 0 : 1;
}

static int command_explain(struct command_line *line)
{
    struct text report = {0};
    struct error err = {0};
    if (line->operand_count == 0) {
        command_line_complain("explain needs %s", "the id of a span or trace");
        return 1;
    }
    const char *url = line->operand_count > 1 ? line->operands[1] : EXPLAIN_URL;
    bool done = explain_report(line->operands[0], url, &line->http, &report, &err);
    if (!done)
        fprintf(stderr, "Error: %s\n", err.text);
    return print_text(&report) == 0 && done ? 0 : 1;
}

static int print_help(enum command_id command)
{
    struct text out = {0};
    command_help_print(command, &out);
    return print_text(&out);
}

static int command_help(struct command_line *line)
{
    enum command_id about = COMMAND_RUN;
    if (line->operand_count > 0)
        about = command_line_find(line->operands[0]);
    return about == COMMAND_COUNT ? 1 : print_help(about);
}

static int command_completion(struct command_line *line)
{
    struct text out = {0};
    const char *shell = line->operand_count > 0 ? line->operands[0] : "";
    if (command_completion_print(shell, &out))
        return print_text(&out);
    command_line_complain("completion needs a shell: bash, zsh or fish, not \"%s\"", shell);
    return 1;
}

static int command_man(struct command_line *line)
{
    struct text out = {0};
    const char *page = line->operand_count > 0 ? line->operands[0] : "profcol";
    if (strcmp(page, "profcol") == 0) {
        command_manual_print(&out);
    } else if (strcmp(page, "profcol.yaml") == 0) {
        command_manual_print_config(&out);
    } else {
        command_line_complain("man has the pages profcol and profcol.yaml, not \"%s\"", page);
        return 1;
    }
    return print_text(&out);
}

static int (*const command_functions[COMMAND_COUNT])(struct command_line *line) = {
    [COMMAND_RUN] = command_run,
    [COMMAND_VALIDATE] = command_validate,
    [COMMAND_PRINT_CONFIG] = command_print_config,
    [COMMAND_COMPONENTS] = command_components,
    [COMMAND_REFERENCE] = command_reference,
    [COMMAND_SCHEMA] = command_schema,
    [COMMAND_HEALTHCHECK] = command_healthcheck,
    [COMMAND_REDACT] = command_redact,
    [COMMAND_EXPLAIN] = command_explain,
    [COMMAND_VERSION] = command_version,
    [COMMAND_HELP] = command_help,
    [COMMAND_COMPLETION] = command_completion,
    [COMMAND_MAN] = command_man,
};

/* The version, as the Collector prints it. */
static int print_version(void)
{
    struct text out = {0};
    text_append(&out, "profcol version " PROFCOL_VERSION "\n");
    return print_text(&out);
}

static int run_command(struct command_line *line)
{
    if (line->help)
        return print_help(line->command);
    if (line->version)
        return print_version();
    return command_functions[line->command](line);
}

int main(int argc, char **argv)
{
    struct command_line line = {0};
    hash_init();
    memory_report_with(log_fatal);
    int status = command_line_parse(&line, argc, argv) ? run_command(&line) : 1;
    command_line_deinit(&line);
    return status;
}
