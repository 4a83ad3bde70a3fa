/*
 * inputs: the environment variables and files that placeholders in a configuration can use.
 *
 * Two functions provide them, so that a test or a fuzzer can replace them.
 *
 * Owner: static data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CONFIG_INPUTS_H
#define PROFCOL_CONFIG_INPUTS_H

#include "core/base/arena.h"
#include "core/base/error.h"

struct config_inputs {
    /* Returns the value of a variable; NULL if it is not set. */
    const char *(*environment)(const char *name);
    /* Reads a file into the arena, with a NUL after its content. Returns false, with err set, if it
     * cannot be read or is larger than max_bytes. */
    bool (*read_file)(struct arena *arena, const char *path, size_t max_bytes,
                      struct slice *content_out, struct error *err);
};

/* The process's environment and file system. */
extern const struct config_inputs config_system_inputs;

#endif
