#include "processors/redaction/redaction_settings.h"

#include "core/base/memory.h"
#include "core/ottl/ottl_regex.h"

#include <stdlib.h>

static const char *const hash_names[] = {"",  "md5", "sha1", "sha3", "hmac-sha256", "hmac-sha512",
                                         NULL};

enum { HMAC_SHA256_KEY_MIN = 32, HMAC_SHA512_KEY_MIN = 64 };

static const struct field secret_words_fields[] = {
    FIELD_STRINGS(secret_words_settings, words,
                  "Words to look for in names of functions, files and mappings, and in the keys of "
                  "attributes. A word counts if it is a whole word of a name: token is one of "
                  "getToken, api_tokens and APIToken, but not of tokenize. api_key is found in "
                  "apiKey, API_KEY and apikey.",
                  .fallback = SECRET_WORDS_DEFAULT),
    FIELD_SECRET(secret_words_settings, hmac_key,
                 "With a key of at least 32 bytes, a name is replaced by a hash of it "
                 "([REDACTED:0123456789abcdef]), which is the same in every process with this key. "
                 "Without one, by [REDACTED]."),
    FIELD_END};

static const struct field url_sanitizer_fields[] = {
    FIELD_STRINGS(url_sanitizer_settings, attributes, "Keys of attributes that are URLs."),
    FIELD_BOOL(url_sanitizer_settings, sanitize_span_name, "Whether span names are sanitized, too.",
               .fallback = "true"),
    FIELD_END};

const struct field redaction_fields[] = {
    FIELD_BOOL(redaction_settings, allow_all_keys,
               "Keeps attributes with any key. Without it, those that allowed_keys does not name "
               "are removed."),
    FIELD_STRINGS(redaction_settings, allowed_keys, "Keys of attributes that are kept."),
    FIELD_STRINGS(redaction_settings, ignored_keys,
                  "Keys of attributes that are kept as they are, before any other rule."),
    FIELD_STRINGS(redaction_settings, ignored_key_patterns,
                  "The same, as regular expressions that are searched for in the key."),
    FIELD_STRINGS(redaction_settings, blocked_key_patterns,
                  "Regular expressions. If one is found in the key, the whole value is masked."),
    FIELD_STRINGS(redaction_settings, blocked_values,
                  "Regular expressions. What they match in a value is masked; in profiles also in "
                  "names of functions, files and mappings."),
    FIELD_STRINGS(redaction_settings, allowed_values,
                  "Regular expressions. A value in which one is found is kept as it is."),
    FIELD_BOOL(redaction_settings, redact_all_types,
               "Masks also values that are not strings; they become strings."),
    FIELD_BOOL(redaction_settings, redact_all_texts,
               "Masks what blocked_values match in keys of attributes, names of spans, events and "
               "scopes, versions, status messages, trace states, schema URLs, units and types, "
               "too. The Collector does not have this."),
    FIELD_ENUM(redaction_settings, hash_function,
               "Replaces what is masked by its hash instead of ****.", hash_names, .fallback = ""),
    FIELD_SECRET(redaction_settings, hmac_key,
                 "The key of hmac-sha256 (at least 32 bytes) and hmac-sha512 (at least 64)."),
    FIELD_STRING(redaction_settings, summary,
                 "Adds attributes about what was done: info counts, debug also names the keys. "
                 "Anything else adds none.",
                 .fallback = ""),
    FIELD_OPTIONAL(redaction_settings, secret_words, secret_words_settings, secret_words_fields,
                   "Replaces names that have one of some words, and values of attributes whose key "
                   "has one. The Collector does not have this."),
    FIELD_OPTIONAL(redaction_settings, url_sanitizer, url_sanitizer_settings, url_sanitizer_fields,
                   "Replaces ids in the paths of URLs by * and removes their queries."),
    FIELD_BLOCK(redaction_settings, db_sanitizer, db_sanitizer_settings, db_sanitizer_fields,
                "Replaces values in database queries by ?."),
    FIELD_END,
};

/* ---- checks ---- */

static void check_patterns(struct config_check *check, const char *key, const char *list,
                           const struct config_strings *patterns)
{
    for (size_t i = 0; i < patterns->count; i++) {
        struct error err = {0};
        struct ottl_regex *regex = ottl_regex_new(slice_of_string(patterns->items[i]), &err);
        if (!regex)
            config_check_error(check, config_check_item(check, key, i),
                               "failed to process %s list: %s", list, err.text);
        ottl_regex_free(regex);
    }
}

static void check_key(struct config_check *check, const char *place, const char *key, size_t min,
                      const char *use)
{
    size_t size = key ? strlen(key) : 0;
    if (size == 0)
        config_check_error(check, place, "must not be empty when %s", use);
    else if (size < min)
        config_check_error(check, place, "must be at least %zu bytes long when %s, got %zu bytes",
                           min, use, size);
}

static void check_hash(const struct redaction_settings *settings, struct config_check *check)
{
    if (settings->hash_function == REDACTION_HMAC_SHA256)
        check_key(check, "hmac_key", settings->hmac_key, HMAC_SHA256_KEY_MIN,
                  "hash_function is \"hmac-sha256\"");
    if (settings->hash_function == REDACTION_HMAC_SHA512)
        check_key(check, "hmac_key", settings->hmac_key, HMAC_SHA512_KEY_MIN,
                  "hash_function is \"hmac-sha512\"");
}

static void check_words(const struct secret_words_settings *settings, struct config_check *check)
{
    if (!settings->enabled)
        return;
    if (settings->hmac_key)
        check_key(check, "secret_words::hmac_key", settings->hmac_key, HMAC_SHA256_KEY_MIN,
                  "names are hashed");
    if (settings->words.count == 0)
        config_check_error(check, "secret_words::words", "needs at least one word");
    for (size_t i = 0; i < settings->words.count; i++)
        if (!secret_word_is_valid(settings->words.items[i]))
            config_check_error(check, config_check_item(check, "secret_words::words", i),
                               "a word must have letters or digits of ASCII");
}

static void warn_sanitizer(struct config_check *check, const char *key, bool has_names,
                           const char *examples)
{
    config_check_warn(check, key, "without attributes, %s; list the keys: attributes: [%s]",
                      has_names ? "only names of spans are sanitized" : "it does nothing",
                      examples);
}

/* As in the Collector, nothing says which attributes have URLs or queries. */
static void warn_without_attributes(const struct redaction_settings *settings,
                                    struct config_check *check)
{
    const struct url_sanitizer_settings *url = &settings->url_sanitizer;
    const struct db_sanitizer_settings *db = &settings->db_sanitizer;
    const struct {
        const char *key;
        const struct database_settings *settings;
    } databases[] = {
        {"db_sanitizer::sql", &db->sql},       {"db_sanitizer::redis", &db->redis},
        {"db_sanitizer::valkey", &db->valkey}, {"db_sanitizer::memcached", &db->memcached},
        {"db_sanitizer::mongo", &db->mongo},   {"db_sanitizer::opensearch", &db->opensearch},
        {"db_sanitizer::es", &db->es}};
    if (url->enabled && url->attributes.count == 0)
        warn_sanitizer(check, "url_sanitizer", url->sanitize_span_name, "url.full, http.url");
    for (size_t i = 0; i < sizeof databases / sizeof *databases; i++)
        if (databases[i].settings->enabled && databases[i].settings->attributes.count == 0)
            warn_sanitizer(check, databases[i].key, db->sanitize_span_name,
                           "db.query.text, db.statement");
}

static void warn_without_effect(const struct redaction_settings *settings,
                                struct config_check *check)
{
    const char *summary = settings->summary ? settings->summary : "";
    bool masks = settings->blocked_values.count + settings->blocked_key_patterns.count > 0 ||
                 settings->secret_words.enabled || settings->url_sanitizer.enabled ||
                 database_mask_is_enabled(&settings->db_sanitizer);
    if (!settings->allow_all_keys && settings->allowed_keys.count == 0)
        config_check_warn(check, "",
                          "without allow_all_keys or allowed_keys, every attribute is removed");
    else if (settings->allow_all_keys && !masks)
        config_check_warn(check, "",
                          "nothing is redacted: all keys are allowed, and there are no "
                          "blocked_values, blocked_key_patterns, secret_words or sanitizers");
    if (summary[0] && strcmp(summary, "info") != 0 && strcmp(summary, "debug") != 0 &&
        strcmp(summary, "silent") != 0)
        config_check_warn(check, "summary", "no summary is written: it is info, debug or silent");
}

void redaction_check(void *context, struct config_check *check)
{
    const struct redaction_settings *settings = context;
    check_patterns(check, "ignored_key_patterns", "ignore keys", &settings->ignored_key_patterns);
    check_patterns(check, "blocked_values", "block", &settings->blocked_values);
    check_patterns(check, "blocked_key_patterns", "block keys", &settings->blocked_key_patterns);
    check_patterns(check, "allowed_values", "allow", &settings->allowed_values);
    check_hash(settings, check);
    check_words(&settings->secret_words, check);
    warn_without_attributes(settings, check);
    warn_without_effect(settings, check);
}

/* ---- rules ---- */

static bool compile(struct redaction_patterns *patterns, const struct config_strings *texts,
                    struct error *err)
{
    patterns->texts = texts;
    patterns->items = memory_zalloc((texts->count + 1) * sizeof(struct ottl_regex *));
    for (size_t i = 0; i < texts->count; i++)
        if (!(patterns->items[i] = ottl_regex_new(slice_of_string(texts->items[i]), err)))
            return false;
    return true;
}

static void free_patterns(struct redaction_patterns *patterns)
{
    for (size_t i = 0; patterns->items && i < patterns->texts->count; i++)
        ottl_regex_free(patterns->items[i]);
    free(patterns->items);
}

void redaction_rules_free(struct redaction_rules *rules)
{
    if (!rules)
        return;
    free_patterns(&rules->ignored_keys);
    free_patterns(&rules->blocked_keys);
    free_patterns(&rules->blocked_values);
    free_patterns(&rules->allowed_values);
    arena_deinit(&rules->arena);
    free(rules);
}

struct redaction_rules *redaction_rules_new(const struct redaction_settings *settings,
                                            struct error *err)
{
    struct redaction_rules *rules = memory_zalloc(sizeof *rules);
    const struct secret_words_settings *words = &settings->secret_words;
    rules->settings = settings;
    if (settings->summary && strcmp(settings->summary, "info") == 0)
        rules->summary = SUMMARY_INFO;
    if (settings->summary && strcmp(settings->summary, "debug") == 0)
        rules->summary = SUMMARY_DEBUG;
    if (words->enabled)
        secret_words_init(&rules->words, words->words.items, words->words.count, &rules->arena);
    rules->word_key = slice_of_string(words->hmac_key);
    if (compile(&rules->ignored_keys, &settings->ignored_key_patterns, err) &&
        compile(&rules->blocked_keys, &settings->blocked_key_patterns, err) &&
        compile(&rules->blocked_values, &settings->blocked_values, err) &&
        compile(&rules->allowed_values, &settings->allowed_values, err))
        return rules;
    redaction_rules_free(rules);
    return NULL;
}
