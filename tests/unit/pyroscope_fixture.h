/*
 * pyroscope_fixture: an upload of a client, and its conversion by the receiver's readers.
 *
 *     struct pyroscope_request request;
 *     pyroscope_load(&request, "go-grpc/pyroscope-ingest/004");
 *     struct pyroscope_result result;
 *     assert_true(pyroscope_ingest(&request, &result));
 *     ...
 *     pyroscope_result_deinit(&result);
 *     pyroscope_request_deinit(&request);
 *
 * Owner: the test.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_PYROSCOPE_FIXTURE_H
#define PROFCOL_TESTS_PYROSCOPE_FIXTURE_H

#include "core/base/budget.h"
#include "core/base/text.h"
#include "core/base/verdict.h"
#include "receivers/pyroscope/upload.h"

struct pyroscope_request {
    struct pyroscope_settings settings; /* may be changed */
    struct http_header items[8];
    struct http_headers headers;
    struct slice query;
    struct slice body;
    struct buffer *file; /* contains `body`; may be NULL */
    char *query_text, *content_type;
};

/* Sets a request that a test composes itself. */
void pyroscope_word(struct pyroscope_request *request, const char *query, const char *content_type,
                    struct slice body);
/* Loads a recording of tests/data/pyroscope: query, Content-Type, and the decompressed body. */
void pyroscope_load(struct pyroscope_request *request, const char *capture);
void pyroscope_add_header(struct pyroscope_request *request, const char *name, const char *value);
void pyroscope_request_deinit(struct pyroscope_request *request);

struct pyroscope_result {
    struct buffer *profiles; /* NULL: refused */
    uint32_t samples;
    struct verdict why;
    struct budget budget;
};

/* Convert the request with the reader of /ingest, of PushRequest, of its JSON, or of gRPC-Web.
 * Check that the result passes the scan and needs no normalising. */
bool pyroscope_ingest(const struct pyroscope_request *request, struct pyroscope_result *result);
bool pyroscope_push(const struct pyroscope_request *request, struct pyroscope_result *result);
bool pyroscope_push_json(const struct pyroscope_request *request, struct pyroscope_result *result);
bool pyroscope_grpc_web(const struct pyroscope_request *request, struct pyroscope_result *result);
void pyroscope_result_deinit(struct pyroscope_result *result);

#endif
