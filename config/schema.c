#include "config/config.h"

#include "config/sections.h"
#include "config/service.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>

/*
 * The JSON schema (draft 2020-12) of a configuration file, for editors. Any value may also be a
 * placeholder, whose content a schema cannot check.
 */

static json_t *reference(const char *name)
{
    return json_pack("{s:s}", "$ref", name);
}

/* Allows a value of this schema, a placeholder, or null. */
static json_t *or_placeholder(json_t *schema)
{
    assert(schema);
    return json_pack("{s:[o,o,{s:s}]}", "anyOf", schema, reference("#/$defs/placeholder"), "type",
                     "null");
}

static void set(json_t *object, const char *key, json_t *value)
{
    assert(value); /* NULL only for an invalid format of json_pack */
    json_object_set_new(object, key, value);
}

/* ---- kinds ---- */

static void set_bound(json_t *schema, const char *key, const struct field *field, const char *text)
{
    int64_t integer;
    double number;
    struct slice s = slice_of_string(text ? text : "");
    if (!text)
        return;
    if (field->kind != FIELD_KIND_DOUBLE && config_parse_int(s, &integer))
        set(schema, key, json_integer(integer));
    else if (config_parse_double(s, &number))
        set(schema, key, json_real(number));
}

static json_t *number_schema(const struct field *field)
{
    const char *least = field->kind == FIELD_KIND_UINT && !field->min ? "0" : field->min;
    json_t *schema =
        json_pack("{s:s}", "type", field->kind == FIELD_KIND_DOUBLE ? "number" : "integer");
    set_bound(schema, "minimum", field, least);
    set_bound(schema, "maximum", field, field->max);
    return or_placeholder(schema);
}

static json_t *enum_schema(const struct field *field)
{
    json_t *names = json_array();
    for (size_t i = 0; field->names[i]; i++)
        json_array_append_new(names, json_string(field->names[i]));
    return or_placeholder(json_pack("{s:o}", "enum", names));
}

static json_t *block_schema(const struct field *fields, bool optional);

static json_t *kind_schema(const struct field *field)
{
    switch (field->kind) {
    case FIELD_KIND_BOOL:
        return or_placeholder(json_pack("{s:s}", "type", "boolean"));
    case FIELD_KIND_UINT:
    case FIELD_KIND_INT:
    case FIELD_KIND_DOUBLE:
        return number_schema(field);
    case FIELD_KIND_DURATION:
        return or_placeholder(reference("#/$defs/duration"));
    case FIELD_KIND_STRING:
    case FIELD_KIND_SECRET:
        return reference("#/$defs/text");
    case FIELD_KIND_ENUM:
        return enum_schema(field);
    case FIELD_KIND_STRINGS:
        return reference("#/$defs/texts");
    case FIELD_KIND_PAIRS:
        return reference("#/$defs/pairs");
    case FIELD_KIND_BLOCK:
    case FIELD_KIND_OPTIONAL:
        return or_placeholder(block_schema(field->block, field->kind == FIELD_KIND_OPTIONAL));
    case FIELD_KIND_LIST:
        return or_placeholder(
            json_pack("{s:s,s:o}", "type", "array", "items", block_schema(field->block, false)));
    case FIELD_KIND_MAP:
        return or_placeholder(json_pack("{s:s,s:o}", "type", "object", "additionalProperties",
                                        or_placeholder(block_schema(field->block, false))));
    case FIELD_KIND_NODE:
    case FIELD_KIND_END:
        break;
    }
    return json_object();
}

/* Returns the default as JSON of the field's type. */
static json_t *default_json(const struct field *field)
{
    bool boolean;
    int64_t integer;
    double number;
    struct slice text = slice_of_string(field->fallback);
    if (field->kind == FIELD_KIND_BOOL && config_parse_bool(text, &boolean))
        return json_boolean(boolean);
    if ((field->kind == FIELD_KIND_UINT || field->kind == FIELD_KIND_INT) &&
        config_parse_int(text, &integer))
        return json_integer(integer);
    if (field->kind == FIELD_KIND_DOUBLE && config_parse_double(text, &number))
        return json_real(number);
    return json_string(field->fallback);
}

static json_t *field_schema(const struct field *field)
{
    json_t *schema = kind_schema(field);
    struct text help = {0};
    text_printf(&help, "%s%s%s%s%s", field->help ? field->help : "",
                field->replaced_by ? " Deprecated: use " : "",
                field->replaced_by ? field->replaced_by : "", field->replaced_by ? "." : "",
                field->ignored ? " Accepted, but has no effect in profcol." : "");
    set(schema, "description", json_string(text_string(&help)));
    text_deinit(&help);
    if (field->fallback && field->kind != FIELD_KIND_OPTIONAL && field->kind != FIELD_KIND_NODE)
        set(schema, "default", default_json(field));
    if (field->replaced_by)
        set(schema, "deprecated", json_true());
    return schema;
}

/* ---- blocks ---- */

static void add_fields(json_t *properties, json_t *required, const struct field *fields)
{
    for (const struct field *field = fields; field && field->kind != FIELD_KIND_END; field++) {
        if (field->inlined) {
            add_fields(properties, required, field->block);
            continue;
        }
        set(properties, field->name, field_schema(field));
        if (field->required)
            json_array_append_new(required, json_string(field->name));
    }
}

/* Returns the schema of a block. Fields of an optional block with `enabled: false` are not
 * required. */
static json_t *block_schema(const struct field *fields, bool optional)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    add_fields(properties, required, fields);
    if (optional)
        set(properties, "enabled", or_placeholder(json_pack("{s:s}", "type", "boolean")));
    json_t *schema = json_pack("{s:s,s:o,s:b}", "type", "object", "properties", properties,
                               "additionalProperties", 0);
    if (!optional && json_array_size(required))
        json_object_set(schema, "required", required);
    json_decref(required);
    return schema;
}

/* ---- sections ---- */

static void add_type(json_t *definitions, json_t *patterns, const struct config_type *type)
{
    struct text name = {0};
    text_printf(&name, "%s.%s", config_section_names[type->section], type->name);
    json_t *schema = block_schema(type->fields, false);
    set(schema, "description", json_string(type->help ? type->help : ""));
    set(definitions, text_string(&name), schema);

    struct text target = {0};
    text_printf(&target, "#/$defs/%s", text_string(&name));
    struct text pattern = {0};
    text_printf(&pattern, "^\\s*%s\\s*(/.+)?$", type->name);
    set(patterns, text_string(&pattern), or_placeholder(reference(text_string(&target))));
    if (type->alias) {
        text_clear(&pattern);
        text_printf(&pattern, "^\\s*%s\\s*(/.+)?$", type->alias);
        json_t *schema_of_alias = or_placeholder(reference(text_string(&target)));
        set(schema_of_alias, "deprecated", json_true());
        set(patterns, text_string(&pattern), schema_of_alias);
    }
    text_deinit(&name);
    text_deinit(&target);
    text_deinit(&pattern);
}

static json_t *section_schema(json_t *definitions, const struct config_type *const *types,
                              enum config_section section)
{
    json_t *patterns = json_object();
    for (; *types; types++)
        if ((*types)->section == section)
            add_type(definitions, patterns, *types);
    return or_placeholder(json_pack("{s:s,s:o,s:b}", "type", "object", "patternProperties",
                                    patterns, "additionalProperties", 0));
}

static json_t *ids_schema(void)
{
    return or_placeholder(json_pack("{s:s,s:{s:s}}", "type", "array", "items", "type", "string"));
}

static json_t *service_schema(void)
{
    json_t *pipeline =
        json_pack("{s:s,s:{s:o,s:o,s:o},s:[s,s],s:b}", "type", "object", "properties", "receivers",
                  ids_schema(), "processors", ids_schema(), "exporters", ids_schema(), "required",
                  "receivers", "exporters", "additionalProperties", 0);
    json_t *pipelines = json_pack("{s:s,s:{s:o},s:i,s:b}", "type", "object", "patternProperties",
                                  "^\\s*(traces|profiles)\\s*(/.+)?$", or_placeholder(pipeline),
                                  "minProperties", 1, "additionalProperties", 0);
    json_t *telemetry = or_placeholder(block_schema(config_telemetry_fields, false));
    return json_pack("{s:s,s:{s:o,s:o,s:o},s:[s],s:b}", "type", "object", "properties", "pipelines",
                     or_placeholder(pipelines), "extensions", ids_schema(), "telemetry", telemetry,
                     "required", "pipelines", "additionalProperties", 0);
}

static json_t *definitions_schema(void)
{
    json_t *text = json_pack("{s:[s,s,s,s]}", "type", "string", "number", "boolean", "null");
    json_t *texts = json_pack("{s:[{s:s,s:o},o]}", "anyOf", "type", "array", "items",
                              reference("#/$defs/text"), reference("#/$defs/text"));
    json_t *pair = json_pack("{s:s,s:{s:o,s:o},s:[s,s],s:b}", "type", "object", "properties",
                             "name", reference("#/$defs/text"), "value", reference("#/$defs/text"),
                             "required", "name", "value", "additionalProperties", 0);
    json_t *map =
        json_pack("{s:s,s:o}", "type", "object", "additionalProperties", reference("#/$defs/text"));
    json_t *pairs = or_placeholder(
        json_pack("{s:[o,{s:s,s:o}]}", "anyOf", map, "type", "array", "items", pair));
    const char *duration =
        "^[+-]?(0|([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+$";
    return json_pack("{s:o,s:o,s:o,s:{s:s,s:s},s:{s:[{s:s,s:s},{s:i}]}}", "text", text, "texts",
                     texts, "pairs", pairs, "placeholder", "type", "string", "pattern",
                     "\\$\\{.*\\}", "duration", "anyOf", "type", "string", "pattern", duration,
                     "const", 0);
}

void config_print_schema(const struct config_type *const *types, struct text *out)
{
    json_t *definitions = definitions_schema();
    json_t *properties = json_object();
    for (int section = 0; section < CONFIG_SECTION_COUNT; section++)
        set(properties, config_section_names[section],
            section_schema(definitions, types, (enum config_section)section));
    set(properties, "service", service_schema());
    json_t *schema =
        json_pack("{s:s,s:s,s:s,s:o,s:[s,s,s],s:b,s:o}", "$schema",
                  "https://json-schema.org/draft/2020-12/schema", "title", "profcol configuration",
                  "type", "object", "properties", properties, "required", "receivers", "exporters",
                  "service", "additionalProperties", 0, "$defs", definitions);
    char *printed = json_dumps(schema, JSON_INDENT(2));
    if (printed) {
        text_append(out, printed);
        text_append_char(out, '\n');
    }
    free(printed);
    json_decref(schema);
}
