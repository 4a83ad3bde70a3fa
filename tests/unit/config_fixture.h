/*
 * config_fixture: component types, variables and files that exist only in the tests of config/.
 *
 * Owner: the test owns the configurations, and frees them with config_free.
 *
 * Thread: one.
 */
#ifndef PROFCOL_TESTS_UNIT_CONFIG_FIXTURE_H
#define PROFCOL_TESTS_UNIT_CONFIG_FIXTURE_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/load.h"

/* A processor with a field of every kind. */
struct kinds_block {
    bool enabled;
    uint64_t number;
    const char *text;
    const char *token;
};

struct kinds_settings {
    bool flag;
    uint64_t count;
    int64_t offset;
    double ratio;
    int64_t timeout;
    const char *text;
    const char *named;
    const char *secret;
    int level;
    struct config_strings keys;
    struct config_pairs headers;
    struct kinds_block inner;
    struct kinds_block off;
    struct kinds_block on;
    struct kinds_block squashed;
    struct config_list rules;
    struct config_list counters;
    const struct config_node *raw;
    uint64_t old_count;
    uint64_t unused;
};

struct rule_settings {
    const char *key;
    int action;
    struct config_pairs extra;
};

struct counter_settings {
    const char *name; /* its key */
    uint64_t step;
    struct config_list rules;
};

extern const struct field kinds_fields[];
extern const struct config_type *const fixture_types[];
/* Called by the `check` of the processor kinds; NULL: nothing. */
extern void (*fixture_check)(struct kinds_settings *settings, struct config_check *check);

struct fixture_variable {
    const char *name;
    const char *value;
};
/* The environment and the files; ended by a NULL name. */
extern const struct fixture_variable *fixture_environment;
extern const struct fixture_variable *fixture_files;
extern const struct config_inputs fixture_inputs;

/* Loads a whole configuration with the name "t.yaml". Returns NULL if it has errors, which are in
 * the report. */
struct config *fixture_load(const char *yaml, struct text *report);
/* Loads a valid configuration whose processor is `kinds: {BODY}` (flow style, at line 2 column
 * 10). */
struct config *fixture_load_kinds(const char *body, struct text *report);
const struct kinds_settings *fixture_kinds(const struct config *config);

/* Load a configuration in the same ways, and expect exactly this report ("": success). */
void expect_report(const char *yaml, const char *expected);
void expect_kinds_report(const char *body, const char *expected);

#endif
