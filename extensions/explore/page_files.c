#include "extensions/explore/page_files.h"

#include "explore_page.h"

#include <assert.h>

enum { PAGE_FILES = sizeof page_files / sizeof page_files[0] };

static const struct {
    const char *suffix, *type;
} page_types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

static bool has_suffix(const char *text, const char *suffix)
{
    size_t size = strlen(text), suffix_size = strlen(suffix);
    return size >= suffix_size && strcmp(text + size - suffix_size, suffix) == 0;
}

static const char *type_of(const char *path)
{
    for (size_t i = 0; i < sizeof page_types / sizeof page_types[0]; i++)
        if (has_suffix(path, page_types[i].suffix))
            return page_types[i].type;
    assert(!"a file of the page has a type");
    return NULL;
}

struct slice explore_page_file(struct slice path, const char **type_out)
{
    if (slice_is(path, "/"))
        path = SLICE("/index.html");
    for (size_t i = 0; i < PAGE_FILES; i++) {
        if (!slice_is(path, page_files[i].path))
            continue;
        *type_out = type_of(page_files[i].path);
        return slice_of(page_files[i].data, page_files[i].size);
    }
    return slice_of(NULL, 0);
}

const char *explore_page_path(size_t number)
{
    return number < PAGE_FILES ? page_files[number].path : NULL;
}
