/*
 * redaction_settings: the settings of the processor redaction, and the rules compiled from them.
 *
 * Owner: settings live in the configuration; the rules belong to the component.
 *
 * Thread: read-only after start.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_REDACTION_SETTINGS_H
#define PROFCOL_PROCESSORS_REDACTION_REDACTION_SETTINGS_H

#include "config/check.h"
#include "core/base/arena.h"
#include "core/base/error.h"
#include "processors/redaction/database_mask.h"
#include "processors/redaction/secret_words.h"

struct ottl_regex;

/* In the order of their names in YAML. */
enum redaction_hash {
    REDACTION_NO_HASH,
    REDACTION_MD5,
    REDACTION_SHA1,
    REDACTION_SHA3,
    REDACTION_HMAC_SHA256,
    REDACTION_HMAC_SHA512
};

struct secret_words_settings {
    bool enabled;
    struct config_strings words;
    const char *hmac_key;
};

struct url_sanitizer_settings {
    bool enabled;
    struct config_strings attributes;
    bool sanitize_span_name;
};

struct redaction_settings {
    bool allow_all_keys;
    struct config_strings allowed_keys;
    struct config_strings ignored_keys;
    struct config_strings ignored_key_patterns;
    struct config_strings blocked_key_patterns;
    struct config_strings blocked_values;
    struct config_strings allowed_values;
    bool redact_all_types;
    bool redact_all_texts;
    int hash_function;
    const char *hmac_key;
    const char *summary;
    struct secret_words_settings secret_words;
    struct url_sanitizer_settings url_sanitizer;
    struct db_sanitizer_settings db_sanitizer;
};

extern const struct field redaction_fields[];

/* `check` of the component type. */
void redaction_check(void *settings, struct config_check *check);

struct redaction_patterns {
    const struct config_strings *texts;
    struct ottl_regex **items;
};

/* What the settings say, compiled. */
struct redaction_rules {
    const struct redaction_settings *settings;
    struct redaction_patterns ignored_keys, blocked_keys, blocked_values, allowed_values;
    struct secret_words words; /* none unless enabled */
    struct slice word_key;     /* to hash names with; empty: [REDACTED] */
    enum { SUMMARY_SILENT, SUMMARY_INFO, SUMMARY_DEBUG } summary;
    struct arena arena;
};

/* Returns the rules of checked settings; NULL with err set if a pattern is not valid. */
struct redaction_rules *redaction_rules_new(const struct redaction_settings *settings,
                                            struct error *err);
/* Frees the rules. NULL is allowed. */
void redaction_rules_free(struct redaction_rules *rules);

#endif
