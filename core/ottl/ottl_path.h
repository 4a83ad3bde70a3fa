/*
 * ottl_path: one path of a context, a row of the tables of ottl_paths.h.
 *
 * Owner: constant.
 *
 * Thread: any; `read` and `write` that of the evaluator.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_PATH_H
#define PROFCOL_CORE_OTTL_OTTL_PATH_H

#include "core/ottl/ottl_evaluation.h"

enum ottl_indexing {
    OTTL_NOT_INDEXED,
    OTTL_MAP_INDEXED,        /* keys, first of the map, then of what is in it */
    OTTL_TRACE_STATE_INDEXED /* one key that is a text */
};

struct ottl_path_row {
    const char *name; /* without its context: "status.code" */
    enum ottl_context context;
    enum ottl_indexing indexing;
    bool (*read)(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                 const struct message_iter *message, struct ottl_value *out);
    size_t message;  /* offset in struct ottl_item: the message that is read */
    uint32_t number; /* of the field */
    /* Sets the value, which has no keys. Returns false with the error set. NULL: the path can only
     * be read, unless it is a map that is written by its keys (ottl_writing.h). */
    bool (*write)(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                  const struct ottl_value *value);
    enum ottl_reach reach; /* of samples; OTTL_OF_NOTHING: not of the stack alone */
    bool has_items;        /* a list whose items can be set one by one */
    bool is_map;           /* attributes or the cache */
    bool is_cache;         /* the cache */
    bool is_indices;       /* attributes of the dictionary */
    bool is_indices_list;  /* their indices: those of a profile */
    uint32_t within;       /* number of the message in which the field is; 0: none */
};

/* Finds the scope, which rows of OTTL_SCOPE read, unless it is known. */
void ottl_item_find_scope(struct ottl_item *item);

/* Whether statements may change what a path reads. */
bool ottl_path_changes(const struct ottl_path_row *row);

/* Reads the value of a path, before any key. */
bool ottl_path_read(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                    struct ottl_value *out);

#endif
