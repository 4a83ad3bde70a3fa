/*
 * A pattern, a byte 0xff, and texts that it is matched with. A pattern that needs very many steps
 * must end with an error, so nothing takes longer than the limits of steps allow; and a matcher
 * with an error must find the same afterwards.
 */
#include "core/ottl/ottl_regex.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REPEATED_MAX = 64 << 10 };

/* Returns whether the pattern was found; *failed_out: it took too many steps. */
static bool find(const struct ottl_regex *regex, struct ottl_matcher *matcher, struct slice text,
                 bool *failed_out)
{
    struct error err;
    bool found = false;
    *failed_out = !ottl_regex_find(regex, matcher, text, &found, &err);
    if (*failed_out && found)
        abort();
    return found;
}

/* Texts that make patterns backtrack repeat themselves, and end in something else. */
static void find_repeated(const struct ottl_regex *regex, struct ottl_matcher *matcher,
                          struct slice text)
{
    static uint8_t repeated[REPEATED_MAX + 1];
    size_t end = 0;
    bool failed;
    if (text.size == 0)
        return;
    while (end + text.size <= REPEATED_MAX) {
        memcpy(repeated + end, text.data, text.size);
        end += text.size;
    }
    repeated[end++] = '!';
    find(regex, matcher, slice_of(repeated, end), &failed);
}

/* All matches, as editors replace them. */
static void match_all(const struct ottl_regex *regex, struct ottl_matcher *matcher,
                      struct slice text)
{
    struct ottl_match match;
    struct error err;
    for (size_t from = 0; from <= text.size;) {
        if (!ottl_regex_match(regex, matcher, text, from, &match, &err) || match.count == 0)
            return;
        if (match.spans[0] > match.spans[1] || match.spans[1] > text.size || match.spans[0] < from)
            abort();
        from = match.spans[1] > from ? match.spans[1] : from + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, 0xff, size) : NULL;
    struct slice pattern = slice_of(data, end ? (size_t)(end - data) : size);
    struct slice text = end ? slice_of(end + 1, size - pattern.size - 1) : SLICE("");
    struct error err;
    bool failed, failed_again;
    if (pattern.size > 4096)
        return 0;
    struct ottl_regex *regex = ottl_regex_new(pattern, &err);
    struct ottl_regex *capturing = ottl_regex_new_capturing(pattern, &err);
    if (capturing && !regex)
        abort();
    if (capturing) {
        struct ottl_matcher *matcher = ottl_matcher_new();
        bool found = find(regex, matcher, text, &failed);
        find_repeated(regex, matcher, text);
        ottl_matcher_begin(matcher);
        if (find(regex, matcher, text, &failed_again) != found || failed_again != failed)
            abort();
        match_all(capturing, matcher, text);
        ottl_matcher_free(matcher);
    }
    ottl_regex_free(regex);
    ottl_regex_free(capturing);
    return 0;
}
