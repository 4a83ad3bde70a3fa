#include "core/ottl/ottl_compiler.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_path.h"

#include <assert.h>

/* ---- names ---- */

static bool is_blank(struct slice name)
{
    return slice_is(name, "_");
}

/* Finds the local that a word names: the innermost. */
static bool find_local(const struct ottl_compiler *c, struct slice name, uint32_t *out)
{
    for (uint32_t i = c->local_count; i > 0; i--)
        if (c->locals[i - 1].size > 0 && slice_equal(c->locals[i - 1], name)) {
            *out = i - 1;
            return true;
        }
    return false;
}

static struct ottl_node *new_local(struct ottl_compiler *c, uint32_t local, uint32_t operands)
{
    struct ottl_node *node = ottl_compiler_node(c, OTTL_LOCAL, operands);
    node->local = local;
    ottl_compiler_depend(node, OTTL_LEVEL_LOWEST);
    return node;
}

bool ottl_compiler_local(struct ottl_compiler *c, const struct ottl_ast *path,
                         struct ottl_node **out)
{
    const struct ottl_segment *first = &path->segments[0];
    uint32_t local;
    *out = NULL;
    if (!find_local(c, first->name, &local))
        return false;
    if (path->segment_count > 1) {
        FAIL(c, path->segments[1].position, "the parameter \"%.*s\" of a lambda has no fields",
             SLICE_ARG(first->name));
        return true;
    }
    *out = new_local(c, local, 0);
    if (!ottl_compiler_keys(c, &first->keys, *out))
        *out = NULL;
    return true;
}

/* ---- what does not depend on the parameters ---- */

static enum ottl_level higher(enum ottl_level a, enum ottl_level b)
{
    return a > b ? a : b;
}

/* Returns what a node depends on, without the locals from `first` on. */
static enum ottl_level outer_level(const struct ottl_node *node, uint32_t first)
{
    enum ottl_level level = OTTL_LEVEL_CONSTANT;
    if (node->code == OTTL_LOCAL && node->local < first)
        level = OTTL_LEVEL_LOWEST;
    else if (node->code == OTTL_PATH)
        level = ottl_compiler_level(node->path->context);
    else if (node->code == OTTL_CALL)
        level = node->function->level;
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (node->operands[i])
            level = higher(level, outer_level(node->operands[i], first));
    for (uint32_t i = 0; i < node->key_count; i++)
        level = higher(level, outer_level(node->keys[i], first));
    return level;
}

/* Whether a node has the same value for all entries: it uses no local from `first` on, and no
 * function that returns another value each time. */
static bool is_fixed(const struct ottl_node *node, uint32_t first)
{
    if ((node->code == OTTL_LOCAL && node->local >= first) || node->code == OTTL_LAMBDA ||
        (node->code == OTTL_CALL && node->function->level == OTTL_LEVEL_LOWEST))
        return false;
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (node->operands[i] && !is_fixed(node->operands[i], first))
            return false;
    for (uint32_t i = 0; i < node->key_count; i++)
        if (!is_fixed(node->keys[i], first))
            return false;
    return true;
}

/* Makes each part that is fixed a local, which is computed at its first use. */
static bool keep_fixed(struct ottl_compiler *c, struct ottl_node **at, uint32_t first)
{
    struct ottl_node *node = *at;
    if (node->code == OTTL_CONSTANT || (node->code == OTTL_LOCAL && node->key_count == 0))
        return true;
    if (is_fixed(node, first)) {
        if (c->local_count == OTTL_LOCALS_MAX)
            return false;
        c->locals[c->local_count] = (struct slice){0};
        *at = new_local(c, c->local_count++, 1);
        (*at)->operands[0] = node;
        return true;
    }
    bool keeps_map = node->code == OTTL_PATH; /* its operand is kept already */
    for (uint32_t i = 0; i < node->operand_count && !keeps_map; i++)
        if (node->operands[i] && node->operands[i]->code != OTTL_LAMBDA &&
            !keep_fixed(c, &node->operands[i], first))
            return false;
    for (uint32_t i = 0; i < node->key_count; i++)
        if (!keep_fixed(c, &node->keys[i], first))
            return false;
    return true;
}

/* ---- lambdas ---- */

static bool add_parameters(struct ottl_compiler *c, const struct ottl_ast *ast)
{
    uint32_t first = c->local_count, other;
    for (uint32_t i = 0; i < ast->segment_count; i++) {
        struct slice name = ast->segments[i].name;
        if (!is_blank(name) && find_local(c, name, &other) && other >= first)
            return REFUSE(c, ast->segments[i].position, "duplicate local identifier \"%.*s\"",
                          SLICE_ARG(name));
        if (c->local_count == OTTL_LOCALS_MAX)
            return REFUSE(c, ast->segments[i].position, "the statement has too many lambdas");
        c->locals[c->local_count++] =
            is_blank(name) ? (struct slice){0} : arena_copy(&c->program->arena, name);
    }
    return true;
}

struct ottl_node *ottl_compiler_lambda(struct ottl_compiler *c, const struct ottl_ast *ast,
                                       uint32_t parameters)
{
    if (ast->kind != OTTL_AST_LAMBDA)
        return FAIL(c, ast->position, "must be a lambda expression, as (k, v) => v == 1");
    if (ast->segment_count != parameters)
        return FAIL(c, ast->position,
                    "lambda should be defined with exactly %u formal(s), but has %u", parameters,
                    ast->segment_count);
    struct ottl_node *node = ottl_compiler_node(c, OTTL_LAMBDA, 1);
    node->local = c->local_count;
    node->parameter_count = parameters;
    if (!add_parameters(c, ast))
        return NULL;
    node->operands[0] = ottl_compiler_value(c, ast->parts[0].value);
    if (!node->operands[0])
        return NULL;
    node->level = outer_level(node->operands[0], node->local);
    /* Names are those of this lambda, and numbers are not given again: the body of another one may
     * be evaluated in between. */
    if (!keep_fixed(c, &node->operands[0], node->local))
        return FAIL(c, ast->position, "the statement has too many lambdas");
    node->local_count = c->local_count - node->local;
    for (uint32_t i = node->local; i < c->local_count; i++)
        c->locals[i] = (struct slice){0};
    return node;
}
