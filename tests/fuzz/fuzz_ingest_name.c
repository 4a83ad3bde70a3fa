/*
 * The query of an /ingest: results must be within their limits, and the name must be the same when
 * it is written and read again.
 */
#include "receivers/pyroscope/ingest_name.h"

#include "core/base/text.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_name(const struct ingest_name *name, struct text *out)
{
    text_append_slice(out, name->application);
    text_append_char(out, '{');
    for (size_t i = 0; i < name->label_count; i++) {
        text_append_slice(out, name->labels[i].name);
        text_append_char(out, '=');
        text_append_slice(out, name->labels[i].value);
        text_append_char(out, ',');
    }
    text_append_char(out, '}');
}

static void check_name(const struct ingest_name *name)
{
    struct text text = {0};
    struct ingest_name again;
    struct error err;
    assert(name->application.size > 0 && name->label_count <= SERIES_LABELS_MAX);
    write_name(name, &text);
    bool fine = ingest_name_parse(slice_of(text.data, text.size), &again, &err);
    assert(fine && slice_equal(name->application, again.application));
    assert(name->label_count == again.label_count);
    for (size_t i = 0; i < name->label_count; i++) {
        assert(slice_equal(name->labels[i].name, again.labels[i].name));
        assert(slice_equal(name->labels[i].value, again.labels[i].value));
    }
    text_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct ingest_query query;
    struct ingest_name name;
    struct series series;
    struct error err;
    uint64_t time_ns;
    if (ingest_query_parse(slice_of(data, size), 1, &arena, &query, &err)) {
        check_name(&query.name);
        series_read(&series, query.name.labels, query.name.label_count, &err);
    }
    if (ingest_name_parse(slice_of(data, size), &name, &err))
        check_name(&name);
    ingest_time_parse(slice_of(data, size), 1, &time_ns);
    arena_deinit(&arena);
    return 0;
}
