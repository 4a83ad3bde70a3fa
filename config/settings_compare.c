#include "config/diff.h"
#include "config/tree.h"

#include <assert.h>
#include <string.h>

static bool is_same_text(const char *one, const char *other)
{
    return one == other || (one && other && strcmp(one, other) == 0);
}

static bool are_same_strings(const struct config_strings *one, const struct config_strings *other)
{
    for (size_t i = 0; i < one->count && i < other->count; i++)
        if (!is_same_text(one->items[i], other->items[i]))
            return false;
    return one->count == other->count;
}

static bool are_same_pairs(const struct config_pairs *one, const struct config_pairs *other)
{
    for (size_t i = 0; i < one->count && i < other->count; i++)
        if (!is_same_text(one->items[i].name, other->items[i].name) ||
            !is_same_text(one->items[i].value, other->items[i].value))
            return false;
    return one->count == other->count;
}

/* Loading has limited the depth. Texts that are written in another way differ. */
static bool is_same_node(const struct config_node *one, const struct config_node *other)
{
    if (!one || !other)
        return one == other;
    if (one->kind != other->kind || one->style != other->style || one->count != other->count ||
        !is_same_text(one->text, other->text) || !is_same_text(one->verbatim, other->verbatim))
        return false;
    for (size_t i = 0; i < one->count; i++)
        if ((one->kind == CONFIG_NODE_MAP &&
             !is_same_text(one->keys[i]->text, other->keys[i]->text)) ||
            !is_same_node(one->items[i], other->items[i]))
            return false;
    return true;
}

/* The comparison of two structs. */
struct comparison {
    struct arena *arena;
    bool with_live;
    const char **found; /* paths */
    size_t count, most;
};

static void note(struct comparison *comparison, const char *prefix, const char *name)
{
    assert(comparison->count < comparison->most);
    comparison->found[comparison->count++] = arena_printf(comparison->arena, "%s%s", prefix, name);
}

static void compare_fields(struct comparison *comparison, const char *prefix,
                           const struct field *fields, const void *before, const void *after);

static void compare_blocks(struct comparison *comparison, const char *prefix,
                           const struct field *field, const void *before, const void *after)
{
    if (field->kind == FIELD_KIND_OPTIONAL) {
        bool was_enabled = *(const bool *)before, is_enabled = *(const bool *)after;
        if (was_enabled != is_enabled)
            note(comparison, prefix, field->name);
        if (was_enabled != is_enabled || !is_enabled)
            return;
    }
    if (!field->inlined)
        prefix = arena_printf(comparison->arena, "%s%s::", prefix, field->name);
    compare_fields(comparison, prefix, field->block, before, after);
}

static const char *item_prefix(struct comparison *comparison, const char *prefix,
                               const struct field *field, const void *item, size_t i)
{
    if (field->kind == FIELD_KIND_MAP)
        return arena_printf(comparison->arena, "%s%s::%s::", prefix, field->name,
                            *(const char *const *)item);
    return arena_printf(comparison->arena, "%s%s[%zu]::", prefix, field->name, i);
}

/* Lists, and maps of blocks, whose items begin with their keys. One difference is enough. */
static void compare_lists(struct comparison *comparison, const char *prefix,
                          const struct field *field, const struct config_list *before,
                          const struct config_list *after)
{
    size_t noted = comparison->count;
    bool is_same = before->count == after->count;
    for (size_t i = 0; is_same && i < before->count && comparison->count == noted; i++) {
        const void *one = (const char *)before->items + i * field->block_size;
        const void *other = (const char *)after->items + i * field->block_size;
        is_same = field->kind != FIELD_KIND_MAP ||
                  is_same_text(*(const char *const *)one, *(const char *const *)other);
        if (is_same)
            compare_fields(comparison, item_prefix(comparison, prefix, field, one, i), field->block,
                           one, other);
    }
    if (!is_same)
        note(comparison, prefix, field->name);
}

static bool is_same_value(const struct field *field, const void *before, const void *after)
{
    switch (field->kind) {
    case FIELD_KIND_BOOL:
        return *(const bool *)before == *(const bool *)after;
    case FIELD_KIND_UINT:
        return *(const uint64_t *)before == *(const uint64_t *)after;
    case FIELD_KIND_INT:
    case FIELD_KIND_DURATION:
        return *(const int64_t *)before == *(const int64_t *)after;
    case FIELD_KIND_DOUBLE:
        return memcmp(before, after, sizeof(double)) == 0;
    case FIELD_KIND_ENUM:
        return *(const int *)before == *(const int *)after;
    case FIELD_KIND_STRINGS:
        return are_same_strings(before, after);
    case FIELD_KIND_PAIRS:
        return are_same_pairs(before, after);
    case FIELD_KIND_NODE:
        return is_same_node(*(const struct config_node *const *)before,
                            *(const struct config_node *const *)after);
    default:
        assert(field->kind == FIELD_KIND_STRING || field->kind == FIELD_KIND_SECRET);
        return is_same_text(*(const char *const *)before, *(const char *const *)after);
    }
}

static void compare_fields(struct comparison *comparison, const char *prefix,
                           const struct field *fields, const void *before, const void *after)
{
    for (const struct field *field = fields; field && field->kind != FIELD_KIND_END; field++) {
        const void *one = (const char *)before + field->offset;
        const void *other = (const char *)after + field->offset;
        if (comparison->count == comparison->most)
            return;
        if (field->is_live && !comparison->with_live)
            continue;
        if (field_is_given(field, before) != field_is_given(field, after))
            note(comparison, prefix, field->name);
        else if (field->kind == FIELD_KIND_BLOCK || field->kind == FIELD_KIND_OPTIONAL)
            compare_blocks(comparison, prefix, field, one, other);
        else if (field->kind == FIELD_KIND_LIST || field->kind == FIELD_KIND_MAP)
            compare_lists(comparison, prefix, field, one, other);
        else if (!is_same_value(field, one, other))
            note(comparison, prefix, field->name);
    }
}

const char *config_fields_differ(struct arena *arena, const struct field *fields, bool with_live,
                                 const void *before, const void *after)
{
    const char *found = NULL;
    struct comparison comparison = {arena, with_live, &found, 0, 1};
    compare_fields(&comparison, "", fields, before, after);
    return found;
}

const char *config_fields_difference(struct arena *arena, const struct field *fields,
                                     bool with_live, const void *before, const void *after)
{
    enum { NAMED = 8 };
    const char *found[NAMED + 1], *list;
    struct comparison comparison = {arena, with_live, found, 0, NAMED + 1};
    compare_fields(&comparison, "", fields, before, after);
    if (comparison.count < 2)
        return comparison.count == 0 ? NULL : arena_printf(arena, "%s differs", found[0]);
    list = found[0];
    for (size_t i = 1; i < comparison.count && i < NAMED; i++)
        list = arena_printf(arena, "%s, %s", list, found[i]);
    return arena_printf(arena, "%s%s differ", list, comparison.count > NAMED ? " and others" : "");
}
