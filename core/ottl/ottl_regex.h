/*
 * ottl_regex: regular expressions with the syntax and the meaning of RE2 (Go's regexp), matched by
 * PCRE2.
 *
 * A pattern is read by RE2's rules and written anew for PCRE2, so what RE2 refuses is refused, and
 * `\s`, `\v`, `$`, octal escapes and classes mean what they mean there.
 *
 * A backtracking matcher may need very many steps for a text that a client chose. A match first
 * gets a number of steps proportional to the text. If they do not suffice it is tried again with
 * REGEX_STEPS_MAX, at most REGEX_RETRIES times for each batch; after that, and if those do not
 * suffice either, the result is an error.
 *
 * Owner: the caller. A regex is read-only, a matcher belongs to one evaluator.
 *
 * Thread: a regex any, a matcher one at a time.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_REGEX_H
#define PROFCOL_CORE_OTTL_OTTL_REGEX_H

#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/base/text.h"

struct ottl_regex;
struct ottl_matcher;

enum { REGEX_STEPS_MAX = 100000, REGEX_RETRIES = 256 };

enum { OTTL_GROUPS_MAX = 99 };

/* The groups of a pattern that capture, in their order: group 1 is the first one. */
struct ottl_groups {
    struct slice names[OTTL_GROUPS_MAX]; /* in the pattern; empty: without a name */
    uint32_t count;
};

/* Writes an RE2 pattern in the syntax of PCRE2. Sets *groups, which was zeroed; without it (NULL),
 * no group captures. Returns false with err set if RE2 refuses the pattern. */
bool ottl_regex_translate(struct slice pattern, struct text *out, struct ottl_groups *groups,
                          struct error *err);

/* Compile a pattern, the second for ottl_regex_match; return NULL with err set if it is not valid.
 */
struct ottl_regex *ottl_regex_new(struct slice pattern, struct error *err);
struct ottl_regex *ottl_regex_new_capturing(struct slice pattern, struct error *err);
void ottl_regex_free(struct ottl_regex *regex);

struct ottl_matcher *ottl_matcher_new(void);
void ottl_matcher_free(struct ottl_matcher *matcher);
/* Begins a batch: the next matches have REGEX_RETRIES again. */
void ottl_matcher_begin(struct ottl_matcher *matcher);
/* Sets *found_out to whether the pattern is found anywhere in the text. Returns false with err set
 * if that takes too many steps. */
bool ottl_regex_find(const struct ottl_regex *regex, struct ottl_matcher *matcher,
                     struct slice text, bool *found_out, struct error *err);

/* Returns the groups of a capturing pattern. */
const struct ottl_groups *ottl_regex_groups(const struct ottl_regex *regex);

/* A match: offsets in the text. spans[0] is that of the whole, spans[n] that of group n; both
 * OTTL_UNSET: it took no part. */
#define OTTL_UNSET (~(size_t)0)
struct ottl_match {
    const size_t *spans; /* start and end of each; valid until the matcher's next match */
    uint32_t count;
};
/* Finds the first match at an offset of the text or after it; match_out->count is 0 if there is
 * none. An offset above 0 goes on with a search: the text has not changed since it began. Returns
 * false with err set as ottl_regex_find does, and if a long text that is no UTF-8 has very many
 * matches. */
bool ottl_regex_match(const struct ottl_regex *regex, struct ottl_matcher *matcher,
                      struct slice text, size_t from, struct ottl_match *match_out,
                      struct error *err);

#endif
