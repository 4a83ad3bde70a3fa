#include "processors/transform/transform_settings.h"

#include "config/node.h"
#include "core/ottl/ottl_check.h"

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

static const struct signal_keys {
    const char *list;
    unsigned contexts; /* bits */
} keys[SIGNAL_COUNT] = {
    [SIGNAL_TRACES] = {"trace_statements", OTTL_BIT(OTTL_RESOURCE) | OTTL_BIT(OTTL_SCOPE) |
                                               OTTL_BIT(OTTL_SPAN) | OTTL_BIT(OTTL_SPAN_EVENT)},
    [SIGNAL_PROFILES] = {"profile_statements", OTTL_BIT(OTTL_RESOURCE) | OTTL_BIT(OTTL_SCOPE) |
                                                   OTTL_BIT(OTTL_PROFILE) |
                                                   OTTL_BIT(OTTL_PROFILE_SAMPLE)},
    [SIGNAL_METRICS] = {"metric_statements", OTTL_BIT(OTTL_RESOURCE) | OTTL_BIT(OTTL_SCOPE)},
    [SIGNAL_LOGS] = {"log_statements", OTTL_BIT(OTTL_RESOURCE) | OTTL_BIT(OTTL_SCOPE)},
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

/* A group with the keys of its texts in the configuration. NULL: an error was reported there. */
struct keyed_group {
    struct transform_group group;
    const char **statement_keys;
    const char **condition_keys;
};

/* Returns the keys of texts below `key`. */
static const char **keys_below(const struct making *m, const char *key, size_t count)
{
    const char **keys_of = arena_array(m->arena, count + 1, sizeof(const char *));
    for (size_t i = 0; i < count; i++)
        keys_of[i] = config_check_item(m->check, key, i);
    return keys_of;
}

static void add_group(const struct making *m, const struct keyed_group *keyed)
{
    struct transform_plan *plan = &m->settings->plans[m->signal];
    const struct transform_group *group = &keyed->group;
    struct error err;
    for (size_t i = 0; i < group->conditions.count; i++)
        if (keyed->condition_keys[i])
            ottl_check_program(m->check, keyed->condition_keys[i],
                               transform_compile_condition(group, i, &err), &err);
    for (size_t i = 0; i < group->statements.count; i++)
        if (keyed->statement_keys[i])
            ottl_check_program(m->check, keyed->statement_keys[i],
                               transform_compile_statement(group, i, &err), &err);
    plan->groups =
        arena_grow(m->arena, plan->groups, plan->count, &plan->capacity, sizeof *plan->groups);
    plan->groups[plan->count++] = *group;
}

/* ---- the context of a group ---- */

struct group_inference {
    bool found;
    enum ottl_context lowest;
};

/* Takes the lowest context of the texts. Reports a text that has none of the signal's contexts, and
 * takes its key away. */
static void infer_of(const struct making *m, const char **text_keys,
                     const struct config_strings *texts, bool are_statements,
                     struct group_inference *out)
{
    struct error err;
    for (size_t i = 0; i < texts->count; i++) {
        if (!text_keys[i])
            continue;
        enum ottl_context context = OTTL_RESOURCE;
        enum ottl_inference result =
            ottl_infer_context(slice_of_string(texts->items[i]), are_statements,
                               keys[m->signal].contexts, &context, &err);
        if (result == OTTL_BAD_SYNTAX || result == OTTL_OTHER_CONTEXT) {
            ottl_check_error(m->check, text_keys[i], &err,
                             result == OTTL_OTHER_CONTEXT ? relayed_hint(m) : "");
            text_keys[i] = NULL;
        } else if (result == OTTL_INFERRED) {
            bool is_lower =
                !out->found || ottl_context_depth(context) > ottl_context_depth(out->lowest);
            out->lowest = is_lower ? context : out->lowest;
            out->found = true;
        }
    }
}

/* Reports why statements have no context, if none of the group has one. */
static void tell_none(const struct making *m, const struct keyed_group *keyed)
{
    const struct config_strings *texts = &keyed->group.statements;
    enum ottl_context ignored;
    struct error err;
    for (size_t i = 0; i < texts->count; i++)
        if (keyed->statement_keys[i] &&
            ottl_infer_context(slice_of_string(texts->items[i]), true, keys[m->signal].contexts,
                               &ignored, &err) == OTTL_NO_CONTEXT)
            ottl_check_error(m->check, keyed->statement_keys[i], &err, relayed_hint(m));
}

/* Adds the group on the context that its texts name. A text without one takes that of the others,
 * and misses its prefix then. */
static void add_inferred(const struct making *m, struct keyed_group *keyed)
{
    struct group_inference inference = {.found = false};
    infer_of(m, keyed->statement_keys, &keyed->group.statements, true, &inference);
    infer_of(m, keyed->condition_keys, &keyed->group.conditions, false, &inference);
    keyed->group.context = inference.lowest;
    if (inference.found)
        add_group(m, keyed);
    else
        tell_none(m, keyed);
}

static void add_written(const struct making *m, const char *key, const struct config_node *node)
{
    struct written written = {.context = NULL};
    /* Without its context, the texts of a group with mistakes may seem wrong. */
    if (!config_decode(m->check, node, group_fields, &written) && !written.context)
        return;
    bool has_mode = config_node_get(node, "error_mode") != NULL;
    bool is_named = written.context && written.context[0];
    struct keyed_group keyed = {
        .statement_keys =
            keys_below(m, config_check_key(m->check, key, "statements"), written.statements.count),
        .condition_keys =
            keys_below(m, config_check_key(m->check, key, "conditions"), written.conditions.count),
        .group = {.prefix = is_named ? OTTL_PREFIX_OPTIONAL : OTTL_PREFIX_REQUIRED,
                  .error_mode = (enum ottl_error_mode)(has_mode ? written.error_mode
                                                                : m->settings->error_mode),
                  .conditions = written.conditions,
                  .statements = written.statements}};
    if (is_named &&
        !ottl_check_context(m->check, config_check_key(m->check, key, "context"), written.context,
                            keys[m->signal].contexts, relayed_hint(m), &keyed.group.context))
        return;
    if (written.statements.count == 0)
        config_check_warn(m->check, key, "the group has no statements, so it changes nothing");
    else if (is_named)
        add_group(m, &keyed);
    else
        add_inferred(m, &keyed);
}

/* Makes one group of strings from `first` up to `end`. */
static void add_strings(const struct making *m, const struct config_node *list, size_t first,
                        size_t end)
{
    const char *key = keys[m->signal].list;
    struct keyed_group keyed = {
        .statement_keys = keys_below(m, key, end) + first,
        .group = {.prefix = OTTL_PREFIX_REQUIRED,
                  .error_mode = (enum ottl_error_mode)m->settings->error_mode}};
    struct config_strings *statements = &keyed.group.statements;
    statements->items = arena_array(m->arena, end - first + 1, sizeof(const char *));
    for (size_t i = first; i < end; i++) {
        const struct config_node *node = config_node_at(list, i);
        statements->items[statements->count++] = config_node_text(node);
        if (!config_node_is_split_text(node))
            continue;
        config_check_node_error(m->check, node, "expected a statement, got " CONFIG_SPLIT_TEXT);
        keyed.statement_keys[i - first] = NULL;
    }
    add_inferred(m, &keyed);
}

static bool is_string(const struct config_node *list, size_t at)
{
    const struct config_node *node = config_node_at(list, at);
    return config_node_kind(node) != CONFIG_NODE_MAP || config_node_is_split_text(node);
}

/* Strings alone are one group. After a group, each string is one, as in the Collector. */
static void add_list(const struct making *m, const struct config_node *list)
{
    const char *key = keys[m->signal].list;
    size_t count = list ? config_node_count(list) : 0, strings = 0;
    enum config_node_kind kind = config_node_kind(list);
    if (kind == CONFIG_NODE_SCALAR || kind == CONFIG_NODE_MAP)
        config_check_node_error(
            m->check, list, "must be a list of statements or of groups; each begins with \"- \"");
    if (count == 0 || kind != CONFIG_NODE_LIST)
        return;
    for (size_t i = 0; i < count; i++)
        strings += is_string(list, i);
    if (strings == count) {
        add_strings(m, list, 0, count);
        return;
    }
    if (is_string(list, 0)) {
        config_check_error(m->check, key,
                           "strings and groups cannot stand in one list; write the strings as a "
                           "group, too: - statements: [...]");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_string(list, i))
            add_strings(m, list, i, i + 1);
        else
            add_written(m, config_check_item(m->check, key, i), config_node_at(list, i));
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
    bool is_empty = true;
    unsigned errors = config_check_error_count(check);
    if (s->flatten_data)
        config_check_error(check, "flatten_data",
                           "is not supported: it is for log records, which profcol does not open");
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        struct making m = {s, check, config_check_arena(check), (enum signal)signal};
        add_list(&m, lists[signal]);
        is_empty = is_empty && (!lists[signal] || config_node_count(lists[signal]) == 0);
    }
    if (is_empty && config_check_error_count(check) == errors)
        config_check_warn(check, "", "there are no statements, so nothing is changed");
}
