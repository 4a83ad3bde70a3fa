/* The functions with most of a span's samples: what is certain, and who gives up room. */
#include "core/data/top_functions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct span_key key_of(uint64_t span)
{
    struct span_key key;
    memset(key.trace_id, 7, TRACE_ID_SIZE);
    memcpy(key.span_id, &span, SPAN_ID_SIZE);
    return key;
}

static void add(struct top_functions *functions, uint64_t span, uint16_t owner, const char *name,
                uint64_t weight)
{
    struct span_key key = key_of(span);
    struct span_source source = {.number = owner, .owner = owner};
    struct function_weight added = {
        .key = &key, .source = &source, .name = slice_of_string(name), .weight = weight};
    top_functions_add(functions, &added, 1, 1);
}

static struct top_ask find(struct top_functions *functions, uint64_t span, struct arena *arena)
{
    struct top_ask ask = {.key = key_of(span)};
    top_functions_find(functions, &ask, 1, 3, arena);
    return ask;
}

static void expect(struct top_functions *functions, uint64_t span, const char *wanted)
{
    struct arena arena;
    char text[512] = "";
    arena_init(&arena, NULL);
    struct top_ask ask = find(functions, span, &arena);
    for (unsigned i = 0; i < ask.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s %u", i ? ", " : "",
                 SLICE_ARG(ask.functions[i].name), ask.functions[i].percent);
    assert_string_equal(text, wanted);
    arena_deinit(&arena);
}

static void those_with_the_most_weight_are_first(void **state)
{
    (void)state;
    struct top_functions *functions = top_functions_new(100000);
    add(functions, 1, 1, "a", 10);
    add(functions, 1, 1, "b", 20);
    add(functions, 1, 1, "", 10);
    add(functions, 1, 1, "d", 30);
    add(functions, 1, 1, "c", 30);
    expect(functions, 1, "c 30, d 30, b 20");
    expect(functions, 2, "");
    top_functions_free(functions);
}

/* The rare ones come and go, and take nothing from the frequent one. */
static void no_function_is_shown_with_more_than_it_has(void **state)
{
    (void)state;
    struct top_functions *functions = top_functions_new(100000);
    char name[16];
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "rare%u", i);
        add(functions, 1, 1, name, 1);
        add(functions, 1, 1, "frequent", 3);
    }
    expect(functions, 1, "frequent 75");
    top_functions_free(functions);
}

static void weights_that_overflow_stay_percentages(void **state)
{
    (void)state;
    struct top_functions *functions = top_functions_new(100000);
    for (int i = 0; i < 4; i++)
        add(functions, 1, 1, "a", UINT64_MAX / 2);
    expect(functions, 1, "a 100");
    top_functions_free(functions);
}

static void long_names_are_cut(void **state)
{
    (void)state;
    struct arena arena;
    char name[400];
    struct top_functions *functions = top_functions_new(100000);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    memcpy(name + TOP_FUNCTIONS_NAME_MAX - 1, "\xc3\xa4", 2);
    add(functions, 1, 1, name, 1);
    arena_init(&arena, NULL);
    assert_int_equal(find(functions, 1, &arena).functions[0].name.size, TOP_FUNCTIONS_NAME_MAX - 1);
    arena_deinit(&arena);
    top_functions_free(functions);
}

static void memory_is_bounded_and_shared(void **state)
{
    (void)state;
    static const size_t room = (size_t)64 << 10;
    struct top_functions *functions = top_functions_new(room);
    char name[16];
    add(functions, 1, 1, "a", 10);
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "f%u", i);
        add(functions, 100 + i % 5000, 2, name, 1);
    }
    assert_true(top_functions_memory(functions) < 4 * room);
    expect(functions, 1, "a 100");
    top_functions_sweep(functions, 1000, 100);
    expect(functions, 1, "");
    top_functions_free(functions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_with_the_most_weight_are_first),
        cmocka_unit_test(no_function_is_shown_with_more_than_it_has),
        cmocka_unit_test(weights_that_overflow_stay_percentages),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(memory_is_bounded_and_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
