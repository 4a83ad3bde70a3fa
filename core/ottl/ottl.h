/*
 * ottl: conditions of the OpenTelemetry Transformation Language, compiled at start and evaluated
 * for resources, scopes, spans and their events.
 *
 * At start, on main:
 *     program = ottl_compile_condition(OTTL_SPAN, text, OTTL_PREFIX_OPTIONAL, &err);
 * On each worker:
 *     evaluator = ottl_evaluator_new(program);
 *
 *     struct ottl_item item;
 *     ottl_item_begin(&item);                        // for each batch
 *     struct items items = items_of(batch);          // core/pipeline/items.h
 *     while (items_next(&items)) {
 *         ottl_item_set_fields(&item, items.fields, &batch->arena);
 *         if (ottl_evaluate(evaluator, &item) == OTTL_MATCH)
 *             ...
 *     }
 *
 * What does not depend on the span is computed once for each resource or scope, and what does not
 * depend on the event once for each span. A condition on the
 * fields and attributes of the data allocates nothing, and nothing of the data is opened.
 *
 * Owner: the caller owns programs and evaluators; a program must outlive its evaluators. An item
 * borrows the data of the batch.
 *
 * Thread: a program is read-only, so any number of workers may share it. An evaluator and an item
 * belong to one thread at a time, for example to a job together with its batch.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_H
#define PROFCOL_CORE_OTTL_OTTL_H

#include "core/base/error.h"
#include "core/data/message.h"

/* Each contains the next one. */
enum ottl_context { OTTL_RESOURCE, OTTL_SCOPE, OTTL_SPAN, OTTL_SPAN_EVENT, OTTL_CONTEXT_COUNT };
/* "resource", "scope", "span", "spanevent" */
extern const char *const ottl_context_names[OTTL_CONTEXT_COUNT];

/* Whether paths must name their context (`span.name`), or may leave out that of the program. */
enum ottl_prefix { OTTL_PREFIX_REQUIRED, OTTL_PREFIX_OPTIONAL };

struct ottl_program;
struct ottl_evaluator;

/* ---- at start ---- */

/* Compiles a condition. Returns NULL with err set, which names line and column inside the text. */
struct ottl_program *ottl_compile_condition(enum ottl_context context, struct slice text,
                                            enum ottl_prefix prefix, struct error *err);
/* Compiles the condition of a statement whose editor is `editor` without arguments: `route() where
 * ...`. Without a condition it is true. */
struct ottl_program *ottl_compile_where(enum ottl_context context, struct slice text,
                                        const char *editor, enum ottl_prefix prefix,
                                        struct error *err);
void ottl_program_free(struct ottl_program *program);
/* Finds the context that the prefixes of the paths ask for: the lowest. Returns false with err set
 * if the text is not valid, or no path names a context. is_statement: the text is an editor with
 * `where`. */
bool ottl_infer_context(struct slice text, bool is_statement, enum ottl_context *out,
                        struct error *err);

/* ---- for each item ---- */

/* What a condition is evaluated on. */
struct ottl_item {
    uint64_t batch;                       /* a number of its own for each batch */
    uint64_t serials[OTTL_CONTEXT_COUNT]; /* counts resources, scopes, spans, events */
    struct message_iter group;            /* ResourceSpans, ResourceMetrics and so on */
    struct message_iter resource;
    struct message_iter scope_group; /* ScopeSpans */
    struct message_iter scope;
    struct message_iter span;
    struct message_iter span_event;
    struct message_field fields[2]; /* those of ottl_item_set_fields */
};

/* Begins a batch. Nothing is known of data that was seen before. */
void ottl_item_begin(struct ottl_item *item);
/* Enter a ResourceSpans (or the same of another signal), a ScopeSpans in it, a Span in that, an
 * Event in that, given as an iterator at its start. Call them again for a message that was changed,
 * and for those around and inside it. */
void ottl_item_set_group(struct ottl_item *item, struct message_iter group);
void ottl_item_set_scope_group(struct ottl_item *item, struct message_iter scope_group);
void ottl_item_set_span(struct ottl_item *item, struct message_iter span);
void ottl_item_set_span_event(struct ottl_item *item, struct message_iter span_event);
/* Does the first three, as far as they are others than before, from the fields of a ResourceSpans,
 * a ScopeSpans and a Span. */
void ottl_item_set_fields(struct ottl_item *item, const struct message_field *fields,
                          struct arena *arena);

struct ottl_evaluator *ottl_evaluator_new(const struct ottl_program *program);
void ottl_evaluator_free(struct ottl_evaluator *evaluator);

enum ottl_result { OTTL_NO_MATCH, OTTL_MATCH, OTTL_FAILED };
/* Evaluates the condition on an item of the program's context. */
enum ottl_result ottl_evaluate(struct ottl_evaluator *evaluator, const struct ottl_item *item);
/* Returns why the last evaluation failed. The text may contain data of the item. */
const char *ottl_evaluator_error(const struct ottl_evaluator *evaluator);

#endif
