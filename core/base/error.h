/*
 * error: a text that says what is wrong and where, for whoever caused it.
 *
 * Set-up functions are `bool f(..., struct error *err)`: false means that err->text is set. The
 * data path returns verdicts instead (core/base/verdict.h).
 *
 * Owner: the caller, usually on its stack; nothing to free.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_BASE_ERROR_H
#define PROFCOL_CORE_BASE_ERROR_H

#include <stdbool.h>

struct error {
    char text[1024];
    int system; /* errno where a system call failed; 0: none did */
};

/* Sets the text (cut at its size) and returns false, so that `return error_set(err, ...)` reads
 * well. */
bool error_set(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with the text of errno, which is kept in `system`. */
bool error_set_system(struct error *err, int number);

/* Puts "prefix: " before the text that is there; returns false. */
bool error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
