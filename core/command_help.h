/*
 * command_help: the help that the program prints.
 *
 * Owner: the caller owns the text.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_COMMAND_HELP_H
#define PROFCOL_CORE_COMMAND_HELP_H

#include "core/base/text.h"
#include "core/command_table.h"

/* Print the help of the program (COMMAND_RUN), or of one command. At most 80 columns. */
void command_help_print(enum command_id command, struct text *out);

#endif
