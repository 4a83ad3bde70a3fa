#include "core/ottl/ottl_node_kinds.h"

#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_path.h"
#include "core/ottl/ottl_profile_setters.h"
#include "core/ottl/ottl_setters.h"

#include <assert.h>

const char *ottl_kind_name(enum ottl_kind kind)
{
    static const char *const names[] = {
        [OTTL_NIL] = "nil",
        [OTTL_BOOL] = "a bool",
        [OTTL_INT] = "an integer",
        [OTTL_FLOAT] = "a float",
        [OTTL_STRING] = "a text",
        [OTTL_BYTES] = "bytes",
        [OTTL_TIME] = "a time",
        [OTTL_DURATION] = "a duration",
        [OTTL_TRACE_ID] = "a trace id",
        [OTTL_SPAN_ID] = "a span id",
        [OTTL_PROFILE_ID] = "a profile id",
        [OTTL_MAP] = "a map",
        [OTTL_LIST] = "a list",
        [OTTL_STATUS] = "a status",
        [OTTL_MESSAGES] = "events or links",
        [OTTL_OPAQUE] = "a type of values",
    };
    assert((size_t)kind < sizeof names / sizeof *names && names[kind]);
    return names[kind];
}

/* What is set has the kind that is read. */
static const struct {
    bool (*write)(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                  const struct ottl_value *value);
    enum ottl_kind kind;
} setters[] = {
    {ottl_set_text, OTTL_STRING},
    {ottl_set_bytes, OTTL_BYTES},
    {ottl_set_count, OTTL_INT},
    {ottl_set_int, OTTL_INT},
    {ottl_set_enum, OTTL_INT},
    {ottl_set_flags, OTTL_INT},
    {ottl_set_ns, OTTL_INT},
    {ottl_set_time, OTTL_TIME},
    {ottl_set_trace_id, OTTL_TRACE_ID},
    {ottl_set_span_id, OTTL_SPAN_ID},
    {ottl_set_id_text, OTTL_STRING},
    {ottl_set_kind_text, OTTL_STRING},
    {ottl_set_kind_symbol, OTTL_STRING},
    {ottl_set_status, OTTL_STATUS},
    {ottl_set_status_code, OTTL_INT},
    {ottl_set_status_message, OTTL_STRING},
    {ottl_set_messages, OTTL_MESSAGES},
    {ottl_set_duration, OTTL_INT},
    {ottl_set_type, OTTL_STRING},
    {ottl_set_unit, OTTL_STRING},
    {ottl_set_value_type, OTTL_OPAQUE},
    {ottl_set_profile_id, OTTL_PROFILE_ID},
    {ottl_set_profile_id_text, OTTL_STRING},
    {ottl_set_attribute_indices, OTTL_LIST},
    {ottl_set_link_index, OTTL_INT},
    {ottl_set_values, OTTL_LIST},
    {ottl_set_timestamps, OTTL_LIST},
};

/* Paths that cannot be set. */
static const struct {
    const char *name;
    enum ottl_kind kind;
} read_only[] = {
    {"leaf.file", OTTL_STRING},
    {"leaf.function", OTTL_STRING},
    {"leaf.mapping", OTTL_STRING},
    {"link.span_id", OTTL_SPAN_ID},
    {"link.span_id.string", OTTL_STRING},
    {"link.trace_id", OTTL_TRACE_ID},
    {"stack.depth", OTTL_INT},
    {"link.trace_id.string", OTTL_STRING},
    {"stack.functions", OTTL_LIST},
    {"original_payload", OTTL_BYTES},
    {"event_index", OTTL_INT},
    {"original_payload_format", OTTL_STRING},
};

int ottl_path_kind(const struct ottl_path_row *row)
{
    if (row->is_map)
        return OTTL_MAP;
    for (size_t i = 0; i < sizeof setters / sizeof *setters && row->write; i++)
        if (row->write == setters[i].write)
            return (int)setters[i].kind;
    for (size_t i = 0; i < sizeof read_only / sizeof *read_only; i++)
        if (strcmp(row->name, read_only[i].name) == 0)
            return (int)read_only[i].kind;
    return OTTL_KIND_UNKNOWN;
}

/* What functions return whenever they do not fail. */
static const struct {
    enum ottl_kind kind;
    const char *names[24]; /* ended by NULL */
} calls[] = {
    {OTTL_TIME, {"Now", "Time", "TruncateTime", "Unix"}},
    {OTTL_TRACE_ID, {"TraceID"}},
    {OTTL_SPAN_ID, {"SpanID"}},
    {OTTL_PROFILE_ID, {"ProfileID"}},
    {OTTL_DURATION, {"Duration"}},
    {OTTL_STRING, {"Concat", "SHA256"}},
    {OTTL_INT,
     {"Len", "Milliseconds", "Microseconds", "Nanoseconds", "UnixNano", "UnixMicro", "UnixMilli",
      "UnixSeconds", "Year", "Month", "Day", "Weekday", "Hour", "Minute", "Second", "Nanosecond"}},
    {OTTL_FLOAT, {"Hours", "Minutes", "Seconds"}},
    {OTTL_BOOL,
     {"IsMatch", "HasPrefix", "HasSuffix", "ContainsValue", "IsRootSpan", "IsEmpty", "IsString",
      "IsInt", "IsDouble", "IsBool", "IsMap", "IsList", "IsInCIDR", "IsValidLuhn"}},
};

static int kind_of_call(const struct ottl_function *function)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (const char *const *name = calls[i].names; *name; name++)
            if (strcmp(function->name, *name) == 0)
                return (int)calls[i].kind;
    return OTTL_KIND_UNKNOWN;
}

/* The result of an operation: integers make an integer, and with a float a float; of times and
 * durations it is that of + and -, as end_time - start_time. */
static int kind_of_operation(int left, enum ottl_operator operator, int right)
{
    bool subtracts = operator== OTTL_SUBTRACT, adds = operator== OTTL_ADD;
    bool are_numbers =
        (left == OTTL_INT || left == OTTL_FLOAT) && (right == OTTL_INT || right == OTTL_FLOAT);
    if (are_numbers)
        return left == OTTL_FLOAT ? left : right;
    if (left == OTTL_TIME && right == OTTL_TIME && subtracts)
        return OTTL_DURATION;
    bool moves = (left == OTTL_TIME || left == OTTL_DURATION) && right == OTTL_DURATION;
    return moves && (adds || subtracts) ? left : OTTL_KIND_UNKNOWN;
}

static int kind_of_math(const struct ottl_node *node)
{
    int kind = ottl_node_kind(node->operands[0]);
    for (uint32_t i = 1; i < node->operand_count; i++)
        kind = kind_of_operation(kind, node->operators[i], ottl_node_kind(node->operands[i]));
    return kind;
}

/* The parser limits the depth. */
int ottl_node_kind(const struct ottl_node *node)
{
    switch (node->code) {
    case OTTL_CONSTANT:
        return (int)node->constant.kind;
    case OTTL_PATH:
        if (node->path->indexing == OTTL_TRACE_STATE_INDEXED)
            return OTTL_STRING;
        return node->key_count > 0 ? OTTL_KIND_UNKNOWN : ottl_path_kind(node->path);
    case OTTL_CALL:
        return node->key_count > 0 ? OTTL_KIND_UNKNOWN : kind_of_call(node->function);
    case OTTL_MATH:
        return kind_of_math(node);
    default:
        return OTTL_KIND_UNKNOWN;
    }
}
