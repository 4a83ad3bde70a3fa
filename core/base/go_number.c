#include "core/base/go_number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool go_parse_float(struct slice text, double *out)
{
    char copy[400], *end;
    if (text.size == 0 || text.size >= sizeof copy || text.data[0] <= ' ' ||
        memchr(text.data, '(', text.size)) /* strtod skips spaces, and reads "nan(1)" */
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    errno = 0;
    *out = strtod(copy, &end);
    bool is_hex = strpbrk(copy, "xX") && !strpbrk(copy, "pP"); /* Go wants an exponent */
    return end == copy + text.size && !is_hex && !(errno == ERANGE && isinf(*out));
}
