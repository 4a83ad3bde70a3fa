/*
 * ottl_functions: the converters, one row each with its typed arguments.
 *
 * Owner: constant tables.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_FUNCTIONS_H
#define PROFCOL_CORE_OTTL_OTTL_FUNCTIONS_H

#include "core/ottl/ottl_evaluation.h"

enum ottl_parameter_kind {
    OTTL_PARAMETER_NONE, /* after the last one */
    OTTL_PARAMETER_ANY,
    OTTL_PARAMETER_STRING,       /* a string; another type is an error */
    OTTL_PARAMETER_INT,          /* an integer, in the same way */
    OTTL_PARAMETER_DURATION,     /* a duration, in the same way */
    OTTL_PARAMETER_TIME,         /* a time, in the same way */
    OTTL_PARAMETER_MAP,          /* a map, in the same way */
    OTTL_PARAMETER_STRING_LIKE,  /* a string, or what becomes one */
    OTTL_PARAMETER_PATTERN,      /* a literal string: a regular expression */
    OTTL_PARAMETER_LITERAL_BOOL, /* true or false, written as such */
    OTTL_PARAMETER_LITERAL_STRING,
    OTTL_PARAMETER_LIST,            /* a list: see struct ottl_items */
    OTTL_PARAMETER_STRINGS,         /* the same, of strings */
    OTTL_PARAMETER_LITERAL_STRINGS, /* a list of literal strings that is written as such */
    OTTL_PARAMETER_ZONE,            /* a literal string: the name of a time zone */
    OTTL_PARAMETER_LAMBDA_0,        /* a lambda with so many parameters */
    OTTL_PARAMETER_LAMBDA_2,
    OTTL_PARAMETER_LAMBDA_3,
    /* Of editors: */
    OTTL_PARAMETER_LITERAL_INT,
    OTTL_PARAMETER_PATH,     /* a path that can be written */
    OTTL_PARAMETER_CAPTURES, /* a pattern whose groups the replacement names */
    OTTL_PARAMETER_GLOB,     /* a pattern of * ? [a-z] {a,b} for whole texts */
    OTTL_PARAMETER_FUNCTION, /* the name of a converter with one argument, which is OTTL_INPUT */
};

enum { OTTL_PARAMETERS_MAX = 6 };

struct ottl_parameter {
    const char *name; /* as named arguments have it: "utf8_safe" */
    enum ottl_parameter_kind kind;
    bool is_optional;
};

struct ottl_function {
    const char *name;
    struct ottl_parameter parameters[OTTL_PARAMETERS_MAX + 1];
    /* Evaluates the call; node->operands are the arguments. Returns false with the error set. */
    bool (*call)(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                 struct ottl_value *out);
    enum ottl_level level; /* that it has even with constant arguments */
    bool is_of_spans;      /* only the context span has it */
    bool searches_stacks;  /* only the context profilesample has it; it uses
                              ottl_evaluation_search */
    /* NULL, or checks literal arguments at start. Returns false with err set. */
    bool (*check)(const struct ottl_node *node, struct error *err);
    /* NULL, or finds what makes each call fail that the Collector starts with: a warning. Returns
     * false with err set. */
    bool (*doubt)(const struct ottl_node *node, struct error *err);
    /* A literal argument that cannot be converted is an error at start. */
    bool checks_literals;
    unsigned work; /* 0: that of its family, see ottl_function_work */
};

/* Returns the converter, or the editor, of this name; NULL: there is none. */
const struct ottl_function *ottl_function_find(struct slice name);
const struct ottl_function *ottl_editor_find(struct slice name);
/* Returns how many times as long as reading an argument the work on it takes. */
unsigned ottl_function_work(const struct ottl_function *function);
/* Returns the name of the converter, or editor, that was probably meant; NULL: none is close. */
const char *ottl_function_suggest(const char *name);
const char *ottl_editor_suggest(const char *name);
/* Whether the Collector has a function of this name that is not there yet. */
bool ottl_function_is_missing(struct slice name);

/* ---- arguments, for functions ---- */

/* Evaluate argument `index`, which must be given, as one of these types. Return false with the
 * error set. */
bool ottl_argument(struct ottl_evaluation *evaluation, const struct ottl_node *call, uint32_t index,
                   struct ottl_value *out);
bool ottl_argument_string(struct ottl_evaluation *evaluation, const struct ottl_node *call,
                          uint32_t index, struct slice *out);
bool ottl_argument_int(struct ottl_evaluation *evaluation, const struct ottl_node *call,
                       uint32_t index, int64_t *out);
/* Evaluates a node as a string, converting other values; *is_nil_out instead of a text for nil. */
bool ottl_node_text(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                    struct slice *out, bool *is_nil_out);

/* The same of a value that is there. */
bool ottl_value_text(struct ottl_evaluation *evaluation, const struct ottl_value *value,
                     struct slice *out, bool *is_nil_out);

/* The items of an argument that is a list: written in place, each is evaluated when it is its turn;
 * otherwise those of a value, whose number a client chooses. */
struct ottl_items {
    struct ottl_evaluation *evaluation;
    const struct ottl_node *written; /* NULL: they are those of a value */
    uint32_t next;                   /* of what is written */
    struct ottl_cursor cursor;
    bool has_failed; /* the error is set */
};
/* Begins with the items of argument `index`. Returns false with the error set. */
bool ottl_argument_items(struct ottl_evaluation *evaluation, const struct ottl_node *call,
                         uint32_t index, struct ottl_items *out);
/* Moves to the next item; returns false at the end, and where it has failed. */
bool ottl_items_next(struct ottl_items *items, struct ottl_value *out);
/* Checks the size of a text that is made of the items. Returns false if it has failed: the items of
 * a value make at most 1 MiB. */
bool ottl_items_fit(struct ottl_items *items, size_t size);

/* Converts a value to a float as the converter Double does; nil stays nil. */
bool ottl_to_double(struct ottl_evaluation *evaluation, const struct ottl_value *value,
                    struct ottl_value *out);

/* The tables of the files that implement functions, ended by a row without a name. */
extern const struct ottl_function ottl_type_functions[];
extern const struct ottl_function ottl_text_functions[];
extern const struct ottl_function ottl_case_functions[];
extern const struct ottl_function ottl_format_functions[];
extern const struct ottl_function ottl_network_functions[];
extern const struct ottl_function ottl_pair_functions[];
extern const struct ottl_function ottl_profile_functions[];
extern const struct ottl_function ottl_hash_functions[];
extern const struct ottl_function ottl_parse_functions[];
extern const struct ottl_function ottl_csv_functions[];
extern const struct ottl_function ottl_lambda_functions[];
extern const struct ottl_function ottl_encoding_functions[];
extern const struct ottl_function ottl_number_functions[];
extern const struct ottl_function ottl_url_functions[];
extern const struct ottl_function ottl_list_functions[];
extern const struct ottl_function ottl_time_functions[];
extern const struct ottl_function ottl_value_editors[];
extern const struct ottl_function ottl_key_editors[];
extern const struct ottl_function ottl_map_editors[];
extern const struct ottl_function ottl_replace_editors[];
extern const struct ottl_function ottl_span_editors[];

#endif
