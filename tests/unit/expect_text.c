#include "tests/unit/expect_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { BEFORE = 60, BEHIND = 40 };

/* Prints the part of the text around the position, on one line. */
static void print_excerpt(struct text *out, const char *label, const char *text, size_t from,
                          size_t at)
{
    size_t size = strlen(text), end = size - at > BEHIND ? at + BEHIND : size;
    text_printf(out, "%4s %s", label, from > 0 ? "..." : "");
    for (size_t i = from; i < end; i++)
        text_append(out, text[i] == '\n' ? " " : (const char[]){text[i], '\0'});
    text_append(out, end < size ? "...\n" : "\n");
}

void describe_difference(const char *got, const char *want, struct text *out)
{
    size_t at = 0;
    while (got[at] && got[at] == want[at])
        at++;
    if (got[at] == want[at])
        return;
    size_t from = at > BEFORE ? at - BEFORE : 0;
    size_t columns = strlen("want ") + (from > 0 ? strlen("...") : 0) + (at - from);
    print_excerpt(out, "want", want, from, at);
    print_excerpt(out, "got", got, from, at);
    text_printf(out, "%*s^ byte %zu\n", (int)columns, "", at);
}

void expect_text_at(const char *got, const char *want, const char *what, const char *file, int line)
{
    struct text difference = {0};
    describe_difference(got, want, &difference);
    if (difference.size == 0)
        return;
    print_error("%s%sthe texts differ:\n%s", what ? what : "", what ? ": " : "",
                text_string(&difference));
    text_deinit(&difference);
    _fail(file, line);
}
