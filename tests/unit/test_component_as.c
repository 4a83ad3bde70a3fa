#include "core/pipeline/component_as.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct own {
    struct component component;
    int number;
};

struct own_node {
    struct node node;
    int number;
};

static const struct component_type own_type = {.component_size = sizeof(struct own),
                                               .node_size = sizeof(struct own_node)};
static const struct component_type other_type = {.component_size = sizeof(struct own),
                                                 .node_size = sizeof(struct own_node)};
static const struct component_type small_type = {.component_size = sizeof(struct component),
                                                 .node_size = sizeof(struct node)};

static void use_component(struct own_node *node)
{
    component_as(struct own, node->node.component, &own_type)->number = 1;
}

static void use_node(struct own_node *node)
{
    node_as(struct own_node, &node->node, &own_type)->number = 1;
}

/* The struct is larger than the memory that its type allocated. */
static void use_small_component(struct own_node *node)
{
    component_as(struct own, node->node.component, &small_type)->number = 1;
}

static void use_small_node(struct own_node *node)
{
    node_as(struct own_node, &node->node, &small_type)->number = 1;
}

static bool aborts(void (*use)(struct own_node *node), const struct component_type *type)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct own own = {.component.type = type};
        struct own_node node = {.node.component = &own.component};
        close(STDERR_FILENO);
        use(&node);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGABRT : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void the_own_struct_is_found(void **state)
{
    (void)state;
    struct own own = {.component.type = &own_type, .number = 1};
    struct own_node node = {.node.component = &own.component, .number = 2};
    assert_ptr_equal(component_as(struct own, &own.component, &own_type), &own);
    assert_ptr_equal(node_as(struct own_node, &node.node, &own_type), &node);
}

static void another_type_aborts(void **state)
{
    (void)state;
    assert_false(aborts(use_component, &own_type));
    assert_false(aborts(use_node, &own_type));
    assert_true(aborts(use_component, &other_type));
    assert_true(aborts(use_node, &other_type));
}

static void a_struct_of_another_size_aborts(void **state)
{
    (void)state;
    assert_true(aborts(use_small_component, &small_type));
    assert_true(aborts(use_small_node, &small_type));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_own_struct_is_found),
        cmocka_unit_test(another_type_aborts),
        cmocka_unit_test(a_struct_of_another_size_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
