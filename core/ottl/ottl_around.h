/*
 * ottl_around: values of the messages around an item, which all items inside them share.
 *
 * A span contains its events, a profile its samples. Who reads the attributes of a span for each
 * event would walk over all events each time. So maps and lists of such a message are copied once,
 * and each item reads the copy. Reading it takes steps (ottl_evaluate.c), as many as it has bytes.
 *
 * Owner: copies live in the memory of whoever asks for them.
 *
 * Thread: that of the evaluator.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_AROUND_H
#define PROFCOL_CORE_OTTL_OTTL_AROUND_H

#include "core/ottl/ottl_evaluation.h"

/* Replaces a map or list that is read from a message by one that is read from a copy of its fields,
 * which lives as long as the result that is computed. Other values, and the messages in a span,
 * stay as they are. */
void ottl_around_copy(struct ottl_evaluation *evaluation, struct ottl_value *value);
/* Returns how many steps it takes to read the whole value: about its bytes. */
size_t ottl_around_steps(const struct ottl_value *value);

#endif
