/*
 * config: loads and checks a configuration.
 *
 * Sources (files, env:, yaml:) are read into trees of nodes that remember file, line and column.
 * Placeholders are expanded, the trees are merged, and every section is decoded by the tables of
 * the components that it names (field.h). All errors are reported, not only the first.
 *
 * Owner: struct config owns its arena and everything in it.
 *
 * Thread: built by main, read-only afterwards, shared by all workers.
 */
#ifndef PROFCOL_CONFIG_CONFIG_H
#define PROFCOL_CONFIG_CONFIG_H

#include "config/check.h"
#include "config/model.h"
#include "config/node.h"
#include "config/suggest.h"
#include "config/value.h"
#include "core/base/text.h"

struct config_options {
    /* A bit 1 << CONFIG_TRACES and so on for each signal whose pipelines are read, with what they
     * use (--signals); 0: all of it. */
    unsigned signals;
    /* Also report components that no pipeline uses, and treat warnings as errors (validate
     * --strict). */
    bool strict;
    /* Also warn about certificates and keys that cannot be used here (validate). */
    bool files;
    /* Set to the log's encoding if that could be read, even if there are errors (run). May be
     * NULL. */
    enum log_encoding *log_encoding;
};

/* Loads and merges the sources, left to right. types: NULL-terminated. uris: as given with
 * --config: a path, "file:PATH", "env:NAME", "yaml:TEXT" (`a::b::c: v`). Returns NULL if there are
 * errors. Appends all errors and warnings to `report`, one a line: FILE:LINE:COLUMN: error: PATH:
 * TEXT */
struct config *config_load(const struct config_type *const *types, const char *const *uris,
                           size_t uri_count, struct config_options options, struct text *report);
/* Loads a configuration from one text that is not in a file. Messages show `name` as its file name
 * ("embedded default"). */
struct config *config_load_text(const struct config_type *const *types, const char *name,
                                struct slice yaml, struct text *report);
/* Frees the configuration with everything in it. NULL is allowed. */
void config_free(struct config *config);

/* Prints the configuration as YAML with all defaults written out; secrets as [REDACTED]. */
void config_print(const struct config *config, struct text *out);
/* Prints the same as a JSON object. Returns false, and appends nothing, if it has too many values
 * (CONFIG_MAX_NODES). */
bool config_print_json(const struct config *config, struct text *out);
/* A table of settings that several components nest: the reference describes it once. */
struct config_shared_block {
    const char *title;          /* "TLS of servers" */
    const char *help;           /* a sentence or more */
    const struct field *fields; /* NULL ends a list of blocks */
};
/* Print docs/reference.md, and the JSON schema of a configuration file. */
void config_print_reference(const struct config_type *const *types,
                            const struct config_shared_block *shared, struct text *out);
/* Prints the part of docs/reference.md about each component of this type. Returns false, and
 * appends nothing, if there is none. */
bool config_print_reference_of(const struct config_type *const *types,
                               const struct config_shared_block *shared, const char *name,
                               struct text *out);
void config_print_schema(const struct config_type *const *types, struct text *out);
/* Prints the output of `profcol components`: names, and signals with their stability. */
void config_print_components(const struct config_type *const *types, struct text *out);

/* Checks a table for mistakes: help without a full stop, a default that does not parse or is out of
 * bounds, a duplicate name. Returns false if there are any; problems then has a line for each. */
bool config_table_check(const struct field *fields, struct text *problems);

#endif
