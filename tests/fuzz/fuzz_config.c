/*
 * Loads a configuration from any bytes: with a table that has every kind of field, whose printed
 * form must load again and print the same, and with the tables of all components, whose own checks
 * run, too. The latter is repeated with the pipelines of one signal (--signals).
 */
#include "config/config.h"
#include "config/load.h"

#include "core/base/error.h"
#include "core/components.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inner {
    bool enabled;
    uint64_t number;
    const char *token;
};

struct settings {
    bool flag;
    uint64_t count;
    int64_t offset;
    double ratio;
    int64_t timeout;
    const char *text;
    const char *named;
    const char *secret;
    int level;
    struct config_strings keys;
    struct config_pairs headers;
    struct inner block;
    struct inner off;
    struct inner on;
    struct config_list list;
    struct config_list map;
    const struct config_node *raw;
};

static const struct field inner_fields[] = {
    FIELD_UINT(inner, number, "A number.", .fallback = "3", .min = "1", .max = "10"),
    FIELD_SECRET(inner, token, "A secret."),
    FIELD_END,
};

struct named {
    const char *name;
    uint64_t number;
};

static const struct field named_fields[] = {
    FIELD_UINT(named, number, "A number.", .fallback = "3"),
    FIELD_END,
};

static const char *const levels[] = {"", "basic", "detailed", NULL};

static const struct field fields[] = {
    FIELD_BOOL(settings, flag, "A flag.", .fallback = "true"),
    FIELD_UINT(settings, count, "A count.", .fallback = "5"),
    FIELD_INT(settings, offset, "An offset.", .fallback = "-1"),
    FIELD_DOUBLE(settings, ratio, "A ratio.", .fallback = "0.5"),
    FIELD_DURATION(settings, timeout, "A time.", .fallback = "200ms"),
    FIELD_STRING(settings, text, "A text."),
    FIELD_STRING(settings, named, "A text with a default.", .fallback = "localhost"),
    FIELD_SECRET(settings, secret, "A secret."),
    FIELD_ENUM(settings, level, "A level.", levels, .fallback = "basic"),
    FIELD_STRINGS(settings, keys, "Keys.", .fallback = "x,y"),
    FIELD_PAIRS(settings, headers, "Headers."),
    FIELD_BLOCK(settings, block, inner, inner_fields, "A block."),
    FIELD_OPTIONAL(settings, off, inner, inner_fields, "Off by default."),
    FIELD_OPTIONAL(settings, on, inner, inner_fields, "On by default.", .fallback = "true"),
    FIELD_LIST(settings, list, inner, inner_fields, "Blocks."),
    FIELD_MAP(settings, map, named, named_fields, "Blocks with names."),
    FIELD_NODE(settings, raw, "Anything."),
    FIELD_END,
};

#define TYPE(NAME, SECTION)                                                                        \
    {                                                                                              \
        .name = (NAME), .section = (SECTION), .stability = {STABILITY_BETA, STABILITY_BETA},       \
        .fields = fields, .config_size = sizeof(struct settings)                                   \
    }

static const struct config_type receiver = TYPE("r", CONFIG_RECEIVERS);
static const struct config_type processor = TYPE("p", CONFIG_PROCESSORS);
static const struct config_type exporter = TYPE("e", CONFIG_EXPORTERS);
static const struct config_type extension = TYPE("x", CONFIG_EXTENSIONS);
static const struct config_type *const own_types[] = {&receiver, &processor, &exporter, &extension,
                                                      NULL};

/* ---- the world around ---- */

static const char *environment(const char *name)
{
    static const char *const variables[][2] = {
        {"N", "7"},
        {"T", "a$$b"},
        {"L", "[a, '${env:N}']"},
        {"M", "{number: 4}"},
        {"S", "${env:S}"},
        {"G", "x${env:G}${env:G}"},
        {"B", "['${env:B}', '${env:B}']"},
        {"U", "a\xff\n\x01"},
        {"E", ""},
    };
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (strcmp(name, variables[i][0]) == 0)
            return variables[i][1];
    return NULL;
}

static struct slice document; /* the file "d" */

static bool read_file(struct arena *arena, const char *path, size_t max_bytes,
                      struct slice *content_out, struct error *err)
{
    (void)max_bytes;
    if (strcmp(path, "d") == 0) {
        *content_out = arena_copy(arena, document);
        return true;
    }
    if (strcmp(path, "f") != 0)
        return error_set(err, "there is no file \"%s\"", path);
    *content_out = arena_copy(arena, SLICE("- a: ${env:N}\n"));
    return true;
}

static const struct config_inputs inputs = {.environment = environment, .read_file = read_file};

/* ---- the two loads ---- */

static void demand(bool condition, const char *what, const struct text *shown)
{
    if (condition)
        return;
    fprintf(stderr, "%s:\n%s\n", what, text_string(shown));
    abort();
}

static void load_what_was_printed(const struct text *printed)
{
    struct text report = {0};
    struct text again = {0};
    struct slice yaml = slice_of(printed->data, printed->size);
    struct config *config = config_load_text_from(&inputs, own_types, "again", yaml, &report);
    demand(config, text_string(&report), printed);
    config_print(config, &again);
    demand(slice_equal(yaml, slice_of(again.data, again.size)), text_string(&again), printed);
    config_free(config);
    text_deinit(&report);
    text_deinit(&again);
}

static void load(const struct config_type *const *types, struct slice yaml, bool again)
{
    struct text report = {0};
    struct config *config = config_load_text_from(&inputs, types, "fuzz", yaml, &report);
    demand(config || report.size, "no configuration, and no reason why", &report);
    if (config) {
        struct text printed = {0};
        config_print(config, &printed);
        if (again)
            load_what_was_printed(&printed);
        text_deinit(&printed);
    }
    config_free(config);
    text_deinit(&report);
}

static void load_traces(struct slice yaml)
{
    static const char *const uris[] = {"file:d"};
    struct text report = {0};
    document = yaml;
    struct config *config =
        config_load_from(&inputs, component_types, uris, 1,
                         (struct config_options){.signals = 1u << CONFIG_TRACES}, &report);
    demand(config || report.size, "no configuration, and no reason why", &report);
    config_free(config);
    text_deinit(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    load(own_types, slice_of(data, size), true);
    load(component_types, slice_of(data, size), false);
    load_traces(slice_of(data, size));
    return 0;
}
