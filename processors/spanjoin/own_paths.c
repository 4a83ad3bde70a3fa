#include "processors/spanjoin/own_paths.h"

#include "core/base/slice.h"

/* Whether a path is in the text, outside of what is quoted. */
static bool has_path(const char *text, const char *path)
{
    bool is_quoted = false;
    for (const char *at = text; *at; at++) {
        if (!is_quoted && string_begins_with(at, path))
            return true;
        if (*at == '"')
            is_quoted = !is_quoted;
        else if (is_quoted && *at == '\\' && at[1])
            at++;
    }
    return false;
}

const char *own_paths_find(const char *expression)
{
    static const char *const own[] = {"samples.count", "samples.sum",     "samples.top_functions",
                                      "root.name",     "root.attributes", "span.duration_bucket"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (has_path(expression, own[i]))
            return own[i];
    return NULL;
}
