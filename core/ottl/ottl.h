/*
 * ottl: conditions, statements and values of the OpenTelemetry Transformation Language, compiled at
 * start and evaluated for resources, scopes, spans and their events, profiles and their samples.
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
 * For profiles, ottl_item_set_profile and ottl_item_set_sample take the place of the spans, and
 * ottl_item_set_dictionary comes before them.
 *
 * A statement changes the data. The item then needs a way (ottl_item_set_way), on which messages
 * are opened when they are written; ottl_execute takes the place of ottl_evaluate, and after the
 * last statement on an item comes ottl_item_finish. Statements may change the messages around the
 * item, too, which wait open for the next item until ottl_item_leave.
 *
 * What does not depend on the span or profile is computed once for each resource or scope, and what
 * does not depend on the event or sample once for each span or profile. A condition on the fields
 * and attributes of the data allocates nothing, and nothing of the data is opened.
 *
 * Owner: the caller owns programs and evaluators; a program must outlive its evaluators. An item
 * borrows the data of the batch.
 *
 * Thread: a program is read-only, so any number of workers may share it. An evaluator and an item
 * belong to one thread at a time, for example to a job together with its batch.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_H
#define PROFCOL_CORE_OTTL_OTTL_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/data/message.h"

/* A resource contains scopes, a scope spans or profiles, a span its events, a profile its samples.
 */
enum ottl_context {
    OTTL_RESOURCE,
    OTTL_SCOPE,
    OTTL_SPAN,
    OTTL_SPAN_EVENT,
    OTTL_PROFILE,
    OTTL_PROFILE_SAMPLE,
    OTTL_CONTEXT_COUNT
};
#define OTTL_BIT(context) (1U << (context)) /* for sets of contexts */
enum { OTTL_DEPTH_COUNT = 4 };              /* as many contexts contain each other */
/* "resource", "scope", "span", "spanevent", "profile", "profilesample" */
extern const char *const ottl_context_names[OTTL_CONTEXT_COUNT];
/* Returns how many contexts contain it: 0 to OTTL_DEPTH_COUNT - 1. */
static inline unsigned ottl_context_depth(enum ottl_context context)
{
    static const unsigned char depths[OTTL_CONTEXT_COUNT] = {
        [OTTL_RESOURCE] = 0, [OTTL_SCOPE] = 1,      [OTTL_SPAN] = 2,
        [OTTL_PROFILE] = 2,  [OTTL_SPAN_EVENT] = 3, [OTTL_PROFILE_SAMPLE] = 3};
    return depths[context];
}
/* Whether what is evaluated in a context sees the paths of another one: its own, and those that
 * contain it. */
bool ottl_context_sees(enum ottl_context context, enum ottl_context other);

/* Whether paths must name their context (`span.name`), or may leave out that of the program. */
enum ottl_prefix { OTTL_PREFIX_REQUIRED, OTTL_PREFIX_OPTIONAL };

struct dictionary;
struct ottl_draft;
struct ottl_evaluator;
struct ottl_outers;
struct ottl_profile_tables;
struct ottl_program;
struct text;
struct wire_writer;

/* ---- at start ---- */

/* Compiles a condition. Returns NULL with err set, which names line and column inside the text, and
 * whose offset is that of the mistake. */
struct ottl_program *ottl_compile_condition(enum ottl_context context, struct slice text,
                                            enum ottl_prefix prefix, struct error *err);
/* Compiles the condition of a statement whose editor is `editor` without arguments: `route() where
 * ...`. Without a condition it is true. */
struct ottl_program *ottl_compile_where(enum ottl_context context, struct slice text,
                                        const char *editor, enum ottl_prefix prefix,
                                        struct error *err);
/* Compiles a statement: `set(span.name, "x") where ...`, for ottl_execute. */
struct ottl_program *ottl_compile_statement(enum ottl_context context, struct slice text,
                                            enum ottl_prefix prefix, struct error *err);
/* Compiles a value, such as a path or a call of a converter, for ottl_evaluate_value. */
struct ottl_program *ottl_compile_value(enum ottl_context context, struct slice text,
                                        enum ottl_prefix prefix, struct error *err);
void ottl_program_free(struct ottl_program *program);
/* Returns the i-th thing that the text says and cannot do, such as a comparison that is never true;
 * NULL: there are no more. Sets *offset_out to its place in the text. */
const char *ottl_program_warning(const struct ottl_program *program, uint32_t i,
                                 size_t *offset_out);
/* Whether the condition reads nothing of an item, so that it is always true, or always false. Sets
 * *truth_out. */
bool ottl_program_is_constant(const struct ottl_program *program, bool *truth_out);
/* What came of looking for the context of a text. */
enum ottl_inference {
    OTTL_INFERRED,
    OTTL_NO_CONTEXT,    /* no path names one; *out is not set */
    OTTL_OTHER_CONTEXT, /* it is none of those that were given */
    OTTL_BAD_SYNTAX
};
/* Finds the context that the prefixes of the paths ask for: the lowest. contexts: a set of those
 * that there are (OTTL_BIT). is_statement: the text is an editor with `where`. Other results than
 * OTTL_INFERRED set err, as the functions above do. */
enum ottl_inference ottl_infer_context(struct slice text, bool is_statement, unsigned contexts,
                                       enum ottl_context *out, struct error *err);

/* Appends a text as a literal of OTTL, with quotes. */
void ottl_append_text(struct text *out, const char *text);

/* ---- for each item ---- */

/* The messages around an item, from the ResourceSpans (or the same of another signal) inward: an
 * iterator for each, which is at the field below it. The iterator on level 0 is over an open
 * message. */
struct ottl_way {
    struct message_iter iters[OTTL_DEPTH_COUNT];
    struct message_field fields[OTTL_DEPTH_COUNT];
};

/* The map `cache` of one item, which lives as long as a group of statements works on it. All zero:
 * empty. */
struct ottl_cache {
    struct arena arena;
    struct slice map; /* an encoded KeyValueList */
};
/* Empties it. */
void ottl_cache_clear(struct ottl_cache *cache);

/* What a condition is evaluated on. */
struct ottl_item {
    uint64_t batch;                     /* a number of its own for each batch */
    uint64_t serials[OTTL_DEPTH_COUNT]; /* counts resources, scopes, spans or profiles, and events
                                           or samples */
    uint64_t entered[OTTL_DEPTH_COUNT]; /* the same, without what statements have changed */
    size_t bytes;                       /* of the groups so far */
    struct message_iter group;          /* ResourceSpans, ResourceMetrics and so on */
    struct message_iter resource;
    struct message_iter scope_group; /* ScopeSpans */
    struct message_iter scope;       /* once it was found */
    struct message_iter span;
    struct message_iter span_event;
    struct message_iter profile;
    struct message_iter sample;
    struct ottl_profile_tables *tables; /* of a profiles request; NULL: no dictionary was set */
    struct message_field fields[2];     /* those of ottl_item_set_fields */
    bool has_scope;                     /* it was searched for */
    /* For statements: */
    struct ottl_way *way;       /* NULL: nothing can be written */
    struct ottl_draft *draft;   /* NULL: likewise */
    struct ottl_outers *outers; /* in the draft */
    struct ottl_cache *cache;   /* NULL: `cache` is empty, and cannot be written */
    size_t room;                /* bytes of values that the batch may still gain */
    size_t cache_room;          /* bytes that caches may still gain */
    size_t steps;               /* bytes of messages around the items that may still be searched */
    bool is_changed;            /* a statement wrote something since this was set to false */
    unsigned kept;              /* depths of messages around the items that are open (OTTL_KEPT) */
};
#define OTTL_KEPT(depth) (1U << (depth))

/* Begins a batch. Nothing is known of data that was seen before. */
void ottl_item_begin(struct ottl_item *item);
/* Enter a ResourceSpans (or the same of another signal), a ScopeSpans in it, a Span in that, an
 * Event in that, given as an iterator at its start. Call them again for a message that was changed,
 * and for those around and inside it. */
void ottl_item_set_group(struct ottl_item *item, struct message_iter group);
void ottl_item_set_scope_group(struct ottl_item *item, struct message_iter scope_group);
static inline void ottl_item_set_span(struct ottl_item *item, struct message_iter span)
{
    assert(!(item->kept & OTTL_KEPT(2)));
    item->serials[ottl_context_depth(OTTL_SPAN)]++;
    item->entered[ottl_context_depth(OTTL_SPAN)]++;
    item->span = span;
}
static inline void ottl_item_set_span_event(struct ottl_item *item, struct message_iter span_event)
{
    item->serials[ottl_context_depth(OTTL_SPAN_EVENT)]++;
    item->span_event = span_event;
}
/* Sets the dictionary of a profiles batch, in whose arena is what is remembered of its tables. Call
 * it once, before the first profile. */
void ottl_item_set_dictionary(struct ottl_item *item, struct dictionary *dictionary,
                              struct arena *arena);
/* Enter a Profile in a ScopeProfiles, a Sample in that. The item must stay where it is between the
 * two, and while it is evaluated. */
void ottl_item_set_profile(struct ottl_item *item, struct message_iter profile);
static inline void ottl_item_set_sample(struct ottl_item *item, struct message_iter sample)
{
    item->serials[ottl_context_depth(OTTL_PROFILE_SAMPLE)]++;
    item->sample = sample;
}
/* Does the first three, as far as they are others than before, from the fields of a ResourceSpans,
 * a ScopeSpans and a Span. */
void ottl_item_set_fields(struct ottl_item *item, const struct message_field *fields,
                          struct arena *arena);

/* Attributes that statements have changed, and that are not written yet (ottl_draft.h). */
struct ottl_draft *ottl_draft_new(void);
void ottl_draft_free(struct ottl_draft *draft);

/* Lets statements write. `way` must stay where it is, and be that of the current item whenever a
 * statement is executed. After the last statement on an item, ottl_item_finish writes what is left
 * in the draft; call it before the next item is entered, or a condition is evaluated. After the
 * last item in a message, ottl_item_leave writes what they have changed in it and the messages of
 * greater depths; call it before the next message of its depth is entered. room: bytes of values
 * that the items of the batch may gain together (items_values_room); values of up to 64 bytes do
 * not count. */
void ottl_item_set_way(struct ottl_item *item, struct ottl_way *way, struct ottl_draft *draft,
                       size_t room);
void ottl_item_finish(struct ottl_item *item);
void ottl_item_leave(struct ottl_item *item, unsigned depth);

struct ottl_evaluator *ottl_evaluator_new(const struct ottl_program *program);
void ottl_evaluator_free(struct ottl_evaluator *evaluator);

enum ottl_result { OTTL_NO_MATCH, OTTL_MATCH, OTTL_FAILED };
/* Evaluates the condition on an item of the program's context. */
enum ottl_result ottl_evaluate(struct ottl_evaluator *evaluator, struct ottl_item *item);
/* Whether the condition is on samples, and reads only their stacks. */
bool ottl_is_of_stack(const struct ottl_evaluator *evaluator);
/* Evaluates such a condition on the samples of a stack, once for each stack of the batch. If it is
 * OTTL_FAILED, ottl_evaluate says why for each sample. */
enum ottl_result ottl_evaluate_stack(struct ottl_evaluator *evaluator, struct ottl_item *item,
                                     uint32_t stack);
/* The same for all stacks of the batch at once: sets the element of a stack to 0 unless it is known
 * already that the condition is false for its samples. `missed` has dictionary_count elements;
 * others are left as they are. */
void ottl_miss_stacks(struct ottl_evaluator *evaluator, struct ottl_item *item, uint8_t *missed,
                      uint32_t count);
/* Computes a value, and writes it to `out`, which is empty, as the payload of an AnyValue.
 * OTTL_NO_MATCH: there is none (nil). OTTL_FAILED also if it takes more than `limit` bytes, or has
 * no place in an AnyValue (a time, an id). */
enum ottl_result ottl_evaluate_value(struct ottl_evaluator *evaluator, struct ottl_item *item,
                                     size_t limit, struct wire_writer *out);
/* Executes a statement: OTTL_NO_MATCH if its condition does not match, OTTL_MATCH if it was
 * executed. A failed one may have written a part of what it says, but no part of a map. */
enum ottl_result ottl_execute(struct ottl_evaluator *evaluator, struct ottl_item *item);
/* Returns why the last evaluation failed. The text may contain data of the item. */
const char *ottl_evaluator_error(const struct ottl_evaluator *evaluator);

#endif
