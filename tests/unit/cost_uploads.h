/*
 * cost_uploads: requests of the receivers pyroscope and pprof, for cases of cost.h.
 *
 * Owner: requests belong to the caller.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_COST_UPLOADS_H
#define PROFCOL_TESTS_COST_UPLOADS_H

#include "core/formats/pprof.h"
#include "tests/unit/cost.h"

enum { COST_BODY_MAX = 20 << 20 }; /* default of max_request_body_size */

/* Read the body as an upload in a format. send_form and send_jfr_form read a form with a pprof or a
 * JFR recording. */
bool send_pprof(struct slice body, struct verdict *why);
bool send_jfr(struct slice body, struct verdict *why);
bool send_jfr_with_threads(struct slice body, struct verdict *why);
bool send_folded(struct slice body, struct verdict *why);
bool send_lines(struct slice body, struct verdict *why);
bool send_tree(struct slice body, struct verdict *why);
bool send_trie(struct slice body, struct verdict *why);
bool send_speedscope(struct slice body, struct verdict *why);
bool send_form(struct slice body, struct verdict *why);
bool send_jfr_form(struct slice body, struct verdict *why);
#define COST_BOUNDARY "b-b-b-b-b-b-b-b-b-b-b-b-b-b-b-c"
/* Read the body as a PushRequest. */
bool send_push(struct slice body, struct verdict *why);
bool send_push_json(struct slice body, struct verdict *why);
bool send_grpc_web(struct slice body, struct verdict *why);
/* Reads the body as a scraped pprof, twice, so that the second time there is a previous one. */
bool send_delta(struct slice body, struct verdict *why);
/* Reads the body as OTLP whose resources name no service. */
bool send_otlp(struct slice body, struct verdict *why);

/* Writes a message of numbers in fields 1 to `count`; zeros are left out. */
void put_record(struct wire_writer *out, uint32_t number, const uint64_t *numbers, uint32_t count);
#define RECORD(out, number, ...)                                                                   \
    put_record((out), (number), (const uint64_t[]){__VA_ARGS__},                                   \
               sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
/* Writes a field of `size` equal bytes. */
void put_repeated(struct wire_writer *out, uint32_t number, int c, size_t size);

#endif
