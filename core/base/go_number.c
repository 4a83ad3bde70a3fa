#include "core/base/go_number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c, bool is_hex)
{
    char lower = (char)(c | 0x20);
    return (c >= '0' && c <= '9') || (is_hex && lower >= 'a' && lower <= 'f');
}

/* Removes underscores, each of which is between digits, or after "0x". Returns false if one is
 * elsewhere. */
static bool remove_underscores(char *text)
{
    const char *number = text + (text[0] == '+' || text[0] == '-');
    bool is_hex = number[0] == '0' && (number[1] | 0x20) == 'x';
    char *to = text;
    for (const char *at = text; *at; at++) {
        if (*at != '_')
            *to++ = *at;
        else if (at == text || !is_digit(at[1], is_hex) ||
                 !(is_digit(at[-1], is_hex) || (is_hex && at == number + 2)))
            return false;
    }
    *to = '\0';
    return true;
}

bool go_parse_float(struct slice text, double *out)
{
    char copy[400], *end;
    if (text.size == 0 || text.size >= sizeof copy || text.data[0] <= ' ' ||
        memchr(text.data, '(', text.size)) /* strtod skips spaces, and reads "nan(1)" */
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    if (strlen(copy) < text.size || !remove_underscores(copy))
        return false;
    errno = 0;
    *out = strtod(copy, &end);
    bool is_hex = strpbrk(copy, "xX") && !strpbrk(copy, "pP"); /* Go wants an exponent */
    return end > copy && *end == '\0' && !is_hex && !(errno == ERANGE && isinf(*out));
}
