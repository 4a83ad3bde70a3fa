#include "core/ottl/ottl_functions.h"

#include "config/suggest.h"

#include <assert.h>
#include <strings.h>

/* The functions of a file, and their work: what they do with an argument takes so many times as
 * long as reading it does; 0: not much longer. */
struct family {
    const struct ottl_function *functions; /* NULL: the last one */
    unsigned work;
};

static const struct family converters[] = {{ottl_type_functions, 0},
                                           {ottl_text_functions, 0},
                                           {ottl_case_functions, 1},
                                           {ottl_format_functions, 4},
                                           {ottl_hash_functions, 0},
                                           {ottl_parse_functions, 4},
                                           {ottl_network_functions, 0},
                                           {ottl_list_functions, 0},
                                           {ottl_csv_functions, 4},
                                           {ottl_lambda_functions, 0},
                                           {ottl_encoding_functions, 1},
                                           {ottl_number_functions, 0},
                                           {ottl_url_functions, 4},
                                           {ottl_pair_functions, 4},
                                           {ottl_time_functions, 0},
                                           {ottl_profile_functions, 0},
                                           {NULL, 0}};
static const struct family editors[] = {{ottl_value_editors, 1}, {ottl_key_editors, 0},
                                        {ottl_map_editors, 4},   {ottl_replace_editors, 1},
                                        {ottl_span_editors, 0},  {NULL, 0}};

enum { NAMES_MAX = 200 };

static const struct ottl_function *find(const struct family *family, struct slice name)
{
    for (; family->functions; family++)
        for (const struct ottl_function *f = family->functions; f->name; f++)
            if (slice_is(name, f->name))
                return f;
    return NULL;
}

/* What is like the name, or else begins with it. */
static const char *suggest(const struct family *family, const char *name)
{
    const char *names[NAMES_MAX] = {NULL};
    size_t count = 0;
    for (; family->functions; family++)
        for (const struct ottl_function *f = family->functions; f->name; f++) {
            assert(count < NAMES_MAX);
            names[count++] = f->name;
        }
    const char *near = config_suggest(name, names, count);
    for (size_t i = 0; i < count && !near && strlen(name) >= 3; i++)
        near = strncasecmp(name, names[i], strlen(name)) == 0 ? names[i] : NULL;
    return near;
}

const struct ottl_function *ottl_function_find(struct slice name)
{
    return find(converters, name);
}

const struct ottl_function *ottl_editor_find(struct slice name)
{
    return find(editors, name);
}

static unsigned find_work(const struct family *family, const struct ottl_function *function)
{
    for (; family->functions; family++)
        for (const struct ottl_function *f = family->functions; f->name; f++)
            if (f == function)
                return f->work > 0 ? f->work : family->work;
    return 0;
}

unsigned ottl_function_work(const struct ottl_function *function)
{
    return find_work(converters, function) + find_work(editors, function);
}

const char *ottl_function_suggest(const char *name)
{
    return suggest(converters, name);
}

const char *ottl_editor_suggest(const char *name)
{
    return suggest(editors, name);
}

bool ottl_function_is_missing(struct slice name)
{
    static const char *const missing[] = {
        "ConvertAttributesToElementsXML",
        "ConvertTextToElementsXML",
        "ExtractGrokPatterns",
        "GetXML",
        "InsertXML",
        "ParseSimplifiedXML",
        "ParseXML",
        "RemoveXML",
        "UserAgent",
    };
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (slice_is(name, missing[i]))
            return true;
    return false;
}

/* ---- arguments ---- */

bool ottl_argument(struct ottl_evaluation *evaluation, const struct ottl_node *call, uint32_t index,
                   struct ottl_value *out)
{
    assert(index < call->operand_count && call->operands[index]);
    return ottl_node_evaluate(evaluation, call->operands[index], out) &&
           ottl_take_work(evaluation, out);
}

static bool expect(struct ottl_evaluation *evaluation, const struct ottl_value *value,
                   enum ottl_kind kind, const char *name)
{
    return value->kind == kind || error_set(ottl_evaluation_error(evaluation),
                                            "expected %s but got %s", name, ottl_type_name(value));
}

/* Functions add offsets to where a text begins, which an empty one may not say. */
static struct slice readable(struct slice text)
{
    return text.data ? text : SLICE("");
}

bool ottl_argument_string(struct ottl_evaluation *evaluation, const struct ottl_node *call,
                          uint32_t index, struct slice *out)
{
    struct ottl_value value;
    if (!ottl_argument(evaluation, call, index, &value) ||
        !expect(evaluation, &value, OTTL_STRING, "string"))
        return false;
    *out = readable(value.bytes);
    return true;
}

bool ottl_argument_int(struct ottl_evaluation *evaluation, const struct ottl_node *call,
                       uint32_t index, int64_t *out)
{
    struct ottl_value value;
    if (!ottl_argument(evaluation, call, index, &value) ||
        !expect(evaluation, &value, OTTL_INT, "int64"))
        return false;
    *out = value.integer;
    return true;
}

bool ottl_node_text(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                    struct slice *out, bool *is_nil_out)
{
    struct ottl_value value;
    return ottl_node_evaluate(evaluation, node, &value) &&
           ottl_value_text(evaluation, &value, out, is_nil_out);
}

bool ottl_value_text(struct ottl_evaluation *evaluation, const struct ottl_value *value,
                     struct slice *out, bool *is_nil_out)
{
    struct text text = {0};
    if (!ottl_take_work(evaluation, value))
        return false;
    *is_nil_out = value->kind == OTTL_NIL;
    if (value->kind == OTTL_NIL || value->kind == OTTL_STRING) {
        *out = value->kind == OTTL_NIL ? SLICE("") : readable(value->bytes);
        return true;
    }
    if (!ottl_print(value, &text, ottl_evaluation_error(evaluation))) {
        text_deinit(&text);
        return false;
    }
    *out = ottl_evaluation_text(evaluation, &text);
    return true;
}

/* ---- arguments that are lists ---- */

bool ottl_argument_items(struct ottl_evaluation *evaluation, const struct ottl_node *call,
                         uint32_t index, struct ottl_items *out)
{
    const struct ottl_node *node = call->operands[index];
    struct ottl_value list;
    *out = (struct ottl_items){.evaluation = evaluation};
    if (node->code == OTTL_MAKE_LIST) {
        out->written = node;
        return true;
    }
    if (!ottl_argument(evaluation, call, index, &list) ||
        !expect(evaluation, &list, OTTL_LIST, "pcommon.Slice"))
        return false;
    out->cursor = ottl_cursor(&list);
    return true;
}

bool ottl_items_next(struct ottl_items *items, struct ottl_value *out)
{
    struct ottl_entry entry;
    if (items->written) {
        if (items->next == items->written->operand_count)
            return false;
        items->has_failed =
            !ottl_node_evaluate(items->evaluation, items->written->operands[items->next++], out);
        return !items->has_failed;
    }
    if (!ottl_cursor_next(&items->cursor, &entry))
        return false;
    *out = entry.value;
    return true;
}

bool ottl_items_fit(struct ottl_items *items, size_t size)
{
    enum { TEXT_MAX = 1 << 20 };
    items->has_failed =
        !items->written && size > TEXT_MAX &&
        !error_set(ottl_evaluation_error(items->evaluation), "a list makes a text above 1 MiB");
    return !items->has_failed;
}
