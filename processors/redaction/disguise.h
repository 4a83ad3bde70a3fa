/*
 * disguise: characters that make a word look like another one to a program, but not to people.
 *
 * They are invisible (zero-width space, soft hyphen, tags, controls but tab and line ends), or
 * variants of ASCII letters, spaces and hyphens (full width, bold, no-break). Letters of other
 * alphabets that look alike are not among them: they are letters in their own right.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_DISGUISE_H
#define PROFCOL_PROCESSORS_REDACTION_DISGUISE_H

#include "core/base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether a byte is a control of ASCII that nobody sees. */
bool disguise_is_control(uint8_t c);
/* Whether the text has such a character. Bytes that are not valid UTF-8 count, too. */
bool disguise_is_in(struct slice text);

#endif
