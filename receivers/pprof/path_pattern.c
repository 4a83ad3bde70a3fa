#include "receivers/pprof/path_pattern.h"

#include "core/base/memory.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <assert.h>
#include <pcre2.h>

/* File names may come from anybody, so no match may take long. */
enum { MATCH_LIMIT = 100000, HEAP_LIMIT_KIB = 1024 };

struct path_pattern {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

struct path_pattern *path_pattern_new(const char *text, struct error *err)
{
    int problem;
    PCRE2_SIZE offset;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0, &problem, &offset, NULL);
    if (!code) {
        char why[120];
        pcre2_get_error_message(problem, (PCRE2_UCHAR *)why, sizeof why);
        error_set(err, "not a regular expression, at character %zu: %s", (size_t)offset + 1, why);
        return NULL;
    }
    /* Faster if the system allows code generated at run time; works without it, too. */
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    struct path_pattern *pattern = memory_zalloc(sizeof *pattern);
    pattern->code = code;
    pattern->match = pcre2_match_data_create_from_pattern(code, NULL);
    pattern->limits = pcre2_match_context_create(NULL);
    assert(pattern->match && pattern->limits);
    pcre2_set_match_limit(pattern->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(pattern->limits, HEAP_LIMIT_KIB);
    return pattern;
}

void path_pattern_free(struct path_pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_match_context_free(pattern->limits);
    pcre2_match_data_free(pattern->match);
    pcre2_code_free(pattern->code);
    free(pattern);
}

static struct slice label_name(const char *group)
{
    return strcmp(group, "service") == 0 ? SLICE("service_name") : slice_of_string(group);
}

/* Compiled code has a small stack of its own; a match that needs more is repeated by the
 * interpreter. */
static int match(const struct path_pattern *pattern, const char *path, uint32_t options)
{
    int found = pcre2_match(pattern->code, (PCRE2_SPTR)path, PCRE2_ZERO_TERMINATED, 0, options,
                            pattern->match, pattern->limits);
    return found == PCRE2_ERROR_JIT_STACKLIMIT ? match(pattern, path, PCRE2_NO_JIT) : found;
}

bool path_pattern_match(const struct path_pattern *pattern, const char *path,
                        struct series_label *labels_out, size_t *count_out)
{
    uint32_t named, entry_size;
    PCRE2_SPTR entry;
    *count_out = 0;
    if (match(pattern, path, 0) < 0)
        return false;
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(pattern->match);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMECOUNT, &named);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMEENTRYSIZE, &entry_size);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMETABLE, &entry);
    for (uint32_t i = 0; i < named && *count_out < SERIES_LABELS_MAX; i++, entry += entry_size) {
        const PCRE2_SIZE *at = &offsets[(size_t)2 * (size_t)(entry[0] << 8 | entry[1])];
        if (at[0] != PCRE2_UNSET && at[1] > at[0])
            labels_out[(*count_out)++] = (struct series_label){
                label_name((const char *)entry + 2), slice_of(path + at[0], at[1] - at[0])};
    }
    return true;
}
