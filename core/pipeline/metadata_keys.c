#include "core/pipeline/metadata_keys.h"

#include "config/request_headers.h"

#include <string.h>

static bool is_among(const struct config_strings *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return false;
}

void metadata_keys_check(const struct config_strings *names, struct config_check *check,
                         const char *key)
{
    for (size_t i = 0; i < names->count; i++) {
        names->items[i] = arena_lower_case(config_check_arena(check), names->items[i]);
        if (is_among(names, i, names->items[i]))
            config_check_error(check, key,
                               "duplicate entry in metadata_keys: \"%s\" (case-insensitive)",
                               names->items[i]);
        config_check_header(check, config_check_item(check, key, i), names->items[i],
                            "it separates nothing");
    }
}
