/*
 * api: answers the queries under /api/ from the store (docs/explore.md is the contract).
 *
 * A query is checked and answered on the store's thread. Its cost is bounded by the store and by
 * the limits of its parameters; what takes longer than the deadline ends with 503.
 *
 * Owner: the caller owns the request; the answer's text too.
 *
 * Thread: that of the store.
 */
#ifndef PROFCOL_EXPLORE_API_H
#define PROFCOL_EXPLORE_API_H

#include "core/base/arena.h"
#include "core/base/text.h"
#include "extensions/explore/json_text.h"
#include "extensions/explore/span_links.h"
#include "extensions/explore/store_query.h"

#include <stdatomic.h>

enum {
    API_PARAMETERS_MAX = 48,
    API_VALUE_MAX = 4096,              /* bytes of a parameter */
    API_ANSWER_MAX = 48 * 1024 * 1024, /* bytes */
    API_NODES_MAX = 100000,            /* of a flame graph */
    API_LIST_DEFAULT = 50,
    API_LIST_MAX = 1000,
};

/* What answers need besides the store; constant. */
struct api_context {
    const char *version;
    struct api_links links;
    size_t limit_bytes; /* of store and mailbox */
    struct join_feed *feed;
};

struct api_parameter {
    struct slice name;
    struct slice value; /* decoded, valid UTF-8 or not */
};

struct api_request {
    struct store *store; /* not changed */
    const struct api_context *context;
    struct arena arena; /* for the answer */
    struct api_parameter parameters[API_PARAMETERS_MAX];
    unsigned parameter_count;
    uint64_t now_ns;
    uint64_t deadline_ns;           /* monotonic; 0: none */
    const atomic_bool *is_given_up; /* nobody waits for the answer any more; NULL: somebody does */
    /* The answer: */
    int status;
    const char *type;
    const char *file_name; /* of a download; NULL: none */
    bool is_late;
    struct text body;
    struct json_text json; /* over body */
};

/* Answers a query. path: after "/api/". Free the request with api_deinit. */
void api_answer(struct api_request *request, struct slice path, struct slice query);
void api_deinit(struct api_request *request);
/* Whether there is an answer to this path. */
bool api_has_path(struct slice path);
/* Answers a path that has no parameters and needs no store. Returns false, after refusing, if the
 * query has any. Free the request with api_deinit. */
bool api_begin_plain(struct api_request *request, struct slice query);

/* ---- for the answers ---- */

/* Answers with an error. Returns false. */
bool api_refuse(struct api_request *request, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Returns whether the deadline has passed, nobody waits for the answer, or it is too long, and then
 * refuses. Call it for each item of a list. */
bool api_must_stop(struct api_request *request);
/* The parameters that a path knows. */
struct api_known {
    int selections;    /* 0, 1, or 2: with a. and b. before the names */
    const char *words; /* further ones, separated by blanks */
};
/* Reads a query. Returns false after refusing. */
bool api_read_parameters(struct api_request *request, const struct api_known *known,
                         struct slice query);
/* Returns a parameter, empty if there is none. */
struct slice api_parameter(const struct api_request *request, const char *name);
bool api_has_parameter(const struct api_request *request, const char *name);
/* Returns what is before the next `end`, and takes both off the text. */
struct slice api_take_until(struct slice *rest, char end);
/* Reads one of the words: its number, or the fallback. Returns false after refusing. */
bool api_word(struct api_request *request, const char *name, const char *const *words, int count,
              int fallback, int *out);
/* Reads one of the words, or else (-1) a profile type, by default the store's (STORE_TYPES_MAX:
 * there is none). Returns false after refusing. */
bool api_word_or_type(struct api_request *request, const char *name, const char *const *words,
                      int count, int *word_out, uint8_t *type_out);
/* Reads a number within bounds. Returns false after refusing. */
bool api_number(struct api_request *request, const char *name, uint64_t fallback, uint64_t max,
                uint64_t *out);
/* Reads which part of a list is asked for: from an item on, so many. Returns false after refusing.
 */
bool api_page(struct api_request *request, uint64_t fallback, uint64_t *from_out,
              uint64_t *limit_out);
/* Prints the member `next` of a list of which the items before `next` were listed. */
void api_next(struct api_request *request, uint64_t next, bool has_more);
/* Prints the values that are not 0 under the names of their types. */
void api_costs(struct api_request *request, const char *key, const int64_t *values);
/* Reads the selection, and its type. prefix: "", "a." or "b.". Returns false after refusing. */
bool api_selection(struct api_request *request, const char *prefix,
                   struct store_selection *selection, uint8_t *type_out);
/* Returns bytes as hex digits, in the arena. */
const char *api_hex(struct api_request *request, const uint8_t *bytes, size_t size);
/* Returns the texts of the store. */
static inline struct slice api_text(const struct api_request *request, uint32_t text)
{
    return store_names_read(&request->store->names, text);
}
extern const char *const api_kinds[6];
extern const char *const api_states[3];

/* The answers, by path. */
void api_status(struct api_request *request);
void api_services(struct api_request *request);
void api_operations(struct api_request *request);
void api_spans(struct api_request *request);
void api_span(struct api_request *request);
void api_flamegraph(struct api_request *request);
void api_diff(struct api_request *request);
void api_functions(struct api_request *request);
void api_histogram(struct api_request *request);
void api_export(struct api_request *request);
void api_explain(struct api_request *request);

#endif
