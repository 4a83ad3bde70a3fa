#include "config_fixture.h"

#include "core/base/error.h"

#include <stdio.h>
#include <string.h>

/* ---- types ---- */

static const struct field kinds_block_fields[] = {
    FIELD_UINT(kinds_block, number, "A number.", .fallback = "3", .min = "1", .max = "10"),
    FIELD_STRING(kinds_block, text, "A text."),
    FIELD_SECRET(kinds_block, token, "A secret."),
    FIELD_END,
};

static const struct field squashed_fields[] = {
    {.name = "squashed_number",
     .kind = FIELD_KIND_UINT,
     .offset = FIELD_CHECKED_OFFSET(kinds_block, number, uint64_t),
     .help = "A number.",
     .fallback = "7"},
    {.name = "squashed_text",
     .kind = FIELD_KIND_STRING,
     .offset = FIELD_CHECKED_OFFSET(kinds_block, text, const char *),
     .help = "A text."},
    FIELD_END,
};

static const char *const actions[] = {"insert", "update", "delete", NULL};
static const char *const levels[] = {"none", "basic", "normal", "detailed", NULL};

static const struct field rule_fields[] = {
    FIELD_STRING(rule_settings, key, "What it applies to.", .required = true),
    FIELD_ENUM(rule_settings, action, "What it does.", actions, .fallback = "update"),
    FIELD_PAIRS(rule_settings, extra, "More."),
    FIELD_END,
};

static const struct field counter_fields[] = {
    FIELD_UINT(counter_settings, step, "A step.", .fallback = "1", .min = "1"),
    FIELD_LIST(counter_settings, rules, rule_settings, rule_fields, "Rules."),
    FIELD_END,
};

const struct field kinds_fields[] = {
    FIELD_BOOL(kinds_settings, flag, "A flag.", .fallback = "true"),
    FIELD_UINT(kinds_settings, count, "A count.", .fallback = "5", .max = "1000"),
    FIELD_INT(kinds_settings, offset, "An offset.", .fallback = "-1"),
    FIELD_DOUBLE(kinds_settings, ratio, "A ratio.", .fallback = "0.5", .min = "0", .max = "1"),
    FIELD_DURATION(kinds_settings, timeout, "A time.", .fallback = "200ms", .min = "0s"),
    FIELD_STRING(kinds_settings, text, "A text."),
    FIELD_STRING(kinds_settings, named, "A text with a default.", .fallback = "localhost"),
    FIELD_SECRET(kinds_settings, secret, "A secret."),
    FIELD_ENUM(kinds_settings, level, "A level.", levels, .fallback = "normal"),
    FIELD_STRINGS(kinds_settings, keys, "Keys.", .fallback = "x,y"),
    FIELD_PAIRS(kinds_settings, headers, "Headers."),
    FIELD_BLOCK(kinds_settings, inner, kinds_block, kinds_block_fields, "A block."),
    FIELD_OPTIONAL(kinds_settings, off, kinds_block, kinds_block_fields, "Off by default."),
    FIELD_OPTIONAL(kinds_settings, on, kinds_block, kinds_block_fields, "On by default.",
                   .fallback = "true"),
    FIELD_BLOCK(kinds_settings, squashed, kinds_block, squashed_fields, "Inlined.",
                .inlined = true),
    FIELD_LIST(kinds_settings, rules, rule_settings, rule_fields, "Rules."),
    FIELD_MAP(kinds_settings, counters, counter_settings, counter_fields, "Counters."),
    FIELD_NODE(kinds_settings, raw, "Anything."),
    FIELD_UINT(kinds_settings, old_count, "The old count.", .replaced_by = "count"),
    FIELD_UINT(kinds_settings, unused, "Not used.", .fallback = "1", .ignored = true),
    FIELD_END,
};

void (*fixture_check)(struct kinds_settings *settings, struct config_check *check);

static void check_kinds(void *config, struct config_check *check)
{
    if (fixture_check)
        fixture_check(config, check);
}

struct endpoint_settings {
    const char *endpoint;
};

static const struct field endpoint_fields[] = {
    FIELD_STRING(endpoint_settings, endpoint, "Where to.", .required = true),
    FIELD_END,
};

struct empty_settings {
    int unused;
};

static const struct field no_fields[] = {FIELD_END};

#define TYPE(VARIABLE, NAME, SECTION, TRACES, PROFILES, FIELDS, STRUCT, ...)                       \
    static const struct config_type VARIABLE = {                                                   \
        .name = NAME,                                                                              \
        .section = SECTION,                                                                        \
        .stability = {[CONFIG_TRACES] = TRACES, [CONFIG_PROFILES] = PROFILES},                     \
        .help = "It is " NAME ".",                                                                 \
        .fields = FIELDS,                                                                          \
        .config_size = sizeof(struct STRUCT),                                                      \
        __VA_ARGS__}

TYPE(otlp_receiver, "otlp", CONFIG_RECEIVERS, STABILITY_STABLE, STABILITY_ALPHA, no_fields,
     empty_settings, .alias = NULL);
TYPE(kinds, "kinds", CONFIG_PROCESSORS, STABILITY_BETA, STABILITY_ALPHA, kinds_fields,
     kinds_settings, .check = check_kinds);
TYPE(batch, "batch", CONFIG_PROCESSORS, STABILITY_BETA, STABILITY_NONE, NULL, empty_settings,
     .alias = NULL);
TYPE(nop, "nop", CONFIG_EXPORTERS, STABILITY_BETA, STABILITY_ALPHA, NULL, empty_settings,
     .alias = NULL);
TYPE(debug, "debug", CONFIG_EXPORTERS, STABILITY_BETA, STABILITY_ALPHA, NULL, empty_settings,
     .alias = NULL);
TYPE(otlp_grpc, "otlp_grpc", CONFIG_EXPORTERS, STABILITY_STABLE, STABILITY_ALPHA, endpoint_fields,
     endpoint_settings, .alias = "otlp");
TYPE(forward, "forward", CONFIG_CONNECTORS, STABILITY_BETA, STABILITY_ALPHA, NULL, empty_settings,
     .alias = NULL);
TYPE(health_check, "health_check", CONFIG_EXTENSIONS, STABILITY_NONE, STABILITY_NONE, NULL,
     empty_settings, .alias = "healthcheck");

const struct config_type *const fixture_types[] = {
    &otlp_receiver, &kinds, &batch, &nop, &debug, &otlp_grpc, &forward, &health_check, NULL,
};

/* ---- the world around ---- */

static const struct fixture_variable nothing[] = {{NULL, NULL}};
const struct fixture_variable *fixture_environment = nothing;
const struct fixture_variable *fixture_files = nothing;

static const char *find(const struct fixture_variable *variables, const char *name)
{
    for (; variables->name; variables++)
        if (strcmp(variables->name, name) == 0)
            return variables->value;
    return NULL;
}

static const char *environment(const char *name)
{
    return find(fixture_environment, name);
}

static bool read_file(struct arena *arena, const char *path, size_t max_bytes,
                      struct slice *content_out, struct error *err)
{
    const char *content = find(fixture_files, path);
    if (!content)
        return error_set(err, "unable to read the file \"%s\"", path);
    *content_out = arena_copy(arena, slice_of_string(content));
    return content_out->size <= max_bytes;
}

const struct config_inputs fixture_inputs = {.environment = environment, .read_file = read_file};

/* ---- loading ---- */

struct config *fixture_load(const char *yaml, struct text *report)
{
    return config_load_text_from(&fixture_inputs, fixture_types, "t.yaml", slice_of_string(yaml),
                                 report);
}

static void wrap(struct text *yaml, const char *body)
{
    text_printf(yaml,
                "processors:\n"
                "  kinds: {%s}\n"
                "receivers: {otlp: }\n"
                "exporters: {nop: }\n"
                "service:\n"
                "  pipelines:\n"
                "    traces: {receivers: [otlp], processors: [kinds], exporters: [nop]}\n",
                body);
}

struct config *fixture_load_kinds(const char *body, struct text *report)
{
    struct text yaml = {0};
    wrap(&yaml, body);
    struct config *config = fixture_load(text_string(&yaml), report);
    text_deinit(&yaml);
    return config;
}

const struct kinds_settings *fixture_kinds(const struct config *config)
{
    return config->components[CONFIG_PROCESSORS][0].settings;
}

void expect_report(const char *yaml, const char *expected)
{
    struct text report = {0};
    struct config *config = fixture_load(yaml, &report);
    assert_string_equal(text_string(&report), expected);
    if ((config == NULL) != (strstr(expected, "error: ") != NULL))
        fail_msg("loaded: %d, report: %s", config != NULL, text_string(&report));
    config_free(config);
    text_deinit(&report);
}

void expect_kinds_report(const char *body, const char *expected)
{
    struct text yaml = {0};
    wrap(&yaml, body);
    expect_report(text_string(&yaml), expected);
    text_deinit(&yaml);
}
