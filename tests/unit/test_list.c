#include "core/base/list.h"

#include "core/base/container_of.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ITEMS = 24, STEPS = 20000 };

struct item {
    int number;
    struct list_link link; /* not first, so that container_of is needed */
};

/* The expected list, implemented in the slow and obvious way. */
struct model {
    int numbers[ITEMS];
    size_t count;
};

static struct item items[ITEMS];
static struct list list;
static struct model model;
static uint64_t random_state = 11;

static unsigned random_below(unsigned limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % limit;
}

static void model_insert(size_t at, int number)
{
    memmove(model.numbers + at + 1, model.numbers + at, (model.count - at) * sizeof(int));
    model.numbers[at] = number;
    model.count++;
}

static void model_remove(int number)
{
    size_t at = 0;
    while (model.numbers[at] != number)
        at++;
    model.count--;
    memmove(model.numbers + at, model.numbers + at + 1, (model.count - at) * sizeof(int));
}

static void assert_equals_model(void)
{
    assert_int_equal(list.count, model.count);
    size_t i = 0;
    for (struct list_link *link = list.first; link; link = link->next)
        assert_int_equal(container_of(link, struct item, link)->number, model.numbers[i++]);
    assert_int_equal(i, model.count);
    for (struct list_link *link = list.last; link; link = link->previous)
        assert_int_equal(container_of(link, struct item, link)->number, model.numbers[--i]);
    assert_int_equal(i, 0);
}

static void step(void)
{
    struct item *item = &items[random_below(ITEMS)];
    if (list_has(&list, &item->link)) {
        list_remove(&list, &item->link);
        model_remove(item->number);
    } else if (list.first && random_below(3) == 0) {
        list_insert(&list, &item->link, list.first);
        model_insert(1, item->number);
    } else if (random_below(2)) {
        list_append(&list, &item->link);
        model_insert(model.count, item->number);
    } else {
        list_prepend(&list, &item->link);
        model_insert(0, item->number);
    }
}

static void it_does_what_an_array_does(void **state)
{
    (void)state;
    for (int i = 0; i < ITEMS; i++)
        items[i].number = i;
    for (int i = 0; i < STEPS; i++) {
        step();
        assert_equals_model();
    }
}

static void pop_takes_the_first_and_says_when_it_is_empty(void **state)
{
    (void)state;
    struct list two = {0};
    struct item a = {.number = 1}, b = {.number = 2};
    list_append(&two, &a.link);
    list_append(&two, &b.link);
    assert_ptr_equal(list_pop(&two), &a.link);
    assert_false(list_has(&two, &a.link));
    assert_ptr_equal(list_pop(&two), &b.link);
    assert_null(list_pop(&two));
    assert_int_equal(two.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_does_what_an_array_does),
        cmocka_unit_test(pop_takes_the_first_and_says_when_it_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
