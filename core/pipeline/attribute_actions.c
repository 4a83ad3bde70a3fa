#include "core/pipeline/attribute_actions.h"

#include "core/base/memory.h"
#include "core/data/attributes.h"
#include "core/data/json.h"
#include "core/data/utf8.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* A pattern comes from the operator, what it is matched with from anybody: no match may take long.
 */
enum { MATCH_LIMIT = 100000, HEAP_LIMIT_KIB = 1024 };

enum action {
    ACTION_INSERT,
    ACTION_UPDATE,
    ACTION_UPSERT,
    ACTION_DELETE,
    ACTION_HASH,
    ACTION_EXTRACT,
    ACTION_CONVERT
};
static const char *const action_names[] = {"insert", "update",  "upsert",  "delete",
                                           "hash",   "extract", "convert", NULL};

enum converted { CONVERTED_NONE, CONVERTED_INT, CONVERTED_DOUBLE, CONVERTED_STRING };
static const char *const converted_names[] = {"none", "int", "double", "string", NULL};

const struct field attribute_action_fields[] = {
    FIELD_STRING(attribute_action, key, "The attribute to act on."),
    FIELD_ENUM(attribute_action, action, "What to do with it.", action_names, .required = true),
    FIELD_NODE(attribute_action, value,
               "The value to set, with the type that YAML gives it (insert, update, upsert)."),
    FIELD_STRING(attribute_action, from_attribute,
                 "Set the value of this other attribute instead."),
    FIELD_STRING(attribute_action, from_context,
                 "Set `metadata.NAME` (a header of the request, kept with include_metadata) or "
                 "`client.address` instead."),
    FIELD_NODE(attribute_action, default_value,
               "The value to set when from_attribute or from_context finds none."),
    FIELD_STRING(attribute_action, pattern,
                 "A regular expression: the keys to delete or hash; for extract, its named groups "
                 "become attributes."),
    FIELD_ENUM(attribute_action, converted_type, "The type to convert the value to (convert).",
               converted_names, .fallback = "none"),
    FIELD_END,
};

struct attribute_pattern {
    pcre2_code *code;
    uint32_t group_count;
    struct slice *group_names; /* of group 1, 2, ... */
};

struct attribute_editor {
    const struct attribute_action *actions;
    size_t action_count;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

/* ---- values from YAML ---- */

static bool is_set(const struct config_node *node)
{
    return node && config_node_kind(node) != CONFIG_NODE_NULL;
}

static struct slice encode_string(struct arena *arena, struct slice text)
{
    return any_value_encode(arena, any_value_string(text));
}

/* YAML's own types: what is quoted is a string; 1 an integer, 1.0 a double. */
static struct any_value value_of_scalar(const struct config_node *node)
{
    struct slice text = slice_of_string(config_node_text(node));
    bool truth, plain = !config_node_quoted(node);
    double real;
    int64_t whole;
    bool has_point = text.size > 0 && strpbrk(config_node_text(node), ".eE");
    if (plain && config_parse_bool(text, &truth))
        return any_value_bool(truth);
    if (plain && !has_point && config_parse_int(text, &whole))
        return any_value_int(whole);
    if (plain && config_parse_double(text, &real))
        return any_value_double(real);
    return any_value_string(text);
}

static struct slice encode_node(struct arena *arena, const struct config_node *node)
{
    enum config_node_kind kind = config_node_kind(node);
    if (kind == CONFIG_NODE_NULL)
        return (struct slice){0};
    if (kind == CONFIG_NODE_SCALAR)
        return any_value_encode(arena, value_of_scalar(node));
    struct wire_writer items = {0};
    for (size_t i = 0; i < config_node_count(node); i++) {
        struct slice item = encode_node(arena, config_node_at(node, i));
        if (kind == CONFIG_NODE_MAP)
            wire_writer_bytes(
                &items, KEY_VALUE_LIST_VALUES,
                key_value_encode(arena, slice_of_string(config_node_key(node, i)), item));
        else
            wire_writer_bytes(&items, ARRAY_VALUE_VALUES, item);
    }
    struct any_value list = {.kind = kind == CONFIG_NODE_MAP ? ANY_VALUE_KVLIST : ANY_VALUE_ARRAY,
                             .bytes = wire_writer_slice(&items)};
    struct slice encoded = any_value_encode(arena, list);
    wire_writer_deinit(&items);
    return encoded;
}

/* ---- checks ---- */

struct action_check {
    struct config_check *check;
    struct attribute_action *action;
    char key[96]; /* "attributes::3" */
};

__attribute__((format(printf, 3, 4))) static void tell(struct action_check *c, const char *field,
                                                       const char *format, ...)
{
    char key[160];
    struct text text = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    snprintf(key, sizeof key, "%s%s%s", c->key, *field ? "::" : "", field);
    config_check_error(c->check, key, "%s", text_string(&text));
    text_deinit(&text);
}

static const char *name_of(const struct attribute_action *action)
{
    return action_names[action->action];
}

static bool is_given(const char *text)
{
    return text && *text;
}

static void check_sources(struct action_check *c)
{
    const struct attribute_action *a = c->action;
    int sources = is_set(a->value) + is_given(a->from_attribute) + is_given(a->from_context);
    bool sets = a->action <= ACTION_UPSERT;
    if (sets && sources == 0)
        tell(c, "", "%s needs one of value, from_attribute or from_context", name_of(a));
    if (sets && sources > 1)
        tell(c, "", "%s takes only one of value, from_attribute or from_context", name_of(a));
    if (!sets && sources > 0)
        tell(c, "", "%s does not use value, from_attribute or from_context", name_of(a));
    if (is_set(a->default_value) && !is_given(a->from_attribute) && !is_given(a->from_context))
        tell(c, "default_value", "default_value needs from_attribute or from_context");
    if (is_given(a->from_context) && strncmp(a->from_context, "metadata.", 9) != 0 &&
        strncmp(a->from_context, "auth.", 5) != 0 && strcmp(a->from_context, "client.address") != 0)
        tell(c, "from_context", "\"%s\" is neither metadata.NAME nor client.address",
             a->from_context);
    if (is_given(a->from_context) && strncmp(a->from_context, "auth.", 5) == 0)
        tell(c, "from_context", "auth attributes are not supported");
}

static void check_other_fields(struct action_check *c)
{
    const struct attribute_action *a = c->action;
    bool may_match_keys = a->action == ACTION_DELETE || a->action == ACTION_HASH;
    if (!is_given(a->key) && !(may_match_keys && is_given(a->pattern)))
        tell(c, "", may_match_keys ? "%s needs a key or a pattern" : "%s needs a key", name_of(a));
    if (is_given(a->pattern) && !may_match_keys && a->action != ACTION_EXTRACT)
        tell(c, "pattern", "%s does not use a pattern", name_of(a));
    if (!is_given(a->pattern) && a->action == ACTION_EXTRACT)
        tell(c, "", "extract needs a pattern");
    if (a->action == ACTION_CONVERT && a->converted_type == CONVERTED_NONE)
        tell(c, "", "convert needs a converted_type: int, double or string");
    if (a->action != ACTION_CONVERT && a->converted_type != CONVERTED_NONE)
        tell(c, "converted_type", "%s does not use converted_type", name_of(a));
}

/* Compiled patterns live and die with the configuration. */
static void *pattern_malloc(size_t size, void *arena)
{
    return arena_alloc(arena, size);
}

static void pattern_free(void *memory, void *arena)
{
    (void)memory;
    (void)arena;
}

/* Group names by group number; false when a group has none. */
static bool list_groups(struct attribute_pattern *pattern, struct arena *arena)
{
    uint32_t named, entry_size;
    PCRE2_SPTR entry;
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
    struct arena *arena = config_check_arena(c->check);
    struct attribute_pattern *pattern = arena_zalloc(arena, sizeof *pattern);
    pcre2_general_context *memory =
        pcre2_general_context_create(pattern_malloc, pattern_free, arena);
    pcre2_compile_context *context = pcre2_compile_context_create(memory);
    int problem;
    PCRE2_SIZE offset;
    pattern->code = pcre2_compile((PCRE2_SPTR)a->pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF,
                                  &problem, &offset, context);
    if (!pattern->code) {
        char text[120];
        pcre2_get_error_message(problem, (PCRE2_UCHAR *)text, sizeof text);
        tell(c, "pattern", "not a regular expression, at character %zu: %s", (size_t)offset + 1,
             text);
        return;
    }
    bool all_named = list_groups(pattern, arena);
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
        struct action_check c = {.check = check, .action = &actions[i]};
        snprintf(c.key, sizeof c.key, "%s::%zu", key, i);
        check_sources(&c);
        check_other_fields(&c);
        if (is_given(actions[i].pattern))
            compile_pattern(&c);
        actions[i].has_value = is_set(actions[i].value);
        actions[i].has_default = is_set(actions[i].default_value);
        if (actions[i].has_value)
            actions[i].value_bytes = encode_node(config_check_arena(check), actions[i].value);
        if (actions[i].has_default)
            actions[i].default_bytes =
                encode_node(config_check_arena(check), actions[i].default_value);
    }
}

/* ---- applying ---- */

struct attribute_editor *attribute_editor_new(const struct config_list *list)
{
    struct attribute_editor *editor = memory_zalloc(sizeof *editor);
    uint32_t groups = 0;
    editor->actions = list->items;
    editor->action_count = list->count;
    for (size_t i = 0; i < list->count; i++)
        if (editor->actions[i].compiled && editor->actions[i].compiled->group_count > groups)
            groups = editor->actions[i].compiled->group_count;
    editor->match = pcre2_match_data_create(groups + 1, NULL);
    editor->limits = pcre2_match_context_create(NULL);
    assert(editor->match && editor->limits);
    pcre2_set_match_limit(editor->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(editor->limits, HEAP_LIMIT_KIB);
    return editor;
}

void attribute_editor_free(struct attribute_editor *editor)
{
    if (!editor)
        return;
    pcre2_match_data_free(editor->match);
    pcre2_match_context_free(editor->limits);
    free(editor);
}

/* One application to one message. */
struct edit {
    struct attribute_editor *editor;
    struct message *message;
    uint32_t number;
    struct arena *arena;
    const struct context *context;
};

static struct attribute first_attribute(struct edit *edit)
{
    return attribute_first(message_iter(edit->message, edit->arena), edit->number);
}

static bool find_attribute(struct edit *edit, struct slice key, struct attribute *attribute)
{
    return attributes_find(message_iter(edit->message, edit->arena), edit->number, key, attribute);
}

static void append_attribute(struct edit *edit, struct slice key, struct slice value)
{
    attributes_append(edit->message, edit->arena, edit->number, key, value);
}

static void upsert(struct edit *edit, struct slice key, struct slice value)
{
    struct attribute attribute;
    if (find_attribute(edit, key, &attribute))
        attribute_set_value(&attribute, value);
    else
        append_attribute(edit, key, value);
}

static bool value_from_context(struct edit *edit, const char *from, struct slice *out)
{
    const char *text = NULL;
    char name[256];
    if (strcmp(from, "client.address") == 0) {
        text = edit->context && edit->context->peer[0] ? edit->context->peer : NULL;
    } else if (strncmp(from, "metadata.", 9) == 0 && strlen(from + 9) < sizeof name) {
        size_t size = 0;
        for (const char *c = from + 9; *c; c++)
            name[size++] = (char)(*c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c);
        name[size] = '\0';
        text = context_get(edit->context, name);
    }
    if (!text || !utf8_is_valid(slice_of_string(text)))
        return false; /* a header may hold any bytes, OTLP's strings may not */
    *out = encode_string(edit->arena, slice_of_string(text));
    return true;
}

/* The value that the action sets; false: there is none, the action is left out. */
static bool source_value(struct edit *edit, const struct attribute_action *action,
                         struct slice *out)
{
    struct attribute source;
    if (action->has_value) {
        *out = action->value_bytes;
        return true;
    }
    if (is_given(action->from_attribute) &&
        find_attribute(edit, slice_of_string(action->from_attribute), &source)) {
        *out = source.pair.value;
        return true;
    }
    if (is_given(action->from_context) && value_from_context(edit, action->from_context, out))
        return true;
    *out = action->default_bytes;
    return action->has_default;
}

static void apply_set(struct edit *edit, const struct attribute_action *action)
{
    struct slice key = slice_of_string(action->key), value;
    struct attribute attribute;
    if (!source_value(edit, action, &value))
        return;
    bool exists = find_attribute(edit, key, &attribute);
    if (exists && action->action != ACTION_INSERT)
        attribute_set_value(&attribute, value);
    if (!exists && action->action != ACTION_UPDATE)
        append_attribute(edit, key, value);
}

/* False also when matching takes too long: then there is no match, as far as we can tell. */
static bool matches(struct edit *edit, const struct attribute_pattern *pattern, struct slice text)
{
    static const uint8_t nothing[1];
    return pattern && pcre2_match(pattern->code, text.data ? text.data : nothing, text.size, 0, 0,
                                  edit->editor->match, edit->editor->limits) >= 0;
}

static bool is_meant(struct edit *edit, const struct attribute_action *action, struct slice key)
{
    return (is_given(action->key) && slice_is(key, action->key)) ||
           matches(edit, action->compiled, key);
}

static void apply_delete(struct edit *edit, const struct attribute_action *action)
{
    struct attribute attribute = first_attribute(edit);
    while (attribute_next(&attribute))
        if (is_meant(edit, action, attribute.pair.key))
            attribute_remove(&attribute);
}

/* What the Collector hashes of each kind, numbers as little-endian `number`; false: nothing, for
 * lists, maps, bytes and the empty value. */
static bool hash_input(const struct any_value *value, uint64_t *number, struct slice *input)
{
    *input = slice_of(number, sizeof *number);
    switch (value->kind) {
    case ANY_VALUE_STRING:
        *input = value->bytes;
        return true;
    case ANY_VALUE_BOOL:
        *number = htole64(value->truth);
        input->size = 1;
        return true;
    case ANY_VALUE_INT:
        *number = htole64((uint64_t)value->integer);
        return true;
    case ANY_VALUE_DOUBLE:
        memcpy(number, &value->real, sizeof *number);
        *number = htole64(*number);
        return true;
    default:
        return false;
    }
}

/* SHA-256 in hex; "" where there is nothing to hash. */
static struct slice hash_value(struct arena *arena, struct slice any)
{
    struct any_value value = any_value_read(any);
    uint64_t number;
    uint8_t digest[32];
    struct slice input;
    struct text hex = {0};
    if (!hash_input(&value, &number, &input))
        return encode_string(arena, (struct slice){0});
    int ok = EVP_Digest(input.data, input.size, digest, NULL, EVP_sha256(), NULL);
    assert(ok == 1);
    text_append_hex(&hex, slice_of(digest, sizeof digest));
    struct slice encoded = encode_string(arena, slice_of(hex.data, hex.size));
    text_deinit(&hex);
    return encoded;
}

static void apply_hash(struct edit *edit, const struct attribute_action *action)
{
    struct attribute attribute = first_attribute(edit);
    while (attribute_next(&attribute))
        if (is_meant(edit, action, attribute.pair.key))
            attribute_set_value(&attribute, hash_value(edit->arena, attribute.pair.value));
}

static void apply_extract(struct edit *edit, const struct attribute_action *action)
{
    assert(action->compiled && action->compiled->group_count > 0); /* attribute_actions_check */
    struct attribute attribute;
    if (!find_attribute(edit, slice_of_string(action->key), &attribute))
        return;
    struct any_value value = any_value_read(attribute.pair.value);
    if (value.kind != ANY_VALUE_STRING || !matches(edit, action->compiled, value.bytes))
        return;
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(edit->editor->match);
    for (uint32_t i = 1; i <= action->compiled->group_count; i++) {
        struct slice group = {0};
        const PCRE2_SIZE *at = &offsets[(size_t)2 * i];
        if (at[0] != PCRE2_UNSET)
            group = slice_of(value.bytes.data + at[0], at[1] - at[0]);
        upsert(edit, action->compiled->group_names[i], encode_string(edit->arena, group));
    }
}

/* Go's strconv, as far as it can differ: no spaces, all of the text. */
static bool parse_number(struct slice text, bool real, int64_t *whole_out, double *real_out)
{
    char copy[64], *end;
    if (text.size == 0 || text.size >= sizeof copy || memchr(text.data, ' ', text.size))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    if (copy[0] == '\t' || copy[0] == '\n' || copy[0] == '\v' || copy[0] == '\f' || copy[0] == '\r')
        return false;
    errno = 0;
    if (real)
        *real_out = strtod(copy, &end);
    else
        *whole_out = strtoll(copy, &end, 10);
    return errno == 0 && *end == '\0';
}

static struct slice convert_to_number(struct arena *arena, const struct any_value *from, bool real,
                                      struct slice old)
{
    int64_t whole = 0;
    double value = 0;
    switch (from->kind) {
    case ANY_VALUE_STRING:
        if (!parse_number(from->bytes, real, &whole, &value))
            return old;
        break;
    case ANY_VALUE_BOOL:
        whole = from->truth;
        value = (double)whole;
        break;
    case ANY_VALUE_INT:
        whole = from->integer;
        value = (double)whole;
        break;
    case ANY_VALUE_DOUBLE:
        value = from->real;
        if (!real && !(value >= -9223372036854775808.0 && value < 9223372036854775808.0))
            return old;
        whole = real ? 0 : (int64_t)value;
        break;
    default:
        return old;
    }
    return any_value_encode(arena, real ? any_value_double(value) : any_value_int(whole));
}

static struct slice convert_to_string(struct arena *arena, const struct any_value *from,
                                      struct slice old)
{
    struct text text = {0};
    switch (from->kind) {
    case ANY_VALUE_BOOL:
        text_append(&text, from->truth ? "true" : "false");
        break;
    case ANY_VALUE_INT:
        text_printf(&text, "%" PRId64, from->integer);
        break;
    case ANY_VALUE_DOUBLE:
        json_print_double(&text, from->real);
        break;
    default: /* is one already; lists and maps stay what they are */
        return old;
    }
    struct slice encoded = encode_string(arena, slice_of(text.data, text.size));
    text_deinit(&text);
    return encoded;
}

static void apply_convert(struct edit *edit, const struct attribute_action *action)
{
    struct attribute attribute;
    if (!find_attribute(edit, slice_of_string(action->key), &attribute))
        return;
    struct slice old = attribute.pair.value;
    struct any_value from = any_value_read(old);
    if (action->converted_type == CONVERTED_STRING)
        attribute_set_value(&attribute, convert_to_string(edit->arena, &from, old));
    else
        attribute_set_value(
            &attribute,
            convert_to_number(edit->arena, &from, action->converted_type == CONVERTED_DOUBLE, old));
}

static void apply(struct edit *edit, const struct attribute_action *action)
{
    switch ((enum action)action->action) {
    case ACTION_INSERT:
    case ACTION_UPDATE:
    case ACTION_UPSERT:
        apply_set(edit, action);
        break;
    case ACTION_DELETE:
        apply_delete(edit, action);
        break;
    case ACTION_HASH:
        apply_hash(edit, action);
        break;
    case ACTION_EXTRACT:
        apply_extract(edit, action);
        break;
    case ACTION_CONVERT:
        apply_convert(edit, action);
        break;
    }
}

void attribute_editor_apply(struct attribute_editor *editor, struct message *message,
                            uint32_t number, struct arena *arena, const struct context *context)
{
    struct edit edit = {editor, message, number, arena, context};
    for (size_t i = 0; i < editor->action_count; i++)
        apply(&edit, &editor->actions[i]);
}
