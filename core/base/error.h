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

/* Sets the text (cut at its size) and is false, so that `return error_set(err, ...)` reads well. A
 * macro, so that analysers see the false and do not follow a call that failed. */
#define error_set(...) error_false((error_set_text(__VA_ARGS__), 0))

/* Workings of error_set. */
void error_set_text(struct error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline bool error_false(int nothing)
{
    (void)nothing;
    return false;
}

/* The same with the text of errno, which is kept in `system`. */
bool error_set_system(struct error *err, int number);

/* Puts "prefix: " before the text that is there; returns false. */
bool error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
