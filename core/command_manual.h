/*
 * command_manual: the manual pages profcol(1) and profcol.yaml(5), as roff.
 *
 * Owner: the caller owns the text.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_COMMAND_MANUAL_H
#define PROFCOL_CORE_COMMAND_MANUAL_H

#include "core/base/text.h"

/* Prints profcol(1), from the tables of commands and options. */
void command_manual_print(struct text *out);
/* Prints profcol.yaml(5): `profcol reference` with its Markdown converted to roff. */
void command_manual_print_config(struct text *out);

#endif
