#include "config/decode.h"

#include "config/decode_value.h"
#include "config/node.h"
#include "config/renamed.h"
#include "config/suggest.h"
#include "config/yaml_tree.h"

#include <assert.h>

/* ---- blocks ---- */

static void decode_map(struct config_check *check, const struct config_path *path,
                       const struct config_node *key, const struct config_node *node,
                       const struct field *fields, void *out, bool *enabled);

static bool read_block(const struct decoding *at, void *member)
{
    decode_map(at->check, at->path, at->key, at->node, at->field->block, member, NULL);
    return true;
}

/* The first member is `enabled`, even if the table does not have it. A block that is written is
 * enabled. */
static bool read_optional(const struct decoding *at, void *member)
{
    bool *enabled = member;
    *enabled = true;
    size_t found = config_node_find(at->node, "enabled");
    if (found != SIZE_MAX && !at->node->items[found]->broken) {
        struct config_path path = {.parent = at->path, .name = "enabled"};
        struct decoding inner = {at->check, &path, at->node->keys[found], at->node->items[found],
                                 at->field};
        decode_read_bool(&inner, enabled);
    }
    bool written = *enabled;
    at->check->lenient += !written;
    decode_map(at->check, at->path, at->key, at->node, at->field->block, member, enabled);
    at->check->lenient -= !written;
    *enabled = written;
    return true;
}

static bool (*const readers[])(const struct decoding *at, void *member) = {
    [FIELD_KIND_BOOL] = decode_read_bool,
    [FIELD_KIND_UINT] = decode_read_uint,
    [FIELD_KIND_INT] = decode_read_int,
    [FIELD_KIND_DOUBLE] = decode_read_double,
    [FIELD_KIND_DURATION] = decode_read_duration,
    [FIELD_KIND_STRING] = decode_read_string,
    [FIELD_KIND_SECRET] = decode_read_string,
    [FIELD_KIND_ENUM] = decode_read_enum,
    [FIELD_KIND_STRINGS] = decode_read_strings,
    [FIELD_KIND_PAIRS] = decode_read_pairs,
    [FIELD_KIND_BLOCK] = read_block,
    [FIELD_KIND_OPTIONAL] = read_optional,
    [FIELD_KIND_LIST] = decode_read_list,
    [FIELD_KIND_MAP] = decode_read_map,
    [FIELD_KIND_NODE] = decode_read_node,
};

/* ---- unknown keys ---- */

/* Finds a field by name, also in inlined blocks. *offset_out: offset of its member in the outermost
 * struct. */
static const struct field *find_field(const struct field *fields, const char *name,
                                      size_t *offset_out)
{
    for (const struct field *field = fields; field && field->kind != FIELD_KIND_END; field++) {
        size_t inner = 0;
        const struct field *found = field;
        assert(!field->inlined || field->kind == FIELD_KIND_BLOCK);
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
        else if (keys->count < sizeof keys->names / sizeof keys->names[0] && !field->replaced_by &&
                 !field->ignored && !field->unlisted)
            keys->names[keys->count++] = field->name;
    }
}

/* optional: the block may have `enabled`, too. */
static struct known_keys known_keys(const struct field *fields, bool optional)
{
    struct known_keys known = {0};
    collect_keys(&known, fields);
    if (optional && known.count < sizeof known.names / sizeof known.names[0])
        known.names[known.count++] = "enabled";
    return known;
}

/* Returns the path of a nested field with this name, for users who forgot a level. */
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

/* Returns "; the keys are a, b"; "" if there are many. */
static const char *list_keys(struct arena *arena, const struct known_keys *known)
{
    struct text list = {0};
    const char *begin = known->count == 1 ? "; the only key is " : "; the keys are ";
    for (size_t i = 0; i < known->count && known->count <= 12; i++)
        text_printf(&list, "%s%s", i ? ", " : begin, known->names[i]);
    const char *copy = arena_strdup(arena, text_string(&list));
    text_deinit(&list);
    return copy;
}

static void tell_unknown_key(struct config_check *check, const struct config_path *path,
                             const struct config_node *key, const struct field *fields,
                             bool optional)
{
    struct arena *arena = check->arena;
    const char *written = config_quote(arena, key->text);
    const char *hint = config_renamed(path, key->text);
    if (hint) {
        config_error_at(check, key->place, path, "unknown key %s: %s", written, hint);
        return;
    }
    struct known_keys known = known_keys(fields, optional);
    const char *near = config_suggest(key->text, known.names, known.count);
    if (!near)
        near = find_deeper(arena, fields, key->text);
    if (near) {
        config_error_at(check, key->place, path, "unknown key %s, did you mean \"%s\"?", written,
                        near);
        return;
    }
    config_error_at(check, key->place, path, "unknown key %s%s", written, list_keys(arena, &known));
}

/* ---- the map of a table ---- */

/* A value of any kind that an ignored field can have, for comparison with its default. */
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

/* Reads a value. An ignored field with its default value gives no warning. */
static void read_value(const struct decoding *at, void *member)
{
    const struct field *field = at->field;
    union value before = {0};
    union value after = {0};
    size_t size = value_size(field->kind);
    assert(field->kind < sizeof readers / sizeof *readers && readers[field->kind]);
    if (field->replaced_by)
        config_warn_at(at->check, at->key->place, at->path,
                       "\"%s\" is deprecated; use \"%s\" instead", field->name, field->replaced_by);
    assert(size <= sizeof before);
    memcpy(&before, member, size);
    if (!at->node->broken && !readers[field->kind](at, member))
        return;
    memcpy(&after, member, size);
    if (field->ignored && !same_value(field->kind, &before, &after))
        config_warn_at(at->check, at->key->place, at->path,
                       "is accepted but has no effect in profcol");
}

/* Sets the bool that says whether the field at `member` was given. */
static void note_given(const struct field *field, bool is_given, char *member)
{
    *(bool *)(member - field->offset + field->given - 1) = is_given;
}

static void decode_keys(struct config_check *check, const struct config_path *path,
                        const struct config_node *node, const struct field *fields, void *out,
                        bool optional)
{
    assert(node->kind == CONFIG_NODE_MAP || node->count == 0);
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
        if (field->given)
            note_given(field, node->items[i]->kind != CONFIG_NODE_NULL, (char *)out + offset);
    }
}

/* Reports required fields that are missing in node, and in blocks that are enabled without being
 * written. */
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

/* Decodes a map. enabled: not NULL for an optional block. */
static void decode_map(struct config_check *check, const struct config_path *path,
                       const struct config_node *key, const struct config_node *node,
                       const struct field *fields, void *out, bool *enabled)
{
    if (node && node->broken)
        return;
    if (node && node->kind != CONFIG_NODE_NULL && node->kind != CONFIG_NODE_MAP) {
        struct known_keys known = known_keys(fields, enabled != NULL);
        config_error_at(check, node->place, path, "expected a map, got %s%s",
                        config_node_describe(node), list_keys(check->arena, &known));
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
    assert(field->fallback && readers[field->kind]);
    const struct config_place nowhere = {0};
    struct config_node *node =
        config_node_scalar(check->arena, nowhere, field->fallback, CONFIG_STYLE_PLAIN);
    struct config_path path = {.name = field->name};
    struct decoding at = {check, &path, node, node, field};
    readers[field->kind](&at, member);
}

/* Returns the default of a FIELD_KIND_NODE field, which is YAML. */
static const struct config_node *fallback_node(struct config_check *check,
                                               const struct field *field)
{
    const struct config_place nowhere = {0};
    return yaml_tree_read_value(check, nowhere, slice_of_string(field->fallback));
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
        case FIELD_KIND_MAP:
        case FIELD_KIND_PAIRS:
            break;
        case FIELD_KIND_NODE:
            if (field->fallback)
                *(const struct config_node **)member = fallback_node(&check, field);
            assert(check.error_count == 0);
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
    assert(check.error_count == 0 || check.message_count > 0);
    return check.error_count ? check.messages[0].text : NULL;
}
