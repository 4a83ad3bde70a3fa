/*
 * ottl_compiler: what the files of the compiler use of each other. ottl_compile.c has values and
 * programs, ottl_compile_paths.c paths, ottl_compile_calls.c calls with their arguments.
 *
 * Owner: nodes live in the arena of the program.
 *
 * Thread: one, at start.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_COMPILER_H
#define PROFCOL_CORE_OTTL_OTTL_COMPILER_H

#include "core/ottl/ottl_lambda.h"
#include "core/ottl/ottl_parser.h"
#include "core/ottl/ottl_program.h"

struct ottl_compiler {
    struct slice text;
    enum ottl_prefix prefix;
    struct ottl_program *program;
    struct error *err;
    struct slice locals[OTTL_LOCALS_MAX]; /* their names; empty: cannot be named (any more) */
    uint32_t local_count;
};

/* Report an error at a position of the text. Return false, and NULL. */
#define REFUSE(compiler, position, ...)                                                            \
    ottl_error_at((compiler)->err, (compiler)->text, (position), __VA_ARGS__)
#define FAIL(compiler, position, ...)                                                              \
    (REFUSE(compiler, position, __VA_ARGS__) ? (void *)(compiler) : NULL)

/* All that return a node or a bool: NULL or false after an error. */

/* Compiles a value or a condition. */
struct ottl_node *ottl_compiler_value(struct ottl_compiler *c, const struct ottl_ast *ast);
struct ottl_node *ottl_compiler_path(struct ottl_compiler *c, const struct ottl_ast *path);
struct ottl_node *ottl_compiler_enum(struct ottl_compiler *c, const struct ottl_ast *ast);
struct ottl_node *ottl_compiler_call(struct ottl_compiler *c, const struct ottl_ast *call);
/* The same for a call that is executed, also with constant arguments. */
struct ottl_node *ottl_compiler_call_unfolded(struct ottl_compiler *c, const struct ottl_ast *call,
                                              bool is_editor);
/* Compiles a lambda with this number of parameters. */
struct ottl_node *ottl_compiler_lambda(struct ottl_compiler *c, const struct ottl_ast *ast,
                                       uint32_t parameters);
/* Whether a path is a parameter of a lambda; then *out is it, NULL after an error. */
bool ottl_compiler_local(struct ottl_compiler *c, const struct ottl_ast *path,
                         struct ottl_node **out);
/* Returns the context that a path names first, OTTL_CONTEXT_COUNT if none. */
enum ottl_context ottl_compiler_context(const struct ottl_ast *path);

struct ottl_node *ottl_compiler_node(struct ottl_compiler *c, enum ottl_code code,
                                     uint32_t operands);
struct ottl_node *ottl_compiler_constant(struct ottl_compiler *c, struct ottl_value value);
/* Compile the parts or the keys of a node. */
bool ottl_compiler_parts(struct ottl_compiler *c, const struct ottl_ast *ast,
                         struct ottl_node *node);
bool ottl_compiler_keys(struct ottl_compiler *c, const struct ottl_keys *keys,
                        struct ottl_node *node);
/* Replaces what depends on no data by its value. What fails, fails when it is evaluated, because
 * the result may not be needed: `1/0 == 1 or true`. */
struct ottl_node *ottl_compiler_fold(struct ottl_compiler *c, struct ottl_node *node);
enum ottl_level ottl_compiler_level(enum ottl_context context);
void ottl_compiler_depend(struct ottl_node *node, enum ottl_level level);
void ottl_compiler_depend_on_all(struct ottl_node *node);

#endif
