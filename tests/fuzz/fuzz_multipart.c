/*
 * A body of /ingest with its Content-Type: the parts that multipart.h finds must be inside the
 * body, and the results of the form readers must pass the scan. The input is a query, a
 * Content-Type and a body, a line each, the body to the end.
 */
#include "receivers/pyroscope/multipart.h"

#include "core/base/memory.h"
#include "tests/unit/pyroscope_fixture.c" /* NOLINT(bugprone-suspicious-include) */

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *take_line(struct slice *input)
{
    const uint8_t *end = input->size > 0 ? memchr(input->data, '\n', input->size) : NULL;
    size_t size = end ? (size_t)(end - input->data) : input->size;
    char *line = memory_strndup(input->data, size);
    size += end ? 1 : 0;
    *input = slice_of(input->data + size, input->size - size);
    return line;
}

static void read_parts(const char *content_type, struct slice body)
{
    struct multipart form;
    struct multipart_part part;
    struct error err;
    const uint8_t *before = body.data;
    if (!multipart_begin(&form, slice_of_string(content_type), body, &err))
        return;
    while (multipart_next(&form, &part, &err) == MULTIPART_PART) {
        assert(part.body.data >= before && part.body.size <= body.size);
        before = part.body.data + part.body.size; /* parts follow each other */
        assert(before <= body.data + body.size);
    }
    assert(form.part_count <= MULTIPART_PARTS_MAX + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = slice_of(data, size);
    struct pyroscope_request request;
    struct pyroscope_result result;
    char *query = take_line(&input), *content_type = take_line(&input);
    if (multipart_is(slice_of_string(content_type)))
        read_parts(content_type, input);
    pyroscope_word(&request, query, content_type, input);
    request.settings.server.max_request_body_size = 1 << 20;
    pyroscope_ingest(&request, &result);
    pyroscope_result_deinit(&result);
    pyroscope_request_deinit(&request);
    free(query);
    free(content_type);
    return 0;
}
