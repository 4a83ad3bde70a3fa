/*
 * cost_uploads: requests of the receivers pyroscope and pprof, for cases of cost.h.
 *
 * Owner: requests are the caller's.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_COST_UPLOADS_H
#define PROFCOL_TESTS_COST_UPLOADS_H

#include "core/formats/pprof.h"
#include "tests/unit/cost.h"

enum { COST_BODY_MAX = 20 << 20 }; /* max_request_body_size as it is by default */

/* The body is an upload in the format; send_form is a form, of a pprof or a JFR. */
bool send_pprof(struct slice body, struct verdict *why);
bool send_jfr(struct slice body, struct verdict *why);
bool send_folded(struct slice body, struct verdict *why);
bool send_lines(struct slice body, struct verdict *why);
bool send_tree(struct slice body, struct verdict *why);
bool send_trie(struct slice body, struct verdict *why);
bool send_speedscope(struct slice body, struct verdict *why);
bool send_form(struct slice body, struct verdict *why);
bool send_jfr_form(struct slice body, struct verdict *why);
#define COST_BOUNDARY "b-b-b-b-b-b-b-b-b-b-b-b-b-b-b-c"
/* A PushRequest. */
bool send_push(struct slice body, struct verdict *why);
bool send_push_json(struct slice body, struct verdict *why);
bool send_grpc_web(struct slice body, struct verdict *why);
/* A pprof that is scraped, twice: the second time there is something to differ from. */
bool send_delta(struct slice body, struct verdict *why);
/* OTLP whose resources name no service. */
bool send_otlp(struct slice body, struct verdict *why);

/* A message of numbers: fields 1 to count, zeros left out. */
void put_record(struct wire_writer *out, uint32_t number, const uint64_t *numbers, uint32_t count);
#define RECORD(out, number, ...)                                                                   \
    put_record((out), (number), (const uint64_t[]){__VA_ARGS__},                                   \
               sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
/* A field of so many equal bytes. */
void put_repeated(struct wire_writer *out, uint32_t number, int c, size_t size);

#endif
