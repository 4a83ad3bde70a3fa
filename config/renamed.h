/*
 * renamed: keys that the Collector once had, and what to write now.
 *
 * Owner: static texts.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CONFIG_RENAMED_H
#define PROFCOL_CONFIG_RENAMED_H

struct config_path;

/* Returns what to write in place of an unknown key of the block at `path`; NULL if that is not
 * known. */
const char *config_renamed(const struct config_path *path, const char *key);

#endif
