/*
 * ottl_path_hints: what was probably meant by a path that is not there.
 *
 * Owner: the caller owns the text.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_PATH_HINTS_H
#define PROFCOL_CORE_OTTL_OTTL_PATH_HINTS_H

#include "core/base/text.h"
#include "core/ottl/ottl.h"
#include "core/ottl/ottl_ast.h"

/* Returns true, false or nil for a word that other languages write for it, such as null or True;
 * NULL for another word. */
const char *ottl_hint_literal(struct slice word);

/* Returns the symbol that was probably meant: by its last word (ERROR), or misspelt. NULL: none. */
const char *ottl_hint_enum(struct slice symbol);

/* Returns the context, of a set (OTTL_BIT), that a word was probably meant to name;
 * OTTL_CONTEXT_COUNT: none. */
enum ottl_context ottl_hint_context(struct slice word, unsigned contexts);

/* Appends "; did you mean ...?" or another half sentence to a message about a path; nothing if
 * nothing is known. named: the context that the path begins with, OTTL_CONTEXT_COUNT if none;
 * contexts: bits (OTTL_BIT) of those that the path may belong to; own: the one
 * whose prefix may be left out, OTTL_CONTEXT_COUNT if none may. */
void ottl_hint_path(const struct ottl_ast *path, enum ottl_context named, unsigned contexts,
                    enum ottl_context own, struct text *out);

#endif
