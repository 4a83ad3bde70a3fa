#include "core/ottl/ottl_check.h"

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
