#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/ottl/ottl_regex.h"

#include "core/base/memory.h"
#include "core/data/utf8.h"
#include "core/ottl/ottl_plain_pattern.h"

#include <assert.h>
#include <ctype.h>
#include <pcre2.h>
#include <stdio.h>

/* Steps of a match: for each text, and for each of its bytes. */
enum { STEPS = 2000, STEPS_PER_BYTE = 20 };
/* All matches of one text may take as many as so many of them, counted where much may be. */
enum { SEARCH_MATCHES = 8 };
enum { STACK_MIN = 32 << 10, STACK_MAX = 512 << 10, HEAP_LIMIT_KIB = 1024 };

/* Bytes in all of long texts that are no UTF-8 and that PCRE2 looks through, for each batch. */
enum { ODD_BYTES = 64 << 20 };

struct ottl_regex {
    pcre2_code *code;
    pcre2_code *counted;    /* finds the same, and each step counts; for long texts */
    pcre2_code *trusting;   /* the same as counted, only for valid UTF-8 */
    pcre2_code *from_start; /* finds the same, from one place, which its steps count from; NULL: so
                               does the first one. Only for valid UTF-8 */
    struct ottl_plain_pattern plain; /* the same, if it is just a text */
    uint32_t repeats;                /* without an end: * + {1,} */
    uint8_t *pattern;                /* of a capturing one: where the names of its groups are */
    struct ottl_groups groups;
};

struct ottl_matcher {
    pcre2_match_data *match;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack;
    unsigned retries;
    size_t search_steps; /* that further matches of the text may take */
    size_t odd_room;
    struct slice known; /* the text of which is known whether it is UTF-8; no data: none */
    bool is_known_utf8;
};

/* ---- patterns ---- */

static pcre2_code *compile(struct slice pattern, uint32_t options, struct error *err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    int problem;
    PCRE2_SIZE offset;
    assert(context);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_code *code = pcre2_compile(pattern.data, pattern.size,
                                     PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_CIRCUMFLEX |
                                         PCRE2_NEVER_BACKSLASH_C | options,
                                     &problem, &offset, context);
    pcre2_compile_context_free(context);
    if (code)
        return code;
    char why[200];
    pcre2_get_error_message(problem, (PCRE2_UCHAR *)why, sizeof why);
    error_set(err, "error parsing regexp: %s", why);
    return NULL;
}

/* The same, to be matched by machine code; where there is none, the interpreter matches. */
static pcre2_code *compile_jit(struct slice pattern, uint32_t options, struct error *err)
{
    pcre2_code *code = compile(pattern, options, err);
    if (code)
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    return code;
}

/* Also counts those characters where they are no repeats. */
static uint32_t count_repeats(const struct text *translated)
{
    uint32_t count = 0;
    for (size_t i = 0; i < translated->size; i++) {
        char c = translated->data[i];
        bool is_open = c == ',' && i + 1 < translated->size && translated->data[i + 1] == '}';
        count += c == '*' || c == '+' || is_open;
    }
    return count;
}

/* The pattern behind as many characters as are needed. */
static pcre2_code *compile_from_start(const struct text *translated, const pcre2_code *code,
                                      uint32_t options)
{
    uint32_t all = 0;
    struct text pattern = {0};
    struct error ignored; /* it is too large */
    pcre2_pattern_info(code, PCRE2_INFO_ALLOPTIONS, &all);
    if (all & PCRE2_ANCHORED)
        return NULL;
    text_append(&pattern, "(?s:.*?)\\K(?:");
    text_append_slice(&pattern, slice_of(translated->data, translated->size));
    text_append_char(&pattern, ')');
    pcre2_code *from_start = compile_jit(slice_of(text_string(&pattern), pattern.size),
                                         options | PCRE2_ANCHORED, &ignored);
    text_deinit(&pattern);
    return from_start;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

static bool contains(struct slice pattern, const char *text)
{
    return pattern.size > 0 && memmem(pattern.data, pattern.size, text, strlen(text)) != NULL;
}

static bool has_backreference(struct slice pattern)
{
    for (size_t i = 0; i + 1 < pattern.size; i++)
        if (pattern.data[i] == '\\' && isdigit(pattern.data[i + 1]))
            return true;
    return false;
}

/* Returns what RE2 lacks, for those who know other regular expressions, or globs; NULL: nothing. */
static const char *find_lack(struct slice pattern, const char *problem)
{
    if (ends_with(problem, "(?=`") || ends_with(problem, "(?!`"))
        return "RE2 has no lookahead";
    if (ends_with(problem, "(?<`") && (contains(pattern, "(?<!") || contains(pattern, "(?<=")))
        return "RE2 has no lookbehind";
    if (ends_with(problem, "(?>`"))
        return "RE2 has no atomic groups";
    if (ends_with(problem, "operator: `*`") && pattern.data[0] == '*')
        return "a pattern is no glob: any text is .*";
    return ends_with(problem, "sequence: `\\`") && has_backreference(pattern)
               ? "RE2 has no backreferences"
               : NULL;
}

static void explain(struct slice pattern, struct error *err)
{
    const char *lack = find_lack(pattern, err->text);
    size_t used = strlen(err->text);
    if (lack)
        snprintf(err->text + used, sizeof err->text - used, "; %s", lack);
}

static struct ottl_regex *new_regex(struct slice pattern, struct ottl_groups *groups,
                                    struct error *err)
{
    struct text translated = {0};
    pcre2_code *code = NULL;
    uint32_t options = groups ? 0 : PCRE2_NO_AUTO_CAPTURE;
    uint32_t counting = options | PCRE2_NO_AUTO_POSSESS;
    if (ottl_regex_translate(pattern, &translated, groups, err))
        code = compile_jit(slice_of(text_string(&translated), translated.size),
                           options | PCRE2_MATCH_INVALID_UTF, err);
    else
        explain(pattern, err);
    struct ottl_regex *regex = NULL;
    if (code) {
        struct slice source = slice_of(text_string(&translated), translated.size);
        regex = memory_zalloc(sizeof *regex);
        regex->code = code;
        regex->counted = compile(source, counting | PCRE2_MATCH_INVALID_UTF, err);
        regex->trusting = compile(source, counting, err);
        assert(regex->counted && regex->trusting);
        ottl_plain_pattern_read(&regex->plain, pattern);
        regex->repeats = count_repeats(&translated);
        regex->from_start = compile_from_start(&translated, code, counting);
    }
    text_deinit(&translated);
    return regex;
}

struct ottl_regex *ottl_regex_new(struct slice pattern, struct error *err)
{
    return new_regex(pattern, NULL, err);
}

struct ottl_regex *ottl_regex_new_capturing(struct slice pattern, struct error *err)
{
    struct ottl_groups groups = {.count = 0};
    uint8_t *copy = memory_zalloc(pattern.size + 1);
    if (pattern.size > 0)
        memcpy(copy, pattern.data, pattern.size);
    struct ottl_regex *regex = new_regex(slice_of(copy, pattern.size), &groups, err);
    if (!regex) {
        free(copy);
        return NULL;
    }
    regex->pattern = copy;
    regex->groups = groups;
    return regex;
}

const struct ottl_groups *ottl_regex_groups(const struct ottl_regex *regex)
{
    assert(regex->pattern);
    return &regex->groups;
}

void ottl_regex_free(struct ottl_regex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->code);
    pcre2_code_free(regex->counted);
    pcre2_code_free(regex->trusting);
    pcre2_code_free(regex->from_start);
    ottl_plain_pattern_deinit(&regex->plain);
    free(regex->pattern);
    free(regex);
}

/* ---- matching ---- */

struct ottl_matcher *ottl_matcher_new(void)
{
    struct ottl_matcher *matcher = memory_zalloc(sizeof *matcher);
    matcher->match = pcre2_match_data_create(OTTL_GROUPS_MAX + 1, NULL);
    matcher->limits = pcre2_match_context_create(NULL);
    matcher->stack = pcre2_jit_stack_create(STACK_MIN, STACK_MAX, NULL);
    assert(matcher->match && matcher->limits && matcher->stack);
    pcre2_set_heap_limit(matcher->limits, HEAP_LIMIT_KIB);
    pcre2_jit_stack_assign(matcher->limits, NULL, matcher->stack);
    ottl_matcher_begin(matcher);
    return matcher;
}

void ottl_matcher_free(struct ottl_matcher *matcher)
{
    if (!matcher)
        return;
    pcre2_match_data_free(matcher->match);
    pcre2_match_context_free(matcher->limits);
    pcre2_jit_stack_free(matcher->stack);
    free(matcher);
}

void ottl_matcher_begin(struct ottl_matcher *matcher)
{
    matcher->retries = REGEX_RETRIES;
    matcher->odd_room = ODD_BYTES;
    matcher->known = (struct slice){0};
}

/* Whether the text is UTF-8 and a character begins here. A text with many matches is looked through
 * once, not again for each of them. */
static bool is_known_utf8(struct ottl_matcher *matcher, struct slice text, size_t from)
{
    if (text.size == 0)
        return true;
    assert(text.data);
    if (from < text.size && (text.data[from] & 0xc0) == 0x80)
        return false;
    if (matcher->known.data != text.data || matcher->known.size != text.size) {
        matcher->is_known_utf8 = utf8_is_valid(text);
        matcher->known = text;
    }
    return matcher->is_known_utf8;
}

/* The JIT counts no steps while it goes back in `.*`, and neither counts those of a run that it
 * knows not to go back in, such as `\w+\s`. So a text of n bytes may take n^2 or n^3 of them; where
 * that is much, PCRE2's interpreter matches, and goes back in all runs, which counts. */
static bool needs_counting(const struct ottl_regex *regex, size_t size)
{
    enum { UNCOUNTED_MAX = 10000000 };
    size_t cost = size + 1;
    for (uint32_t i = 0; i < regex->repeats && cost <= UNCOUNTED_MAX; i++)
        cost *= size + 1;
    return cost > UNCOUNTED_MAX;
}

/* PCRE2 looks for invalid UTF-8 in the rest of the text, at each match, unless it is told that
 * there is none. */
static int match_counting(const struct ottl_regex *regex, const pcre2_code *code,
                          struct ottl_matcher *matcher, struct slice text, size_t from)
{
    uint32_t options = PCRE2_NO_JIT;
    if (is_known_utf8(matcher, text, from)) {
        options |= PCRE2_NO_UTF_CHECK;
        code = code == regex->code ? regex->trusting : code;
    } else {
        if (matcher->odd_room < text.size - from)
            return PCRE2_ERROR_MATCHLIMIT;
        matcher->odd_room -= text.size - from;
        code = regex->counted;
    }
    return pcre2_match(code, text.data, text.size, from, options, matcher->match, matcher->limits);
}

static int match(const struct ottl_regex *regex, const pcre2_code *code,
                 struct ottl_matcher *matcher, struct slice text, size_t from, uint32_t steps)
{
    static const uint8_t nothing[1];
    const uint8_t *data = text.data ? text.data : nothing;
    pcre2_set_match_limit(matcher->limits, steps);
    if (needs_counting(regex, text.size - from))
        return match_counting(regex, code, matcher, text, from);
    /* All that pcre2_match checks before it calls this holds here; invalid UTF-8 is allowed. */
    int result = pcre2_jit_match(code, data, text.size, from, 0, matcher->match, matcher->limits);
    if (result != PCRE2_ERROR_JIT_BADOPTION)
        return result;
    return pcre2_match(code, data, text.size, from, PCRE2_NO_JIT, matcher->match, matcher->limits);
}

static uint32_t first_steps(size_t size)
{
    size_t steps = STEPS + STEPS_PER_BYTE * size;
    return steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX;
}

/* PCRE2 counts the steps from each place of the text anew, so the first attempt has few of them. */
enum { ALL_STEPS = 1 << 20, STEPS_LEAST = 32, STEPS_CHARGED = 1024 };

static uint32_t steps_from_each_place(size_t size)
{
    return size < ALL_STEPS / STEPS_LEAST ? (uint32_t)(ALL_STEPS / (size + 1))
                                          : (uint32_t)STEPS_LEAST;
}

/* A match that goes on in a long text has the least: what it takes is charged then. */
static uint32_t first_attempt(const struct ottl_regex *regex, struct ottl_matcher *matcher,
                              struct slice text, size_t from)
{
    size_t rest = text.size - from;
    bool is_charged = from > 0 && needs_counting(regex, rest) && is_known_utf8(matcher, text, from);
    uint32_t few = is_charged ? STEPS_LEAST : steps_from_each_place(rest);
    uint32_t most = first_steps(rest);
    return few < most ? few : most;
}

/* Takes its steps from those of the search; one that goes on, not many more than it needs. */
static int match_charged(const struct ottl_regex *regex, const pcre2_code *code,
                         struct ottl_matcher *matcher, struct slice text, size_t from)
{
    uint32_t most = first_steps(text.size - from);
    if (most > matcher->search_steps)
        most = (uint32_t)matcher->search_steps;
    uint32_t steps = from > 0 && STEPS_CHARGED < most ? STEPS_CHARGED : most;
    int result = match(regex, code, matcher, text, from, steps);
    while (result == PCRE2_ERROR_MATCHLIMIT && steps < most) {
        steps = steps < most / 4 ? steps * 4 : most;
        result = match(regex, code, matcher, text, from, steps);
    }
    matcher->search_steps -= steps;
    return result;
}

/* Returns what PCRE2 returned, with more steps if the first ones did not suffice. */
static int match_with_limits(const struct ottl_regex *regex, struct ottl_matcher *matcher,
                             struct slice text, size_t from)
{
    const pcre2_code *code = regex->from_start ? regex->from_start : regex->code;
    int result;
    if (regex->from_start) {
        uint32_t steps = first_attempt(regex, matcher, text, from);
        result = match(regex, regex->code, matcher, text, from, steps);
        if (result != PCRE2_ERROR_MATCHLIMIT || !is_known_utf8(matcher, text, from))
            return result;
    }
    result = match_charged(regex, code, matcher, text, from);
    if (result == PCRE2_ERROR_MATCHLIMIT && first_steps(text.size - from) < REGEX_STEPS_MAX &&
        matcher->retries > 0) {
        matcher->retries--;
        result = match(regex, code, matcher, text, from, REGEX_STEPS_MAX);
    }
    return result;
}

static void begin_search(struct ottl_matcher *matcher, struct slice text)
{
    matcher->known = (struct slice){0};
    matcher->search_steps = (size_t)SEARCH_MATCHES * first_steps(text.size);
}

static bool is_answer(int result, struct slice text, struct error *err)
{
    return result >= 0 || result == PCRE2_ERROR_NOMATCH ||
           error_set(err, "the regular expression takes too many steps for a text of %zu bytes",
                     text.size);
}

bool ottl_regex_find(const struct ottl_regex *regex, struct ottl_matcher *matcher,
                     struct slice text, bool *found_out, struct error *err)
{
    if (regex->plain.text) {
        *found_out = ottl_plain_pattern_find(&regex->plain, text);
        return true;
    }
    begin_search(matcher, text);
    int result = match_with_limits(regex, matcher, text, 0);
    *found_out = result >= 0;
    return is_answer(result, text, err);
}

bool ottl_regex_match(const struct ottl_regex *regex, struct ottl_matcher *matcher,
                      struct slice text, size_t from, struct ottl_match *match_out,
                      struct error *err)
{
    assert(from <= text.size);
    if (from == 0)
        begin_search(matcher, text);
    int result = match_with_limits(regex, matcher, text, from);
    match_out->spans = pcre2_get_ovector_pointer(matcher->match);
    match_out->count = result > 0 ? (uint32_t)result : 0;
    return is_answer(result, text, err);
}
