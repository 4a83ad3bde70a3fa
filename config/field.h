/*
 * field: the table that describes a component's settings.
 *
 * One constant array per component (and per block that several share: server, client, TLS, queue,
 * retry), ended by FIELD_END. Parsing, defaults, bounds, errors with "did you mean", print-config,
 * the JSON schema and docs/reference.md all use it. YAML keys equal the C member names and the
 * Collector's keys. The macros check that the member has the C type of the kind.
 *
 * Owner: static data. Values read from YAML live in the configuration's arena.
 *
 * Thread: read-only after parsing.
 */
#ifndef PROFCOL_CONFIG_FIELD_H
#define PROFCOL_CONFIG_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config_node;

enum field_kind {
    FIELD_KIND_END,
    FIELD_KIND_BOOL,     /* bool */
    FIELD_KIND_UINT,     /* uint64_t; a plain integer. The Collector's name if it has the setting;
                            else the name ends with the unit (max_held_mib, max_length_bytes), except
                            for a count of items (max_spans) */
    FIELD_KIND_INT,      /* int64_t */
    FIELD_KIND_DOUBLE,   /* double */
    FIELD_KIND_DURATION, /* int64_t, nanoseconds; Go syntax, a unit is required (0 may stand alone)
                          */
    FIELD_KIND_STRING,   /* const char *, NULL when not given and without a default */
    FIELD_KIND_SECRET,   /* const char *, never printed */
    FIELD_KIND_ENUM,     /* int: index in `names` */
    FIELD_KIND_STRINGS,  /* struct config_strings */
    FIELD_KIND_PAIRS, /* struct config_pairs: a map, or a list of {name, value}; values are secret
                       */
    FIELD_KIND_BLOCK, /* a nested struct, always present */
    FIELD_KIND_OPTIONAL, /* a nested struct whose first member is `bool enabled`: the Collector's
                            optional blocks */
    FIELD_KIND_LIST,     /* struct config_list of a nested struct */
    FIELD_KIND_MAP,  /* struct config_list of a nested struct, from a map: the key of each is its
                        first member, a const char * that is not in its table */
    FIELD_KIND_NODE, /* const struct config_node *: kept as written; the component reads it in
                        `check` */
};

struct config_strings {
    const char **items;
    size_t count;
};

struct config_pair {
    const char *name;
    const char *value;
};

struct config_pairs {
    struct config_pair *items;
    size_t count;
};

struct config_list {
    void *items; /* an array of the block's struct */
    size_t count;
};

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
    const char *help;     /* one sentence, ends with a full stop */
    const char *fallback; /* default, as a user would write it; NULL: zero, absent, empty. For
                             FIELD_KIND_OPTIONAL: "true" if the block is on by default; for
                             FIELD_KIND_NODE: YAML */
    const char *min;      /* bounds, as a user would write them; NULL: none */
    const char *max;
    const char *const *names;  /* of an enum, NULL-terminated; letter case is ignored */
    const struct field *block; /* of BLOCK, OPTIONAL, LIST, MAP */
    size_t block_size;         /* sizeof the nested struct */
    bool is_secret;            /* of STRINGS: the texts are never printed */
    bool required;             /* must be written, and not empty */
    bool inlined; /* a BLOCK whose keys are written in the parent itself (the Collector's "squash")
                   */
    const char *replaced_by; /* the new key of a deprecated one, which still works: a warning names
                                the new key once */
    bool ignored; /* accepted and checked because the Collector has it, but without effect; the
                     reference and a warning say so */
    size_t given; /* 1 + the offset of a bool of the same struct, which is set if the key is written
                     with a value; otherwise print-config leaves it out. For keys that mean
                     something by being written. 0: none */
    bool is_live; /* a reload may change it while the component goes on (component_type.update) */
    bool unlisted; /* not in the reference: for keys that the Collector accepts and does not use
                      either */
};

/* Whether a field of a struct was given; always true without `given`. */
static inline bool field_is_given(const struct field *field, const void *object)
{
    return !field->given || *((const bool *)object + field->given - 1);
}

/* The offset of a member. If the member has another type than CTYPE, the array size of -1 stops the
 * compiler. */
/* clang-format off */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define FIELD_CHECKED_OFFSET(STRUCT, MEMBER, CTYPE)                                                \
    (offsetof(struct STRUCT, MEMBER) +                                                             \
     0 * sizeof(char[_Generic(&((struct STRUCT *)0)->MEMBER, CTYPE *: 1, default: -1)]))
/* NOLINTEND(bugprone-macro-parentheses) */
/* clang-format on */

/* The value of `given`: FIELD_GIVEN(keep_attribute, has_above). */
#define FIELD_GIVEN(STRUCT, MEMBER) (1 + FIELD_CHECKED_OFFSET(STRUCT, MEMBER, bool))

#define FIELD_ENTRY(STRUCT, MEMBER, KIND, CTYPE, HELP, ...)                                        \
    {                                                                                              \
        .name = #MEMBER, .kind = KIND, .offset = FIELD_CHECKED_OFFSET(STRUCT, MEMBER, CTYPE),      \
        .help = HELP, __VA_ARGS__                                                                  \
    }

/* FIELD_UINT(batch_config, send_batch_size, "Spans or samples ...", .fallback = "8192", .min = "1")
 */
#define FIELD_BOOL(S, M, HELP, ...) FIELD_ENTRY(S, M, FIELD_KIND_BOOL, bool, HELP, __VA_ARGS__)
#define FIELD_UINT(S, M, HELP, ...) FIELD_ENTRY(S, M, FIELD_KIND_UINT, uint64_t, HELP, __VA_ARGS__)
#define FIELD_INT(S, M, HELP, ...) FIELD_ENTRY(S, M, FIELD_KIND_INT, int64_t, HELP, __VA_ARGS__)
#define FIELD_DOUBLE(S, M, HELP, ...)                                                              \
    FIELD_ENTRY(S, M, FIELD_KIND_DOUBLE, double, HELP, __VA_ARGS__)
#define FIELD_DURATION(S, M, HELP, ...)                                                            \
    FIELD_ENTRY(S, M, FIELD_KIND_DURATION, int64_t, HELP, __VA_ARGS__)
#define FIELD_STRING(S, M, HELP, ...)                                                              \
    FIELD_ENTRY(S, M, FIELD_KIND_STRING, const char *, HELP, __VA_ARGS__)
#define FIELD_SECRET(S, M, HELP, ...)                                                              \
    FIELD_ENTRY(S, M, FIELD_KIND_SECRET, const char *, HELP, __VA_ARGS__)
#define FIELD_ENUM(S, M, HELP, NAMES, ...)                                                         \
    FIELD_ENTRY(S, M, FIELD_KIND_ENUM, int, HELP, .names = NAMES, __VA_ARGS__)
#define FIELD_STRINGS(S, M, HELP, ...)                                                             \
    FIELD_ENTRY(S, M, FIELD_KIND_STRINGS, struct config_strings, HELP, __VA_ARGS__)
#define FIELD_PAIRS(S, M, HELP, ...)                                                               \
    FIELD_ENTRY(S, M, FIELD_KIND_PAIRS, struct config_pairs, HELP, __VA_ARGS__)
#define FIELD_NODE(S, M, HELP, ...)                                                                \
    FIELD_ENTRY(S, M, FIELD_KIND_NODE, const struct config_node *, HELP, __VA_ARGS__)
#define FIELD_BLOCK(S, M, BLOCK_STRUCT, BLOCK, HELP, ...)                                          \
    FIELD_ENTRY(S, M, FIELD_KIND_BLOCK, struct BLOCK_STRUCT, HELP, .block = BLOCK,                 \
                .block_size = sizeof(struct BLOCK_STRUCT), __VA_ARGS__)
#define FIELD_OPTIONAL(S, M, BLOCK_STRUCT, BLOCK, HELP, ...)                                       \
    FIELD_ENTRY(S, M, FIELD_KIND_OPTIONAL, struct BLOCK_STRUCT, HELP, .block = BLOCK,              \
                .block_size = sizeof(struct BLOCK_STRUCT), __VA_ARGS__)
#define FIELD_LIST(S, M, BLOCK_STRUCT, BLOCK, HELP, ...)                                           \
    FIELD_ENTRY(S, M, FIELD_KIND_LIST, struct config_list, HELP, .block = BLOCK,                   \
                .block_size = sizeof(struct BLOCK_STRUCT), __VA_ARGS__)
#define FIELD_MAP(S, M, BLOCK_STRUCT, BLOCK, HELP, ...)                                            \
    FIELD_ENTRY(S, M, FIELD_KIND_MAP, struct config_list, HELP, .block = BLOCK,                    \
                .block_size = sizeof(struct BLOCK_STRUCT), __VA_ARGS__)
#define FIELD_END                                                                                  \
    {                                                                                              \
        .kind = FIELD_KIND_END                                                                     \
    }

#endif
