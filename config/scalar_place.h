/*
 * scalar_place: where a byte of a text stands in the YAML file that the text was written in.
 *
 * YAML removes indentation, folds lines and resolves quotes and escapes, so a mistake inside a text
 * of several lines is hard to find from the place where the text begins.
 *
 * Owner: nothing is kept.
 *
 * Thread: one at a time, while the configuration is loaded.
 */
#ifndef PROFCOL_CONFIG_SCALAR_PLACE_H
#define PROFCOL_CONFIG_SCALAR_PLACE_H

#include "config/tree.h"

/* Finds the place of byte `offset` of the text of the scalar that begins at `begin`; of a blank,
 * that after the character before it. Returns false if the file has another text there, as for the
 * value of a placeholder. Reads the file up to the place. */
bool scalar_place(struct config_place begin, struct slice text, size_t offset,
                  struct config_place *out);
/* Whether a comment follows a scalar that has no quotes, on its line. */
bool scalar_is_cut(struct config_place begin, struct slice text);

#endif
