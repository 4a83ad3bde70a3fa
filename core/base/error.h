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
#include <stddef.h>

struct error {
    char text[1024];
    int system;    /* errno of the system call that failed; 0: none did */
    size_t offset; /* of the mistake in a text that was read, if the function says so; else 0 */
};

/* Sets the text (truncated to its size) and evaluates to false, so that callers can write `return
 * error_set(err, ...)`. It is a macro, so that analysers see the false and do not follow a call
 * that failed. */
#define error_set(...) error_false((error_set_text(__VA_ARGS__), 0))

/* Internals of error_set. */
void error_set_text(struct error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline bool error_false(int nothing)
{
    (void)nothing;
    return false;
}

/* Sets the text to the system's text for errno `number`, and `system` to the number. Returns
 * false. */
bool error_set_system(struct error *err, int number);

/* Puts "prefix: " in front of the existing text, and keeps the rest; returns false. */
bool error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
