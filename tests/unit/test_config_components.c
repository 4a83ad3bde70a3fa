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
    config_print_reference(component_types, &reference);
    config_print_schema(component_types, &schema);
    for (size_t i = 0; component_types[i]; i++) {
        const struct config_type *type = component_types[i];
        struct text heading = {0};
        text_printf(&heading, "\n### %s\n", type->name);
        assert_non_null(strstr(reference.data, text_string(&heading)));
        text_clear(&heading);
        text_printf(&heading, "\"%s.%s\"", config_section_names[type->section], type->name);
        assert_non_null(strstr(schema.data, text_string(&heading)));
        text_deinit(&heading);
    }
    text_deinit(&reference);
    text_deinit(&schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_right),
        cmocka_unit_test(names_are_ids_and_unique),
        cmocka_unit_test(every_type_has_help_and_a_signal),
        cmocka_unit_test(the_reference_and_the_schema_name_every_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
