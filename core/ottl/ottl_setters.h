/*
 * ottl_setters: the writers of the fields of resources, scopes, spans and their events, one for
 * each kind of field.
 *
 * Owner: what is written is copied to the batch's arena.
 *
 * Thread: that of the evaluator, while it executes a statement.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_SETTERS_H
#define PROFCOL_CORE_OTTL_OTTL_SETTERS_H

#include "core/ottl/ottl_path.h"

#define OTTL_SETTER(name)                                                                          \
    bool name(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,                 \
              const struct ottl_value *value)

/* Each returns false with the error set if the value has another type. */
OTTL_SETTER(ottl_set_text);
OTTL_SETTER(ottl_set_bytes);
OTTL_SETTER(ottl_set_count); /* a uint32, unchecked */
OTTL_SETTER(ottl_set_int);   /* an int64 */
OTTL_SETTER(ottl_set_enum);
OTTL_SETTER(ottl_set_flags);
OTTL_SETTER(ottl_set_ns);
OTTL_SETTER(ottl_set_time);
OTTL_SETTER(ottl_set_trace_id);
OTTL_SETTER(ottl_set_span_id);
OTTL_SETTER(ottl_set_id_text);
OTTL_SETTER(ottl_set_kind_text);
OTTL_SETTER(ottl_set_kind_symbol);
OTTL_SETTER(ottl_set_status);
OTTL_SETTER(ottl_set_status_code);
OTTL_SETTER(ottl_set_status_message);
OTTL_SETTER(ottl_set_messages);
/* Of paths that the Collector takes and that cannot be set: fails. */
OTTL_SETTER(ottl_set_never);

#endif
