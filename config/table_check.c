#include "config/decode.h"
#include "config/yaml_tree.h"

/*
 * Finds mistakes in a table that the compiler does not notice. A test runs it for all components.
 */
struct table_check {
    struct arena arena;
    struct text *problems;
    bool good;
};

static void tell(struct table_check *check, const struct config_path *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void tell(struct table_check *check, const struct config_path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_printf(check->problems, "%s: ", config_path_text(&check->arena, path));
    text_vprintf(check->problems, format, args);
    text_append_char(check->problems, '\n');
    va_end(args);
    check->good = false;
}

static void check_help(struct table_check *check, const struct config_path *path,
                       const struct field *field)
{
    size_t size = field->help ? strlen(field->help) : 0;
    if (size == 0)
        tell(check, path, "there is no help");
    else if (field->help[size - 1] != '.')
        tell(check, path, "the help does not end with a full stop");
}

static bool has_block(const struct field *field)
{
    return field->kind == FIELD_KIND_BLOCK || field->kind == FIELD_KIND_OPTIONAL ||
           field->kind == FIELD_KIND_LIST || field->kind == FIELD_KIND_MAP;
}

static bool has_bounds(const struct field *field)
{
    return field->kind == FIELD_KIND_UINT || field->kind == FIELD_KIND_INT ||
           field->kind == FIELD_KIND_DOUBLE || field->kind == FIELD_KIND_DURATION;
}

static void check_text(struct table_check *check, const struct config_path *path,
                       const struct field *field, const char *what, const char *text)
{
    const char *problem = text ? config_scalar_problem(&check->arena, field, text) : NULL;
    if (problem)
        tell(check, path, "the %s does not fit: %s", what, problem);
}

static bool is_yaml(struct table_check *check, const char *text)
{
    struct config_check scratch = {.arena = &check->arena};
    const struct config_place nowhere = {0};
    return yaml_tree_read_value(&scratch, nowhere, slice_of_string(text)) != NULL;
}

static void check_values(struct table_check *check, const struct config_path *path,
                         const struct field *field)
{
    struct field unbounded = *field;
    unbounded.min = NULL;
    unbounded.max = NULL;
    if ((field->min || field->max) && !has_bounds(field))
        tell(check, path, "this kind has no bounds");
    if (field->kind == FIELD_KIND_ENUM && (!field->names || !field->names[0]))
        tell(check, path, "there are no names to choose from");
    else if (field->kind == FIELD_KIND_OPTIONAL) {
        if (field->fallback && strcmp(field->fallback, "true") != 0 &&
            strcmp(field->fallback, "false") != 0)
            tell(check, path, "the default of an optional block is true or false");
    } else if (has_block(field) || field->kind == FIELD_KIND_PAIRS) {
        if (field->fallback)
            tell(check, path, "this kind has no default");
    } else if (field->kind == FIELD_KIND_NODE) {
        if (field->fallback && !is_yaml(check, field->fallback))
            tell(check, path, "the default is not YAML");
    } else {
        check_text(check, path, field, "default", field->fallback);
        if (has_bounds(field)) {
            check_text(check, path, &unbounded, "lower bound", field->min);
            check_text(check, path, &unbounded, "upper bound", field->max);
        }
    }
    if (field->required && field->fallback)
        tell(check, path, "a required field cannot have a default");
    if (field->given && field->fallback)
        tell(check, path, "a field that may be absent cannot have a default");
}

static size_t find_name(const struct field *fields, const char *name)
{
    size_t count = 0;
    for (; fields->kind != FIELD_KIND_END; fields++)
        if (fields->inlined && fields->block)
            count += find_name(fields->block, name);
        else
            count += strcmp(fields->name, name) == 0;
    return count;
}

static void check_fields(struct table_check *check, const struct config_path *parent,
                         const struct field *fields, const struct field *outermost);

static void check_block(struct table_check *check, const struct config_path *path,
                        const struct field *field, const struct field *outermost)
{
    if (!has_block(field)) {
        if (field->block || field->inlined)
            tell(check, path, "this kind has no block");
        return;
    }
    if (!field->block || field->block_size == 0) {
        tell(check, path, "there is no block");
        return;
    }
    if (field->inlined && field->kind != FIELD_KIND_BLOCK)
        tell(check, path, "only a block can be inlined");
    for (const struct field *inner = field->block; inner->kind != FIELD_KIND_END; inner++) {
        if (inner->offset >= field->block_size)
            tell(check, path, "%s is not a member of the block's struct", inner->name);
        if (inner->given > field->block_size)
            tell(check, path, "what says that %s is given is not in the block's struct",
                 inner->name);
        if (field->kind == FIELD_KIND_MAP && inner->offset == 0)
            tell(check, path,
                 "the first member of a block in a map is its key, and not in its table");
        if (field->kind == FIELD_KIND_OPTIONAL && inner->offset == 0)
            tell(check, path,
                 "the first member of an optional block is `bool enabled`, and not in its table");
    }
    check_fields(check, path, field->block, field->inlined ? outermost : field->block);
}

/* outermost: the table that contains an inlined block, to find duplicate names. */
static void check_fields(struct table_check *check, const struct config_path *parent,
                         const struct field *fields, const struct field *outermost)
{
    for (const struct field *field = fields; field->kind != FIELD_KIND_END; field++) {
        struct config_path path = {.parent = parent, .name = field->name};
        check_help(check, &path, field);
        check_values(check, &path, field);
        if (!field->inlined && find_name(outermost, field->name) > 1)
            tell(check, &path, "the name is used twice");
        check_block(check, &path, field, outermost);
    }
}

bool config_table_check(const struct field *fields, struct text *problems)
{
    struct table_check check = {.problems = problems, .good = true};
    if (fields)
        check_fields(&check, NULL, fields, fields);
    arena_deinit(&check.arena);
    return check.good;
}
