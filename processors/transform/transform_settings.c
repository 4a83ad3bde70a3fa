#include "processors/transform/transform_settings.h"

#include "config/node.h"

#include <assert.h>

const struct field transform_fields[] = {
    FIELD_ENUM(transform_settings, error_mode,
               "What happens if a statement fails: it is skipped, with a warning (ignore) or "
               "without (silent), or the data is refused (propagate).",
               ottl_error_modes, .fallback = "ignore"),
    FIELD_NODE(transform_settings, trace_statements,
               "OTTL statements that change traces: strings with paths such as span.name, or "
               "groups of context, conditions, statements and error_mode."),
    FIELD_NODE(transform_settings, profile_statements,
               "The same for profiles, with paths of resource, scope, profile and profilesample."),
    FIELD_NODE(transform_settings, metric_statements,
               "The same for metrics, with paths of resource and scope."),
    FIELD_NODE(transform_settings, log_statements,
               "The same for logs, with paths of resource and scope."),
    FIELD_BOOL(transform_settings, flatten_data,
               "Of the Collector, for log records, which profcol does not open: false only.",
               .fallback = "false"),
    FIELD_END};

/* A group as it is written. */
struct written {
    const char *context;
    struct config_strings conditions;
    struct config_strings statements;
    int error_mode;
};

static const struct field group_fields[] = {
    FIELD_STRING(written, context, "What its statements are executed on."),
    FIELD_STRINGS(written, conditions, "Conditions, one of which must match."),
    FIELD_STRINGS(written, statements, "The statements."),
    FIELD_ENUM(written, error_mode, "That of the group.", ottl_error_modes, .fallback = "ignore"),
    FIELD_END};

/* ---- signals ---- */

#define BIT(context) (1U << (context))

static const struct signal_keys {
    const char *list;
    unsigned contexts; /* bits */
    const char *context_names;
} keys[SIGNAL_COUNT] = {
    [SIGNAL_TRACES] = {"trace_statements",
                       BIT(OTTL_RESOURCE) | BIT(OTTL_SCOPE) | BIT(OTTL_SPAN) | BIT(OTTL_SPAN_EVENT),
                       "resource, scope, span, spanevent"},
    [SIGNAL_PROFILES] = {"profile_statements",
                         BIT(OTTL_RESOURCE) | BIT(OTTL_SCOPE) | BIT(OTTL_PROFILE) |
                             BIT(OTTL_PROFILE_SAMPLE),
                         "resource, scope, profile, profilesample"},
    [SIGNAL_METRICS] = {"metric_statements", BIT(OTTL_RESOURCE) | BIT(OTTL_SCOPE),
                        "resource, scope"},
    [SIGNAL_LOGS] = {"log_statements", BIT(OTTL_RESOURCE) | BIT(OTTL_SCOPE), "resource, scope"},
};

static const char relayed[] =
    "; profcol relays metrics and logs unopened, so only statements on resource. and scope. are "
    "supported for them";

/* ---- compiling ---- */

struct ottl_program *transform_compile_statement(const struct transform_group *group, size_t at,
                                                 struct error *err)
{
    return ottl_compile_statement(group->context, slice_of_string(group->statements.items[at]),
                                  group->prefix, err);
}

struct ottl_program *transform_compile_condition(const struct transform_group *group, size_t at,
                                                 struct error *err)
{
    return ottl_compile_condition(group->context, slice_of_string(group->conditions.items[at]),
                                  group->prefix, err);
}

/* ---- making plans ---- */

struct making {
    struct transform_settings *settings;
    struct config_check *check;
    struct arena *arena;
    enum signal signal;
};

static const char *relayed_hint(const struct making *m)
{
    return m->signal == SIGNAL_METRICS || m->signal == SIGNAL_LOGS ? relayed : "";
}

/* Reports what is wrong with a text of the group at its key. */
static void check_program(const struct making *m, const char *key, struct ottl_program *program,
                          const struct error *err)
{
    if (!program)
        config_check_error(m->check, key, "%s", err->text);
    ottl_program_free(program);
}

/* key: of the group; is_list: its statements stand in the list itself. */
static void add_group(const struct making *m, const char *key, bool is_list,
                      const struct transform_group *group)
{
    struct transform_plan *plan = &m->settings->plans[m->signal];
    struct error err;
    for (size_t i = 0; i < group->conditions.count; i++)
        check_program(m, arena_printf(m->arena, "%s::conditions::%zu", key, i),
                      transform_compile_condition(group, i, &err), &err);
    for (size_t i = 0; i < group->statements.count; i++)
        check_program(m,
                      arena_printf(m->arena, is_list ? "%s::%zu" : "%s::statements::%zu", key, i),
                      transform_compile_statement(group, i, &err), &err);
    plan->groups =
        arena_grow(m->arena, plan->groups, plan->count, &plan->capacity, sizeof *plan->groups);
    plan->groups[plan->count++] = *group;
}

/* Takes the lowest context of the texts. Returns false after reporting a text that is not valid. */
static bool infer_of(const struct making *m, const char *key, const struct config_strings *texts,
                     bool are_statements, struct transform_group *group, bool *found)
{
    struct error err;
    for (size_t i = 0; i < texts->count; i++) {
        enum ottl_context context;
        if (ottl_infer_context(slice_of_string(texts->items[i]), are_statements, &context, &err)) {
            bool is_lower =
                !*found || ottl_context_depth(context) > ottl_context_depth(group->context);
            group->context = is_lower ? context : group->context;
            *found = true;
        } else if (strncmp(err.text, "unable to infer", 15) != 0) {
            config_check_error(m->check, key, "unable to parse OTTL %s \"%s\": %s",
                               are_statements ? "statement" : "condition", texts->items[i],
                               err.text);
            return false;
        }
    }
    return true;
}

static bool infer(const struct making *m, const char *key, struct transform_group *group)
{
    bool found = false;
    if (!infer_of(m, key, &group->statements, true, group, &found) ||
        !infer_of(m, key, &group->conditions, false, group, &found))
        return false;
    if (found && (keys[m->signal].contexts & BIT(group->context)))
        return true;
    if (found)
        config_check_error(
            m->check, key, "inferred context \"%s\" is not a valid candidate: [%s]%s",
            ottl_context_names[group->context], keys[m->signal].context_names, relayed_hint(m));
    else
        config_check_error(m->check, key,
                           "unable to infer context from statements, path's first segment must be "
                           "a valid context name: [%s], and at least one context must be capable "
                           "of parsing all statements%s",
                           keys[m->signal].context_names, relayed_hint(m));
    return false;
}

static bool find_named(const struct making *m, const char *key, const char *name,
                       struct transform_group *group)
{
    for (int i = 0; i < OTTL_CONTEXT_COUNT; i++)
        if ((keys[m->signal].contexts & BIT(i)) && strcmp(name, ottl_context_names[i]) == 0) {
            group->context = (enum ottl_context)i;
            return true;
        }
    config_check_error(m->check, arena_printf(m->arena, "%s::context", key),
                       "unknown context %s; one of %s%s", name, keys[m->signal].context_names,
                       relayed_hint(m));
    return false;
}

static void add_written(const struct making *m, const char *key, const struct config_node *node)
{
    struct written written = {.context = NULL};
    unsigned errors = config_check_error_count(m->check);
    if (!config_decode(m->check, node, group_fields, &written) ||
        config_check_error_count(m->check) > errors)
        return;
    bool has_mode = config_node_get(node, "error_mode") != NULL;
    bool is_named = written.context && written.context[0];
    struct transform_group group = {
        .prefix = is_named ? OTTL_PREFIX_OPTIONAL : OTTL_PREFIX_REQUIRED,
        .error_mode =
            (enum ottl_error_mode)(has_mode ? written.error_mode : m->settings->error_mode),
        .conditions = written.conditions,
        .statements = written.statements};
    if (group.statements.count == 0)
        config_check_error(m->check, key, "missing required field \"statements\"");
    else if (is_named ? find_named(m, key, written.context, &group) : infer(m, key, &group))
        add_group(m, key, false, &group);
}

/* Makes one group of strings from `first` up to `end`. */
static void add_strings(const struct making *m, const char *key, const struct config_node *list,
                        size_t first, size_t end)
{
    struct transform_group group = {.prefix = OTTL_PREFIX_REQUIRED,
                                    .error_mode = (enum ottl_error_mode)m->settings->error_mode};
    group.statements.items = arena_array(m->arena, end - first + 1, sizeof(const char *));
    for (size_t i = first; i < end; i++)
        group.statements.items[group.statements.count++] =
            config_node_text(config_node_at(list, i));
    if (infer(m, key, &group))
        add_group(m, key, first == 0, &group);
}

static bool is_string(const struct config_node *list, size_t at)
{
    return config_node_kind(config_node_at(list, at)) != CONFIG_NODE_MAP;
}

/* Strings alone are one group. After a group, each string is one, as in the Collector. */
static void add_list(const struct making *m, const struct config_node *list)
{
    const char *key = keys[m->signal].list;
    size_t count = list ? config_node_count(list) : 0, strings = 0;
    if (list && config_node_kind(list) == CONFIG_NODE_SCALAR)
        config_check_error(m->check, key, "must be a list of statements or of groups");
    for (size_t i = 0; i < count; i++)
        strings += is_string(list, i);
    if (count == 0 || config_node_kind(list) != CONFIG_NODE_LIST)
        return;
    if (strings == count) {
        add_strings(m, key, list, 0, count);
        return;
    }
    if (is_string(list, 0)) {
        config_check_error(m->check, key,
                           "configuring multiple configuration styles is not supported, please use "
                           "only Basic configuration or only Advanced configuration");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const char *item = arena_printf(m->arena, "%s::%zu", key, i);
        if (is_string(list, i))
            add_strings(m, item, list, i, i + 1);
        else
            add_written(m, item, config_node_at(list, i));
    }
}

void transform_check(void *context, struct config_check *check)
{
    struct transform_settings *s = context;
    const struct config_node *const lists[SIGNAL_COUNT] = {[SIGNAL_TRACES] = s->trace_statements,
                                                           [SIGNAL_PROFILES] =
                                                               s->profile_statements,
                                                           [SIGNAL_METRICS] = s->metric_statements,
                                                           [SIGNAL_LOGS] = s->log_statements};
    if (s->flatten_data)
        config_check_error(check, "flatten_data",
                           "is not supported: it is for log records, which profcol does not open");
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        struct making m = {s, check, config_check_arena(check), (enum signal)signal};
        add_list(&m, lists[signal]);
    }
}
