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

static const char *join(struct arena *arena, const char *block, const char *inner)
{
    return inner ? arena_printf(arena, "%s::%s", block, inner) : NULL;
}

static const char *compare_blocks(struct arena *arena, const struct field *field, bool with_live,
                                  const void *before, const void *after)
{
    if (field->kind == FIELD_KIND_OPTIONAL) {
        bool was_enabled = *(const bool *)before, is_enabled = *(const bool *)after;
        if (was_enabled != is_enabled)
            return field->name;
        if (!is_enabled)
            return NULL;
    }
    const char *inner = config_fields_differ(arena, field->block, with_live, before, after);
    return field->inlined ? inner : join(arena, field->name, inner);
}

static const char *item_name(struct arena *arena, const struct field *field, const void *item,
                             size_t i)
{
    if (field->kind == FIELD_KIND_MAP)
        return arena_printf(arena, "%s::%s", field->name, *(const char *const *)item);
    return arena_printf(arena, "%s[%zu]", field->name, i);
}

/* Lists, and maps of blocks, whose items begin with their keys. */
static const char *compare_lists(struct arena *arena, const struct field *field, bool with_live,
                                 const struct config_list *before, const struct config_list *after)
{
    if (before->count != after->count)
        return field->name;
    for (size_t i = 0; i < before->count; i++) {
        const void *one = (const char *)before->items + i * field->block_size;
        const void *other = (const char *)after->items + i * field->block_size;
        if (field->kind == FIELD_KIND_MAP &&
            !is_same_text(*(const char *const *)one, *(const char *const *)other))
            return field->name;
        const char *inner = config_fields_differ(arena, field->block, with_live, one, other);
        if (inner)
            return join(arena, item_name(arena, field, one, i), inner);
    }
    return NULL;
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

const char *config_fields_differ(struct arena *arena, const struct field *fields, bool with_live,
                                 const void *before, const void *after)
{
    for (const struct field *field = fields; field && field->kind != FIELD_KIND_END; field++) {
        const void *one = (const char *)before + field->offset;
        const void *other = (const char *)after + field->offset;
        const char *where = NULL;
        if (field->is_live && !with_live)
            continue;
        if (field_is_given(field, before) != field_is_given(field, after))
            return field->name;
        if (field->kind == FIELD_KIND_BLOCK || field->kind == FIELD_KIND_OPTIONAL)
            where = compare_blocks(arena, field, with_live, one, other);
        else if (field->kind == FIELD_KIND_LIST || field->kind == FIELD_KIND_MAP)
            where = compare_lists(arena, field, with_live, one, other);
        else if (!is_same_value(field, one, other))
            where = field->name;
        if (where)
            return where;
    }
    return NULL;
}
