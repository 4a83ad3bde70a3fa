/*
 * ottl_warnings: what a text of OTTL says, and cannot do: a constant that a path does not take, a
 * comparison that is never true.
 *
 * The Collector starts with such a text, and logs an error for each item or does nothing, so it is
 * compiled here, too, and the configuration gets a warning.
 *
 * Owner: warnings live in the arena of the program.
 *
 * Thread: one, at start.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_WARNINGS_H
#define PROFCOL_CORE_OTTL_OTTL_WARNINGS_H

#include "core/ottl/ottl_compiler.h"

/* node: a comparison with its compiled operands, before it is folded. */
void ottl_warn_comparison(struct ottl_compiler *c, const struct ottl_ast *ast,
                          const struct ottl_node *node);
/* node: mathematics with its compiled operands, which depend on data. */
void ottl_warn_math(struct ottl_compiler *c, const struct ottl_ast *ast,
                    const struct ottl_node *node);
/* node: a compiled value that an attribute gets. */
void ottl_warn_value(struct ottl_compiler *c, const struct ottl_ast *ast,
                     const struct ottl_node *node);
/* node: the call of an editor with its compiled arguments. */
void ottl_warn_editor(struct ottl_compiler *c, const struct ottl_ast *call,
                      const struct ottl_node *node);
/* argument: a compiled argument of a parameter that takes this kind only. */
void ottl_warn_argument(struct ottl_compiler *c, const struct ottl_ast *call, uint32_t index,
                        const struct ottl_node *argument, enum ottl_kind wanted);
/* node: a compiled item of a list that takes texts only. */
void ottl_warn_item(struct ottl_compiler *c, const struct ottl_ast *item,
                    const struct ottl_node *node);
/* call: the call of a function whose result must be a text, with its name as it is written. */
void ottl_warn_result(struct ottl_compiler *c, const struct ottl_ast *name,
                      const struct ottl_node *call);
/* node: a path with its compiled keys. */
void ottl_warn_keys(struct ottl_compiler *c, const struct ottl_ast *path,
                    const struct ottl_node *node);
/* node: what depends on no data, and could not be folded. */
void ottl_warn_failure(struct ottl_compiler *c, uint32_t position, const struct ottl_node *node);
/* Anything else. */
void ottl_warn_text(struct ottl_compiler *c, uint32_t position, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
