/* Each pool and each reference of a JFR recording and of its labels: see cost.h. */
#include "tests/unit/cost_uploads.h"
#include "tests/unit/jfr_fixture.h"

#include <assert.h>
#include <stdio.h>

/* ---- recordings ---- */

#define PRIMITIVES "1 boolean; 5 int; 9 java.lang.String; 10 long; "
#define STACKS                                                                                     \
    PRIMITIVES "30 jdk.types.StackTrace frames:31*; 31 jdk.types.StackFrame method:32#; "          \
               "33 java.lang.Class name:34#; 34 jdk.types.Symbol string:9; "
#define METHOD "32 jdk.types.Method type:33# name:34#; "
#define EVENTS                                                                                     \
    "35 jdk.types.ThreadState name:9; 107 jdk.ActiveSetting id:10 name:9 value:9; "                \
    "101 jdk.ExecutionSample stackTrace:30# state:35# contextId:10 spanName:10"
#define TYPES STACKS METHOD EVENTS

/* The state while a recording is written: constants, then events. */
struct recording {
    struct jfr_fixture jfr;
    size_t constants;
};

/* Begins the checkpoint, with the given number of pools. */
static void begin_recording(struct recording *r, const char *classes, int64_t pools)
{
    *r = (struct recording){.constants = 0};
    jfr_fixture_chunk(&r->jfr, classes);
    r->constants = jfr_fixture_event(&r->jfr, 1);
    JFR_NUMBERS(&r->jfr, 0, 0, 0, 0, pools);
}

static void put_text(struct recording *r, int encoding, int c, size_t size)
{
    struct wire_writer text = {0};
    put_repeated(&text, 1, c, size);
    JFR_NUMBERS(&r->jfr, encoding, (int64_t)size);
    jfr_fixture_bytes(&r->jfr, text.data + text.size - size, size);
    wire_writer_deinit(&text);
}

enum { UTF8 = 3, CHARS = 4, LATIN1 = 5 };

/* Writes events of five numbers each until `size` is reached; then completes the request. */
static void end_recording(struct recording *r, struct wire_writer *out, size_t size,
                          const int64_t *event, size_t count)
{
    jfr_fixture_event_end(&r->jfr);
    do {
        jfr_fixture_event(&r->jfr, 101);
        jfr_fixture_values(&r->jfr, event, count);
        jfr_fixture_event_end(&r->jfr);
    } while (r->jfr.out.size < size);
    jfr_fixture_chunk_end(&r->jfr, r->constants);
    wire_writer_raw(out, jfr_fixture_slice(&r->jfr));
    jfr_fixture_deinit(&r->jfr);
}
#define END(r, out, size, ...)                                                                     \
    end_recording((r), (out), (size), (const int64_t[]){__VA_ARGS__},                              \
                  sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Writes pools with one state, class, method and stack. With the symbols, they are five. */
static void put_one_stack(struct recording *r)
{
    JFR_NUMBERS(&r->jfr, 35, 1, 1, 3, 1, 'R', 33, 1, 21, 42, 32, 1, 1, 21, 42, 30, 1, 1, 1, 1);
}

static void jfr_events(struct wire_writer *out, size_t size)
{
    struct recording r;
    begin_recording(&r, TYPES, 5);
    JFR_NUMBERS(&r.jfr, 34, 1, 42);
    put_text(&r, UTF8, 'x', 10);
    put_one_stack(&r);
    END(&r, out, size, 1, 1, 0, 0);
}

/* Writes methods, and one stack with a frame of each. */
static void put_methods(struct recording *r, size_t size, int64_t type, int64_t name)
{
    int64_t count = (int64_t)((size - r->jfr.out.size) / 8);
    JFR_NUMBERS(&r->jfr, 35, 1, 1, 3, 1, 'R', 33, 1, 21, 42, 32, count);
    for (int64_t i = 0; i < count; i++)
        JFR_NUMBERS(&r->jfr, 1000 + i, type, name);
    JFR_NUMBERS(&r->jfr, 30, 1, 1, count);
    for (int64_t i = 0; i < count; i++)
        JFR_NUMBERS(&r->jfr, 1000 + i);
}

static void put_symbol_and_methods(struct wire_writer *out, size_t size, int encoding, int c)
{
    struct recording r;
    begin_recording(&r, TYPES, 5);
    JFR_NUMBERS(&r.jfr, 34, 1, 42);
    put_text(&r, encoding, c, size / 64);
    put_methods(&r, size, 21, 42);
    END(&r, out, 0, 1, 1, 0, 0);
}

static void jfr_symbols(struct wire_writer *out, size_t size)
{
    put_symbol_and_methods(out, size, UTF8, 'x');
}

static void jfr_symbols_latin1(struct wire_writer *out, size_t size)
{
    put_symbol_and_methods(out, size, LATIN1, 0xe9);
}

static void jfr_symbols_chars(struct wire_writer *out, size_t size)
{
    put_symbol_and_methods(out, size, CHARS, 'x');
}

static void jfr_symbols_bad_utf8(struct wire_writer *out, size_t size)
{
    put_symbol_and_methods(out, size, UTF8, 0xff);
}

/* One class with a long name; methods with different names. */
static void jfr_class_names(struct wire_writer *out, size_t size)
{
    struct recording r;
    begin_recording(&r, TYPES, 5);
    int64_t count = (int64_t)(size / 24);
    JFR_NUMBERS(&r.jfr, 34, count + 1, 42);
    put_text(&r, UTF8, 'x', size / 64);
    for (int64_t i = 0; i < count; i++)
        JFR_NUMBERS(&r.jfr, 1000 + i, 3, 4, '0' + i % 10, '0' + i / 10 % 10, '0' + i / 100 % 10,
                    '0' + i / 1000 % 10);
    JFR_NUMBERS(&r.jfr, 35, 1, 1, 3, 1, 'R', 33, 1, 21, 42, 32, count);
    for (int64_t i = 0; i < count; i++)
        JFR_NUMBERS(&r.jfr, 1000 + i, 21, 1000 + i);
    JFR_NUMBERS(&r.jfr, 30, 1, 1, count);
    for (int64_t i = 0; i < count; i++)
        JFR_NUMBERS(&r.jfr, 1000 + i);
    END(&r, out, 0, 1, 1, 0, 0);
}

/* Symbols that all refer to the one text of the string pool. */
static void jfr_symbol_references(struct wire_writer *out, size_t size)
{
    struct recording r;
    begin_recording(&r, TYPES, 6);
    int64_t count = (int64_t)(size / 2 / 16);
    JFR_NUMBERS(&r.jfr, 9, 1, 7);
    put_text(&r, CHARS, 'x', size / 2 < 1000000 ? size / 2 : 1000000);
    JFR_NUMBERS(&r.jfr, 34, count + 1, 42, 3, 1, 'c');
    for (int64_t i = 0; i < count; i++)
        JFR_NUMBERS(&r.jfr, 1000 + i, 2, 7);
    JFR_NUMBERS(&r.jfr, 35, 1, 1, 3, 1, 'R', 33, 1, 21, 42, 32, count);
    for (int64_t i = 0; i < count; i++)
        JFR_NUMBERS(&r.jfr, 1000 + i, 21, 1000 + i);
    JFR_NUMBERS(&r.jfr, 30, 1, 1, count);
    for (int64_t i = 0; i < count; i++)
        JFR_NUMBERS(&r.jfr, 1000 + i);
    END(&r, out, 0, 1, 1, 0, 0);
}

/* Writes records with an extra first field of any length. class: the class id of the methods,
 * which need not exist. */
static void put_large_methods(struct wire_writer *out, size_t size, int64_t type)
{
    struct recording r;
    int64_t frames = (int64_t)(size / 2);
    begin_recording(&r, STACKS "32 jdk.types.Method own:9 type:33# name:34#; " EVENTS, 5);
    JFR_NUMBERS(&r.jfr, 34, 1, 42, 3, 1, 'x', 35, 1, 1, 3, 1, 'R', 33, 1, 21, 42, 32, 1, 1);
    put_text(&r, CHARS, 'x', size / 2);
    JFR_NUMBERS(&r.jfr, type, 42, 30, 1, 1, frames);
    for (int64_t i = 0; i < frames; i++)
        JFR_NUMBERS(&r.jfr, 1);
    END(&r, out, 0, 1, 1, 0, 0);
}

static void jfr_frames(struct wire_writer *out, size_t size)
{
    put_large_methods(out, size, 21);
}

static void jfr_methods_without_class(struct wire_writer *out, size_t size)
{
    put_large_methods(out, size, 99);
}

static void jfr_large_class(struct wire_writer *out, size_t size)
{
    struct recording r;
    int64_t count = (int64_t)(size / 2 / 8);
    begin_recording(&r,
                    PRIMITIVES "30 jdk.types.StackTrace frames:31*; 31 jdk.types.StackFrame "
                               "method:32#; 33 java.lang.Class own:9 name:34#; 34 jdk.types.Symbol "
                               "string:9; " METHOD EVENTS,
                    5);
    JFR_NUMBERS(&r.jfr, 34, 1, 42, 3, 1, 'x', 35, 1, 1, 3, 1, 'R', 33, 1, 21);
    put_text(&r, CHARS, 'x', size / 2);
    JFR_NUMBERS(&r.jfr, 42, 32, count);
    for (int64_t i = 0; i < count; i++)
        JFR_NUMBERS(&r.jfr, 1000 + i, 21, 42);
    JFR_NUMBERS(&r.jfr, 30, 1, 1, count);
    for (int64_t i = 0; i < count; i++)
        JFR_NUMBERS(&r.jfr, 1000 + i);
    END(&r, out, 0, 1, 1, 0, 0);
}

static void jfr_large_stack(struct wire_writer *out, size_t size)
{
    struct recording r;
    begin_recording(&r, TYPES, 5);
    JFR_NUMBERS(&r.jfr, 34, 1, 42, 3, 1, 'x', 35, 1, 1, 3, 1, 'R', 33, 1, 21, 42, 32, 1, 1, 21, 42,
                30, 1, 1, (int64_t)(size / 2));
    for (size_t i = 0; i < size / 2; i++)
        JFR_NUMBERS(&r.jfr, 1);
    END(&r, out, size, 1, 1, 0, 0);
}

static void jfr_settings(struct wire_writer *out, size_t size)
{
    struct recording r;
    begin_recording(&r, TYPES, 6);
    JFR_NUMBERS(&r.jfr, 9, 1, 7);
    put_text(&r, CHARS, 'x', size / 2);
    JFR_NUMBERS(&r.jfr, 34, 1, 42, 3, 1, 'x');
    put_one_stack(&r);
    jfr_fixture_event_end(&r.jfr);
    while (r.jfr.out.size < size) {
        jfr_fixture_event(&r.jfr, 107);
        JFR_NUMBERS(&r.jfr, 0, 2, 7, 2, 7);
        jfr_fixture_event_end(&r.jfr);
    }
    END(&r, out, 0, 1, 1, 0, 0);
}

static void jfr_states(struct wire_writer *out, size_t size)
{
    struct recording r;
    begin_recording(&r, TYPES, 5);
    JFR_NUMBERS(&r.jfr, 34, 1, 42, 3, 1, 'x', 35, 1, 1);
    put_text(&r, CHARS, 'x', size / 2);
    JFR_NUMBERS(&r.jfr, 33, 1, 21, 42, 32, 1, 1, 21, 42, 30, 1, 1, 1, 1);
    END(&r, out, size, 1, 1, 0, 0);
}

/* Ids of classes with leading zeros, to which fields refer. */
static void jfr_class_ids(struct wire_writer *out, size_t size)
{
    struct jfr_fixture f = {0};
    size = size < (4 << 20) ? size : 4 << 20;
    jfr_fixture_chunk(&f, TYPES);
    size_t header = 68;
    f.out.size = header;
    jfr_fixture_event(&f, 0);
    JFR_NUMBERS(&f, 0, 0, 1, 7);
    static const char *const words[] = {"root", "class", "name", "id", "field", "5"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        jfr_fixture_text(&f, words[i]);
    struct recording r = {.jfr = f};
    put_text(&r, UTF8, '0', size / 2);
    int64_t fields = (int64_t)((size - r.jfr.out.size - 100) / 6);
    JFR_NUMBERS(&r.jfr, 0, 0, 1, 1, 2, 2, 5, 3, 5, fields);
    for (int64_t i = 0; i < fields; i++)
        JFR_NUMBERS(&r.jfr, 4, 1, 1, 6, 0);
    jfr_fixture_event_end(&r.jfr);
    r.constants = jfr_fixture_event(&r.jfr, 1);
    JFR_NUMBERS(&r.jfr, 0, 0, 0, 0, 0);
    jfr_fixture_event_end(&r.jfr);
    jfr_fixture_chunk_end(&r.jfr, r.constants);
    wire_writer_raw(out, jfr_fixture_slice(&r.jfr));
    jfr_fixture_deinit(&r.jfr);
}

static void jfr_chunks(struct wire_writer *out, size_t size)
{
    while (out->size < size) {
        struct recording r;
        begin_recording(&r, "101 jdk.ExecutionSample", 0);
        END(&r, out, 0, 0);
    }
}

/* ---- the labels of a recording ---- */

static void put_entry(struct wire_writer *out, uint32_t map, uint64_t id, struct slice value)
{
    size_t entry = wire_writer_begin(out, map);
    wire_writer_varint(out, 1, id);
    wire_writer_bytes(out, 2, value);
    wire_writer_end(out, entry);
}

/* A context with labels first..first + count, each key with this value. */
static void put_context(struct wire_writer *out, uint64_t id, uint64_t first, uint64_t count,
                        uint64_t value)
{
    struct wire_writer context = {0};
    for (uint64_t i = 0; i < count; i++)
        RECORD(&context, 1, first + i, value);
    put_entry(out, 1, id, wire_writer_slice(&context));
    wire_writer_deinit(&context);
}

static void put_file(struct wire_writer *out, const char *name, struct slice bytes)
{
    char head[160];
    snprintf(head, sizeof head,
             "--" COST_BOUNDARY "\r\nContent-Disposition: form-data; name=\"%s\"; "
             "filename=\"x\"\r\n\r\n",
             name);
    wire_writer_raw(out, slice_of_string(head));
    wire_writer_raw(out, bytes);
    wire_writer_raw(out, SLICE("\r\n"));
}

/* Writes the form of a recording with these labels. Its events have contexts 1 to count, and
 * span names with the same ids. */
static void put_jfr_form(struct wire_writer *out, const struct wire_writer *labels, size_t size,
                         int64_t contexts)
{
    struct recording r;
    struct wire_writer jfr = {0};
    begin_recording(&r, TYPES, 5);
    JFR_NUMBERS(&r.jfr, 34, 1, 42, 3, 1, 'x');
    put_one_stack(&r);
    jfr_fixture_event_end(&r.jfr);
    for (int64_t i = 0; i < contexts || r.jfr.out.size < size; i++) {
        jfr_fixture_event(&r.jfr, 101);
        JFR_NUMBERS(&r.jfr, 1, 1, 1 + i % contexts, 1 + i % contexts);
        jfr_fixture_event_end(&r.jfr);
    }
    END(&r, &jfr, 0, 1, 1, 0, 0);
    put_file(out, "jfr", wire_writer_slice(&jfr));
    put_file(out, "labels", wire_writer_slice(labels));
    wire_writer_raw(out, SLICE("--" COST_BOUNDARY "--\r\n"));
    wire_writer_deinit(&jfr);
}

static void jfr_context_labels(struct wire_writer *out, size_t size)
{
    struct wire_writer labels = {0};
    for (uint64_t i = 1; i <= 64; i++)
        put_entry(&labels, 2, i, slice_of((const char[]){'k', (char)('0' + i)}, 2));
    put_context(&labels, 1, 1, 64, 1);
    put_jfr_form(out, &labels, size, 1);
    wire_writer_deinit(&labels);
}

static void put_long_string(struct wire_writer *labels, uint64_t id, size_t size, int c)
{
    struct wire_writer text = {0};
    put_repeated(&text, 1, c, size);
    put_entry(labels, 2, id, slice_of(text.data + text.size - size, size));
    wire_writer_deinit(&text);
}

/* Writes many contexts with one label each, whose key or value is a text of half the size; the
 * other one is short. */
static void put_contexts(struct wire_writer *out, size_t size, struct slice short_text, int c,
                         bool is_key)
{
    struct wire_writer labels = {0};
    int64_t contexts = (int64_t)(size / 2 / 36);
    put_entry(&labels, 2, 1, short_text);
    put_long_string(&labels, 2, size / 2, c);
    for (int64_t i = 1; i <= contexts; i++)
        put_context(&labels, (uint64_t)i, is_key ? 2 : 1, 1, is_key ? 1 : 2);
    put_jfr_form(out, &labels, 0, contexts);
    wire_writer_deinit(&labels);
}

static void jfr_context_values(struct wire_writer *out, size_t size)
{
    put_contexts(out, size, SLICE("key"), 'x', false);
}

static void jfr_context_keys(struct wire_writer *out, size_t size)
{
    put_contexts(out, size, SLICE("value"), 'x', true);
}

static void jfr_context_decimal_ids(struct wire_writer *out, size_t size)
{
    put_contexts(out, size, SLICE("span id"), '0', false);
}

static void jfr_context_keys_by_values(struct wire_writer *out, size_t size)
{
    struct wire_writer labels = {0};
    put_long_string(&labels, 1, size / 2, 'x');
    for (uint64_t i = 2; i < 66; i++)
        put_entry(&labels, 2, i, slice_of((const char[]){'k', (char)('0' + i)}, 2));
    put_context(&labels, 1, 2, 64, 1);
    put_jfr_form(out, &labels, size / 2, 1);
    wire_writer_deinit(&labels);
}

static void jfr_span_names(struct wire_writer *out, size_t size)
{
    struct wire_writer labels = {0};
    put_long_string(&labels, 1, size / 2, 'x');
    put_jfr_form(out, &labels, size / 2, 1);
    wire_writer_deinit(&labels);
}

#define THREADS                                                                                    \
    STACKS METHOD                                                                                  \
        "35 jdk.types.ThreadState name:9; "                                                        \
        "37 java.lang.Thread osName:9 osThreadId:10 javaName:9 javaThreadId:10; "                  \
        "101 jdk.ExecutionSample startTime:10 sampledThread:37# stackTrace:30# state:35# "         \
        "spanId:10"

/* Writes a recording with so many threads, whose names refer to a text of this size, and an event
 * of each; then more events until `size` is reached. spans: that the events name; 0: none. */
static void put_threads(struct wire_writer *out, size_t size, int64_t threads, size_t name,
                        int64_t spans)
{
    struct recording r;
    assert(threads > 0);
    begin_recording(&r, THREADS, 7);
    JFR_NUMBERS(&r.jfr, 9, 1, 7);
    put_text(&r, UTF8, 'x', name);
    JFR_NUMBERS(&r.jfr, 34, 1, 42, 3, 1, 'x');
    put_one_stack(&r);
    JFR_NUMBERS(&r.jfr, 37, threads);
    for (int64_t i = 1; i <= threads; i++)
        JFR_NUMBERS(&r.jfr, i, 1, i, 2, 7, i);
    jfr_fixture_event_end(&r.jfr);
    for (int64_t i = 0; i < threads || r.jfr.out.size < size; i++) {
        jfr_fixture_event(&r.jfr, 101);
        JFR_NUMBERS(&r.jfr, i, 1 + i % threads, 1, 1, spans > 0 ? 1 + i % spans : 0);
        jfr_fixture_event_end(&r.jfr);
    }
    END(&r, out, 0, 1, 1, 1, 1, 0);
}

static void jfr_thread_times(struct wire_writer *out, size_t size)
{
    put_threads(out, size, 1, 10, 0);
}

static void jfr_threads(struct wire_writer *out, size_t size)
{
    put_threads(out, size, (int64_t)(size / 24), 10, 0);
}

static void jfr_thread_names(struct wire_writer *out, size_t size)
{
    put_threads(out, size, (int64_t)(size / 48), size / 2, 0);
}

static void jfr_thread_short_names(struct wire_writer *out, size_t size)
{
    put_threads(out, size, (int64_t)(size / 24), 250, 0);
}

static void jfr_span_times(struct wire_writer *out, size_t size)
{
    put_threads(out, size, 1, 10, (int64_t)(size / 48));
}

int main(int argc, char **argv)
{
    static const struct cost_case cases[] = {
        {"jfr_event", jfr_events, send_jfr, GRPC_OK},
        {"jfr_method_symbol", jfr_symbols, send_jfr, GRPC_RESOURCE_EXHAUSTED},
        {"jfr_method_symbol_latin1", jfr_symbols_latin1, send_jfr, GRPC_RESOURCE_EXHAUSTED},
        {"jfr_method_symbol_chars", jfr_symbols_chars, send_jfr, GRPC_RESOURCE_EXHAUSTED},
        {"jfr_method_symbol_bad_utf8", jfr_symbols_bad_utf8, send_jfr, GRPC_RESOURCE_EXHAUSTED},
        {"jfr_class_symbol", jfr_class_names, send_jfr, GRPC_RESOURCE_EXHAUSTED},
        {"jfr_symbol_string", jfr_symbol_references, send_jfr, GRPC_RESOURCE_EXHAUSTED},
        {"jfr_frame_method", jfr_frames, send_jfr, GRPC_OK},
        {"jfr_frame_method_without_class", jfr_methods_without_class, send_jfr, GRPC_OK},
        {"jfr_method_class", jfr_large_class, send_jfr, GRPC_OK},
        {"jfr_event_stack_trace", jfr_large_stack, send_jfr, GRPC_OK},
        {"jfr_setting_string", jfr_settings, send_jfr, GRPC_RESOURCE_EXHAUSTED},
        {"jfr_event_state", jfr_states, send_jfr, GRPC_OK},
        {"jfr_field_class_id", jfr_class_ids, send_jfr, GRPC_INVALID_ARGUMENT},
        {"jfr_chunk", jfr_chunks, send_jfr, GRPC_OK},
        {"jfr_thread_times", jfr_thread_times, send_jfr_with_threads, GRPC_OK},
        {"jfr_threads", jfr_threads, send_jfr_with_threads, GRPC_OK},
        {"jfr_thread_names", jfr_thread_names, send_jfr_with_threads, GRPC_RESOURCE_EXHAUSTED},
        {"jfr_thread_short_names", jfr_thread_short_names, send_jfr_with_threads, GRPC_OK},
        {"jfr_span_times", jfr_span_times, send_jfr_with_threads, GRPC_OK},
        {"jfr_context_64_labels", jfr_context_labels, send_jfr_form, GRPC_OK},
        {"jfr_context_value", jfr_context_values, send_jfr_form, GRPC_OK},
        {"jfr_context_key", jfr_context_keys, send_jfr_form, GRPC_OK},
        {"jfr_context_decimal_id", jfr_context_decimal_ids, send_jfr_form, GRPC_OK},
        {"jfr_context_keys_by_value", jfr_context_keys_by_values, send_jfr_form,
         GRPC_RESOURCE_EXHAUSTED},
        {"jfr_span_name", jfr_span_names, send_jfr_form, GRPC_OK},
    };
    return cost_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
