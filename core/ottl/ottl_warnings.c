#include "core/ottl/ottl_warnings.h"

#include "core/base/go_number.h"
#include "core/ottl/ottl_evaluation.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_node_kinds.h"
#include "core/ottl/ottl_path_hints.h"
#include "core/ottl/ottl_paths.h"
#include "core/ottl/ottl_profile_setters.h"
#include "core/ottl/ottl_setters.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { WARNINGS_MAX = 20 };

/* Adds a warning, and frees its text. */
static void warn(struct ottl_compiler *c, uint32_t position, struct text *text)
{
    struct ottl_program *program = c->program;
    struct error place;
    if (program->warning_count < WARNINGS_MAX) {
        ottl_error_at(&place, c->text, position, "%s", text_string(text));
        program->warnings = arena_grow(&program->arena, program->warnings, program->warning_count,
                                       &program->warning_capacity, sizeof *program->warnings);
        program->warnings[program->warning_count++] =
            (struct ottl_warning){position, arena_strdup(&program->arena, place.text)};
    }
    text_deinit(text);
}

void ottl_warn_text(struct ottl_compiler *c, uint32_t position, const char *format, ...)
{
    struct error why;
    struct text text = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(why.text, sizeof why.text, format, args);
    va_end(args);
    text_append(&text, why.text);
    warn(c, position, &text);
}

/* Appends a path as it is written, without its keys; another node as "this". */
static void append_name(struct text *out, const struct ottl_ast *ast)
{
    if (ast->kind != OTTL_AST_PATH)
        text_append(out, "this");
    for (uint32_t i = 0; ast->kind == OTTL_AST_PATH && i < ast->segment_count; i++) {
        text_append(out, i > 0 ? "." : "");
        text_append_slice(out, ast->segments[i].name);
    }
}

static bool is_number(int kind)
{
    return kind == OTTL_INT || kind == OTTL_FLOAT;
}

static bool is_id(int kind)
{
    return kind == OTTL_TRACE_ID || kind == OTTL_SPAN_ID || kind == OTTL_PROFILE_ID;
}

/* ---- what to write instead ---- */

/* A value where another kind of value is needed. */
struct mismatch {
    const struct ottl_ast *path; /* NULL: the value is needed for something else */
    const struct ottl_path_row *row;
    int wanted;
    const struct ottl_node *value;
    int got;
};

static bool is_set_by(const struct mismatch *m, bool (*write)(struct ottl_evaluation *evaluation,
                                                              const struct ottl_path_row *row,
                                                              const struct ottl_value *value))
{
    return m->row && m->row->write == write;
}

/* "SERVER" for SPAN_KIND_SERVER. */
static const char *find_symbol(const struct ottl_value *value)
{
    char name[64];
    size_t size = value->bytes.size < sizeof name ? value->bytes.size : 0;
    for (size_t i = 0; i < size; i++)
        name[i] = (char)toupper(value->bytes.data[i]);
    return ottl_hint_enum(slice_of(name, size));
}

static void hint_symbol(const struct mismatch *m, struct text *out)
{
    bool is_kind = is_set_by(m, ottl_set_enum);
    const char *symbol = m->value->code == OTTL_CONSTANT ? find_symbol(&m->value->constant) : NULL;
    const char *beginning = is_kind ? "SPAN_KIND_" : "STATUS_CODE_";
    if (symbol && strncmp(symbol, beginning, strlen(beginning)) == 0)
        text_printf(out, "; write %s", symbol);
    else
        text_printf(out, "; write a constant, as %s",
                    is_kind ? "SPAN_KIND_SERVER" : "STATUS_CODE_ERROR");
}

static void hint_path(const struct mismatch *m, const char *part, struct text *out)
{
    text_append(out, "; use ");
    append_name(out, m->path);
    text_append(out, part);
}

/* nil, or a text without letters. */
static bool is_nothing(const struct mismatch *m)
{
    return m->got == OTTL_NIL || (m->got == OTTL_STRING && m->value->code == OTTL_CONSTANT &&
                                  m->value->constant.bytes.size == 0);
}

static void hint_id(const struct mismatch *m, struct text *out)
{
    static const char *const makers[] = {
        [OTTL_TRACE_ID] = "TraceID", [OTTL_SPAN_ID] = "SpanID", [OTTL_PROFILE_ID] = "ProfileID"};
    if (is_nothing(m) && strcmp(m->row->name, "parent_span_id") == 0)
        text_append(out, "; a span without a parent has zeros: IsRootSpan()");
    else if (m->got == OTTL_STRING)
        hint_path(m, ".string", out);
    else if (m->got == OTTL_BYTES)
        text_printf(out, "; write %s(0x...)", makers[m->wanted]);
    else if (m->got == OTTL_NIL)
        text_append(out, "; an absent id is zeros");
}

static void hint_time(const struct mismatch *m, struct text *out)
{
    if (m->got == OTTL_INT)
        hint_path(m, "_unix_nano", out);
    else
        text_append(out, "; write Now(), or Time(\"2026-01-31\", \"%Y-%m-%d\")");
}

/* "500" */
static bool is_quoted_number(const struct mismatch *m)
{
    double ignored;
    return m->value->code == OTTL_CONSTANT && m->got == OTTL_STRING &&
           go_parse_float(m->value->constant.bytes, &ignored);
}

/* Appends what to write instead of the value. */
static void hint_value(const struct mismatch *m, struct text *out)
{
    bool is_symbol = is_set_by(m, ottl_set_enum) || is_set_by(m, ottl_set_status_code);
    if (is_symbol && m->got == OTTL_STRING)
        hint_symbol(m, out);
    else if (m->path && is_id(m->wanted))
        hint_id(m, out);
    else if (m->path && m->wanted == OTTL_TIME && m->got != OTTL_DURATION)
        hint_time(m, out);
    else if (m->path && m->wanted == OTTL_STATUS)
        hint_path(m, ".code", out);
    else if (m->path && m->wanted == OTTL_OPAQUE)
        hint_path(m, ".type", out);
    else if (m->wanted == OTTL_INT && m->got == OTTL_TIME)
        text_append(out, "; write UnixNano(...)");
    else if (m->wanted == OTTL_DURATION)
        text_append(out, "; write Duration(\"1s\")");
    else if (is_number(m->wanted) && m->got == OTTL_DURATION)
        text_append(out, "; write Nanoseconds(...)");
    else if (is_number(m->wanted) && is_quoted_number(m))
        text_append(out, "; write it without quotes");
    else if (m->path && m->wanted == OTTL_STRING && m->got == OTTL_NIL)
        text_append(out, "; an absent text is \"\"");
    else if (m->wanted == OTTL_STRING && m->value->code == OTTL_CONSTANT)
        text_append(out, "; a text goes in quotes");
    else if (m->wanted == OTTL_STRING)
        text_append(out, "; write String(...)");
}

/* ---- values that a path never has ---- */

static bool is_hex(struct slice text, size_t bytes)
{
    bool is_digits = text.size == 2 * bytes;
    for (size_t i = 0; i < text.size && is_digits; i++)
        is_digits = text_hex_digit(text.data[i]) >= 0;
    return is_digits;
}

/* As kind.string has them. */
static bool is_kind_text(struct slice text)
{
    static const char *const names[] = {"Unspecified", "Internal", "Server",
                                        "Client",      "Producer", "Consumer"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_is(text, names[i]))
            return true;
    return false;
}

/* Returns what an integer must be, if it is not; NULL otherwise. */
static const char *find_range(const struct ottl_path_row *row, int64_t value)
{
    if (row->write == ottl_set_enum && (value < 0 || value > 5))
        return "a kind of span is SPAN_KIND_UNSPECIFIED (0) to SPAN_KIND_CONSUMER (5)";
    if (row->write == ottl_set_status_code && (value < 0 || value > 2))
        return "a status is STATUS_CODE_UNSET (0), STATUS_CODE_OK (1) or STATUS_CODE_ERROR (2)";
    bool is_small = row->write == ottl_set_count || row->write == ottl_set_flags;
    if (is_small && (value < 0 || value > UINT32_MAX))
        return "it must be between 0 and 4294967295";
    bool is_positive = row->write == ottl_set_duration || row->write == ottl_set_link_index;
    return is_positive && value < 0 ? "it must not be negative" : NULL;
}

/* Returns what a text must be, if it is not; NULL otherwise. */
static const char *find_form(const struct ottl_path_row *row, struct slice text)
{
    int64_t ignored;
    if (row->write == ottl_set_id_text && row->number == SPAN_TRACE_ID)
        return is_hex(text, TRACE_ID_SIZE) ? NULL : "a trace id is 32 hex digits";
    if (row->write == ottl_set_id_text)
        return is_hex(text, SPAN_ID_SIZE) ? NULL : "a span id is 16 hex digits";
    if (row->write == ottl_set_profile_id_text)
        return is_hex(text, PROFILE_ID_SIZE) ? NULL : "a profile id is 32 hex digits";
    if (row->write == ottl_set_kind_text)
        return is_kind_text(text)
                   ? NULL
                   : "it is one of Unspecified, Internal, Server, Client, Producer, Consumer";
    bool is_symbol =
        text.size > 5 && memcmp(text.data, "SPAN_", 5) == 0 && ottl_enum_find(text, &ignored);
    return row->write == ottl_set_kind_symbol && !is_symbol ? "write a text as SPAN_KIND_SERVER"
                                                            : NULL;
}

/* Returns what a constant of a path's kind must be, if it is not; NULL otherwise. */
static const char *find_problem(const struct ottl_path_row *row, const struct ottl_value *value)
{
    return value->kind == OTTL_INT      ? find_range(row, value->integer)
           : value->kind == OTTL_STRING ? find_form(row, value->bytes)
                                        : NULL;
}

/* ---- comparisons ---- */

static bool is_comparable(int one, int other)
{
    return one == OTTL_KIND_UNKNOWN || other == OTTL_KIND_UNKNOWN || one == other ||
           (is_number(one) && is_number(other));
}

/* Returns why an id, which is written with small letters, is never this text; NULL otherwise. */
static const char *find_capital(const struct ottl_path_row *row, struct slice text)
{
    bool is_id_text = row->write == ottl_set_id_text || row->write == ottl_set_profile_id_text;
    for (size_t i = 0; is_id_text && i < text.size; i++)
        if (text.data[i] >= 'A' && text.data[i] <= 'F')
            return "its hex digits are lower case";
    return NULL;
}

/* Returns why a path never equals a constant of its kind; NULL otherwise. A text may be compared
 * with "" to be sure that there is one. */
static const char *find_unequal(const struct ottl_path_row *row, const struct ottl_value *value,
                                enum ottl_operator operator)
{
    bool is_empty = value->kind == OTTL_STRING && value->bytes.size == 0;
    if ((operator!= OTTL_EQUAL && operator!= OTTL_NOT_EQUAL) ||
        (is_empty && (operator== OTTL_NOT_EQUAL || row->write != ottl_set_id_text)))
        return NULL;
    if (is_empty && row->number == SPAN_PARENT_SPAN_ID)
        return "a span id is 16 hex digits; a span without a parent has zeros: IsRootSpan()";
    const char *problem = find_problem(row, value);
    return problem || value->kind != OTTL_STRING ? problem : find_capital(row, value->bytes);
}

/* Appends what to compare instead of a function's result, or of a list, or with one. */
static void hint_comparison(const struct ottl_node *left, const struct mismatch *m,
                            struct text *out)
{
    bool is_call = left->code == OTTL_CALL;
    if (m->wanted == OTTL_LIST && m->got == OTTL_STRING)
        text_append(out, "; write ContainsValue(list, \"text\")");
    else if (m->wanted == OTTL_STRING && m->got == OTTL_LIST)
        text_append(out, "; compare it with each text, and join the comparisons by or");
    else if (m->wanted == OTTL_BOOL)
        text_append(out, "; it is a condition without a comparison");
    else if (is_call && is_number(m->wanted) && m->got == OTTL_DURATION)
        text_append(out, "; write a number");
    else
        hint_value(m, out);
}

static void append_outcome(struct text *out, enum ottl_operator operator)
{
    text_append(out, operator== OTTL_NOT_EQUAL ? "always true: " : "always false: ");
}

/* The kinds are the same. */
static void check_equality(struct ottl_compiler *c, const struct ottl_ast *ast,
                           const struct ottl_node *node, uint32_t fixed)
{
    const struct ottl_node *left = node->operands[fixed], *right = node->operands[!fixed];
    bool is_known = left->code == OTTL_PATH && left->key_count == 0 && right->code == OTTL_CONSTANT;
    const char *problem =
        is_known ? find_unequal(left->path, &right->constant, node->operators[1]) : NULL;
    struct text text = {0};
    if (!problem)
        return;
    append_outcome(&text, node->operators[1]);
    append_name(&text, ast->parts[fixed].value);
    text_printf(&text, " cannot be this: %s", problem);
    warn(c, ast->parts[!fixed].value->position, &text);
}

void ottl_warn_comparison(struct ottl_compiler *c, const struct ottl_ast *ast,
                          const struct ottl_node *node)
{
    /* The side that says what the other one should be. */
    uint32_t fixed = node->operands[0]->code == OTTL_CONSTANT;
    const struct ottl_node *left = node->operands[fixed], *right = node->operands[!fixed];
    const struct ottl_ast *subject = ast->parts[fixed].value;
    int kind = ottl_node_kind(left), other = ottl_node_kind(right);
    if (is_comparable(kind, other))
        check_equality(c, ast, node, fixed);
    if (left->code == OTTL_CONSTANT || is_comparable(kind, other))
        return;
    bool is_path = left->code == OTTL_PATH;
    struct mismatch m = {is_path ? subject : NULL, is_path ? left->path : NULL, kind, right, other};
    struct text text = {0};
    append_outcome(&text, node->operators[1]);
    append_name(&text, subject);
    text_printf(&text, " is %s, and is compared with %s", ottl_kind_name((enum ottl_kind)kind),
                ottl_kind_name((enum ottl_kind)other));
    hint_comparison(left, &m, &text);
    warn(c, ast->parts[!fixed].value->position, &text);
}

/* ---- mathematics ---- */

static bool is_of_time(int kind)
{
    return kind == OTTL_TIME || kind == OTTL_DURATION;
}

static void warn_of_operand(struct ottl_compiler *c, const struct ottl_ast *written, int kind,
                            enum ottl_operator operator)
{
    static const char symbols[] = {
        [OTTL_ADD] = '+', [OTTL_SUBTRACT] = '-', [OTTL_MULTIPLY] = '*', [OTTL_DIVIDE] = '/'};
    struct text text = {0};
    text_printf(&text, "fails each time it is evaluated: %c takes numbers and times, and ",
                symbols[operator]);
    append_name(&text, written);
    text_printf(&text, " is %s", ottl_kind_name((enum ottl_kind)kind));
    if (kind == OTTL_STRING)
        text_append(&text, operator== OTTL_ADD ? "; write Concat([...], \"\")"
                                               : "; write Int(...)");
    warn(c, written->position, &text);
}

static void warn_of_time(struct ottl_compiler *c, const struct ottl_ast *written, int kind)
{
    struct text text = {0};
    text_append(&text, "fails each time it is evaluated: numbers and times do not mix, and ");
    append_name(&text, written);
    text_printf(&text, " is %s", ottl_kind_name((enum ottl_kind)kind));
    if (kind == OTTL_DURATION) {
        text_append(&text, "; write Nanoseconds(...)");
    } else if (written->kind == OTTL_AST_PATH) {
        text_append(&text, "; use ");
        append_name(&text, written);
        text_append(&text, "_unix_nano");
    } else {
        text_append(&text, "; write UnixNano(...)");
    }
    warn(c, written->position, &text);
}

void ottl_warn_math(struct ottl_compiler *c, const struct ottl_ast *ast,
                    const struct ottl_node *node)
{
    uint32_t time = UINT32_MAX;
    bool has_number = false;
    assert(node->operand_count == ast->part_count);
    if (node->operand_count < 2) /* `+x` is x */
        return;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        int kind = ottl_node_kind(node->operands[i]);
        has_number |= is_number(kind);
        if (is_of_time(kind) && time == UINT32_MAX)
            time = i;
        if (is_number(kind) || is_of_time(kind) || kind == OTTL_KIND_UNKNOWN)
            continue;
        warn_of_operand(c, ast->parts[i].value, kind, node->operators[i ? i : 1]);
        return;
    }
    if (has_number && time != UINT32_MAX)
        warn_of_time(c, ast->parts[time].value, ottl_node_kind(node->operands[time]));
}

/* ---- set ---- */

/* Returns the argument of a parameter as it is written. */
static const struct ottl_ast *argument_of(const struct ottl_ast *call, const char *name,
                                          uint32_t index)
{
    for (uint32_t i = 0; i < call->part_count; i++)
        if (call->parts[i].name.size > 0 ? slice_is(call->parts[i].name, name) : i == index)
            return call->parts[i].value;
    return NULL;
}

/* The kind is right, but not the value. */
static void check_value(struct ottl_compiler *c, const struct ottl_ast *path,
                        const struct ottl_path_row *row, const struct ottl_ast *written,
                        const struct ottl_value *value)
{
    const char *problem = find_problem(row, value);
    struct text text = {0};
    if (!problem)
        return;
    append_name(&text, path);
    text_printf(&text, " cannot be this: %s", problem);
    warn(c, written->position, &text);
}

/* Returns how to write that there is none. */
static const char *empty_hint(int kind)
{
    return kind == OTTL_STRING    ? "; write \"\""
           : kind == OTTL_INT     ? "; write 0"
           : kind == OTTL_SPAN_ID ? "; write SpanID(0x0000000000000000)"
                                  : "";
}

static void check_field(struct ottl_compiler *c, const struct mismatch *m,
                        const struct ottl_ast *written)
{
    struct text text = {0};
    if (m->wanted == OTTL_MAP && m->got == OTTL_NIL)
        return;
    if (m->got == m->wanted) {
        if (m->value->code == OTTL_CONSTANT)
            check_value(c, m->path, m->row, written, &m->value->constant);
        return;
    }
    append_name(&text, m->path);
    if (m->got == OTTL_NIL) {
        text_printf(&text, " cannot be set to nil%s", empty_hint(m->wanted));
        warn(c, written->position, &text);
        return;
    }
    text_printf(&text, " takes %s, and not %s", ottl_kind_name((enum ottl_kind)m->wanted),
                ottl_kind_name((enum ottl_kind)m->got));
    if (m->wanted == OTTL_MAP)
        text_append(&text, "; a single entry is written with [\"key\"]");
    else
        hint_value(m, &text);
    warn(c, written->position, &text);
}

/* Values that an AnyValue cannot have. */
static void check_attribute(struct ottl_compiler *c, const struct ottl_ast *written, int got)
{
    const char *hint = got == OTTL_TIME       ? "; write FormatTime(...) or UnixNano(...)"
                       : got == OTTL_DURATION ? "; write Milliseconds(...) or String(...)"
                                              : "";
    struct text text = {0};
    bool is_path = written->kind == OTTL_AST_PATH;
    if (got != OTTL_TIME && got != OTTL_DURATION && got < OTTL_STATUS && !is_id(got))
        return;
    text_printf(&text, "an attribute cannot be %s%s", ottl_kind_name((enum ottl_kind)got), hint);
    if (is_path && (is_id(got) || got == OTTL_STATUS)) {
        text_append(&text, "; use ");
        append_name(&text, written);
        text_append(&text, got == OTTL_STATUS ? ".code" : ".string");
    }
    warn(c, written->position, &text);
}

void ottl_warn_value(struct ottl_compiler *c, const struct ottl_ast *ast,
                     const struct ottl_node *node)
{
    int got = ottl_node_kind(node);
    if (got == OTTL_NIL)
        ottl_warn_text(c, ast->position, "there is no value: this is nil");
    else
        check_attribute(c, ast, got);
}

static void check_set(struct ottl_compiler *c, const struct ottl_ast *call,
                      const struct ottl_node *node)
{
    const struct ottl_node *target = node->operands[0], *value = node->operands[1];
    const struct ottl_ast *path = argument_of(call, "target", 0);
    const struct ottl_ast *written = argument_of(call, "value", 1);
    int got = ottl_node_kind(value);
    if (target->code != OTTL_PATH || got == OTTL_KIND_UNKNOWN || !path || !written ||
        target->path->write == ottl_set_never)
        return;
    struct mismatch m = {path, target->path, ottl_node_kind(target), value, got};
    if (m.wanted != OTTL_KIND_UNKNOWN)
        check_field(c, &m, written);
    else if (target->path->is_map)
        check_attribute(c, written, got);
}

/* ---- other editors ---- */

/* Returns the kind of value that an editor changes; OTTL_KIND_UNKNOWN: any. */
static int changed_kind(const char *editor)
{
    static const char *const of_maps[] = {"delete_key",
                                          "delete_matching_keys",
                                          "keep_keys",
                                          "keep_matching_keys",
                                          "merge_maps",
                                          "truncate_all",
                                          "limit",
                                          "flatten",
                                          "stringify_all",
                                          "replace_all_patterns",
                                          "replace_all_matches"};
    for (size_t i = 0; i < sizeof of_maps / sizeof *of_maps; i++)
        if (strcmp(editor, of_maps[i]) == 0)
            return OTTL_MAP;
    if (strcmp(editor, "replace_pattern") == 0 || strcmp(editor, "replace_match") == 0)
        return OTTL_STRING;
    return strcmp(editor, "append") == 0 ? OTTL_LIST : OTTL_KIND_UNKNOWN;
}

void ottl_warn_editor(struct ottl_compiler *c, const struct ottl_ast *call,
                      const struct ottl_node *node)
{
    const struct ottl_ast *path = argument_of(call, "target", 0);
    if (strcmp(node->function->name, "set") == 0)
        check_set(c, call, node);
    int wanted = changed_kind(node->function->name);
    if (!path || wanted == OTTL_KIND_UNKNOWN)
        return;
    int got = ottl_node_kind(node->operands[0]);
    if (got == OTTL_KIND_UNKNOWN || got == wanted)
        return;
    struct text text = {0};
    text_printf(&text, "%s changes %s, and ", node->function->name,
                ottl_kind_name((enum ottl_kind)wanted));
    append_name(&text, path);
    text_printf(&text, " is %s", ottl_kind_name((enum ottl_kind)got));
    warn(c, path->position, &text);
}

/* ---- arguments, keys, constants ---- */

void ottl_warn_argument(struct ottl_compiler *c, const struct ottl_ast *call, uint32_t index,
                        const struct ottl_node *argument, enum ottl_kind wanted)
{
    const struct ottl_ast *written = call->parts[index].value;
    int got = ottl_node_kind(argument);
    if (got == OTTL_KIND_UNKNOWN || got == (int)wanted)
        return;
    struct mismatch m = {NULL, NULL, (int)wanted, argument, got};
    struct text text = {0};
    text_printf(&text, "argument %u of %.*s takes %s, and ", index + 1, SLICE_ARG(call->text),
                ottl_kind_name(wanted));
    append_name(&text, written);
    text_printf(&text, " is %s", ottl_kind_name((enum ottl_kind)got));
    hint_value(&m, &text);
    warn(c, written->position, &text);
}

void ottl_warn_item(struct ottl_compiler *c, const struct ottl_ast *item,
                    const struct ottl_node *node)
{
    int got = ottl_node_kind(node);
    if (got == OTTL_KIND_UNKNOWN || got == OTTL_STRING)
        return;
    struct mismatch m = {NULL, NULL, OTTL_STRING, node, got};
    struct text text = {0};
    text_append(&text, "the list takes texts, and ");
    append_name(&text, item);
    text_printf(&text, " is %s", ottl_kind_name((enum ottl_kind)got));
    hint_value(&m, &text);
    warn(c, item->position, &text);
}

void ottl_warn_result(struct ottl_compiler *c, const struct ottl_ast *name,
                      const struct ottl_node *call)
{
    int got = ottl_node_kind(call);
    if (got != OTTL_KIND_UNKNOWN && got != OTTL_STRING)
        ottl_warn_text(c, name->position, "the result must be a text, and that of %.*s is %s",
                       SLICE_ARG(name->text), ottl_kind_name((enum ottl_kind)got));
}

void ottl_warn_keys(struct ottl_compiler *c, const struct ottl_ast *path,
                    const struct ottl_node *node)
{
    if (!node->path->is_map || node->key_count == 0 || node->keys[0]->code != OTTL_CONSTANT ||
        node->keys[0]->constant.kind == OTTL_STRING)
        return;
    struct text text = {0};
    append_name(&text, path);
    text_printf(&text, " is a map, and %s is no key of it; a key is a text",
                ottl_kind_name(node->keys[0]->constant.kind));
    warn(c, path->segments[path->segment_count - 1].keys.items[0]->position, &text);
}

/* Only where the failure is, and not above it. */
void ottl_warn_failure(struct ottl_compiler *c, uint32_t position, const struct ottl_node *node)
{
    struct ottl_value value;
    struct error why;
    struct text text = {0};
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (node->operands[i] && node->operands[i]->code != OTTL_CONSTANT)
            return;
    assert(node->level == OTTL_LEVEL_CONSTANT);
    if (ottl_node_fold(node, &c->program->arena, &value, &why))
        return;
    text_printf(&text, "fails each time it is evaluated: %s", why.text);
    warn(c, position, &text);
}
