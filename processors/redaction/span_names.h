/*
 * span_names: which sanitizers the name of a span is for.
 *
 * Owner: plain data.
 *
 * Thread: that of the node, or the job that works on its batch.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_SPAN_NAMES_H
#define PROFCOL_PROCESSORS_REDACTION_SPAN_NAMES_H

#include "core/data/message.h"
#include "processors/redaction/redactor.h"

/* Returns what db.system.name, or db.system, of some attributes says; empty: nothing. number: of
 * the attributes in the message. */
struct slice span_names_database(struct message_iter message, uint32_t number);
/* Whether the name of a span changes; then *name_out is the new one. The span is read as it came,
 * with all its attributes. */
bool span_names_sanitize(struct redactor *redactor, struct message_iter span,
                         struct slice *name_out);
/* Sets the name of an open span. */
void span_names_set(struct message_iter span, struct slice name);

#endif
