#include "config/suggest.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LONGEST = 64, PREFIX_MIN = 4 };

static char lower(char c)
{
    return (char)tolower((unsigned char)c);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Returns the number of insertions, deletions, replacements and swaps of neighbours between two
 * words, ignoring case. */
static unsigned distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    assert(a_size <= LONGEST && b_size <= LONGEST);
    unsigned rows[3][LONGEST + 1];
    for (unsigned k = 0; k <= b_size; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= a_size; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i - 1) % 3];
        row[0] = (unsigned)i;
        for (size_t k = 1; k <= b_size; k++) {
            bool same = lower(a[i - 1]) == lower(b[k - 1]);
            row[k] = least(least(above[k], row[k - 1]) + 1, above[k - 1] + !same);
            if (i > 1 && k > 1 && lower(a[i - 1]) == lower(b[k - 2]) &&
                lower(a[i - 2]) == lower(b[k - 1]))
                row[k] = least(row[k], rows[(i - 2) % 3][k - 2] + 1);
        }
    }
    return rows[a_size % 3][b_size];
}

/* Returns the largest distance of a suggestion: about one letter in three. */
static unsigned tolerance(size_t size)
{
    if (size <= 2)
        return 1;
    return size <= 5 ? 2 : (unsigned)least((unsigned)size / 3, 5);
}

/* Returns the only name that begins with the word, which lacks its end, such as a unit; NULL if
 * there is none, or several. */
static const char *completed(const char *written, size_t size, const char *const *names,
                             size_t count)
{
    const char *found = NULL;
    for (size_t i = 0; i < count && size >= PREFIX_MIN; i++) {
        if (strncmp(names[i], written, size) != 0)
            continue;
        if (found)
            return NULL;
        found = names[i];
    }
    return found;
}

const char *config_suggest(const char *written, const char *const *names, size_t count)
{
    size_t size = strlen(written);
    if (size == 0 || size > LONGEST)
        return NULL;
    const char *best = NULL;
    unsigned best_distance = tolerance(size) + 1;
    for (size_t i = 0; i < count; i++) {
        size_t name_size = strlen(names[i]);
        if (name_size == 0 || name_size > LONGEST)
            continue;
        unsigned d = distance(written, size, names[i], name_size);
        /* At least one letter must be the same. */
        if (d < best_distance && d < name_size && d < size + 1) {
            best = names[i];
            best_distance = d;
        }
    }
    return best ? best : completed(written, size, names, count);
}
