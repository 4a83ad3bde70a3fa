/* With two arguments, a file with a pprof and one to write: that pprof through OTLP and back, for
 * `go tool pprof -diff_base`. */
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/scan.h"
#include "tests/unit/pprof_fixture.h"
#include "tests/unit/wire_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct pprof_options no_options;
static const struct pprof_limits no_limits;

static void keep_only(struct slice pprof, void *context)
{
    struct buffer **kept = context;
    assert_null(*kept);
    *kept = buffer_new_charged(pprof.size, NULL);
    assert_true(buffer_append(*kept, pprof.data, pprof.size, SIZE_MAX));
}

/* Siblings without limits make one. */
static struct buffer *to_one_pprof(struct slice request)
{
    struct buffer *pprof = NULL;
    pprof_from_otlp(request, NULL, &no_limits, keep_only, &pprof);
    assert_non_null(pprof);
    return pprof;
}

static struct buffer *read_pprof(struct slice pprof)
{
    struct error err;
    struct buffer *request = pprof_to_otlp(pprof, &no_options, &err);
    if (!request)
        fail_msg("%s", err.text);
    return request;
}

/* ---- there and back ---- */

static void go_there_and_back(const char *name)
{
    struct buffer *pprof = pprof_load(name);
    struct buffer *request = read_pprof(buffer_slice(pprof));
    struct buffer *back = to_one_pprof(buffer_slice(request));
    struct buffer *again = read_pprof(buffer_slice(back));
    struct text a = {0}, b = {0};
    pprof_describe_sums(buffer_slice(request), &a);
    pprof_describe_sums(buffer_slice(again), &b);
    if (strcmp(text_string(&a), text_string(&b)) != 0) {
        fprintf(stderr, "%s:\nwas\n%s\nis\n%s\n", name, text_string(&a), text_string(&b));
        fail();
    }
    text_deinit(&a);
    text_deinit(&b);
    buffer_unref(again);
    buffer_unref(back);
    buffer_unref(request);
    buffer_unref(pprof);
}

static void test_recordings_come_back(void **state)
{
    (void)state;
    pprof_each(go_there_and_back);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recordings_come_back),
    };
    hash_init();
    scan_init();
    if (argc != 3)
        return cmocka_run_group_tests(tests, NULL, NULL);
    struct buffer *request = read_pprof(buffer_slice(pprof_load(argv[1])));
    struct buffer *back = to_one_pprof(buffer_slice(request));
    FILE *file = fopen(argv[2], "wb");
    return !(file && fwrite(back->data, back->size, 1, file) == 1 && fclose(file) == 0);
}
