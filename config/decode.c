#include "config/decode.h"

#include <assert.h>
#include <strings.h>

/* Where decoding is: one value, its key and its path. */
struct decoding {
    struct config_check *check;
    const struct config_path *path;
    const struct config_node *key;
    const struct config_node *node;
    const struct field *field;
};

static bool fail(const struct decoding *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(const struct decoding *at, const char *format, ...)
{
    struct config_check *check = at->check;
    va_list args;
    va_start(args, format);
    config_message_at(check, true, at->node->place, config_path_text(check->arena, at->path),
                      format, args);
    va_end(args);
    return false;
}

/* ---- numbers ---- */

/* The text of a number, with null as zero. */
static const char *number_text(const struct config_node *node)
{
    return node->kind == CONFIG_NODE_NULL ? "0" : node->text;
}

static bool fail_bounds(const struct decoding *at)
{
    const struct field *field = at->field;
    if (at->check->lenient)
        return true;
    const char *least = field->min ? field->min : field->kind == FIELD_KIND_UINT ? "0" : NULL;
    const char *value =
        at->node->kind == CONFIG_NODE_NULL ? "no value means 0, which" : config_node_text(at->node);
    if (least && field->max)
        return fail(at, "%s is out of bounds, it has to be from %s to %s", value, least,
                    field->max);
    return fail(at, "%s is out of bounds, it has to be at %s %s", value, least ? "least" : "most",
                least ? least : field->max);
}

static bool fail_kind(const struct decoding *at, const char *wanted)
{
    const struct config_node *node = at->node;
    if (node->kind != CONFIG_NODE_SCALAR)
        return fail(at, "expected %s, got %s", wanted, config_node_describe(node));
    const char *text = config_quote(at->check->arena, node->text);
    if (node->style == CONFIG_STYLE_QUOTED)
        return fail(at, "expected %s, got the text %s; write it without quotes", wanted, text);
    return fail(at, "expected %s, got %s", wanted, text);
}

static bool fail_whole_number(const struct decoding *at)
{
    const char *digits = at->node->text;
    if (*digits == '-' || *digits == '+')
        digits++;
    bool plain = at->node->kind == CONFIG_NODE_SCALAR && at->node->style == CONFIG_STYLE_PLAIN;
    bool only_digits = *digits && strspn(digits, "0123456789") == strlen(digits);
    if (plain && only_digits && digits[0] == '0')
        return fail(at, "%s has a leading zero; write %s, or 0o%s if it is octal", at->node->text,
                    digits + strspn(digits, "0"), digits + strspn(digits, "0"));
    if (plain && only_digits)
        return fail(at, "%s is too large for 64 bits", at->node->text);
    return fail_kind(at, "a whole number");
}

static bool is_plain(const struct config_node *node)
{
    return node->kind == CONFIG_NODE_NULL ||
           (node->kind == CONFIG_NODE_SCALAR && node->style == CONFIG_STYLE_PLAIN);
}

/* Bounds are written in tables; that they parse is for config_table_check. */
static uint64_t uint_bound(const char *text, uint64_t otherwise)
{
    uint64_t bound;
    return text && config_parse_uint(slice_of_string(text), &bound) ? bound : otherwise;
}

static int64_t int_bound(const char *text, int64_t otherwise)
{
    int64_t bound;
    return text && config_parse_int(slice_of_string(text), &bound) ? bound : otherwise;
}

static int64_t duration_bound(const char *text, int64_t otherwise)
{
    int64_t bound;
    char why[128];
    return text && config_parse_duration(slice_of_string(text), &bound, why, sizeof(why))
               ? bound
               : otherwise;
}

static bool read_bool(const struct decoding *at, void *member)
{
    bool value = false;
    const struct config_node *node = at->node;
    if (!is_plain(node))
        return fail_kind(at, "true or false");
    if (node->kind == CONFIG_NODE_SCALAR && !config_parse_bool(slice_of_string(node->text), &value))
        return fail_kind(at, "true or false");
    *(bool *)member = value;
    return true;
}

static bool read_uint(const struct decoding *at, void *member)
{
    struct slice text = slice_of_string(number_text(at->node));
    uint64_t value;
    int64_t negative;
    if (!is_plain(at->node))
        return fail_whole_number(at);
    if (!config_parse_uint(text, &value))
        return config_parse_int(text, &negative) ? fail_bounds(at) : fail_whole_number(at);
    if (value < uint_bound(at->field->min, 0) || value > uint_bound(at->field->max, UINT64_MAX))
        return fail_bounds(at);
    *(uint64_t *)member = value;
    return true;
}

static bool read_int(const struct decoding *at, void *member)
{
    int64_t value;
    if (!is_plain(at->node) || !config_parse_int(slice_of_string(number_text(at->node)), &value))
        return fail_whole_number(at);
    if (value < int_bound(at->field->min, INT64_MIN) ||
        value > int_bound(at->field->max, INT64_MAX))
        return fail_bounds(at);
    *(int64_t *)member = value;
    return true;
}

static bool read_double(const struct decoding *at, void *member)
{
    double value;
    double bound;
    const struct field *field = at->field;
    if (!is_plain(at->node) || !config_parse_double(slice_of_string(number_text(at->node)), &value))
        return fail_kind(at, "a number");
    if (field->min && config_parse_double(slice_of_string(field->min), &bound) && value < bound)
        return fail_bounds(at);
    if (field->max && config_parse_double(slice_of_string(field->max), &bound) && value > bound)
        return fail_bounds(at);
    *(double *)member = value;
    return true;
}

static bool read_duration(const struct decoding *at, void *member)
{
    int64_t value;
    char why[256];
    if (at->node->kind == CONFIG_NODE_LIST || at->node->kind == CONFIG_NODE_MAP)
        return fail_kind(at, "a duration like 5s");
    if (!config_parse_duration(slice_of_string(number_text(at->node)), &value, why, sizeof(why)))
        return fail(at, "%s", why);
    if (value < duration_bound(at->field->min, INT64_MIN) ||
        value > duration_bound(at->field->max, INT64_MAX))
        return fail_bounds(at);
    *(int64_t *)member = value;
    return true;
}

/* ---- text ---- */

/* NULL: the node is not text, and that was told. */
static const char *take_text(const struct decoding *at)
{
    const struct config_node *node = at->node;
    if (node->kind == CONFIG_NODE_SCALAR || node->verbatim || node->kind == CONFIG_NODE_NULL)
        return config_node_verbatim(node);
    fail(at, "expected text, got %s", config_node_describe(node));
    return NULL;
}

static bool read_string(const struct decoding *at, void *member)
{
    const char *text = take_text(at);
    if (!text)
        return false;
    bool nothing = at->node->kind == CONFIG_NODE_NULL && !*text && !at->field->fallback;
    *(const char **)member = nothing ? NULL : text;
    if (at->field->required && !*text && !at->check->lenient)
        return fail(at, "is required and cannot be empty");
    return true;
}

static size_t count_names(const char *const *names)
{
    size_t count = 0;
    while (names[count])
        count++;
    return count;
}

static const char *list_names(struct arena *arena, const char *const *names)
{
    struct text out = {0};
    for (size_t i = 0; names[i]; i++)
        text_printf(&out, "%s%s", i ? ", " : "", *names[i] ? names[i] : "\"\"");
    const char *copy = arena_strdup(arena, text_string(&out));
    text_deinit(&out);
    return copy;
}

static int find_name(const char *const *names, const char *text)
{
    for (int i = 0; names[i]; i++)
        if (strcasecmp(names[i], text) == 0)
            return i;
    return -1;
}

static bool read_enum(const struct decoding *at, void *member)
{
    struct arena *arena = at->check->arena;
    const char *const *names = at->field->names;
    const char *text = take_text(at);
    if (!text)
        return false;
    int found = find_name(names, text);
    if (found < 0 && at->node->kind == CONFIG_NODE_NULL && at->field->fallback)
        return true; /* the default is there already */
    if (found < 0) {
        const char *near = config_suggest(text, names, count_names(names));
        return fail(at, "%s is not one of %s%s%s%s", config_quote(arena, text),
                    list_names(arena, names), near ? ", did you mean \"" : "", near ? near : "",
                    near ? "\"?" : "");
    }
    *(int *)member = found;
    return true;
}

/* ---- several values ---- */

static struct slice trim(struct slice text)
{
    while (text.size && strchr(" \t\n\r", text.data[0]))
        text = slice_of(text.data + 1, text.size - 1);
    while (text.size && strchr(" \t\n\r", text.data[text.size - 1]))
        text.size--;
    return text;
}

/* "a,b" */
static struct config_strings split(struct arena *arena, const char *text)
{
    struct config_strings strings = {0};
    if (!*text)
        return strings;
    size_t count = 1;
    for (const char *c = text; *c; c++)
        count += *c == ',';
    strings.items = arena_array(arena, count, sizeof(const char *));
    for (const char *part = text; strings.count < count;) {
        const char *end = strchrnul(part, ',');
        strings.items[strings.count++] =
            arena_string(arena, trim(slice_of(part, (size_t)(end - part))));
        part = *end ? end + 1 : end;
    }
    return strings;
}

static bool require_some(const struct decoding *at, size_t count)
{
    if (!at->field->required || count || at->check->lenient)
        return true;
    return fail(at, "is required and cannot be empty");
}

static bool read_string_list(const struct decoding *at, struct config_strings *strings)
{
    const struct config_node *list = at->node;
    struct config_strings read = {
        .items = arena_array(at->check->arena, list->count, sizeof(const char *)),
    };
    for (size_t i = 0; i < list->count; i++) {
        struct config_path path = {.parent = at->path, .position = i};
        struct decoding item = *at;
        item.path = &path;
        item.node = list->items[i];
        const char *text = item.node->broken ? "" : take_text(&item);
        if (text)
            read.items[read.count++] = text;
    }
    *strings = read;
    return true;
}

static bool read_strings(const struct decoding *at, void *member)
{
    struct config_strings *strings = member;
    if (at->node->kind == CONFIG_NODE_MAP)
        return fail(at, "expected a list of texts, got a map");
    if (at->node->kind == CONFIG_NODE_LIST)
        read_string_list(at, strings);
    else if (at->node->kind == CONFIG_NODE_SCALAR)
        *strings = split(at->check->arena, config_node_verbatim(at->node));
    return require_some(at, strings->count);
}

static bool add_pair(const struct decoding *at, struct config_pairs *pairs, const char *name)
{
    const char *value = at->node->broken ? "" : take_text(at);
    if (!value)
        return false;
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->items[i].name, name) == 0)
            return fail(at, "%s is given twice", config_quote(at->check->arena, name));
    pairs->items[pairs->count++] = (struct config_pair){name, value};
    return true;
}

static void read_pairs_map(const struct decoding *at, struct config_pairs *pairs)
{
    for (size_t i = 0; i < at->node->count; i++) {
        struct config_path path = {.parent = at->path, .name = at->node->keys[i]->text};
        struct decoding item = *at;
        item.path = &path;
        item.node = at->node->items[i];
        add_pair(&item, pairs, path.name);
    }
}

/* {name: a, value: b} */
static bool read_pair(const struct decoding *at, struct config_pairs *pairs)
{
    const struct config_node *node = at->node;
    if (node->kind != CONFIG_NODE_MAP)
        return fail(at, "expected a map with name and value, got %s", config_node_describe(node));
    for (size_t i = 0; i < node->count; i++)
        if (strcmp(node->keys[i]->text, "name") != 0 && strcmp(node->keys[i]->text, "value") != 0)
            return fail(at, "unknown key %s; there are name and value",
                        config_quote(at->check->arena, node->keys[i]->text));
    size_t value = config_node_find(node, "value");
    const struct config_node *name = config_node_get(node, "name");
    if (!name || value == SIZE_MAX)
        return fail(at, "the key \"%s\" is missing", name ? "value" : "name");
    struct decoding inner = *at;
    inner.node = name;
    const char *text = name->broken ? NULL : take_text(&inner);
    if (!text)
        return false;
    if (!*text)
        return fail(&inner, "the name cannot be empty");
    inner.node = node->items[value];
    return add_pair(&inner, pairs, text);
}

static bool read_pairs(const struct decoding *at, void *member)
{
    struct config_pairs *pairs = member;
    const struct config_node *node = at->node;
    if (node->kind == CONFIG_NODE_SCALAR)
        return fail(at, "expected a map, or a list of {name, value}, got text");
    if (node->kind == CONFIG_NODE_NULL)
        return require_some(at, pairs->count);
    *pairs = (struct config_pairs){
        .items = arena_array(at->check->arena, node->count, sizeof(struct config_pair)),
    };
    if (node->kind == CONFIG_NODE_MAP)
        read_pairs_map(at, pairs);
    for (size_t i = 0; node->kind == CONFIG_NODE_LIST && i < node->count; i++) {
        struct config_path path = {.parent = at->path, .position = i};
        struct decoding item = *at;
        item.path = &path;
        item.node = node->items[i];
        if (!item.node->broken)
            read_pair(&item, pairs);
    }
    return require_some(at, pairs->count);
}

static bool read_list(const struct decoding *at, void *member)
{
    struct config_list *list = member;
    const struct config_node *node = at->node;
    const struct field *field = at->field;
    if (node->kind == CONFIG_NODE_NULL)
        return require_some(at, list->count);
    if (node->kind != CONFIG_NODE_LIST)
        return fail(at, "expected a list, got %s", config_node_describe(node));
    list->count = node->count;
    list->items = arena_array(at->check->arena, node->count, field->block_size);
    for (size_t i = 0; i < node->count; i++) {
        struct config_path path = {.parent = at->path, .position = i};
        config_decode_block(at->check, &path, node->items[i], node->items[i], field->block,
                            (char *)list->items + i * field->block_size);
    }
    return require_some(at, list->count);
}

static bool read_node(const struct decoding *at, void *member)
{
    const struct config_node *node = at->node->kind == CONFIG_NODE_NULL ? NULL : at->node;
    *(const struct config_node **)member = node;
    return !at->field->required || node || at->check->lenient ||
           fail(at, "is required and cannot be empty");
}

/* ---- blocks ---- */

static void decode_map(struct config_check *check, const struct config_path *path,
                       const struct config_node *key, const struct config_node *node,
                       const struct field *fields, void *out, bool *enabled);

static bool read_block(const struct decoding *at, void *member)
{
    decode_map(at->check, at->path, at->key, at->node, at->field->block, member, NULL);
    return true;
}

/* `enabled` is the first member, whether or not the table has it; writing the block at all is
 * enough. */
static bool read_optional(const struct decoding *at, void *member)
{
    bool *enabled = member;
    *enabled = true;
    size_t found = config_node_find(at->node, "enabled");
    if (found != SIZE_MAX && !at->node->items[found]->broken) {
        struct config_path path = {.parent = at->path, .name = "enabled"};
        struct decoding inner = {at->check, &path, at->node->keys[found], at->node->items[found],
                                 at->field};
        read_bool(&inner, enabled);
    }
    bool written = *enabled;
    at->check->lenient += !written;
    decode_map(at->check, at->path, at->key, at->node, at->field->block, member, enabled);
    at->check->lenient -= !written;
    *enabled = written;
    return true;
}

static bool (*const readers[])(const struct decoding *at, void *member) = {
    [FIELD_KIND_BOOL] = read_bool,         [FIELD_KIND_UINT] = read_uint,
    [FIELD_KIND_INT] = read_int,           [FIELD_KIND_DOUBLE] = read_double,
    [FIELD_KIND_DURATION] = read_duration, [FIELD_KIND_STRING] = read_string,
    [FIELD_KIND_SECRET] = read_string,     [FIELD_KIND_ENUM] = read_enum,
    [FIELD_KIND_STRINGS] = read_strings,   [FIELD_KIND_PAIRS] = read_pairs,
    [FIELD_KIND_BLOCK] = read_block,       [FIELD_KIND_OPTIONAL] = read_optional,
    [FIELD_KIND_LIST] = read_list,         [FIELD_KIND_NODE] = read_node,
};

/* ---- unknown keys ---- */

/* The field of a name, also in inlined blocks; *offset_out is where its member is in the outermost
 * struct. */
static const struct field *find_field(const struct field *fields, const char *name,
                                      size_t *offset_out)
{
    for (const struct field *field = fields; field && field->kind != FIELD_KIND_END; field++) {
        size_t inner = 0;
        const struct field *found = field;
        if (field->inlined)
            found = find_field(field->block, name, &inner);
        else if (strcmp(field->name, name) != 0)
            found = NULL;
        if (found) {
            *offset_out = field->offset + inner;
            return found;
        }
    }
    return NULL;
}

struct known_keys {
    const char *names[64];
    size_t count;
};

static void collect_keys(struct known_keys *keys, const struct field *fields)
{
    for (const struct field *field = fields; field && field->kind != FIELD_KIND_END; field++) {
        if (field->inlined)
            collect_keys(keys, field->block);
        else if (keys->count < sizeof(keys->names) / sizeof(keys->names[0]) &&
                 !field->replaced_by && !field->ignored)
            keys->names[keys->count++] = field->name;
    }
}

/* The path of a key that is known further in: people forget a level. */
static const char *find_deeper(struct arena *arena, const struct field *fields, const char *name)
{
    for (const struct field *field = fields; field && field->kind != FIELD_KIND_END; field++) {
        if (field->kind != FIELD_KIND_BLOCK && field->kind != FIELD_KIND_OPTIONAL)
            continue;
        size_t unused;
        const struct field *found = find_field(field->block, name, &unused);
        const char *inner = found ? name : find_deeper(arena, field->block, name);
        if (inner)
            return field->inlined ? inner : arena_printf(arena, "%s::%s", field->name, inner);
    }
    return NULL;
}

static void tell_unknown_key(struct config_check *check, const struct config_path *path,
                             const struct config_node *key, const struct field *fields,
                             bool optional)
{
    struct arena *arena = check->arena;
    const char *written = config_quote(arena, key->text);
    struct known_keys known = {0};
    collect_keys(&known, fields);
    if (optional && known.count < sizeof(known.names) / sizeof(known.names[0]))
        known.names[known.count++] = "enabled";
    const char *near = config_suggest(key->text, known.names, known.count);
    if (!near)
        near = find_deeper(arena, fields, key->text);
    if (near) {
        config_error_at(check, key->place, path, "unknown key %s, did you mean \"%s\"?", written,
                        near);
        return;
    }
    struct text list = {0};
    for (size_t i = 0; i < known.count && known.count <= 12; i++)
        text_printf(&list, "%s%s", i ? ", " : "; known are ", known.names[i]);
    config_error_at(check, key->place, path, "unknown key %s%s", written, text_string(&list));
    text_deinit(&list);
}

/* ---- the map of a table ---- */

/* A value of any kind that a field without effect can have, to see whether it is the default. */
union value {
    bool boolean;
    uint64_t natural;
    int position;
    const char *text;
    struct config_strings strings;
};

static size_t value_size(enum field_kind kind)
{
    switch (kind) {
    case FIELD_KIND_BOOL:
        return sizeof(bool);
    case FIELD_KIND_UINT:
    case FIELD_KIND_INT:
    case FIELD_KIND_DOUBLE:
    case FIELD_KIND_DURATION:
        return sizeof(uint64_t);
    case FIELD_KIND_ENUM:
        return sizeof(int);
    case FIELD_KIND_STRINGS:
        return sizeof(struct config_strings);
    case FIELD_KIND_STRING:
        return sizeof(const char *);
    default:
        return 0;
    }
}

static bool same_strings(const struct config_strings *a, const struct config_strings *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return a->count == b->count;
}

static bool same_value(enum field_kind kind, const union value *a, const union value *b)
{
    if (kind == FIELD_KIND_STRINGS)
        return same_strings(&a->strings, &b->strings);
    if (kind == FIELD_KIND_STRING)
        return a->text && b->text && strcmp(a->text, b->text) == 0;
    size_t size = value_size(kind);
    return size > 0 && memcmp(a, b, size) == 0;
}

/* Reads a value. What is without effect needs no warning when it says what is the case anyway. */
static void read_value(const struct decoding *at, void *member)
{
    const struct field *field = at->field;
    union value before = {0};
    union value after = {0};
    size_t size = value_size(field->kind);
    if (field->replaced_by)
        config_warn_at(at->check, at->key->place, at->path,
                       "\"%s\" is deprecated; use \"%s\" instead", field->name, field->replaced_by);
    memcpy(&before, member, size);
    if (!at->node->broken && !readers[field->kind](at, member))
        return;
    memcpy(&after, member, size);
    if (field->ignored && !same_value(field->kind, &before, &after))
        config_warn_at(at->check, at->key->place, at->path,
                       "is accepted but has no effect in profcol");
}

static void decode_keys(struct config_check *check, const struct config_path *path,
                        const struct config_node *node, const struct field *fields, void *out,
                        bool optional)
{
    for (size_t i = 0; i < node->count; i++) {
        const struct config_node *key = node->keys[i];
        if (optional && strcmp(key->text, "enabled") == 0)
            continue;
        size_t offset;
        const struct field *field = find_field(fields, key->text, &offset);
        if (!field) {
            tell_unknown_key(check, path, key, fields, optional);
            continue;
        }
        struct config_path inner = {.parent = path, .name = field->name};
        struct decoding at = {check, &inner, key, node->items[i], field};
        read_value(&at, (char *)out + offset);
    }
}

/* Required fields that are not written in node, nor in blocks that are there without being written.
 */
static void tell_missing(struct config_check *check, const struct config_path *path,
                         const struct config_node *key, const struct config_node *node,
                         const struct field *fields)
{
    for (const struct field *field = fields; field && field->kind != FIELD_KIND_END; field++) {
        if (field->inlined) {
            tell_missing(check, path, key, node, field->block);
            continue;
        }
        if (config_node_get(node, field->name))
            continue;
        struct config_path inner = {.parent = path, .name = field->name};
        bool is_there = field->kind == FIELD_KIND_BLOCK ||
                        (field->kind == FIELD_KIND_OPTIONAL && field->fallback &&
                         strcmp(field->fallback, "true") == 0);
        if (field->required)
            config_error_at(check, key->place, &inner, "is required but not set");
        else if (is_there)
            tell_missing(check, &inner, key, NULL, field->block);
    }
}

/* enabled: not NULL for an optional block. */
static void decode_map(struct config_check *check, const struct config_path *path,
                       const struct config_node *key, const struct config_node *node,
                       const struct field *fields, void *out, bool *enabled)
{
    if (node && node->broken)
        return;
    if (node && node->kind != CONFIG_NODE_NULL && node->kind != CONFIG_NODE_MAP) {
        config_error_at(check, node->place, path, "expected a map, got %s",
                        config_node_describe(node));
        return;
    }
    if (node)
        decode_keys(check, path, node, fields, out, enabled != NULL);
    if (!check->lenient)
        tell_missing(check, path, key, node, fields);
}

void config_decode_block(struct config_check *check, const struct config_path *path,
                         const struct config_node *key, const struct config_node *node,
                         const struct field *fields, void *out)
{
    config_decode_defaults(check->arena, fields, out);
    decode_map(check, path, key, node, fields, out, NULL);
}

/* ---- defaults ---- */

static void read_fallback(struct config_check *check, const struct field *field, void *member)
{
    const struct config_place nowhere = {0};
    struct config_node *node =
        config_node_scalar(check->arena, nowhere, field->fallback, CONFIG_STYLE_PLAIN);
    struct config_path path = {.name = field->name};
    struct decoding at = {check, &path, node, node, field};
    readers[field->kind](&at, member);
}

void config_decode_defaults(struct arena *arena, const struct field *fields, void *out)
{
    for (const struct field *field = fields; field && field->kind != FIELD_KIND_END; field++) {
        void *member = config_member(out, field);
        struct config_check check = {.arena = arena};
        switch (field->kind) {
        case FIELD_KIND_OPTIONAL:
            config_decode_defaults(arena, field->block, member);
            *(bool *)member = field->fallback && strcmp(field->fallback, "true") == 0;
            break;
        case FIELD_KIND_BLOCK:
            config_decode_defaults(arena, field->block, member);
            break;
        case FIELD_KIND_LIST:
        case FIELD_KIND_PAIRS:
        case FIELD_KIND_NODE:
            break;
        default:
            if (field->fallback)
                read_fallback(&check, field, member);
            assert(check.error_count == 0);
        }
    }
}

const char *config_scalar_problem(struct arena *arena, const struct field *field, const char *text)
{
    union {
        bool boolean;
        uint64_t natural;
        int64_t integer;
        double number;
        const char *text;
        int position;
        struct config_strings strings;
    } value = {0};
    struct config_check check = {.arena = arena};
    struct field candidate = *field;
    candidate.fallback = text;
    candidate.required = false;
    read_fallback(&check, &candidate, &value);
    return check.error_count ? check.messages[0].text : NULL;
}
