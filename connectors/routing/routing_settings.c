#include "connectors/routing/routing_settings.h"

#include "config/suggest.h"
#include "core/ottl/ottl_check.h"

#include <assert.h>
#include <stdio.h>

static const char *const actions[] = {"move", "copy", NULL};

static const struct field entry_fields[] = {
    FIELD_STRING(routing_entry, context,
                 "What the condition is evaluated on: request, resource or span (traces only); "
                 "without it, the paths of the condition decide."),
    FIELD_STRING(routing_entry, statement,
                 "An OTTL statement, route() where CONDITION; not for the context request."),
    FIELD_STRING(routing_entry, condition,
                 "An OTTL condition; of the context request: request[\"KEY\"] == \"VALUE\", or !=, "
                 "for a header or metadata key (needs include_metadata)."),
    FIELD_ENUM(routing_entry, action,
               "Whether what matches leaves the table here (move), or also goes through the "
               "entries after it (copy).",
               actions, .fallback = "move"),
    FIELD_STRINGS(routing_entry, pipelines, "The pipelines that get what matches."),
    FIELD_END};

const struct field routing_fields[] = {
    FIELD_ENUM(routing_settings, error_mode,
               "What happens if a condition cannot be evaluated: it does not match, with a warning "
               "(ignore) or without (silent), or the data is refused (propagate).",
               ottl_error_modes, .fallback = "ignore"),
    FIELD_STRINGS(routing_settings, default_pipelines,
                  "The pipelines that get what no entry moved; without any, it is dropped."),
    FIELD_LIST(routing_settings, table, routing_entry, entry_fields,
               "The routes, tried in this order."),
    FIELD_END};

static bool is_written(const char *text)
{
    return text && text[0];
}

const char *routing_entry_text(const struct routing_entry *entry)
{
    return is_written(entry->condition) ? entry->condition : entry->statement;
}

/* ---- conditions ---- */

/* Without a context, that of the paths; a path without a prefix is one of the resource. */
enum { ALL_CONTEXTS = OTTL_BIT(OTTL_CONTEXT_COUNT) - 1 };

static bool find_context(const struct routing_entry *entry, struct slice text,
                         enum ottl_context *context_out, enum ottl_prefix *prefix_out,
                         struct error *err)
{
    struct error ignored;
    bool is_statement = !is_written(entry->condition);
    *prefix_out = OTTL_PREFIX_OPTIONAL;
    if (is_written(entry->context)) {
        *context_out = strcmp(entry->context, "span") == 0 ? OTTL_SPAN : OTTL_RESOURCE;
        return true;
    }
    *prefix_out = OTTL_PREFIX_REQUIRED;
    if (ottl_infer_context(text, is_statement, ALL_CONTEXTS, context_out, &ignored) !=
        OTTL_INFERRED) {
        *context_out = OTTL_RESOURCE;
        *prefix_out = OTTL_PREFIX_OPTIONAL;
    }
    return *context_out == OTTL_RESOURCE || *context_out == OTTL_SPAN ||
           error_set(err,
                     "context \"%s\" inferred from the condition is not a supported context; write "
                     "context: %s",
                     ottl_context_names[*context_out],
                     ottl_context_sees(*context_out, OTTL_PROFILE) ? "resource" : "span");
}

bool route_condition_init(struct route_condition *condition, const struct routing_entry *entry,
                          struct arena *arena, struct error *err)
{
    enum ottl_context context;
    enum ottl_prefix prefix;
    const char *written = routing_entry_text(entry);
    *condition = (struct route_condition){0};
    if (is_written(entry->context) && strcmp(entry->context, "request") == 0)
        return request_condition_parse(written, arena, &condition->request, err);
    struct slice text = slice_of_string(written);
    if (!find_context(entry, text, &context, &prefix, err))
        return false;
    condition->context = context == OTTL_SPAN ? ROUTING_BY_SPAN : ROUTING_BY_RESOURCE;
    condition->program = is_written(entry->condition)
                             ? ottl_compile_condition(context, text, prefix, err)
                             : ottl_compile_where(context, text, "route", prefix, err);
    return condition->program != NULL;
}

void route_condition_deinit(struct route_condition *condition)
{
    ottl_program_free(condition->program);
    condition->program = NULL;
}

/* ---- pipelines ---- */

static bool has(const struct config_component **list, size_t count, const void *settings)
{
    for (size_t i = 0; i < count; i++)
        if (list[i]->settings == settings)
            return true;
    return false;
}

/* Returns a pipeline that the connector begins; NULL: there is none of this id. */
static const struct config_pipeline *
find_begun(const struct config *config, const struct routing_settings *settings, const char *id)
{
    for (size_t i = 0; i < config->pipeline_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        if (strcmp(pipeline->id, id) == 0 &&
            has(pipeline->receivers, pipeline->receiver_count, settings))
            return pipeline;
    }
    return NULL;
}

/* Returns the pipeline that the connector begins whose id is most like this; NULL: none is. */
static const char *suggest_begun(const struct config *config,
                                 const struct routing_settings *settings, const char *id)
{
    enum { NAMES_MAX = 64 };
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < config->pipeline_count && count < NAMES_MAX; i++)
        if (has(config->pipelines[i].receivers, config->pipelines[i].receiver_count, settings))
            names[count++] = config->pipelines[i].id;
    return config_suggest(id, names, count);
}

static bool consumes(const struct config *config, const struct routing_settings *settings,
                     enum config_signal signal)
{
    for (size_t i = 0; i < config->pipeline_count; i++)
        if (config->pipelines[i].signal == signal &&
            has(config->pipelines[i].exporters, config->pipelines[i].exporter_count, settings))
            return true;
    return false;
}

/* Every pipeline must begin with the connector, and each signal needs one of them. */
static void check_pipelines(const struct routing_settings *settings, struct config_check *check,
                            const struct config_strings *pipelines, const char *key)
{
    const struct config *config = config_check_config(check);
    bool found[CONFIG_SIGNAL_COUNT] = {false};
    for (size_t i = 0; i < pipelines->count; i++) {
        const struct config_pipeline *begun = find_begun(config, settings, pipelines->items[i]);
        if (!begun) {
            const char *near = suggest_begun(config, settings, pipelines->items[i]);
            config_check_error(check, key,
                               "pipeline not found: \"%s\" is not a pipeline whose receivers "
                               "include this connector%s%s%s",
                               pipelines->items[i], near ? "; did you mean \"" : "",
                               near ? near : "", near ? "\"?" : "");
            return;
        }
        found[begun->signal] = true;
    }
    for (int signal = 0; signal < CONFIG_SIGNAL_COUNT; signal++)
        if (!found[signal] && consumes(config, settings, (enum config_signal)signal))
            config_check_error(check, key,
                               "there is no pipeline for %s, which this connector gets; use one "
                               "connector for each signal, or name pipelines of both",
                               config_signal_names[signal]);
}

/* ---- entries ---- */

static const char *key_of(struct config_check *check, size_t entry, const char *name)
{
    return arena_printf(config_check_arena(check), "table::%zu%s%s", entry, name[0] ? "::" : "",
                        name);
}

static bool check_context(const struct routing_entry *entry, struct config_check *check,
                          size_t index)
{
    static const char *const known[] = {"request", "resource", "span"};
    static const char *const relayed[] = {"metric", "datapoint", "log"};
    const char *key = key_of(check, index, "context");
    if (!is_written(entry->context))
        return true;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(entry->context, known[i]) == 0)
            return true;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(entry->context, relayed[i]) == 0) {
            config_check_error(check, key,
                               "the context %s is not supported: profcol relays metrics and logs "
                               "unopened; use resource or request",
                               entry->context);
            return false;
        }
    if (strcmp(entry->context, "otelcol") == 0)
        config_check_error(check, key,
                           "the context otelcol is not supported yet; use context: request with "
                           "request[\"KEY\"] == \"VALUE\"");
    else
        config_check_error(check, key, "invalid context: %s; one of request, resource, span",
                           entry->context);
    return false;
}

/* Reports what is wrong before the text of the condition is read. */
static bool check_form(const struct routing_entry *entry, struct config_check *check, size_t index)
{
    bool has_condition = is_written(entry->condition), has_statement = is_written(entry->statement);
    const char *key = key_of(check, index, "");
    if (!has_condition && !has_statement)
        config_check_error(check, key, "invalid route: no condition or statement provided");
    else if (has_condition && has_statement)
        config_check_error(check, key, "invalid route: both condition and statement provided");
    else if (entry->pipelines.count == 0)
        config_check_error(check, key, "invalid route: no pipelines defined");
    else if (!has_condition && is_written(entry->context) && strcmp(entry->context, "request") == 0)
        config_check_error(check, key, "\"request\" context requires a 'condition'");
    else
        return check_context(entry, check, index);
    return false;
}

static void check_signal(const struct routing_settings *settings, struct config_check *check,
                         size_t index)
{
    for (int signal = CONFIG_PROFILES; signal < CONFIG_SIGNAL_COUNT; signal++)
        if (consumes(config_check_config(check), settings, (enum config_signal)signal))
            config_check_error(check, key_of(check, index, ""),
                               "a condition on spans never matches %s, which this connector gets",
                               config_signal_names[signal]);
}

static void check_entry(const struct routing_settings *settings, struct config_check *check,
                        size_t index)
{
    const struct routing_entry *entry = (const struct routing_entry *)settings->table.items + index;
    struct route_condition condition;
    struct error err;
    if (!check_form(entry, check, index))
        return;
    const char *name = is_written(entry->condition) ? "condition" : "statement";
    if (!route_condition_init(&condition, entry, config_check_arena(check), &err)) {
        ottl_check_error(check, key_of(check, index, name), &err, "");
        return;
    }
    if (condition.context == ROUTING_BY_SPAN)
        check_signal(settings, check, index);
    route_condition_deinit(&condition);
    if (config_check_is_used(check))
        check_pipelines(settings, check, &entry->pipelines, key_of(check, index, "pipelines"));
}

void routing_check(void *context, struct config_check *check)
{
    const struct routing_settings *settings = context;
    if (settings->table.count == 0)
        config_check_error(check, "table", "invalid routing table: the routing table is empty");
    for (size_t i = 0; i < settings->table.count; i++)
        check_entry(settings, check, i);
    if (settings->default_pipelines.count > 0 && config_check_is_used(check))
        check_pipelines(settings, check, &settings->default_pipelines, "default_pipelines");
}
