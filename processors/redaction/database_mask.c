#include "processors/redaction/database_mask.h"

#include "processors/redaction/command_mask.h"
#include "processors/redaction/json_mask.h"
#include "processors/redaction/sql_mask.h"

#include <assert.h>

static const struct field database_fields[] = {
    FIELD_STRINGS(database_settings, attributes, "Keys of attributes with queries."), FIELD_END};

const struct field db_sanitizer_fields[] = {
    FIELD_OPTIONAL(db_sanitizer_settings, sql, database_settings, database_fields,
                   "Hides literals in SQL."),
    FIELD_OPTIONAL(db_sanitizer_settings, redis, database_settings, database_fields,
                   "Hides values in commands of Redis."),
    FIELD_OPTIONAL(db_sanitizer_settings, valkey, database_settings, database_fields,
                   "Hides values in commands of Valkey."),
    FIELD_OPTIONAL(db_sanitizer_settings, memcached, database_settings, database_fields,
                   "Hides values in commands of memcached."),
    FIELD_OPTIONAL(db_sanitizer_settings, mongo, database_settings, database_fields,
                   "Hides values in queries of MongoDB."),
    FIELD_OPTIONAL(db_sanitizer_settings, opensearch, database_settings, database_fields,
                   "Hides values in queries of OpenSearch."),
    FIELD_OPTIONAL(db_sanitizer_settings, es, database_settings, database_fields,
                   "Hides values in queries of Elasticsearch."),
    FIELD_BOOL(db_sanitizer_settings, sanitize_span_name,
               "Whether the names of spans of these databases are treated in the same way.",
               .fallback = "true"),
    FIELD_END};

/* ---- databases ---- */

enum database {
    DATABASE_SQL,
    DATABASE_REDIS,
    DATABASE_VALKEY,
    DATABASE_MEMCACHED,
    DATABASE_MONGO,
    DATABASE_OPENSEARCH,
    DATABASE_ES,
    DATABASES
};

static const struct system {
    const char *name; /* db.system.name, or the older db.system */
    enum database database;
    enum sql_dialect dialect;
} systems[] = {
    {"postgresql", DATABASE_SQL, SQL_POSTGRESQL},
    {"cockroachdb", DATABASE_SQL, SQL_POSTGRESQL},
    {"mysql", DATABASE_SQL, SQL_MYSQL},
    {"mariadb", DATABASE_SQL, SQL_MYSQL},
    {"sqlite", DATABASE_SQL, SQL_ANY},
    {"other_sql", DATABASE_SQL, SQL_ANY},
    {"mssql", DATABASE_SQL, SQL_ANY},
    {"microsoft.sql_server", DATABASE_SQL, SQL_ANY},
    {"oracle", DATABASE_SQL, SQL_ANY},
    {"oracle.db", DATABASE_SQL, SQL_ANY},
    {"db2", DATABASE_SQL, SQL_ANY},
    {"ibm.db2", DATABASE_SQL, SQL_ANY},
    {"h2", DATABASE_SQL, SQL_ANY},
    {"h2database", DATABASE_SQL, SQL_ANY},
    {"hsqldb", DATABASE_SQL, SQL_ANY},
    {"derby", DATABASE_SQL, SQL_ANY},
    {"clickhouse", DATABASE_SQL, SQL_ANY},
    {"redshift", DATABASE_SQL, SQL_ANY},
    {"aws.redshift", DATABASE_SQL, SQL_ANY},
    {"snowflake", DATABASE_SQL, SQL_ANY},
    {"trino", DATABASE_SQL, SQL_ANY},
    {"spanner", DATABASE_SQL, SQL_ANY},
    {"gcp.spanner", DATABASE_SQL, SQL_ANY},
    {"cassandra", DATABASE_SQL, SQL_ANY},
    {"redis", DATABASE_REDIS, SQL_ANY},
    {"valkey", DATABASE_VALKEY, SQL_ANY},
    {"memcached", DATABASE_MEMCACHED, SQL_ANY},
    {"mongodb", DATABASE_MONGO, SQL_ANY},
    {"opensearch", DATABASE_OPENSEARCH, SQL_ANY},
    {"elasticsearch", DATABASE_ES, SQL_ANY},
};

static const struct database_settings *settings_of(const struct db_sanitizer_settings *settings,
                                                   enum database database)
{
    const struct database_settings *const all[DATABASES] = {
        [DATABASE_SQL] = &settings->sql,       [DATABASE_REDIS] = &settings->redis,
        [DATABASE_VALKEY] = &settings->valkey, [DATABASE_MEMCACHED] = &settings->memcached,
        [DATABASE_MONGO] = &settings->mongo,   [DATABASE_OPENSEARCH] = &settings->opensearch,
        [DATABASE_ES] = &settings->es};
    assert(database < DATABASES);
    return all[database];
}

static const struct system *find_system(struct slice name)
{
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        if (slice_is_ignoring_case(name, systems[i].name))
            return &systems[i];
    return NULL;
}

bool database_mask_is_enabled(const struct db_sanitizer_settings *settings)
{
    bool is_enabled = false;
    for (enum database database = 0; database < DATABASES; database++)
        is_enabled |= settings_of(settings, database)->enabled;
    return is_enabled;
}

/* ---- masks ---- */

/* Returns false if the text is no query of the database. */
static bool mask(enum database database, enum sql_dialect dialect, struct slice text,
                 struct text *out)
{
    switch (database) {
    case DATABASE_SQL:
        sql_mask(text, dialect, out);
        return true;
    case DATABASE_REDIS:
    case DATABASE_VALKEY:
        redis_mask(text, out);
        return true;
    case DATABASE_MEMCACHED:
        memcached_mask(text, out);
        return true;
    default:
        return json_mask(text, out);
    }
}

static bool lists_attribute(const struct db_sanitizer_settings *settings, enum database database,
                            struct slice key)
{
    const struct database_settings *of = settings_of(settings, database);
    for (size_t i = 0; of->enabled && i < of->attributes.count; i++)
        if (slice_is(key, of->attributes.items[i]))
            return true;
    return false;
}

/* Returns the first database that has the attribute, DATABASES if none has. */
static enum database first_with(const struct db_sanitizer_settings *settings, struct slice key)
{
    enum database database = DATABASE_SQL;
    while (database < DATABASES && !lists_attribute(settings, database, key))
        database++;
    return database;
}

bool database_mask_attribute(const struct db_sanitizer_settings *settings, struct slice name,
                             struct slice key, struct slice value, struct text *out)
{
    enum database database = first_with(settings, key);
    if (database == DATABASES)
        return false;
    const struct system *system = find_system(name);
    bool is_known = name.size == 0;
    if (system && lists_attribute(settings, system->database, key)) {
        database = system->database;
        is_known = true;
    }
    size_t start = out->size;
    if (is_known && mask(database, system ? system->dialect : SQL_ANY, value, out))
        return true;
    out->size = start;
    text_append_char(out, '?');
    return true;
}

bool database_mask_name(const struct db_sanitizer_settings *settings, struct slice name,
                        struct slice text, struct text *out)
{
    const struct system *system = find_system(name);
    return system && settings_of(settings, system->database)->enabled &&
           mask(system->database, system->dialect, text, out);
}
