/*
 * Any bytes as a condition and as a statement of OTTL, which are evaluated on a span and an event,
 * a profile and a sample; and as a regular expression.
 */
#include "core/data/dictionary.h"
#include "core/data/otlp.h"
#include "core/data/wire_writer.h"
#include "core/ottl/ottl.h"
#include "core/ottl/ottl_parser.h"
#include "core/ottl/ottl_regex.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(struct slice text)
{
    struct arena arena;
    struct ottl_statement parsed;
    struct error err;
    arena_init(&arena, NULL);
    if (ottl_parse_condition(text, &arena, &parsed, &err) && (parsed.editor || !parsed.condition))
        abort();
    if (ottl_parse_statement(text, &arena, &parsed, &err) && !parsed.editor)
        abort();
    arena_deinit(&arena);
}

/* A span {name: "abc", kind: 2, attributes: {a: "x", l: [1, {}]}}, in a scope, in a resource. */
static const uint8_t span[] = {0x2a, 3, 'a',  'b', 'c',  0x30, 2,    0x4a, 8,    0x0a, 1,    'a',
                               0x12, 3, 0x0a, 1,   'x',  0x4a, 15,   0x0a, 1,    'l',  0x12, 10,
                               0x2a, 8, 0x0a, 2,   0x18, 1,    0x0a, 2,    0x32, 0};
static const uint8_t event[] = {0x12, 1, 'e', 0x1a, 8, 0x0a, 1, 'a', 0x12, 3, 0x0a, 1, 'x'};
static const uint8_t resource[] = {0x0a, 10, 0x0a, 8, 0x0a, 1, 'a', 0x12, 3, 0x0a, 1, 'r'};
static const uint8_t scope_spans[] = {0x0a, 3, 0x0a, 1, 's'};

/* A profile {type: "a", attributes: {a: "x"}} with a sample {stack: [a, a], link, attributes: {a:
 * "x"}, values: [1, 2], timestamps: [1]}, and its dictionary, in a request. */
static const uint8_t sample[] = {0x08, 1, 0x12, 1, 1, 0x18, 1, 0x22, 2, 1, 2,
                                 0x2a, 8, 1,    0, 0, 0,    0, 0,    0, 0};
static const uint8_t profile[] = {0x0a, 4, 0x08, 1, 0x10, 1, 0x5a, 1, 1};
static const uint8_t profiles[] = {
    0x12, 58,                                                        /* the dictionary */
    0x0a, 0,  0x0a, 2,  0x20, 1,                                     /* mappings */
    0x12, 0,  0x12, 10, 0x08, 1, 0x1a, 2, 0x08, 1, 0x1a, 2, 0x08, 1, /* locations */
    0x1a, 0,  0x1a, 4,  0x08, 1, 0x18, 1,                            /* functions */
    0x22, 0,  0x22, 2,  0x12, 0,                                     /* links */
    0x2a, 0,  0x2a, 1,  'a',                                         /* strings */
    0x32, 0,  0x32, 7,  0x08, 1, 0x12, 3, 0x0a, 1, 'x',              /* attributes */
    0x3a, 0,  0x3a, 4,  0x0a, 2, 1,    1,                            /* stacks */
};

static void set_data(struct ottl_item *item, struct message *root, struct arena *arena)
{
    message_init(root, slice_of(profiles, sizeof profiles));
    ottl_item_set_dictionary(item, dictionary_new(root, arena), arena);
    ottl_item_set_group(item, message_iter_bytes(slice_of(resource, sizeof resource)));
    ottl_item_set_scope_group(item, message_iter_bytes(slice_of(scope_spans, sizeof scope_spans)));
    ottl_item_set_span(item, message_iter_bytes(slice_of(span, sizeof span)));
    ottl_item_set_span_event(item, message_iter_bytes(slice_of(event, sizeof event)));
    ottl_item_set_profile(item, message_iter_bytes(slice_of(profile, sizeof profile)));
    ottl_item_set_sample(item, message_iter_bytes(slice_of(sample, sizeof sample)));
}

static void evaluate(enum ottl_context context, struct slice text)
{
    struct arena arena;
    struct message root;
    struct error err;
    struct ottl_item item;
    struct ottl_program *program =
        ottl_compile_condition(context, text, OTTL_PREFIX_OPTIONAL, &err);
    if (!program)
        return;
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    ottl_item_begin(&item);
    arena_init(&arena, NULL);
    set_data(&item, &root, &arena);
    enum ottl_result result = ottl_evaluate(evaluator, &item);
    if (ottl_evaluate(evaluator, &item) != result)
        abort();
    ottl_evaluator_free(evaluator);
    ottl_program_free(program);
    arena_deinit(&arena);
}

/* The span of set_data with what is around it, so that it can be written. */
static void set_way(struct ottl_way *way, struct message *root, struct arena *arena)
{
    struct wire_writer writer = {0};
    size_t group = wire_writer_begin(&writer, REQUEST_GROUPS);
    wire_writer_raw(&writer, slice_of(resource, sizeof resource));
    size_t scope = wire_writer_begin(&writer, GROUP_SCOPES);
    wire_writer_raw(&writer, slice_of(scope_spans, sizeof scope_spans));
    size_t item = wire_writer_begin(&writer, SCOPE_ITEMS);
    wire_writer_raw(&writer, slice_of(span, sizeof span));
    wire_writer_bytes(&writer, SPAN_EVENTS, slice_of(event, sizeof event));
    wire_writer_end(&writer, item);
    wire_writer_end(&writer, scope);
    wire_writer_end(&writer, group);
    message_init(root, arena_copy(arena, wire_writer_slice(&writer)));
    wire_writer_deinit(&writer);
    static const uint32_t numbers[] = {REQUEST_GROUPS, GROUP_SCOPES, SCOPE_ITEMS, SPAN_EVENTS};
    for (unsigned i = 0; i < OTTL_DEPTH_COUNT; i++) {
        way->iters[i] =
            i == 0 ? message_iter(root, arena) : message_iter_into(&way->fields[i - 1], arena);
        if (!message_next_bytes(&way->iters[i], numbers[i], &way->fields[i]))
            abort();
    }
}

static void execute(enum ottl_context context, struct slice text)
{
    struct arena arena;
    struct message root;
    struct error err;
    struct ottl_item item;
    struct ottl_way way;
    struct ottl_cache cache = {.map = {0}};
    struct ottl_program *program =
        ottl_compile_statement(context, text, OTTL_PREFIX_OPTIONAL, &err);
    if (!program)
        return;
    struct ottl_evaluator *evaluator = ottl_evaluator_new(program);
    ottl_item_begin(&item);
    arena_init(&arena, NULL);
    set_way(&way, &root, &arena);
    ottl_item_set_group(&item, message_iter_into(&way.fields[0], &arena));
    ottl_item_set_scope_group(&item, message_iter_into(&way.fields[1], &arena));
    ottl_item_set_span(&item, message_iter_into(&way.fields[2], &arena));
    ottl_item_set_span_event(&item, message_iter_into(&way.fields[3], &arena));
    struct ottl_draft *draft = ottl_draft_new();
    ottl_item_set_way(&item, &way, draft, 1 << 16);
    item.cache = &cache;
    ottl_execute(evaluator, &item);
    ottl_execute(evaluator, &item);
    ottl_item_finish(&item);
    ottl_item_leave(&item, 0);
    ottl_draft_free(draft);
    size_t size = message_measure(&root);
    uint8_t *bytes = arena_alloc(&arena, size);
    if (message_write(&root, bytes) != bytes + size)
        abort();
    ottl_evaluator_free(evaluator);
    ottl_program_free(program);
    ottl_cache_clear(&cache);
    arena_deinit(&arena);
}

/* A translated pattern must be one that PCRE2 takes, unless it is too large. */
static void compile_pattern(struct slice text)
{
    struct error err;
    ottl_regex_free(ottl_regex_new(text, &err));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = slice_of(size > 0 ? data : (const uint8_t *)"", size);
    parse(text);
    evaluate(OTTL_SPAN, text);
    evaluate(OTTL_SPAN_EVENT, text);
    evaluate(OTTL_RESOURCE, text);
    evaluate(OTTL_PROFILE, text);
    evaluate(OTTL_PROFILE_SAMPLE, text);
    execute(OTTL_SPAN, text);
    execute(OTTL_SPAN_EVENT, text);
    execute(OTTL_RESOURCE, text);
    if (size <= 4096)
        compile_pattern(text);
    return 0;
}
