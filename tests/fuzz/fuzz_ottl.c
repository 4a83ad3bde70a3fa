/*
 * Any bytes as a condition and as a statement of OTTL.
 */
#include "core/ottl/ottl_parser.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct ottl_statement parsed;
    struct error err;
    struct slice text = slice_of(size > 0 ? data : (const uint8_t *)"", size);
    arena_init(&arena, NULL);
    if (ottl_parse_condition(text, &arena, &parsed, &err) && (parsed.editor || !parsed.condition))
        abort();
    if (ottl_parse_statement(text, &arena, &parsed, &err) && !parsed.editor)
        abort();
    arena_deinit(&arena);
    return 0;
}
