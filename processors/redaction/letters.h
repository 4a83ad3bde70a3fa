/*
 * letters: which characters beyond ASCII are letters.
 *
 * It is a table, as iswalpha depends on the locale.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_LETTERS_H
#define PROFCOL_PROCESSORS_REDACTION_LETTERS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a character above U+007F is a letter. Punctuation, symbols, spaces, digits, control and
 * private characters, and the accents U+0300 to U+036F are none. For the marks of other scripts,
 * the answer is not defined. */
bool letters_have(uint32_t c);

#endif
