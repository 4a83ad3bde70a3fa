/*
 * ottl_syntax_hints: what was probably meant where a text of OTTL cannot be read, or calls a
 * function that is not there: the habits of other languages.
 *
 * Owner: the caller owns the texts.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_SYNTAX_HINTS_H
#define PROFCOL_CORE_OTTL_OTTL_SYNTAX_HINTS_H

#include "core/base/text.h"
#include "core/ottl/ottl_lexer.h"

/* A token that is not expected. */
struct ottl_unexpected {
    struct slice statement;
    size_t position;
    enum ottl_token_kind kind;
    const char *expected; /* as messages say it: "\",\" or \")\"" */
};

/* Appends how to write what stands there, for `unexpected "&&": `. Returns false, and appends
 * nothing, if that is not known. */
bool ottl_hint_token(const struct ottl_unexpected *unexpected, struct text *out);
/* Returns what a message shows as the unexpected token. */
struct slice ottl_hint_shown(const struct ottl_unexpected *unexpected, struct slice token);

/* Returns the letters, digits and underscores at the beginning of a text. */
struct slice ottl_hint_word(struct slice text);
/* Returns the keyword or literal that a word stands for in other languages, or in capitals: NOT,
 * True, null. NULL: none. */
const char *ottl_hint_keyword(struct slice word);

/* Append half a sentence, or nothing, about a name that no converter, or no editor, has. */
void ottl_hint_call(struct slice name, struct text *out);
void ottl_hint_editor(struct slice name, struct text *out);

#endif
