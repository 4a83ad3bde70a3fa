#include "config_fixture.h"

#include "config/sections.h"

#include "core/components.h"

#include <string.h>

/* Checks the table of every built-in component. */

static void tables_are_right(void **state)
{
    (void)state;
    struct text problems = {0};
    for (size_t i = 0; component_types[i]; i++) {
        struct text own = {0};
        if (!config_table_check(component_types[i]->fields, &own))
            text_printf(&problems, "%s:\n%s", component_types[i]->name, text_string(&own));
        text_deinit(&own);
    }
    assert_string_equal(text_string(&problems), "");
}

static void names_are_ids_and_unique(void **state)
{
    (void)state;
    struct arena arena = {0};
    for (size_t i = 0; component_types[i]; i++) {
        const struct config_type *type = component_types[i];
        struct config_id id;
        assert_null(config_id_parse(&arena, type->name, &id));
        for (size_t k = 0; component_types[k]; k++) {
            const struct config_type *other = component_types[k];
            if (k == i || other->section != type->section)
                continue;
            assert_string_not_equal(type->name, other->name);
            if (type->alias)
                assert_string_not_equal(type->alias, other->name);
        }
    }
    arena_deinit(&arena);
}

static void every_type_has_help_and_a_signal(void **state)
{
    (void)state;
    for (size_t i = 0; component_types[i]; i++) {
        const struct config_type *type = component_types[i];
        if (!type->help || type->help[strlen(type->help) - 1] != '.')
            fail_msg("the help of %s ends with a full stop", type->name);
        bool carries = false;
        for (int signal = 0; signal < CONFIG_SIGNAL_COUNT; signal++)
            carries = carries || type->stability[signal] != STABILITY_NONE;
        if (!carries && type->section != CONFIG_EXTENSIONS)
            fail_msg("%s carries nothing", type->name);
        if (type->fields && type->fields[0].kind != FIELD_KIND_END)
            assert_true(type->config_size > 0);
    }
}

static void the_reference_and_the_schema_name_every_type(void **state)
{
    (void)state;
    struct text reference = {0};
    struct text schema = {0};
    config_print_reference(component_types, shared_blocks, &reference);
    config_print_schema(component_types, &schema);
    for (size_t i = 0; component_types[i]; i++) {
        const struct config_type *type = component_types[i];
        struct text heading = {0};
        const char *section = config_section_names[type->section];
        text_printf(&heading, "\n### %s %.*s\n", type->name, (int)strlen(section) - 1, section);
        assert_non_null(strstr(reference.data, text_string(&heading)));
        text_clear(&heading);
        text_printf(&heading, "\"%s.%s\"", config_section_names[type->section], type->name);
        assert_non_null(strstr(schema.data, text_string(&heading)));
        text_deinit(&heading);
    }
    text_deinit(&reference);
    text_deinit(&schema);
}

/* ---- blocks that the reference describes once ---- */

enum { BLOCKS_MAX = 256, SMALL_ROWS = 3 };
struct uses {
    const struct field *blocks[BLOCKS_MAX];
    const char *names[BLOCKS_MAX];
    size_t count;
};

static bool is_shared(const struct field *fields)
{
    for (const struct config_shared_block *block = shared_blocks; block->fields; block++)
        if (block->fields == fields)
            return true;
    return false;
}

static size_t rows_of(const struct field *fields)
{
    size_t rows = 0;
    for (; fields->kind != FIELD_KIND_END; fields++)
        rows += 1 + (fields->block && !is_shared(fields->block) ? rows_of(fields->block) : 0);
    return rows;
}

/* The reference refers to the first of several fields with the same table. */
static bool has_twin(const struct field *fields, const struct field *field)
{
    for (; fields != field; fields++)
        if (fields->block == field->block)
            return true;
    return false;
}

static void collect_blocks(struct uses *uses, const struct field *fields)
{
    for (const struct field *field = fields; field && field->kind != FIELD_KIND_END; field++) {
        if (!field->block || has_twin(fields, field))
            continue;
        assert_true(uses->count < BLOCKS_MAX);
        uses->names[uses->count] = field->name;
        uses->blocks[uses->count++] = field->block;
        if (!is_shared(field->block)) /* its own blocks are described with it */
            collect_blocks(uses, field->block);
    }
}

static void a_table_in_several_places_is_a_shared_block(void **state)
{
    (void)state;
    struct uses uses = {0};
    for (size_t i = 0; component_types[i]; i++)
        collect_blocks(&uses, component_types[i]->fields);
    for (const struct config_shared_block *block = shared_blocks; block->fields; block++)
        collect_blocks(&uses, block->fields);
    for (size_t i = 0; i < uses.count; i++)
        for (size_t k = 0; k < i; k++)
            if (uses.blocks[i] == uses.blocks[k] && !is_shared(uses.blocks[i]) &&
                rows_of(uses.blocks[i]) > SMALL_ROWS)
                fail_msg("the reference has the table of `%s` twice: add it to shared_blocks of "
                         "core/components.c",
                         uses.names[i]);
}

static void a_shared_block_is_described_once(void **state)
{
    (void)state;
    struct text reference = {0};
    config_print_reference(component_types, shared_blocks, &reference);
    for (const struct config_shared_block *block = shared_blocks; block->fields; block++) {
        struct text row = {0};
        text_printf(&row, "\n### %s\n\n%s\n\n| key |", block->title, block->help);
        assert_non_null(strstr(reference.data, text_string(&row)));
        assert_int_equal(block->help[strlen(block->help) - 1], '.');
        text_deinit(&row);
    }
    assert_null(strstr(reference.data, "\n| `protocols.grpc.tls` |"));
    assert_non_null(strstr(reference.data, "\n| `protocols.http.*` | all keys of "
                                           "[HTTP servers](#http-servers) |"));
    text_deinit(&reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_right),
        cmocka_unit_test(names_are_ids_and_unique),
        cmocka_unit_test(every_type_has_help_and_a_signal),
        cmocka_unit_test(the_reference_and_the_schema_name_every_type),
        cmocka_unit_test(a_table_in_several_places_is_a_shared_block),
        cmocka_unit_test(a_shared_block_is_described_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
