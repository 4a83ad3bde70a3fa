#include "core/base/error.h"

#include "core/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void error_set_text(struct error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    text_end_at_character(err->text);
    err->system = 0;
    err->offset = 0;
}

bool error_set_system(struct error *err, int number)
{
    error_set(err, "%s", strerror(number));
    err->system = number;
    return false;
}

bool error_prefix(struct error *err, const char *format, ...)
{
    struct error rest = *err;
    va_list args;
    va_start(args, format);
    int used = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof err->text) {
        size_t room = sizeof err->text - (size_t)used;
        snprintf(err->text + used, room, ": %.*s", (int)room, rest.text);
    }
    text_end_at_character(err->text);
    return false;
}
