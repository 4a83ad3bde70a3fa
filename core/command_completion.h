/*
 * command_completion: scripts that complete commands, options and their values in a shell.
 *
 * Owner: the caller owns the text.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_COMMAND_COMPLETION_H
#define PROFCOL_CORE_COMMAND_COMPLETION_H

#include "core/base/text.h"

#include <stdbool.h>

/* Prints the script of "bash", "zsh" or "fish". Returns false, and prints nothing, for another
 * shell. */
bool command_completion_print(const char *shell, struct text *out);

#endif
