/*
 * log_output: where the lines of the log go: standard output, standard error, files.
 *
 * Owner: the outputs own their descriptors and copies of their paths; free them with
 * log_outputs_deinit. All-zero is valid: nothing is written.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_BASE_LOG_OUTPUT_H
#define PROFCOL_CORE_BASE_LOG_OUTPUT_H

#include "core/base/error.h"
#include "core/base/slice.h"

#include <stddef.h>

struct log_output {
    char *path; /* as configured */
    int fd;
};

struct log_outputs {
    struct log_output *items;
    size_t count;
};

/* Returns NULL if `path` is "stdout", "stderr", a path or a file:// URL; else what is wrong. */
const char *log_path_problem(const char *path);
/* Opens them. Returns false, with err set and nothing open, if one cannot be opened. */
bool log_outputs_init(struct log_outputs *outputs, const char *const *paths, size_t count,
                      struct error *err);
/* Opens the files again. Those that cannot be opened stay; then it returns false, with err set. */
bool log_outputs_reopen(struct log_outputs *outputs, struct error *err);
/* Writes the line to each output. Returns one that failed, with errno set; NULL: none did. */
const struct log_output *log_outputs_write(const struct log_outputs *outputs, struct slice line);
void log_outputs_deinit(struct log_outputs *outputs);

#endif
