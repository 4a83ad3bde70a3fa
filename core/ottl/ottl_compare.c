#include "core/base/memory.h"
#include "core/ottl/ottl_value.h"

#include <assert.h>

/* ---- one of each ---- */

static bool decide(int order, enum ottl_operator operator)
{
    switch (operator) {
    case OTTL_EQUAL:
        return order == 0;
    case OTTL_NOT_EQUAL:
        return order != 0;
    case OTTL_LESS:
        return order < 0;
    case OTTL_LESS_OR_EQUAL:
        return order <= 0;
    case OTTL_GREATER:
        return order > 0;
    default:
        assert(operator== OTTL_GREATER_OR_EQUAL);
        return order >= 0;
    }
}

/* NaN is equal to nothing, and in no order. */
static bool compare_floats(double a, enum ottl_operator operator, double b)
{
    if (a != a || b != b)
        return operator== OTTL_NOT_EQUAL;
    return decide((a > b) - (a < b), operator);
}

static int order_of_bytes(struct slice a, struct slice b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int order_of_ints(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* ---- maps and lists ---- */

static bool are_equal(const struct ottl_value *a, const struct ottl_value *b);

/* The Collector compares a map inside a written list by identity. */
static bool holds_map(const struct ottl_value *list)
{
    for (uint32_t i = 0; list->form == OTTL_FORM_ENTRIES && i < list->count; i++)
        if (list->entries[i].value.kind == OTTL_MAP)
            return true;
    return false;
}

static bool are_lists_comparable(const struct ottl_value *a, const struct ottl_value *b)
{
    bool same = a->form == b->form;
    if ((a->form == OTTL_FORM_SPLIT || b->form == OTTL_FORM_SPLIT) && !same)
        return false;
    return same || !(holds_map(a) || holds_map(b));
}

static bool are_lists_equal(const struct ottl_value *a, const struct ottl_value *b)
{
    struct ottl_cursor in_a = ottl_cursor(a), in_b = ottl_cursor(b);
    struct ottl_entry left, right;
    if (!are_lists_comparable(a, b))
        return false;
    for (;;) {
        bool more = ottl_cursor_next(&in_a, &left);
        if (more != ottl_cursor_next(&in_b, &right))
            return false;
        if (!more)
            return true;
        if (!are_equal(&left.value, &right.value))
            return false;
    }
}

/* An entry and its place, because the first of several with the same key counts. */
struct sorted_entry {
    struct ottl_entry entry;
    uint32_t place;
};

static int order_of_entries(const void *a, const void *b)
{
    const struct sorted_entry *left = a, *right = b;
    int order = order_of_bytes(left->entry.key, right->entry.key);
    return order != 0 ? order : order_of_ints(left->place, right->place);
}

static struct sorted_entry *sort(const struct ottl_value *map, uint32_t count)
{
    struct sorted_entry *sorted = memory_array(count + 1, sizeof *sorted);
    struct ottl_cursor cursor = ottl_cursor(map);
    for (uint32_t i = 0; i < count && ottl_cursor_next(&cursor, &sorted[i].entry); i++)
        sorted[i].place = i;
    qsort(sorted, count, sizeof *sorted, order_of_entries);
    return sorted;
}

/* Whether each entry of `a` equals the first one of `b` with its key; both are sorted. */
static bool are_sorted_equal(const struct sorted_entry *a, const struct sorted_entry *b,
                             uint32_t count)
{
    for (uint32_t i = 0, k = 0; i < count; i++) {
        while (k < count && order_of_bytes(b[k].entry.key, a[i].entry.key) < 0)
            k++;
        if (k == count || !slice_equal(b[k].entry.key, a[i].entry.key) ||
            !are_equal(&a[i].entry.value, &b[k].entry.value))
            return false;
    }
    return true;
}

static bool are_maps_equal(const struct ottl_value *a, const struct ottl_value *b)
{
    uint32_t count = ottl_value_count(a);
    if (count != ottl_value_count(b))
        return false;
    struct sorted_entry *left = sort(a, count), *right = sort(b, count);
    bool equal = are_sorted_equal(left, right, count);
    free(left);
    free(right);
    return equal;
}

/* Inside maps and lists, types must be the same: 1 is not 1.0. The depth of the data is limited by
 * the scan, that of written values by the parser. */
static bool are_equal(const struct ottl_value *a, const struct ottl_value *b)
{
    if (a->kind != b->kind)
        return false;
    return ottl_compare(a, OTTL_EQUAL, b);
}

/* ---- everything ---- */

static bool is_number(const struct ottl_value *value)
{
    return value->kind == OTTL_INT || value->kind == OTTL_FLOAT;
}

static double as_float(const struct ottl_value *value)
{
    return value->kind == OTTL_INT ? (double)value->integer : value->real;
}

static bool compare_equality(bool equal, enum ottl_operator operator)
{
    if (operator== OTTL_EQUAL)
        return equal;
    return operator== OTTL_NOT_EQUAL && !equal;
}

/* An id that is absent is all zeros. */
static bool are_ids_equal(const struct ottl_value *a, const struct ottl_value *b)
{
    static const uint8_t zeros[TRACE_ID_SIZE];
    size_t size = a->kind == OTTL_SPAN_ID ? SPAN_ID_SIZE : TRACE_ID_SIZE; /* a profile's, too */
    assert((a->bytes.size == 0 || a->bytes.size == size) &&
           (b->bytes.size == 0 || b->bytes.size == size));
    return memcmp(a->bytes.size ? a->bytes.data : zeros, b->bytes.size ? b->bytes.data : zeros,
                  size) == 0;
}

static bool compare_same_kind(const struct ottl_value *a, enum ottl_operator operator,
                              const struct ottl_value * b)
{
    switch (a->kind) {
    case OTTL_NIL:
        return decide(0, operator);
    case OTTL_BOOL:
        return decide(a->truth - b->truth, operator);
    case OTTL_INT:
    case OTTL_TIME:
    case OTTL_DURATION:
        return decide(order_of_ints(a->integer, b->integer), operator);
    case OTTL_FLOAT:
        return compare_floats(a->real, operator, b->real);
    case OTTL_STRING:
    case OTTL_BYTES:
        if (operator== OTTL_EQUAL || operator== OTTL_NOT_EQUAL)
            return compare_equality(slice_equal(a->bytes, b->bytes), operator);
        return decide(order_of_bytes(a->bytes, b->bytes), operator);
    case OTTL_TRACE_ID:
    case OTTL_SPAN_ID:
    case OTTL_PROFILE_ID:
        return compare_equality(are_ids_equal(a, b), operator);
    case OTTL_MAP:
        return compare_equality(are_maps_equal(a, b), operator);
    case OTTL_LIST:
        return compare_equality(are_lists_equal(a, b), operator);
    default: /* the same status or list of messages, there is no other */
        return compare_equality(a->message == b->message && a->number == b->number, operator);
    }
}

/* The Collector does not tell empty bytes from nil. */
static bool is_nil_or_no_bytes(const struct ottl_value *value)
{
    return value->kind == OTTL_NIL || (value->kind == OTTL_BYTES && value->bytes.size == 0);
}

bool ottl_compare(const struct ottl_value *left, enum ottl_operator operator,
                  const struct ottl_value * right)
{
    if (left->kind == right->kind)
        return compare_same_kind(left, operator, right);
    if (is_number(left) && is_number(right))
        return compare_floats(as_float(left), operator, as_float(right));
    if (is_nil_or_no_bytes(left) && is_nil_or_no_bytes(right))
        return decide(0, operator);
    return operator== OTTL_NOT_EQUAL;
}
