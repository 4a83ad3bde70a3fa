/*
 * error: a text that tells the user what is wrong and where.
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
    int system; /* errno of the system call that failed; 0: none did */
};

/* Sets the text (truncated to its size) and returns false, so that callers can write `return
 * error_set(err, ...)`. */
bool error_set(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with the system's text for errno `number`, which is also stored in `system`. */
bool error_set_system(struct error *err, int number);

/* Puts "prefix: " in front of the existing text; returns false. */
bool error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
