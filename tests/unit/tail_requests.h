/*
 * tail_requests: what the tests of tail_sampling send, in short texts.
 *
 * Owner: the test.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_TAIL_REQUESTS_H
#define PROFCOL_TESTS_TAIL_REQUESTS_H

#include "core/base/text.h"
#include "core/data/wire_writer.h"
#include "tests/unit/pipeline_fixture.h"

/* Policies. */
#define TAIL_ALL "policies: [{name: all, type: always_sample}]"
#define TAIL_ERRORS                                                                                \
    "policies: [{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]"

/* Places the processor with these settings; the second place shares those of the first. */
struct fixture_place *tail_place(struct fixture *f, enum signal signal, const char *settings);

/* Makes a fixture with so many workers, and places the processor for traces in it. */
struct fixture_place *tail_begin(struct fixture *f, unsigned workers, const char *settings);

/* Changes the settings, as a reload does. */
void tail_change(struct fixture *f, const struct fixture_place *place, const char *settings);

/* Sends spans: 'a' to 'z' is the name of a span and of its trace; '!' after it: an error, '^': it
 * has a parent. */
void tail_consume_spans(struct fixture *f, struct node *node, const char *spans,
                        struct probe *probe);
/* Writes a request of so many traces with one small span each. Their ids are 1, 2, ... */
enum { TAIL_SPAN_BYTES = 30 };
void tail_write_traces(struct wire_writer *out, uint64_t count);
/* Sends a profile of CPU time with samples such as "a5-3": 5 ns, linked to trace a, and 3 without a
 * link. The traces are a to h. */
void tail_consume_samples(struct fixture *f, struct node *node, const char *samples,
                          struct probe *probe);
/* Sends an upload with the same sample of trace a in several types, such as
 * "samples/count=3 every 10 cpu/ns, cpu/ns=7". */
void tail_consume_upload(struct fixture *f, struct node *node, const char *upload);
/* Prints the samples of a request in this form. */
void tail_print_samples(struct slice request, struct text *out);

/* Returns a metric of the processor. more: further labels, after a comma. */
double tail_metric(struct fixture *f, const char *name, const char *more);

#endif
