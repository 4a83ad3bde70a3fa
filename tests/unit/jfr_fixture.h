/*
 * jfr_fixture: writes valid and invalid JFR recordings.
 *
 *     jfr_fixture_chunk(&f, "10 long; 20 jdk.ExecutionSample stackTrace:30# spanId:10");
 *     jfr_fixture_event(&f, 1);                    // a checkpoint: its head, then pools
 *     JFR_NUMBERS(&f, 0, 0, 0, 0, 2);
 *     ...
 *     jfr_fixture_event_end(&f);
 *     jfr_fixture_chunk_end(&f, place of the last checkpoint in the chunk);
 *
 * Owner: the caller, on its stack; free with jfr_fixture_deinit.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_JFR_FIXTURE_H
#define PROFCOL_TESTS_JFR_FIXTURE_H

#include "core/base/slice.h"
#include "core/data/wire_writer.h"

struct jfr_fixture {
    struct wire_writer out;
    size_t chunk; /* position of its begin */
    size_t event;
};

/* Begins a chunk with header and metadata. classes: "id name field:class field:class# (a constant)
 * field:class* (a list)", separated by "; ". */
void jfr_fixture_chunk(struct jfr_fixture *f, const char *classes);
/* Ends a chunk: writes sizes and offsets into its header. */
void jfr_fixture_chunk_end(struct jfr_fixture *f, size_t checkpoint);
/* Begins an event with its size and type. Returns its place in the chunk. */
size_t jfr_fixture_event(struct jfr_fixture *f, uint64_t type);
void jfr_fixture_event_end(struct jfr_fixture *f);
#define JFR_NUMBERS(f, ...)                                                                        \
    jfr_fixture_values((f), (const int64_t[]){__VA_ARGS__},                                        \
                       sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
void jfr_fixture_values(struct jfr_fixture *f, const int64_t *values, size_t count);
void jfr_fixture_text(struct jfr_fixture *f, const char *utf8);
void jfr_fixture_bytes(struct jfr_fixture *f, const void *bytes, size_t size);
struct slice jfr_fixture_slice(const struct jfr_fixture *f);
void jfr_fixture_deinit(struct jfr_fixture *f);

#endif
