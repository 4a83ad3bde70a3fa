/*
 * Prints what each OTTL condition of standard input, one a line, is for the first span of a
 * request: true, false, "error: ..." or "invalid: ...". tests/interop/ottl compares that with the
 * Collector.
 *
 *     ottl_verdicts REQUEST.json < conditions
 */
#include "core/data/json.h"
#include "core/data/otlp.h"
#include "core/ottl/ottl.h"

#include <stdio.h>
#include <stdlib.h>

static struct message_field first(struct message_iter message, uint32_t number)
{
    struct message_field field;
    if (!message_next_bytes(&message, number, &field))
        abort();
    return field;
}

static struct buffer *read_request(const char *path)
{
    static char json[1 << 20];
    struct error err;
    bool over_budget;
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    size_t size = fread(json, 1, sizeof json, file);
    fclose(file);
    return json_to_protobuf(JSON_TRACES_REQUEST, slice_of(json, size), NULL, &over_budget, &err);
}

static void print_verdict(const char *condition, struct ottl_item *item)
{
    struct error err;
    struct ottl_program *program =
        ottl_compile_condition(OTTL_SPAN, slice_of_string(condition), OTTL_PREFIX_OPTIONAL, &err);
    if (!program) {
        printf("invalid: %s\n", err.text);
        return;
    }
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    enum ottl_result result = ottl_evaluate(evaluator, item);
    if (result == OTTL_FAILED)
        printf("error: %s\n", ottl_evaluator_error(evaluator));
    else
        puts(result == OTTL_MATCH ? "true" : "false");
    ottl_evaluator_free(evaluator);
    ottl_program_free(program);
}

int main(int count, char **arguments)
{
    static char line[1 << 16];
    struct message_field fields[3];
    struct ottl_item item;
    struct buffer *request = count == 2 ? read_request(arguments[1]) : NULL;
    if (!request)
        return 2;
    fields[0] = first(message_iter_bytes(buffer_slice(request)), REQUEST_GROUPS);
    fields[1] = first(message_iter_bytes(fields[0].wire.bytes), GROUP_SCOPES);
    fields[2] = first(message_iter_bytes(fields[1].wire.bytes), SCOPE_ITEMS);
    ottl_item_begin(&item);
    ottl_item_set_fields(&item, fields, NULL);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        print_verdict(line, &item);
    }
    buffer_unref(request);
    return 0;
}
