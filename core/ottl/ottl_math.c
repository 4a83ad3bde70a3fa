#include "core/ottl/ottl_value.h"

#include <assert.h>
#include <stdio.h>

/* Integers wrap around, as in Go: in C an overflow has no meaning, and INT64_MIN / -1 ends the
 * process. */
static int64_t wrap(uint64_t bits)
{
    return (int64_t)bits;
}

static bool compute_ints(int64_t a, enum ottl_operator operator, int64_t b, struct ottl_value *out,
                         struct error *err)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    if (operator== OTTL_DIVIDE && b == 0)
        return error_set(err, "attempted to divide by 0");
    if (operator== OTTL_ADD)
        *out = ottl_int(wrap(x + y));
    else if (operator== OTTL_SUBTRACT)
        *out = ottl_int(wrap(x - y));
    else if (operator== OTTL_MULTIPLY)
        *out = ottl_int(wrap(x * y));
    else
        *out = ottl_int(b == -1 ? wrap(0 - x) : a / b);
    return true;
}

static bool compute_floats(double a, enum ottl_operator operator, double b, struct ottl_value *out,
                           struct error *err)
{
    if (operator== OTTL_DIVIDE && b == 0)
        return error_set(err, "attempted to divide by 0");
    if (operator== OTTL_ADD)
        *out = ottl_float(a + b);
    else if (operator== OTTL_SUBTRACT)
        *out = ottl_float(a - b);
    else if (operator== OTTL_MULTIPLY)
        *out = ottl_float(a * b);
    else
        *out = ottl_float(a / b);
    return true;
}

/* ---- times and durations ---- */

/* Whether the sum or difference is within what 64 bits of nanoseconds can say; if not, *out is the
 * first or last of these. */
static bool add_ns(int64_t a, int64_t b, bool is_added, int64_t *out)
{
    if (is_added ? !__builtin_add_overflow(a, b, out) : !__builtin_sub_overflow(a, b, out))
        return true;
    *out = a < 0 ? INT64_MIN : INT64_MAX;
    return false;
}

static struct ottl_value duration(int64_t ns)
{
    return (struct ottl_value){.kind = OTTL_DURATION, .integer = ns};
}

static bool compute_times(const struct ottl_value *a, enum ottl_operator operator,
                          const struct ottl_value * b, struct ottl_value *out, struct error *err)
{
    bool is_added = operator== OTTL_ADD, has_time = a->kind == OTTL_TIME || b->kind == OTTL_TIME;
    if (operator!= OTTL_ADD && operator!= OTTL_SUBTRACT)
        return error_set(err,
                         "only addition and subtraction supported for time.Time and time.Duration");
    bool is_ok =
        b->kind == OTTL_DURATION || (b->kind == OTTL_TIME && is_added != (a->kind == OTTL_TIME));
    if (!is_ok)
        return error_set(err, "%s cannot be %s %s", ottl_type_name(b),
                         is_added ? "added to" : "subtracted from", ottl_type_name(a));
    bool is_time = has_time && (is_added || b->kind == OTTL_DURATION);
    int64_t ns;
    if (!add_ns(a->integer, b->integer, is_added, &ns) && is_time)
        return error_set(err, "the time is out of range");
    *out = is_time ? ottl_time(ns, a->kind == OTTL_TIME ? a->zone : b->zone) : duration(ns);
    return true;
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

/* Says what the value is that is no number; long texts are cut. */
static bool refuse(const struct ottl_value *value, const char *wanted, struct error *err)
{
    if (value->kind == OTTL_NIL)
        return error_set(err, "<nil> must be %s", wanted);
    if (value->kind == OTTL_STRING)
        return error_set(err, "%.*s must be %s", (int)text_utf8_cut(value->bytes, 100),
                         (const char *)value->bytes.data, wanted);
    return error_set(err, "%s must be %s", ottl_type_name(value), wanted);
}

bool ottl_compute(const struct ottl_value *left, enum ottl_operator operator,
                  const struct ottl_value * right, struct ottl_value *out, struct error *err)
{
    assert(operator>= OTTL_ADD && operator<= OTTL_DIVIDE);
    if (left->kind == OTTL_TIME || left->kind == OTTL_DURATION)
        return compute_times(left, operator, right, out, err);
    if (!is_number(left))
        return refuse(left, "int64, float64, time.Time or time.Duration", err);
    if (!is_number(right))
        return refuse(right, "int64 or float64", err);
    if (left->kind == OTTL_INT && right->kind == OTTL_INT)
        return compute_ints(left->integer, operator, right->integer, out, err);
    return compute_floats(as_float(left), operator, as_float(right), out, err);
}

bool ottl_negate(const struct ottl_value *value, struct ottl_value *out, struct error *err)
{
    if (value->kind == OTTL_INT)
        *out = ottl_int(wrap(0 - (uint64_t)value->integer));
    else if (value->kind == OTTL_FLOAT)
        *out = ottl_float(-value->real);
    else
        return error_set(err, "unsupported unary minus operation on type %s",
                         ottl_type_name(value));
    return true;
}
