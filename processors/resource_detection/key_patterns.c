#include "processors/resource_detection/key_patterns.h"

#include "core/base/memory.h"

#include <assert.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { MATCH_LIMIT = 100000, HEAP_LIMIT_KIB = 1024 };

struct key_patterns {
    pcre2_code **codes;
    size_t count;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

static bool compile(struct key_patterns *patterns, const char *text, struct error *err)
{
    int problem;
    PCRE2_SIZE offset;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &problem, &offset, NULL);
    if (code) {
        patterns->codes[patterns->count++] = code;
        return true;
    }
    char why[120];
    pcre2_get_error_message(problem, (PCRE2_UCHAR *)why, sizeof why);
    return error_set(err, "\"%s\" is not a regular expression, at character %zu: %s", text,
                     (size_t)offset + 1, why);
}

struct key_patterns *key_patterns_new(const struct config_strings *texts, struct error *err)
{
    struct key_patterns *patterns = memory_zalloc(sizeof *patterns);
    patterns->codes = memory_array(texts->count + 1, sizeof(pcre2_code *));
    patterns->match = pcre2_match_data_create(1, NULL);
    patterns->limits = pcre2_match_context_create(NULL);
    assert(patterns->match && patterns->limits);
    pcre2_set_match_limit(patterns->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(patterns->limits, HEAP_LIMIT_KIB);
    for (size_t i = 0; i < texts->count; i++)
        if (!compile(patterns, texts->items[i], err)) {
            key_patterns_free(patterns);
            return NULL;
        }
    return patterns;
}

void key_patterns_free(struct key_patterns *patterns)
{
    if (!patterns)
        return;
    for (size_t i = 0; i < patterns->count; i++)
        pcre2_code_free(patterns->codes[i]);
    pcre2_match_data_free(patterns->match);
    pcre2_match_context_free(patterns->limits);
    free(patterns->codes);
    free(patterns);
}

bool key_patterns_match(const struct key_patterns *patterns, struct slice key)
{
    static const uint8_t nothing[1];
    for (size_t i = 0; i < patterns->count; i++)
        if (pcre2_match(patterns->codes[i], key.data ? key.data : nothing, key.size, 0, 0,
                        patterns->match, patterns->limits) >= 0)
            return true;
    return false;
}
