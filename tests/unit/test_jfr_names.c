#include "core/formats/jfr_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* The results of grafana/jfr-parser (parser/parser_jvm_generated_class_merge_test.go). */
static const char *const cases[][2] = {
    {"", ""},
    {"java/lang/Thread", "java/lang/Thread"},
    {"java/util/concurrent/Executors$RunnableAdapter",
     "java/util/concurrent/Executors$RunnableAdapter"},
    {"org/example/EnclosingClass$$Lambda$4/1283928880", "org/example/EnclosingClass$$Lambda_"},
    {"org/example/EnclosingClass$$Lambda$8/0x0000000800c01220",
     "org/example/EnclosingClass$$Lambda_"},
    {"org/example/OrderService$$Lambda$669.0x0000000800fd7318",
     "org/example/OrderService$$Lambda_"},
    {"Fib$$Lambda.0x00007ffa600c4da0", "Fib$$Lambda_"},
    {"Fib$$Lambda31", "Fib$$Lambda_"},
    {"Fib$$Lambda", "Fib$$Lambda"},
    {"Fib$$Lambda$", "Fib$$Lambda$"},
    {"Fib$$Lambda$12", "Fib$$Lambda$12"},
    {"Fib$$Lambda$1.xyz", "Fib$$Lambda$1.xyz"},
    {"Fib$$Lambda$1.0xAB", "Fib$$Lambda$1.0xAB"},
    {"$$Lambda$1.0x12", "$$Lambda$1.0x12"},
    {"A$$Lambda$1.0x12$$Lambda$2.0x34", "A$$Lambda$1.0x12$$Lambda_"},
    {"jdk/internal/reflect/GeneratedMethodAccessor31",
     "jdk/internal/reflect/GeneratedMethodAccessor_"},
    {"jdk/internal/reflect/GeneratedMethodAccessor31x",
     "jdk/internal/reflect/GeneratedMethodAccessor31x"},
    {"foo/bar/Baz$$EnhancerBySpringCGLIB$$1234567890", "foo/bar/Baz$$EnhancerBySpringCGLIB$$_"},
    {"foo/Baz$$EnhancerBySpringCGLIB$$12$$Lambda$1.0x2", "foo/Baz$$EnhancerBySpringCGLIB$$_"},
    {"foo/Baz$$EnhancerBySpringCGLIB$$", "foo/Baz$$EnhancerBySpringCGLIB$$_"},
    {"libasyncProfiler-linux-arm64-17b9a1d8156277a98ccc871afa9a8f69215f92.so",
     "libasyncProfiler-_.so"},
    {"libasyncProfiler-linux-musl-x64-17b9a1d8156277a98ccc871afa9a8f69215f92.so",
     "libasyncProfiler-_.so"},
    {"libasyncProfiler-solaris-17b9.so", "libasyncProfiler-solaris-17b9.so"},
    {"libamazonCorrettoCryptoProvider109b39cf33c563eb.so", "libamazonCorrettoCryptoProvider_.so"},
    {"amazonCorrettoCryptoProviderNativeLibraries.7382c2f79097f415/libcrypto.so",
     "libamazonCorrettoCryptoProvider_.so"},
    {"amazonCorrettoCryptoProviderNativeLibraries.24e42b0d5ecf5f50/"
     "libamazonCorrettoCryptoProvider.so",
     "libamazonCorrettoCryptoProvider_.so"},
    {"libzstd-jni-1.5.1-16931311898282279136.so", "libzstd-jni-_.so"},
    {"/tmp/libzstd-jni-1.5.1-16931311898282279136.so (deleted)", "libzstd-jni-_.so"},
    {"./tmp/libzstd-jni-1.5.1-16931311898282279136.so", "libzstd-jni-_.so"},
    {"libzstd-jni-1.5-16931311898282279136.so", "libzstd-jni-1.5-16931311898282279136.so"},
    {"libzstd-jni-1.5.1-1.so.2", "libzstd-jni-1.5.1-1.so.2"},
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char result[256];
        struct slice name = slice_of_string(cases[i][0]);
        struct jfr_name settled = jfr_name_settled(name);
        snprintf(result, sizeof result, "%.*s%s", (int)settled.kept, cases[i][0], settled.ending);
        assert_string_equal(result, cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
