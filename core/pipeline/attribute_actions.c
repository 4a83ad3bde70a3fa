#include "core/pipeline/attribute_actions.h"

#include "config/node.h"
#include "config/request_headers.h"
#include "core/base/text.h"
#include "core/pipeline/attribute_actions_private.h"
#include "core/pipeline/configured_value.h"

#include <assert.h>
#include <string.h>

static const char *const action_names[] = {"insert", "update",  "upsert",  "delete",
                                           "hash",   "extract", "convert", NULL};

static const char *const converted_names[] = {"none", "int", "double", "string", NULL};

const struct field attribute_action_fields[] = {
    FIELD_STRING(attribute_action, key, "The attribute to act on."),
    FIELD_ENUM(attribute_action, action, "What to do with it.", action_names, .required = true),
    FIELD_NODE(attribute_action, value,
               "The value to set, with the type that YAML gives it (insert, update, upsert)."),
    FIELD_STRING(attribute_action, from_attribute,
                 "Set the value of this other attribute instead."),
    FIELD_STRING(attribute_action, from_context,
                 "Set `metadata.NAME` (a header of the request, kept with include_metadata; also "
                 "without `metadata.`) or `client.address` instead."),
    FIELD_NODE(attribute_action, default_value,
               "The value to set when from_attribute or from_context finds none, or is not given."),
    FIELD_STRING(attribute_action, pattern,
                 "A regular expression: the keys to delete or hash; for extract, its named groups "
                 "become attributes."),
    FIELD_ENUM(attribute_action, converted_type, "The type to convert the value to (convert).",
               converted_names, .fallback = "none"),
    FIELD_END,
};

static bool is_set(const struct config_node *node)
{
    return node && config_node_kind(node) != CONFIG_NODE_NULL;
}

/* ---- checks ---- */

struct action_check {
    struct config_check *check;
    struct attribute_action *action;
    const char *key; /* "attributes::3" */
};

__attribute__((format(printf, 3, 4))) static void tell(struct action_check *c, const char *field,
                                                       const char *format, ...)
{
    const char *key = *field ? config_check_key(c->check, c->key, field) : c->key;
    struct text text = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    config_check_error(c->check, key, "%s", text_string(&text));
    text_deinit(&text);
}

static const char *name_of(const struct attribute_action *action)
{
    assert(action->action >= 0 && action->action <= ACTION_CONVERT);
    return action_names[action->action];
}

/* Warns of a header that no request has, and of a client that nobody authenticates. */
static void check_header(const struct action_check *c)
{
    const char *from = c->action->from_context;
    const char *so =
        is_set(c->action->default_value) ? "default_value is always set" : "nothing is set";
    const char *key = config_check_key(c->check, c->key, "from_context");
    if (strncmp(from, "auth.", 5) == 0)
        config_check_header(c->check, key, NULL, so);
    else if (strcmp(from, "client.address") != 0)
        config_check_header(c->check, key, strncmp(from, "metadata.", 9) == 0 ? from + 9 : from,
                            so);
}

static void check_sources(struct action_check *c)
{
    struct attribute_action *a = c->action;
    bool sets = a->action <= ACTION_UPSERT;
    if (sets && !is_set(a->value) && !attribute_setting_is_given(a->from_attribute) &&
        !attribute_setting_is_given(a->from_context))
        a->value = a->default_value; /* as in the Collector */
    int sources = is_set(a->value) + attribute_setting_is_given(a->from_attribute) +
                  attribute_setting_is_given(a->from_context);
    if (sets && sources == 0)
        tell(c, "", "%s needs one of value, from_attribute or from_context", name_of(a));
    if (sets && sources > 1)
        tell(c, "", "%s takes only one of value, from_attribute or from_context", name_of(a));
    if (!sets && sources > 0)
        tell(c, "", "%s does not use value, from_attribute or from_context", name_of(a));
    if (sets && sources == 1 && attribute_setting_is_given(a->from_context))
        check_header(c);
}

static void check_other_fields(struct action_check *c)
{
    const struct attribute_action *a = c->action;
    bool may_match_keys = a->action == ACTION_DELETE || a->action == ACTION_HASH;
    if (!attribute_setting_is_given(a->key) &&
        !(may_match_keys && attribute_setting_is_given(a->pattern)))
        tell(c, "", may_match_keys ? "%s needs a key or a pattern" : "%s needs a key", name_of(a));
    if (attribute_setting_is_given(a->pattern) && !may_match_keys && a->action != ACTION_EXTRACT)
        tell(c, "pattern", "%s does not use a pattern", name_of(a));
    if (!attribute_setting_is_given(a->pattern) && a->action == ACTION_EXTRACT)
        tell(c, "", "extract needs a pattern");
    if (a->action == ACTION_CONVERT && a->converted_type == CONVERTED_NONE)
        tell(c, "", "convert needs a converted_type: int, double or string");
    if (a->action != ACTION_CONVERT && a->converted_type != CONVERTED_NONE)
        tell(c, "converted_type", "%s does not use converted_type", name_of(a));
}

/* Compiled patterns have the lifetime of the configuration. */
static void *pattern_malloc(size_t size, void *arena)
{
    return arena_alloc(arena, size);
}

static void pattern_free(void *memory, void *arena)
{
    (void)memory;
    (void)arena;
}

/* Lists group names by group number, and what else is known of the pattern. Returns false if a
 * group has no name. */
static bool describe(struct attribute_pattern *pattern, struct arena *arena)
{
    uint32_t named, entry_size, options;
    PCRE2_SPTR entry;
    pcre2_pattern_info(pattern->code, PCRE2_INFO_ALLOPTIONS, &options);
    pattern->is_anchored = options & PCRE2_ANCHORED;
    pcre2_pattern_info(pattern->code, PCRE2_INFO_CAPTURECOUNT, &pattern->group_count);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMECOUNT, &named);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMEENTRYSIZE, &entry_size);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMETABLE, &entry);
    pattern->group_names = arena_array(arena, pattern->group_count + 1, sizeof(struct slice));
    for (uint32_t i = 0; i < named; i++, entry += entry_size)
        pattern->group_names[entry[0] << 8 | entry[1]] = slice_of_string((const char *)entry + 2);
    for (uint32_t i = 1; i <= pattern->group_count; i++)
        if (pattern->group_names[i].size == 0)
            return false;
    return true;
}

static void compile_pattern(struct action_check *c)
{
    struct attribute_action *a = c->action;
    assert(!a->compiled);
    struct arena *arena = config_check_arena(c->check);
    struct attribute_pattern *pattern = arena_zalloc(arena, sizeof *pattern);
    pcre2_general_context *memory =
        pcre2_general_context_create(pattern_malloc, pattern_free, arena);
    pcre2_compile_context *context = pcre2_compile_context_create(memory);
    int problem;
    PCRE2_SIZE offset;
    /* A run that cannot be gone back in takes no steps, however long it is. */
    pattern->code = pcre2_compile((PCRE2_SPTR)a->pattern, PCRE2_ZERO_TERMINATED,
                                  PCRE2_UTF | PCRE2_NO_AUTO_POSSESS | PCRE2_USE_OFFSET_LIMIT,
                                  &problem, &offset, context);
    if (!pattern->code) {
        char text[120];
        pcre2_get_error_message(problem, (PCRE2_UCHAR *)text, sizeof text);
        tell(c, "pattern", "not a regular expression, at character %zu: %s", (size_t)offset + 1,
             text);
        return;
    }
    bool all_named = describe(pattern, arena);
    if (a->action == ACTION_EXTRACT && pattern->group_count == 0)
        tell(c, "pattern", "extract needs a pattern with named groups: (?P<name>...)");
    else if (a->action == ACTION_EXTRACT && !all_named)
        tell(c, "pattern",
             "a group of the pattern has no name; write (?P<name>...), or (?:...) for a group that "
             "is not extracted");
    a->compiled = pattern;
}

void attribute_actions_check(struct config_list *list, struct config_check *check, const char *key)
{
    struct attribute_action *actions = list->items;
    for (size_t i = 0; i < list->count; i++) {
        struct action_check c = {check, &actions[i], config_check_item(check, key, i)};
        check_sources(&c);
        check_other_fields(&c);
        if (attribute_setting_is_given(actions[i].pattern))
            compile_pattern(&c);
        actions[i].has_value = is_set(actions[i].value);
        actions[i].has_default = is_set(actions[i].default_value);
        if (actions[i].has_value)
            actions[i].value_bytes =
                configured_value_encode(config_check_arena(check), actions[i].value);
        if (actions[i].has_default)
            actions[i].default_bytes =
                configured_value_encode(config_check_arena(check), actions[i].default_value);
    }
}
