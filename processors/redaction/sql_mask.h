/*
 * sql_mask: replaces what is a value in an SQL query by "?", without parsing it.
 *
 * Databases disagree about what a quote, a backslash or a # means. Where the dialect does not say
 * it, the reading that hides more counts: what stands in double quotes is a value unless the
 * dialect has identifiers there, and after a backslash before a quote the rest of the query is
 * hidden unless the dialect says what it means. So is everything after a quote or comment that does
 * not end. Comments may have values in them and are emptied.
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_SQL_MASK_H
#define PROFCOL_PROCESSORS_REDACTION_SQL_MASK_H

#include "core/base/text.h"

enum sql_dialect { SQL_ANY, SQL_POSTGRESQL, SQL_MYSQL };

/* Appends the query with its values replaced. The result is not longer than the query; takes time
 * proportional to it. */
void sql_mask(struct slice query, enum sql_dialect dialect, struct text *out);

#endif
