#include "core/ottl/ottl_check.h"

#include "core/ottl/ottl_regex.h"

bool ottl_check_program(struct config_check *check, const char *key, struct ottl_program *program,
                        const struct error *err)
{
    const char *warning;
    size_t offset;
    if (!program)
        config_check_error_in(check, key, err->offset, "%s", err->text);
    for (uint32_t i = 0; program && (warning = ottl_program_warning(program, i, &offset)); i++)
        config_check_warn_in(check, key, offset, "%s", warning);
    ottl_program_free(program);
    return program != NULL;
}

bool ottl_check_pattern(struct config_check *check, const char *key, const char *pattern)
{
    struct error err = {0};
    struct ottl_regex *regex = ottl_regex_new(slice_of_string(pattern), &err);
    bool is_valid = regex != NULL;
    if (!is_valid)
        config_check_error(check, key, "%s", err.text);
    ottl_regex_free(regex);
    return is_valid;
}
