#include "receivers/pyroscope/multipart.h"

#include "core/base/text.h"
#include "tests/unit/pyroscope_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TYPE "multipart/form-data; boundary=b"
#define FILE_PART(NAME) "Content-Disposition: form-data; name=\"" NAME "\"; filename=\"f\"\r\n\r\n"

/* Prints "name[file]=body|name=body", or the error. */
static void describe(const char *content_type, struct slice body, struct text *out)
{
    struct multipart form;
    struct multipart_part part;
    struct error err = {0};
    enum multipart_result result = MULTIPART_BROKEN;
    if (multipart_begin(&form, slice_of_string(content_type), body, &err))
        while ((result = multipart_next(&form, &part, &err)) == MULTIPART_PART)
            text_printf(out, "%s%.*s%s=%.*s", out->size > 0 ? "|" : "", SLICE_ARG(part.name),
                        part.is_file ? "[file]" : "", SLICE_ARG(part.body));
    if (result == MULTIPART_BROKEN) {
        text_clear(out);
        text_append(out, err.text);
    }
}

static void forms_are_read_as_clients_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *content_type, *body, *expected;
    } cases[] = {
        {TYPE, "--b\r\n" FILE_PART("profile") "abc\r\n--b--\r\n", "profile[file]=abc"},
        {TYPE, "--b\r\n" FILE_PART("profile") "abc\r\n--b--", "profile[file]=abc"},
        {"Multipart/Form-Data ; x=\"y;\\\" boundary=c\"; BOUNDARY=\"b\"",
         "--b\r\n" FILE_PART("p") "abc\r\n--b--", "p[file]=abc"},
        /* Several parts; blanks after a delimiter, text before the first part and after the
         * last. */
        {TYPE,
         "preamble\r\n--b \t\r\n" FILE_PART("a") "1\r\n--b\r\n" FILE_PART("b") "2\r\n--b--epilogue",
         "a[file]=1|b[file]=2"},
        /* A line that is almost a delimiter belongs to the body. */
        {TYPE, "--b\r\n" FILE_PART("a") "1\r\n--bx\r\n--c\r\n--b\n--b\r\n\r\n--b--",
         "a[file]=1\r\n--bx\r\n--c\r\n--b\n--b\r\n"},
        {TYPE, "--bx\r\n--b\r\n" FILE_PART("a") "1\r\n--b--", "a[file]=1"},
        {TYPE, "--b\r\n" FILE_PART("a") "\r\n--b--", "a[file]="},
        {TYPE, "--b\r\n" FILE_PART("a") "--b--", "a[file]="},
        {TYPE, "--b--", ""},
        /* Values of a form are not files. */
        {TYPE, "--b\r\ncontent-disposition:form-data;name=a\r\n\r\n1\r\n--b--", "a=1"},
        {TYPE, "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"\"\r\n\r\n1\r\n--b--",
         "a=1"},
        {TYPE,
         "--b\r\nContent-Disposition: form-data; name=a; filename*=UTF-8''x\r\n\r\n1\r\n--b--",
         "a[file]=1"},
        {TYPE, "--b\r\nContent-Disposition: attachment; name=a; filename=x\r\n\r\n1\r\n--b--",
         "=1"},
        {TYPE,
         "--b\r\nContent-Disposition: form-data; name=\"a\\\"; filename=\\\"\"\r\n\r\n1\r\n--b--",
         "a\\\"; filename=\\\"=1"},
        {TYPE, "--b\r\nContent-Transfer-Encoding: Binary\r\n\r\n1\r\n--b--", "=1"},

        {"multipart/form-data", "--b--", "Content-Type: multipart/form-data without a boundary"},
        {"multipart/form-data; boundary=", "--b--",
         "Content-Type: multipart/form-data without a boundary"},
        {"multipart/form-data; boundary=\"b", "--b--",
         "Content-Type: multipart/form-data without a boundary"},
        {"multipart/form-data; boundary="
         "12345678901234567890123456789012345678901234567890123456789012345678901",
         "", "Content-Type: a boundary has at most 70 bytes"},
        {TYPE, "", "the boundary of the Content-Type is not in the body"},
        {TYPE, "--c\r\n\r\n--c--", "the boundary of the Content-Type is not in the body"},
        {TYPE, "--b\r\nContent-Disposition\r\n\r\n1\r\n--b--",
         "part 1: a header line without a colon"},
        {TYPE, "--b\r\nContent-Transfer-Encoding: base64\r\n\r\n1\r\n--b--",
         "part 1: Content-Transfer-Encoding \"base64\" is not understood"},
        {TYPE, "--b\r\n" FILE_PART("a") "1\r\n--b-",
         "part 1: the body ends before the part's delimiter"},
        {TYPE, "--b\r\n\r\n1\r\n--b\r\na: b\r\n", "part 2: its headers are longer than 4096 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text out = {0};
        describe(cases[i].content_type, slice_of_string(cases[i].body), &out);
        assert_string_equal(text_string(&out), cases[i].expected);
        text_deinit(&out);
    }
}

static void a_content_type_is_a_form_or_not(void **state)
{
    (void)state;
    assert_true(multipart_is(SLICE("multipart/form-data; boundary=x")));
    assert_true(multipart_is(SLICE("Multipart/Form-Data")));
    assert_false(multipart_is(SLICE("multipart/form-data2")));
    assert_false(multipart_is(SLICE("application/octet-stream")));
    assert_false(multipart_is((struct slice){0}));
}

static void parts_and_their_headers_are_bounded(void **state)
{
    (void)state;
    struct text body = {0}, out = {0};
    for (int i = 0; i <= MULTIPART_PARTS_MAX; i++)
        text_append(&body, "--b\r\n\r\n1\r\n");
    text_append(&body, "--b--");
    describe(TYPE, slice_of(body.data, body.size), &out);
    assert_string_equal(text_string(&out), "the form has more than 32 parts");
    text_clear(&body);
    text_clear(&out);
    text_append(&body, "--b\r\n");
    for (int i = 0; i < MULTIPART_HEAD_MAX_BYTES / 8; i++)
        text_append(&body, "a: 345\r\n");
    text_append(&body, "\r\n1\r\n--b--");
    describe(TYPE, slice_of(body.data, body.size), &out);
    assert_string_equal(text_string(&out), "part 1: its headers are longer than 4096 bytes");
    text_deinit(&body);
    text_deinit(&out);
}

/* Cuts the form of each client at every byte. After the last delimiter, only its line end may be
 * missing. */
static void a_form_cut_anywhere_is_an_error(void **state)
{
    (void)state;
    static const char *const captures[] = {"go-grpc/pyroscope-ingest/004",
                                           "java-grpc-jfr/pyroscope-ingest/001",
                                           "curl/pyroscope-ingest/003"};
    for (size_t i = 0; i < sizeof captures / sizeof captures[0]; i++) {
        struct pyroscope_request request;
        pyroscope_load(&request, captures[i]);
        struct slice whole = request.body;
        assert_memory_equal(whole.data + whole.size - 4, "--\r\n", 4);
        for (size_t size = 0; size <= whole.size; size++) {
            request.body.size = size;
            struct pyroscope_result result;
            bool is_whole = size >= whole.size - 2;
            if (pyroscope_ingest(&request, &result) != is_whole)
                fail_msg("%s, %zu of %zu bytes: %s", captures[i], size, whole.size,
                         result.why.text);
            if (!is_whole)
                assert_int_equal(result.why.code, GRPC_INVALID_ARGUMENT);
            pyroscope_result_deinit(&result);
        }
        pyroscope_request_deinit(&request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_read_as_clients_write_them),
        cmocka_unit_test(a_content_type_is_a_form_or_not),
        cmocka_unit_test(parts_and_their_headers_are_bounded),
        cmocka_unit_test(a_form_cut_anywhere_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
