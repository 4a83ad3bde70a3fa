#include "processors/filter/filter_settings.h"

#include "config/node.h"
#include "core/ottl/ottl_check.h"

#include <assert.h>

/* ---- tables ---- */

static const struct field traces_fields[] = {
    FIELD_STRINGS(filter_traces, resource, "Conditions on resources."),
    FIELD_STRINGS(filter_traces, span, "Conditions on spans."),
    FIELD_STRINGS(filter_traces, spanevent, "Conditions on events of spans."), FIELD_END};

static const struct field profiles_fields[] = {
    FIELD_STRINGS(filter_profiles, resource, "Conditions on resources."),
    FIELD_STRINGS(filter_profiles, profile, "Conditions on profiles."),
    FIELD_STRINGS(filter_profiles, profilesample,
                  "Conditions on samples; the Collector has no such key."),
    FIELD_END};

static const struct field metrics_fields[] = {
    FIELD_STRINGS(filter_metrics, resource, "Conditions on resources."),
    FIELD_NODE(filter_metrics, metric, "Not supported.", .unlisted = true),
    FIELD_NODE(filter_metrics, datapoint, "Not supported.", .unlisted = true),
    FIELD_NODE(filter_metrics, include, "Not supported.", .unlisted = true),
    FIELD_NODE(filter_metrics, exclude, "Not supported.", .unlisted = true),
    FIELD_END};

static const struct field logs_fields[] = {
    FIELD_STRINGS(filter_logs, resource, "Conditions on resources."),
    FIELD_NODE(filter_logs, log_record, "Not supported.", .unlisted = true),
    FIELD_NODE(filter_logs, include, "Not supported.", .unlisted = true),
    FIELD_NODE(filter_logs, exclude, "Not supported.", .unlisted = true), FIELD_END};

const struct field filter_fields[] = {
    FIELD_ENUM(filter_settings, error_mode,
               "What happens if a condition cannot be evaluated: it does not match, with a warning "
               "(ignore) or without (silent), or the data is refused (propagate).",
               ottl_error_modes, .fallback = "ignore"),
    FIELD_NODE(filter_settings, trace_conditions,
               "Traces that one of these OTTL conditions is true for are dropped: strings with "
               "paths such as span.name, or groups of context, conditions and error_mode."),
    FIELD_NODE(filter_settings, profile_conditions,
               "The same for profiles, with paths of resource, scope, profile and profilesample."),
    FIELD_NODE(filter_settings, metric_conditions,
               "The same for metrics, with paths of resource and scope."),
    FIELD_NODE(filter_settings, log_conditions,
               "The same for logs, with paths of resource and scope."),
    FIELD_BLOCK(filter_settings, traces, filter_traces, traces_fields,
                "The older form of trace_conditions; paths need no prefix."),
    FIELD_BLOCK(filter_settings, profiles, filter_profiles, profiles_fields,
                "The older form of profile_conditions."),
    FIELD_BLOCK(filter_settings, metrics, filter_metrics, metrics_fields,
                "The older form of metric_conditions."),
    FIELD_BLOCK(filter_settings, logs, filter_logs, logs_fields,
                "The older form of log_conditions."),
    FIELD_NODE(filter_settings, spans, "Not supported.", .unlisted = true),
    FIELD_END};

/* A group of conditions. */
struct group {
    const char *context;
    struct config_strings conditions;
    int error_mode;
};

static const struct field group_fields[] = {
    FIELD_STRING(group, context, "What its conditions are evaluated on."),
    FIELD_STRINGS(group, conditions, "The conditions."),
    FIELD_ENUM(group, error_mode, "That of the group.", ottl_error_modes, .fallback = "ignore"),
    FIELD_END};

/* ---- signals ---- */

static const struct signal_keys {
    const char *list;   /* of conditions: "trace_conditions" */
    const char *name;   /* in messages */
    const char *blocks; /* the older settings, as the Collector names them */
    unsigned contexts;  /* bits */
    bool is_relayed;
} keys[SIGNAL_COUNT] = {
    [SIGNAL_TRACES] = {"trace_conditions", "trace",
                       "\"traces.resource\", \"traces.span\", \"traces.spanevent\"",
                       OTTL_BIT(OTTL_RESOURCE) | OTTL_BIT(OTTL_SCOPE) | OTTL_BIT(OTTL_SPAN) |
                           OTTL_BIT(OTTL_SPAN_EVENT),
                       false},
    [SIGNAL_PROFILES] = {"profile_conditions", "profile",
                         "\"profiles.resource\", \"profiles.profile\", \"profiles.profilesample\"",
                         OTTL_BIT(OTTL_RESOURCE) | OTTL_BIT(OTTL_SCOPE) | OTTL_BIT(OTTL_PROFILE) |
                             OTTL_BIT(OTTL_PROFILE_SAMPLE),
                         false},
    [SIGNAL_METRICS] = {"metric_conditions", "metric", "\"metrics.resource\"",
                        OTTL_BIT(OTTL_RESOURCE) | OTTL_BIT(OTTL_SCOPE), true},
    [SIGNAL_LOGS] = {"log_conditions", "log", "\"logs.resource\"",
                     OTTL_BIT(OTTL_RESOURCE) | OTTL_BIT(OTTL_SCOPE), true},
};

#define RELAYED                                                                                    \
    "profcol relays metrics and logs unopened, so only conditions on resource. and scope. are "    \
    "supported for them; drop single metrics and log records where they are made, or in a "        \
    "Collector"

/* ---- making plans ---- */

struct filter_making {
    struct filter_settings *settings;
    struct config_check *check;
    struct arena *arena;
    enum signal signal;
};

/* What follows an error about a context that is not there. */
static const char *limits_of(const struct filter_making *m)
{
    return keys[m->signal].is_relayed ? "; " RELAYED : "";
}

static struct filter_plan *plan_of(const struct filter_making *m)
{
    return &m->settings->plans[m->signal];
}

static struct filter_pass *begin_pass(const struct filter_making *m)
{
    struct filter_plan *plan = plan_of(m);
    plan->passes = arena_grow(m->arena, plan->passes, plan->pass_count, &plan->pass_capacity,
                              sizeof *plan->passes);
    struct filter_pass *pass = &plan->passes[plan->pass_count++];
    *pass = (struct filter_pass){.first = plan->count};
    return pass;
}

struct ottl_program *filter_condition_compile(const struct filter_condition *condition,
                                              struct error *err)
{
    return ottl_compile_condition(condition->context, slice_of_string(condition->text),
                                  condition->prefix, err);
}

/* Adds the condition to the last pass, or reports an error at the key. */
static void add(const struct filter_making *m, const char *key,
                const struct filter_condition *condition)
{
    struct filter_plan *plan = plan_of(m);
    struct filter_pass *pass = &plan->passes[plan->pass_count - 1];
    unsigned depth = ottl_context_depth(condition->context);
    struct error err;
    struct ottl_program *program = filter_condition_compile(condition, &err);
    if (!ottl_check_program(m->check, key, program, &err))
        return;
    plan->conditions = arena_grow(m->arena, plan->conditions, plan->count,
                                  &plan->condition_capacity, sizeof *plan->conditions);
    plan->conditions[plan->count++] = *condition;
    pass->count++;
    pass->depth = depth > pass->depth ? depth : pass->depth;
}

/* ---- strings and groups ---- */

static bool check_text(const struct filter_making *m, const char *key, const char *text)
{
    if (slice_trim(slice_of_string(text), SLICE_SPACES).size > 0)
        return true;
    config_check_error(m->check, key, "condition cannot be empty");
    return false;
}

/* Finds the context of a condition without `context`. */
static bool infer(const struct filter_making *m, const char *key, const char *text,
                  enum ottl_context *out)
{
    struct error err;
    enum ottl_inference result =
        ottl_infer_context(slice_of_string(text), false, keys[m->signal].contexts, out, &err);
    if (result == OTTL_INFERRED)
        return true;
    ottl_check_error(m->check, key, &err, result == OTTL_BAD_SYNTAX ? "" : limits_of(m));
    return false;
}

static void add_strings(const struct filter_making *m, const struct config_node *list)
{
    begin_pass(m);
    for (size_t i = 0; i < config_node_count(list); i++) {
        const char *key = config_check_item(m->check, keys[m->signal].list, i);
        const struct config_node *node = config_node_at(list, i);
        struct filter_condition condition = {
            .text = config_node_text(node),
            .place = arena_printf(m->arena, "%s[%zu]", keys[m->signal].list, i),
            .prefix = OTTL_PREFIX_REQUIRED,
            .error_mode = (enum ottl_error_mode)m->settings->error_mode};
        if (config_node_is_split_text(node))
            config_check_node_error(m->check, node, "expected a condition, got " CONFIG_SPLIT_TEXT);
        else if (check_text(m, key, condition.text) &&
                 infer(m, key, condition.text, &condition.context))
            add(m, key, &condition);
    }
}

/* key: of the group. */
static const char *condition_key(const struct filter_making *m, const char *key, size_t i)
{
    return config_check_item(m->check, config_check_key(m->check, key, "conditions"), i);
}

/* Without `context`, the lowest one that a condition of the group asks for. Sets are_wrong for
 * conditions that an error was reported for. */
static bool find_context(const struct filter_making *m, const char *key, const struct group *group,
                         bool *are_wrong, enum ottl_context *out)
{
    if (group->context && group->context[0])
        return ottl_check_context(m->check, config_check_key(m->check, key, "context"),
                                  group->context, keys[m->signal].contexts, limits_of(m), out);
    *out = OTTL_RESOURCE;
    for (size_t i = 0; i < group->conditions.count; i++) {
        enum ottl_context context = OTTL_RESOURCE;
        const char *place = condition_key(m, key, i);
        are_wrong[i] = are_wrong[i] || !infer(m, place, group->conditions.items[i], &context);
        if (ottl_context_depth(context) > ottl_context_depth(*out))
            *out = context;
    }
    return true;
}

static void add_group(const struct filter_making *m, const struct config_node *node, size_t index)
{
    const char *key = config_check_item(m->check, keys[m->signal].list, index);
    bool is_named = config_node_get(node, "context") != NULL;
    struct filter_condition condition = {.prefix = is_named ? OTTL_PREFIX_OPTIONAL
                                                            : OTTL_PREFIX_REQUIRED};
    struct group group = {0};
    /* Without its context, the texts of a group with mistakes may seem wrong. */
    if (!config_decode(m->check, node, group_fields, &group) && !group.context)
        return;
    if (group.conditions.count == 0) {
        config_check_warn(m->check, key, "the group has no conditions, so it drops nothing");
        return;
    }
    bool *are_wrong = arena_zalloc(m->arena, group.conditions.count * sizeof *are_wrong);
    for (size_t i = 0; i < group.conditions.count; i++)
        are_wrong[i] = !check_text(m, condition_key(m, key, i), group.conditions.items[i]);
    if (!find_context(m, key, &group, are_wrong, &condition.context))
        return;
    condition.error_mode = (enum ottl_error_mode)(
        config_node_get(node, "error_mode") ? group.error_mode : m->settings->error_mode);
    begin_pass(m);
    for (size_t i = 0; i < group.conditions.count; i++) {
        condition.text = group.conditions.items[i];
        condition.place =
            arena_printf(m->arena, "%s[%zu].conditions[%zu]", keys[m->signal].list, index, i);
        if (!are_wrong[i])
            add(m, condition_key(m, key, i), &condition);
    }
}

/* Reports what is neither a string nor a group. */
static void tell_empty(const struct filter_making *m, const struct config_node *list)
{
    for (size_t i = 0; i < config_node_count(list); i++) {
        enum config_node_kind kind = config_node_kind(config_node_at(list, i));
        if (kind != CONFIG_NODE_MAP && kind != CONFIG_NODE_SCALAR)
            config_check_node_error(m->check, config_node_at(list, i), "condition cannot be empty");
    }
}

/* Strings or groups, but not both. */
static void add_list(const struct filter_making *m, const struct config_node *list)
{
    const char *key = keys[m->signal].list;
    size_t groups = 0, strings = 0;
    if (!list || config_node_kind(list) == CONFIG_NODE_NULL)
        return;
    if (config_node_kind(list) != CONFIG_NODE_LIST) {
        config_check_node_error(
            m->check, list, "expected a list of conditions or of groups; each begins with \"- \"");
        return;
    }
    for (size_t i = 0; i < config_node_count(list); i++) {
        enum config_node_kind kind = config_node_kind(config_node_at(list, i));
        bool is_split = config_node_is_split_text(config_node_at(list, i));
        groups += kind == CONFIG_NODE_MAP && !is_split;
        strings += kind == CONFIG_NODE_SCALAR || is_split;
    }
    if (groups > 0 && strings > 0)
        config_check_error(m->check, key,
                           "strings and groups cannot stand in one list; write the strings as a "
                           "group, too: - conditions: [...]");
    else if (groups + strings < config_node_count(list))
        tell_empty(m, list);
    else if (strings > 0)
        add_strings(m, list);
    for (size_t i = 0; groups == config_node_count(list) && i < groups; i++)
        add_group(m, config_node_at(list, i), i);
}

/* ---- the older blocks ---- */

static void add_block(const struct filter_making *m, const char *block, const char *name,
                      enum ottl_context context, const struct config_strings *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        const char *key = config_check_item(m->check, config_check_key(m->check, block, name), i);
        struct filter_condition condition = {
            .text = texts->items[i],
            .place = arena_printf(m->arena, "%s.%s[%zu]", block, name, i),
            .context = context,
            .prefix = OTTL_PREFIX_OPTIONAL,
            .error_mode = (enum ottl_error_mode)m->settings->error_mode};
        if (check_text(m, key, condition.text))
            add(m, key, &condition);
    }
}

static void add_blocks(const struct filter_making *m)
{
    const struct filter_settings *s = m->settings;
    begin_pass(m);
    switch (m->signal) {
    case SIGNAL_TRACES:
        add_block(m, "traces", "resource", OTTL_RESOURCE, &s->traces.resource);
        add_block(m, "traces", "span", OTTL_SPAN, &s->traces.span);
        add_block(m, "traces", "spanevent", OTTL_SPAN_EVENT, &s->traces.spanevent);
        break;
    case SIGNAL_PROFILES:
        add_block(m, "profiles", "resource", OTTL_RESOURCE, &s->profiles.resource);
        add_block(m, "profiles", "profile", OTTL_PROFILE, &s->profiles.profile);
        add_block(m, "profiles", "profilesample", OTTL_PROFILE_SAMPLE, &s->profiles.profilesample);
        break;
    case SIGNAL_METRICS:
        add_block(m, "metrics", "resource", OTTL_RESOURCE, &s->metrics.resource);
        break;
    default:
        add_block(m, "logs", "resource", OTTL_RESOURCE, &s->logs.resource);
    }
}

static bool has_block(const struct filter_settings *s, enum signal signal)
{
    switch (signal) {
    case SIGNAL_TRACES:
        return s->traces.resource.count + s->traces.span.count + s->traces.spanevent.count > 0;
    case SIGNAL_PROFILES:
        return s->profiles.resource.count + s->profiles.profile.count +
                   s->profiles.profilesample.count >
               0;
    case SIGNAL_METRICS:
        return s->metrics.resource.count > 0;
    default:
        return s->logs.resource.count > 0;
    }
}

/* ---- what is not supported ---- */

static void refuse_unsupported(const struct filter_settings *s, struct config_check *check)
{
    static const char not_ottl[] =
        "is not supported; write OTTL conditions, of what is to be dropped: metrics: {resource: "
        "['attributes[\"service.name\"] == \"x\"']}, logs: {resource: [...]}";
    config_check_refuse(check, s->spans, "spans",
                        "spans with include and exclude is not supported; write OTTL conditions of "
                        "what is to be dropped: trace_conditions: ['span.name == \"x\" or "
                        "IsMatch(resource.attributes[\"service.name\"], \"^test-\")'], with not "
                        "(...) for an include");
    config_check_refuse(check, s->metrics.metric, "metrics::metric", RELAYED);
    config_check_refuse(check, s->metrics.datapoint, "metrics::datapoint", RELAYED);
    config_check_refuse(check, s->metrics.include, "metrics::include", not_ottl);
    config_check_refuse(check, s->metrics.exclude, "metrics::exclude", not_ottl);
    config_check_refuse(check, s->logs.log_record, "logs::log_record", RELAYED);
    config_check_refuse(check, s->logs.include, "logs::include", not_ottl);
    config_check_refuse(check, s->logs.exclude, "logs::exclude", not_ottl);
}

void filter_check(void *context, struct config_check *check)
{
    struct filter_settings *s = context;
    const struct config_node *const lists[SIGNAL_COUNT] = {[SIGNAL_TRACES] = s->trace_conditions,
                                                           [SIGNAL_PROFILES] =
                                                               s->profile_conditions,
                                                           [SIGNAL_METRICS] = s->metric_conditions,
                                                           [SIGNAL_LOGS] = s->log_conditions};
    uint32_t conditions = 0;
    unsigned errors = config_check_error_count(check);
    refuse_unsupported(s, check);
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        struct filter_making m = {s, check, config_check_arena(check), (enum signal)signal};
        bool has_list = lists[signal] && config_node_count(lists[signal]) > 0;
        if (has_list && has_block(s, m.signal))
            config_check_error(check, keys[signal].list,
                               "cannot use context inferred %s conditions \"%s\" and the settings "
                               "%s at the same time",
                               keys[signal].name, keys[signal].list, keys[signal].blocks);
        else if (has_block(s, m.signal))
            add_blocks(&m);
        else
            add_list(&m, lists[signal]);
        conditions += s->plans[signal].count;
    }
    if (conditions == 0 && config_check_error_count(check) == errors)
        config_check_warn(check, "", "there are no conditions, so nothing is dropped");
}
