#include "core/config_sources.h"

#include "config/load.h"
#include "core/base/memory.h"
#include "core/components.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

/* All zero: there is no such file. */
struct file_state {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
};

struct source_file {
    char *path;
    struct file_state loaded; /* before the last load */
    struct file_state seen;   /* by the last config_sources_have_changed */
};

static struct file_state state_of(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return (struct file_state){0};
    return (struct file_state){info.st_dev, info.st_ino, info.st_size, info.st_mtim};
}

static bool is_same(const struct file_state *one, const struct file_state *other)
{
    return one->device == other->device && one->inode == other->inode && one->size == other->size &&
           one->modified.tv_sec == other->modified.tv_sec &&
           one->modified.tv_nsec == other->modified.tv_nsec;
}

/* ---- loading ---- */

/* The sources that are being loaded: the functions of config_inputs have no context. */
static struct config_sources *loading;

static void remember(struct config_sources *sources, const char *path)
{
    for (size_t i = 0; i < sources->file_count; i++)
        if (strcmp(sources->files[i].path, path) == 0)
            return;
    sources->files = memory_grow(sources->files, sources->file_count + 1, sizeof *sources->files);
    struct source_file *file = &sources->files[sources->file_count++];
    file->path = memory_strdup(path);
    file->loaded = file->seen = state_of(path);
}

static const char *environment(const char *name)
{
    return config_system_inputs.environment(name);
}

static bool read_file(struct arena *arena, const char *path, size_t max_bytes,
                      struct slice *content_out, struct error *err)
{
    assert(loading);
    remember(loading, path);
    return config_system_inputs.read_file(arena, path, max_bytes, content_out, err);
}

struct config *config_sources_load(struct config_sources *sources, struct text *report)
{
    static const struct config_inputs inputs = {.environment = environment, .read_file = read_file};
    config_sources_deinit(sources);
    assert(!loading);
    loading = sources;
    struct config *config = config_load_from(&inputs, component_types, sources->uris,
                                             sources->uri_count, sources->options, report);
    loading = NULL;
    return config;
}

bool config_sources_have_changed(struct config_sources *sources)
{
    bool has_changed = false, is_settled = true;
    for (size_t i = 0; i < sources->file_count; i++) {
        struct source_file *file = &sources->files[i];
        struct file_state now = state_of(file->path);
        has_changed |= !is_same(&now, &file->loaded);
        is_settled &= is_same(&now, &file->seen);
        file->seen = now;
    }
    return has_changed && is_settled;
}

void config_sources_deinit(struct config_sources *sources)
{
    for (size_t i = 0; i < sources->file_count; i++)
        free(sources->files[i].path);
    free(sources->files);
    sources->files = NULL;
    sources->file_count = 0;
}
