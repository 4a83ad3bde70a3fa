#include "core/base/memory.h"
#include "core/ottl/ottl_compiler.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_path.h"
#include "core/ottl/ottl_warnings.h"

#include <assert.h>

enum ottl_level ottl_compiler_level(enum ottl_context context)
{
    return (enum ottl_level)(OTTL_LEVEL_RESOURCE + ottl_context_depth(context));
}

/* ---- nodes ---- */

struct ottl_node *ottl_compiler_node(struct ottl_compiler *c, enum ottl_code code,
                                     uint32_t operands)
{
    struct ottl_node *node = arena_zalloc(&c->program->arena, sizeof *node);
    node->code = code;
    node->slot = OTTL_NO_SLOT;
    node->operand_count = operands;
    node->operands = arena_array(&c->program->arena, operands + 1, sizeof(struct ottl_node *));
    return node;
}

struct ottl_node *ottl_compiler_constant(struct ottl_compiler *c, struct ottl_value value)
{
    struct ottl_node *node = ottl_compiler_node(c, OTTL_CONSTANT, 0);
    node->constant = value;
    return node;
}

void ottl_compiler_depend(struct ottl_node *node, enum ottl_level level)
{
    node->level = level > node->level ? level : node->level;
}

void ottl_compiler_depend_on_all(struct ottl_node *node)
{
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (node->operands[i])
            ottl_compiler_depend(node, node->operands[i]->level);
    for (uint32_t i = 0; i < node->key_count; i++)
        ottl_compiler_depend(node, node->keys[i]->level);
}

struct ottl_node *ottl_compiler_fold(struct ottl_compiler *c, struct ottl_node *node)
{
    struct ottl_value value;
    struct error ignored;
    ottl_compiler_depend_on_all(node);
    if (node->level > OTTL_LEVEL_CONSTANT ||
        !ottl_node_fold(node, &c->program->arena, &value, &ignored))
        return node;
    struct ottl_node *folded = ottl_compiler_constant(c, value);
    folded->is_computed =
        node->code == OTTL_CALL || node->code == OTTL_MATH || node->code == OTTL_NEGATE;
    return folded;
}

bool ottl_compiler_parts(struct ottl_compiler *c, const struct ottl_ast *ast,
                         struct ottl_node *node)
{
    node->operators =
        arena_array(&c->program->arena, ast->part_count + 1, sizeof(enum ottl_operator));
    for (uint32_t i = 0; i < ast->part_count; i++) {
        node->operators[i] = ast->parts[i].operator;
        node->operands[i] = ottl_compiler_value(c, ast->parts[i].value);
        if (!node->operands[i])
            return false;
    }
    return true;
}

bool ottl_compiler_keys(struct ottl_compiler *c, const struct ottl_keys *keys,
                        struct ottl_node *node)
{
    node->key_count = keys->count;
    node->keys = arena_array(&c->program->arena, keys->count + 1, sizeof(struct ottl_node *));
    for (uint32_t i = 0; i < keys->count; i++)
        if (!(node->keys[i] = ottl_compiler_value(c, keys->items[i])))
            return false;
    return true;
}

/* ---- operators ---- */

static struct ottl_node *compile_node(struct ottl_compiler *c, const struct ottl_ast *ast,
                                      enum ottl_code code)
{
    struct ottl_node *node = ottl_compiler_node(c, code, ast->part_count);
    return ottl_compiler_parts(c, ast, node) ? ottl_compiler_fold(c, node) : NULL;
}

static struct ottl_node *compile_math(struct ottl_compiler *c, const struct ottl_ast *ast)
{
    struct ottl_node *node = compile_node(c, ast, OTTL_MATH);
    if (node && node->code != OTTL_CONSTANT && node->level == OTTL_LEVEL_CONSTANT)
        ottl_warn_failure(c, ast->position, node);
    else if (node && node->code != OTTL_CONSTANT)
        ottl_warn_math(c, ast, node);
    return node;
}

static struct ottl_node *compile_comparison(struct ottl_compiler *c, const struct ottl_ast *ast)
{
    struct ottl_node *node = ottl_compiler_node(c, OTTL_COMPARE, ast->part_count);
    if (!ottl_compiler_parts(c, ast, node))
        return NULL;
    ottl_warn_comparison(c, ast, node);
    return ottl_compiler_fold(c, node);
}

/* Of several items with the same key the last one counts. */
static struct ottl_node *compile_map(struct ottl_compiler *c, const struct ottl_ast *ast)
{
    struct ottl_node *node = ottl_compiler_node(c, OTTL_MAKE_MAP, ast->part_count);
    node->names = arena_array(&c->program->arena, ast->part_count + 1, sizeof(struct slice));
    if (!ottl_compiler_parts(c, ast, node))
        return NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < ast->part_count; i++) {
        uint32_t at = 0;
        while (at < count && !slice_equal(node->names[at], ast->parts[i].name))
            at++;
        node->names[at] = arena_copy(&c->program->arena, ast->parts[i].name);
        node->operands[at] = node->operands[i];
        count += at == count;
    }
    node->operand_count = count;
    return ottl_compiler_fold(c, node);
}

/* What is true or false: a comparison, a literal, or a function that may return something else. */
static struct ottl_node *compile_condition(struct ottl_compiler *c, const struct ottl_ast *ast)
{
    struct ottl_node *node = ottl_compiler_value(c, ast);
    if (!node || ast->kind != OTTL_AST_CALL)
        return node;
    struct ottl_node *truth = ottl_compiler_node(c, OTTL_TRUTH, 1);
    truth->operands[0] = node;
    return ottl_compiler_fold(c, truth);
}

/* Whether there is nothing to compute. */
static bool is_literal(const struct ottl_ast *ast)
{
    if (ast->kind == OTTL_AST_CALL || ast->kind == OTTL_AST_MATH || ast->kind == OTTL_AST_PATH)
        return false;
    for (uint32_t i = 0; i < ast->part_count; i++)
        if (!is_literal(ast->parts[i].value))
            return false;
    return true;
}

/* Literals decide at start, and those that do not are left out. What is computed waits for the
 * operands before it, which may fail, as in the Collector. */
static struct ottl_node *compile_joined(struct ottl_compiler *c, const struct ottl_ast *ast,
                                        bool is_or)
{
    struct ottl_node *node = ottl_compiler_node(c, is_or ? OTTL_OR : OTTL_AND, ast->part_count);
    uint32_t count = 0;
    bool is_decided = false;
    for (uint32_t i = 0; i < ast->part_count; i++) {
        struct ottl_node *operand = compile_condition(c, ast->parts[i].value);
        if (!operand)
            return NULL;
        if (operand->code != OTTL_CONSTANT || !is_literal(ast->parts[i].value))
            node->operands[count++] = operand;
        else
            is_decided |= operand->constant.truth == is_or;
    }
    node->operand_count = count;
    if (is_decided || count == 0)
        return ottl_compiler_constant(c, ottl_bool(is_decided == is_or));
    if (count == 1)
        return node->operands[0];
    ottl_compiler_depend_on_all(node);
    return node;
}

static struct ottl_node *compile_not(struct ottl_compiler *c, const struct ottl_ast *ast)
{
    struct ottl_node *node = ottl_compiler_node(c, OTTL_NOT, 1);
    node->operands[0] = compile_condition(c, ast->parts[0].value);
    return node->operands[0] ? ottl_compiler_fold(c, node) : NULL;
}

static struct ottl_node *compile_literal_value(struct ottl_compiler *c, const struct ottl_ast *ast)
{
    struct ottl_value value = {.kind = OTTL_NIL};
    if (ast->kind == OTTL_AST_BOOL)
        value = ottl_bool(ast->truth);
    else if (ast->kind == OTTL_AST_INT)
        value = ottl_int(ast->integer);
    else if (ast->kind == OTTL_AST_FLOAT)
        value = ottl_float(ast->real);
    else if (ast->kind != OTTL_AST_NIL)
        value = ottl_string(arena_copy(&c->program->arena, ast->text));
    if (ast->kind == OTTL_AST_BYTES)
        value.kind = OTTL_BYTES;
    return ottl_compiler_constant(c, value);
}

/* The parser limits the depth. */
struct ottl_node *ottl_compiler_value(struct ottl_compiler *c, const struct ottl_ast *ast)
{
    switch (ast->kind) {
    case OTTL_AST_NIL:
    case OTTL_AST_BOOL:
    case OTTL_AST_INT:
    case OTTL_AST_FLOAT:
    case OTTL_AST_STRING:
    case OTTL_AST_BYTES:
        return compile_literal_value(c, ast);
    case OTTL_AST_ENUM:
        return ottl_compiler_enum(c, ast);
    case OTTL_AST_PATH:
        return ottl_compiler_path(c, ast);
    case OTTL_AST_CALL:
        return ottl_compiler_call(c, ast);
    case OTTL_AST_MATH:
        return compile_math(c, ast);
    case OTTL_AST_NEGATE:
        return compile_node(c, ast, OTTL_NEGATE);
    case OTTL_AST_LIST:
        return compile_node(c, ast, OTTL_MAKE_LIST);
    case OTTL_AST_MAP:
        return compile_map(c, ast);
    case OTTL_AST_COMPARISON:
        return compile_comparison(c, ast);
    case OTTL_AST_AND:
    case OTTL_AST_OR:
        return compile_joined(c, ast, ast->kind == OTTL_AST_OR);
    case OTTL_AST_NOT:
        return compile_not(c, ast);
    case OTTL_AST_LAMBDA:
        return FAIL(c, ast->position,
                    "a lambda can only be an argument of a function that takes "
                    "one");
    case OTTL_AST_FUNCTION_NAME:
        break;
    }
    return FAIL(c, ast->position, "a value is needed here, but got the function name \"%.*s\"",
                SLICE_ARG(ast->text));
}

/* ---- programs ---- */

static bool is_fixed(const struct ottl_node *node);

static bool are_fixed(struct ottl_node *const *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i] && !is_fixed(nodes[i]))
            return false;
    return true;
}

/* The events of a span and the samples of a profile stay as many as they are. */
static bool is_fixed(const struct ottl_node *node)
{
    bool is_path = node->code == OTTL_PATH;
    return (!is_path || !ottl_path_changes(node->path)) &&
           are_fixed(node->operands, node->operand_count) && are_fixed(node->keys, node->key_count);
}

/* Gives a slot to each node that changes less often than the one above it. Functions evaluate the
 * items of a list that they are given one by one. */
static void assign_slots(struct ottl_program *program, struct ottl_node *node,
                         enum ottl_level above)
{
    enum ottl_level inner = node->code == OTTL_MAKE_LIST ? above : node->level;
    if (node->level > OTTL_LEVEL_CONSTANT && node->level < above)
        node->slot = program->slot_count++;
    node->is_fixed = node->slot != OTTL_NO_SLOT && is_fixed(node);
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (node->operands[i])
            assign_slots(program, node->operands[i], inner);
    for (uint32_t i = 0; i < node->key_count; i++)
        assign_slots(program, node->keys[i], node->level);
}

/* A path that is written is not evaluated itself, but its keys are. */
static void assign_slots_of_argument(struct ottl_program *program, struct ottl_node *node,
                                     enum ottl_level above)
{
    assign_slots(program, node, above);
    for (uint32_t i = 0; node->code == OTTL_PATH && i < node->key_count; i++)
        assign_slots(program, node->keys[i], above);
}

static enum ottl_reach reach_of(const struct ottl_node *node);

static enum ottl_reach reach_of_all(struct ottl_node *const *nodes, uint32_t count)
{
    enum ottl_reach reach = OTTL_OF_NOTHING;
    for (uint32_t i = 0; i < count; i++) {
        enum ottl_reach of_node = nodes[i] ? reach_of(nodes[i]) : OTTL_OF_NOTHING;
        reach = of_node > reach ? of_node : reach;
    }
    return reach;
}

/* A function with a level of its own, such as Now, may return something else each time. */
static enum ottl_reach own_reach(const struct ottl_node *node)
{
    if (node->code == OTTL_PATH)
        return node->path->reach == OTTL_OF_NOTHING ? OTTL_OF_ANYTHING : node->path->reach;
    if (node->code != OTTL_CALL || node->function->level == OTTL_LEVEL_CONSTANT)
        return OTTL_OF_NOTHING;
    return node->function->searches_stacks ? OTTL_OF_STACK : OTTL_OF_ANYTHING;
}

static enum ottl_reach reach_of(const struct ottl_node *node)
{
    enum ottl_reach own = own_reach(node);
    enum ottl_reach operands = reach_of_all(node->operands, node->operand_count);
    enum ottl_reach keys = reach_of_all(node->keys, node->key_count);
    enum ottl_reach most = operands > keys ? operands : keys;
    return own > most ? own : most;
}

static bool check_editor(const struct ottl_statement *statement, struct slice text,
                         const char *editor, struct error *err)
{
    const struct ottl_ast *call = statement->editor;
    if (!slice_is(call->text, editor))
        return ottl_error_at(err, text, call->position,
                             "undefined function \"%.*s\"; the only one here is %s()",
                             SLICE_ARG(call->text), editor);
    return call->part_count == 0 ||
           ottl_error_at(err, text, call->parts[0].value->position,
                         "incorrect number of arguments, %u; write %s()", call->part_count, editor);
}

/* What a text is, and what its editor must be. */
enum form { FORM_CONDITION, FORM_WHERE, FORM_STATEMENT, FORM_VALUE };
static const char *const form_names[] = {"condition", "statement", "statement", "value"};

/* What a program on resources or scopes computes may be asked for each item in them. */
static enum ottl_level asking_level(const struct ottl_program *program)
{
    enum ottl_level level = ottl_compiler_level(program->context);
    return level < OTTL_LEVEL_ITEM ? OTTL_LEVEL_ITEM : level;
}

static bool compile_parsed(struct ottl_compiler *c, const struct ottl_statement *statement,
                           enum form form)
{
    struct ottl_program *program = c->program;
    program->root = statement->condition ? compile_condition(c, statement->condition)
                                         : ottl_compiler_constant(c, ottl_bool(true));
    if (!program->root)
        return false;
    if (form == FORM_STATEMENT &&
        !(program->editor = ottl_compiler_call_unfolded(c, statement->editor, true)))
        return false;
    enum ottl_level level = asking_level(program);
    assign_slots(program, program->root, level);
    program->reach = reach_of(program->root);
    program->is_always = program->root->code == OTTL_CONSTANT && program->root->constant.truth;
    for (uint32_t i = 0; program->editor && i < program->editor->operand_count; i++)
        if (program->editor->operands[i])
            assign_slots_of_argument(program, program->editor->operands[i], level);
    return true;
}

static bool compile_text(struct ottl_compiler *c, enum form form, const char *editor,
                         struct arena *parsed)
{
    struct ottl_statement statement;
    bool ok = form == FORM_CONDITION
                  ? ottl_parse_condition(c->text, parsed, &statement, c->err)
                  : ottl_parse_statement(c->text, parsed, &statement, c->err) &&
                        (!editor || check_editor(&statement, c->text, editor, c->err));
    return ok && compile_parsed(c, &statement, form);
}

static bool compile_value(struct ottl_compiler *c, struct arena *parsed)
{
    struct ottl_ast *ast;
    if (!ottl_parse_value(c->text, parsed, &ast, c->err) ||
        !(c->program->root = ottl_compiler_value(c, ast)))
        return false;
    ottl_warn_value(c, ast, c->program->root);
    assign_slots(c->program, c->program->root, asking_level(c->program));
    return true;
}

static bool compile_program(struct ottl_compiler *c, enum form form, const char *editor)
{
    struct arena parsed;
    arena_init(&parsed, NULL);
    bool ok =
        form == FORM_VALUE ? compile_value(c, &parsed) : compile_text(c, form, editor, &parsed);
    arena_deinit(&parsed);
    return ok;
}

/* Puts the text before its warnings, as before errors. */
static void quote_warnings(struct ottl_program *program, const char *kind, struct slice text)
{
    for (uint32_t i = 0; i < program->warning_count; i++) {
        struct error quoted;
        error_set(&quoted, "%s", program->warnings[i].text);
        ottl_error_quote(&quoted, "OTTL", kind, text);
        program->warnings[i].text = arena_strdup(&program->arena, quoted.text);
    }
}

bool ottl_program_is_constant(const struct ottl_program *program, bool *truth_out)
{
    *truth_out = program->is_always;
    return program->root->code == OTTL_CONSTANT;
}

const char *ottl_program_warning(const struct ottl_program *program, uint32_t i, size_t *offset_out)
{
    if (i >= program->warning_count)
        return NULL;
    *offset_out = program->warnings[i].position;
    return program->warnings[i].text;
}

static struct ottl_program *new_program(enum ottl_context context, struct slice text,
                                        enum form form, const char *editor, enum ottl_prefix prefix,
                                        struct error *err)
{
    struct ottl_program *program = memory_zalloc(sizeof *program);
    struct ottl_compiler c = {.text = text, .prefix = prefix, .program = program, .err = err};
    arena_init(&program->arena, NULL);
    program->context = context;
    if (compile_program(&c, form, editor)) {
        quote_warnings(program, form_names[form], text);
        return program;
    }
    ottl_program_free(program);
    ottl_error_quote(err, "unable to parse OTTL", form_names[form], text);
    return NULL;
}

struct ottl_program *ottl_compile_statement(enum ottl_context context, struct slice text,
                                            enum ottl_prefix prefix, struct error *err)
{
    return new_program(context, text, FORM_STATEMENT, NULL, prefix, err);
}

struct ottl_program *ottl_compile_condition(enum ottl_context context, struct slice text,
                                            enum ottl_prefix prefix, struct error *err)
{
    return new_program(context, text, FORM_CONDITION, NULL, prefix, err);
}

struct ottl_program *ottl_compile_where(enum ottl_context context, struct slice text,
                                        const char *editor, enum ottl_prefix prefix,
                                        struct error *err)
{
    return new_program(context, text, FORM_WHERE, editor, prefix, err);
}

struct ottl_program *ottl_compile_value(enum ottl_context context, struct slice text,
                                        enum ottl_prefix prefix, struct error *err)
{
    return new_program(context, text, FORM_VALUE, NULL, prefix, err);
}

void ottl_program_free(struct ottl_program *program)
{
    if (!program)
        return;
    for (uint32_t i = 0; i < program->regex_count; i++)
        ottl_regex_free(program->regexes[i]);
    arena_deinit(&program->arena);
    free(program);
}
