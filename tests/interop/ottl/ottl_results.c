/*
 * Prints what OTTL statements make of requests. tests/interop/ottl compares that with the
 * Collector.
 *
 *     ottl_results traces|profiles < cases
 *
 * A case is a line: a request in hexadecimal, the context and the statements, between tabs. They
 * are one group of the processor transform. A line is printed for each, its fields between tabs:
 *     "invalid"   and why
 *     "ran"       how many executions failed, why the last one did, and the request in hexadecimal
 */
#include "core/base/worker.h"
#include "processors/transform/transform_walk.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIELDS_MAX = 64, LINE_BYTES = 1 << 22 };

static struct worker worker;

static struct buffer *read_request(const char *hex)
{
    struct buffer *buffer = buffer_new(strlen(hex) / 2 + 1, NULL);
    for (; *hex; hex += 2) {
        const char digits[] = {hex[0], hex[1], '\0'};
        uint8_t byte = (uint8_t)strtoul(digits, NULL, 16);
        if (!buffer_append(buffer, &byte, 1, LINE_BYTES))
            abort();
    }
    return buffer;
}

static enum ottl_context context_of(const char *name)
{
    for (int i = 0; i < OTTL_CONTEXT_COUNT; i++)
        if (strcmp(name, ottl_context_names[i]) == 0)
            return (enum ottl_context)i;
    abort();
}

static void print_request(struct batch *batch)
{
    batch_flatten(batch);
    struct slice bytes = batch->parts[0].root.raw;
    for (size_t i = 0; i < bytes.size; i++)
        printf("%02x", bytes.data[i]);
}

/* Prints a text in one field. */
static void print_text(const char *text)
{
    for (; *text; text++)
        putchar(*text == '\t' || *text == '\n' ? ' ' : *text);
}

static void execute(const struct transform_plan *plan, struct ottl_program **programs,
                    enum signal signal, const char *request)
{
    struct transform_programs group = {.statements = programs};
    struct transform_walk walk;
    struct batch *batch = batch_new(&worker, signal, read_request(request), 1, NULL, NULL);
    transform_walk_init(&walk, plan, "transform", &group);
    transform_walk_batch(&walk, batch);
    if (walk.changed)
        batch_prune(batch);
    const char *error = "";
    for (size_t i = 0; i < plan->groups->statements.count && !*error; i++)
        error = ottl_evaluator_error(walk.evaluators->statements[i]);
    printf("ran\t%llu\t", (unsigned long long)walk.errors.count);
    print_text(walk.errors.count > 0 ? error : "");
    putchar('\t');
    print_request(batch);
    putchar('\n');
    transform_walk_deinit(&walk);
    batch_free(batch);
}

/* fields: the statements. */
static void run(enum ottl_context context, char **fields, size_t count, enum signal signal,
                const char *request)
{
    struct ottl_program *programs[FIELDS_MAX];
    const char *texts[FIELDS_MAX];
    struct error err;
    struct transform_group group = {context,
                                    OTTL_PREFIX_OPTIONAL,
                                    OTTL_SILENT,
                                    {.count = 0},
                                    {.items = (void *)texts, .count = count}};
    struct transform_plan plan = {&group, 1, 1};
    size_t compiled = 0;
    for (; compiled < count; compiled++) {
        texts[compiled] = fields[compiled];
        if (!(programs[compiled] = transform_compile_statement(&group, compiled, &err)))
            break;
    }
    if (compiled == count) {
        execute(&plan, programs, signal, request);
    } else {
        printf("invalid\t");
        print_text(err.text);
        putchar('\n');
    }
    while (compiled > 0)
        ottl_program_free(programs[--compiled]);
}

static size_t split(char *line, char **fields)
{
    size_t count = 0;
    for (char *rest = line, *field; (field = strsep(&rest, "\t"));) {
        if (count == FIELDS_MAX)
            abort();
        fields[count++] = field;
    }
    return count;
}

int main(int count, char **arguments)
{
    static char line[LINE_BYTES];
    char *fields[FIELDS_MAX];
    if (count != 2)
        return 2;
    enum signal signal = strcmp(arguments[1], "traces") == 0 ? SIGNAL_TRACES : SIGNAL_PROFILES;
    worker_init_manual(&worker, 0, 1);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        size_t fields_count = split(line, fields);
        if (fields_count < 3)
            return 2;
        run(context_of(fields[1]), fields + 2, fields_count - 2, signal, fields[0]);
    }
    worker_deinit(&worker);
    return 0;
}
