/*
 * database_mask: hides the values in queries, by the database that they are for.
 *
 * Owner: settings live in the configuration.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_DATABASE_MASK_H
#define PROFCOL_PROCESSORS_REDACTION_DATABASE_MASK_H

#include "config/field.h"
#include "core/base/text.h"

struct database_settings {
    bool enabled;
    struct config_strings attributes;
};

struct db_sanitizer_settings {
    struct database_settings sql, redis, valkey, memcached, mongo, opensearch, es;
    bool sanitize_span_name;
};

extern const struct field db_sanitizer_fields[];

/* Whether any database is enabled. */
bool database_mask_is_enabled(const struct db_sanitizer_settings *settings);

/* Appends the value of an attribute with what must be hidden replaced by "?". system: what the
 * attributes beside it name as the database, empty if they do not. A value that cannot be read, or
 * that is for a database that nobody knows, is hidden as a whole. Returns false if the settings do
 * not name the attribute. */
bool database_mask_attribute(const struct db_sanitizer_settings *settings, struct slice system,
                             struct slice key, struct slice value, struct text *out);
/* The same for the name of a span, which may be no query at all. Returns false if it stays. */
bool database_mask_name(const struct db_sanitizer_settings *settings, struct slice system,
                        struct slice name, struct text *out);

#endif
