#include "core/ottl/ottl_check.h"

bool ottl_check_program(struct config_check *check, const char *key, struct ottl_program *program,
                        const struct error *err)
{
    if (!program)
        config_check_error_in(check, key, err->offset, "%s", err->text);
    ottl_program_free(program);
    return program != NULL;
}
