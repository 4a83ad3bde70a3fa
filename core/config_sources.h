/*
 * config_sources: where the configuration comes from, to load it again and to notice that a file of
 * it has changed.
 *
 * The files are those of --config and those that placeholders (`${file:...}`) name. A file counts
 * as changed if its device, inode, size or time differ. Symbolic links are followed, so a ConfigMap
 * that Kubernetes replaces counts, too.
 *
 * Owner: main. The texts belong to the command line.
 *
 * Thread: main.
 */
#ifndef PROFCOL_CORE_CONFIG_SOURCES_H
#define PROFCOL_CORE_CONFIG_SOURCES_H

#include "config/config.h"

struct source_file;

struct config_sources {
    const char **uris;
    size_t uri_count;
    struct config_options options;
    /* The files that the last load read, and their states before it. */
    struct source_file *files;
    size_t file_count;
};

/* Loads the configuration, as config_load does, and remembers its files. */
struct config *config_sources_load(struct config_sources *sources, struct text *report);
/* Call it about once a second. Returns true if a file has changed since the last load, and has not
 * changed any more since the last call: somebody may still be writing. */
bool config_sources_have_changed(struct config_sources *sources);
/* Frees what was remembered. */
void config_sources_deinit(struct config_sources *sources);

#endif
