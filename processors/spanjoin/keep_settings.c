#include "processors/spanjoin/keep_settings.h"

#include "config/value.h"
#include "core/data/sampling.h"
#include "core/ottl/ottl_check.h"
#include "core/pipeline/cpu_share.h"
#include "processors/spanjoin/own_paths.h"
#include "processors/spanjoin/resource_keys.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const fates[] = {"fold", "drop", "pass", NULL};
enum { DESCRIBED_MAX = 16 /* conditions in the log */ };

static const char *const codes[] = {"unset", "ok", "error", NULL};

static const struct field attribute_fields[] = {
    FIELD_STRING(keep_attribute, key, "Attribute of the span.", .required = true),
    FIELD_STRING(keep_attribute, matches, "Regular expression (RE2), which matches anywhere."),
    FIELD_DOUBLE(keep_attribute, above, "Number that its value is above.",
                 .given = FIELD_GIVEN(keep_attribute, has_above)),
    FIELD_DOUBLE(keep_attribute, below, "Number that its value is below.",
                 .given = FIELD_GIVEN(keep_attribute, has_below)),
    FIELD_END};

#define GIVEN(KIND) .given = FIELD_GIVEN(keep_condition, given[KIND])

static const struct field condition_fields[] = {
    FIELD_DURATION(keep_condition, duration_above, "The span takes longer.", .min = "0s",
                   GIVEN(KEEP_DURATION_ABOVE)),
    FIELD_ENUM(keep_condition, status, "Status of the span.", codes, GIVEN(KEEP_STATUS)),
    FIELD_DURATION(keep_condition, cpu_above,
                   "Samples of the span have more CPU time, counted when a request leaves.",
                   .min = "0s", GIVEN(KEEP_CPU_ABOVE)),
    FIELD_DOUBLE(keep_condition, cpu_share_above,
                 "Likewise, as a part of the span's duration (1: one processor).", .min = "0",
                 GIVEN(KEEP_CPU_SHARE_ABOVE)),
    FIELD_OPTIONAL(keep_condition, attribute, keep_attribute, attribute_fields,
                   "An attribute of the span matches, or is above or below a number.",
                   GIVEN(KEEP_ATTRIBUTE)),
    FIELD_DOUBLE(keep_condition, ratio,
                 "Part of all traces, by trace id: everywhere the same for one trace.", .min = "0",
                 .max = "1", GIVEN(KEEP_RATIO)),
    FIELD_STRING(keep_condition, condition, "OTTL condition on the span.", GIVEN(KEEP_CONDITION)),
    FIELD_END};

const struct field keep_fields[] = {
    FIELD_LIST(keep_settings, span_detail_when, keep_condition, condition_fields,
               "Of which spans samples keep their detail; one condition is enough. Each has one "
               "key."),
    FIELD_ENUM(keep_settings, otherwise,
               "What becomes of samples whose span matches no condition. `fold`: they lose their "
               "link and what names one span or says when it ran, and equal ones are combined; "
               "totals stay exact. `drop`: they are removed. `pass`: nothing.",
               fates, .fallback = "fold"),
    FIELD_ENUM(keep_settings, unjoined, "What becomes of samples without a span.", fates,
               .fallback = "pass"),
    FIELD_BOOL(keep_settings, dry_run,
               "Only count what would become of samples (`profcol_spanjoin_keep_samples`).",
               .fallback = "false"),
    FIELD_END};

static const char *const kind_names[KEEP_KINDS] = {
    "duration_above", "status", "cpu_above", "cpu_share_above", "attribute", "ratio", "condition"};

/* ---- conditions on attributes, as OTTL ---- */

/* Appends a number as it is written. A double does not have all digits of a large integer. In OTTL
 * a fraction has a point. */
static void append_number(struct text *out, const char *written, double number)
{
    int64_t whole;
    if (written && config_parse_int(slice_of_string(written), &whole) && whole > INT64_MIN) {
        text_printf(out, "%" PRId64, whole);
        return;
    }
    char digits[32];
    int size = snprintf(digits, sizeof digits, "%.15g", number);
    if (strtod(digits, NULL) != number)
        size = snprintf(digits, sizeof digits, "%.17g", number);
    int mantissa = (int)strcspn(digits, "e");
    assert(size > 0 && (size_t)size < sizeof digits);
    text_printf(out, "%.*s%s%s", mantissa, digits, strchr(digits, '.') ? "" : ".0",
                digits + mantissa);
}

/* A comparison of an attribute with the number of this key of the block at `path`. */
struct bound {
    const char *name;
    const char *operator;
    double number;
};

static void append_bound(struct config_check *check, const char *path, const char *key,
                         const struct bound *bound, struct text *out)
{
    const char *number = config_check_key(check, path, bound->name);
    text_append(out, out->size ? " and " : "");
    text_append(out, "span.attributes[");
    ottl_append_text(out, key);
    text_printf(out, "] %s ", bound->operator);
    append_number(out, config_check_text(check, number), bound->number);
}

/* path: of the block. */
static const char *attribute_condition(struct config_check *check, const char *path,
                                       const struct keep_attribute *attribute)
{
    struct text out = {0};
    const struct bound above = {"above", ">", attribute->above},
                       below = {"below", "<", attribute->below};
    if (attribute->matches) {
        text_append(&out, "IsMatch(span.attributes[");
        ottl_append_text(&out, attribute->key);
        text_append(&out, "], ");
        ottl_append_text(&out, attribute->matches);
        text_append(&out, ")");
    }
    if (attribute->has_above)
        append_bound(check, path, attribute->key, &above, &out);
    if (attribute->has_below)
        append_bound(check, path, attribute->key, &below, &out);
    const char *condition =
        out.size ? arena_strdup(config_check_arena(check), text_string(&out)) : NULL;
    text_deinit(&out);
    return condition;
}

/* A key that no span has as it is written. */
static void check_attribute_key(struct config_check *check, const char *path, const char *key)
{
    const char *bracket = strstr(key, "attributes[");
    const char *alone = string_begins_with(key, "resource.") ? key + 9 : key;
    if (key_is_of_resource(alone))
        config_check_warn(check, path,
                          "is an attribute of the resource, but that of the span is read; write "
                          "condition: 'resource.attributes[\"%s\"] == \"...\"'",
                          alone);
    else if (bracket && string_begins_with(key, "resource."))
        config_check_warn(check, path,
                          "is the name of one attribute of the span; for the resource's write "
                          "condition: '%s == \"...\"'",
                          key);
    else if (bracket)
        config_check_warn(check, path,
                          "is the name of the attribute alone; write it without "
                          "span.attributes[\"...\"]");
}

static void check_attribute_warnings(struct config_check *check, const char *path,
                                     const struct keep_attribute *attribute)
{
    check_attribute_key(check, config_check_key(check, path, "key"), attribute->key);
    if (attribute->has_below && attribute->has_above && attribute->above >= attribute->below)
        config_check_warn(check, config_check_key(check, path, "below"),
                          "no number is above %g and below %g", attribute->above, attribute->below);
    if (attribute->matches && !attribute->matches[0])
        config_check_warn(check, config_check_key(check, path, "matches"),
                          "is empty, so it matches every text");
}

/* Checks what OTTL does not know the place of, or accepts. */
static bool check_attribute(struct config_check *check, const char *path,
                            const struct keep_attribute *attribute)
{
    check_attribute_warnings(check, path, attribute);
    return !attribute->matches ||
           ottl_check_pattern(check, config_check_key(check, path, "matches"), attribute->matches);
}

/* Warns of a condition that is true of all spans, or of none. */
static void warn_of_all(struct config_check *check, const char *path, const char *what,
                        const char *advice)
{
    config_check_warn(check, path, "is %s, so otherwise and other conditions have no effect%s",
                      what, advice);
}

static void warn_of_none(struct config_check *check, const char *path, const char *what)
{
    config_check_warn(check, path, "is %s, so this condition has no effect", what);
}

static void warn_of_constant(struct config_check *check, const char *path,
                             const struct ottl_program *program)
{
    bool truth;
    if (!ottl_program_is_constant(program, &truth))
        return;
    if (truth)
        warn_of_all(check, path, "true of all spans", "");
    else
        warn_of_none(check, path, "true of no span");
}

/* Tells what a condition cannot read. */
static void tell_own_path(struct config_check *check, const char *path, const char *own)
{
    config_check_error(
        check, path, "conditions read only the span, its scope and its resource, and not %s%s", own,
        string_begins_with(own, "samples.")
            ? "; of CPU time there are cpu_above and cpu_share_above"
            : "");
}

static bool compiles(struct config_check *check, const char *path, const char *condition)
{
    struct error err;
    const char *own = own_paths_find(condition);
    struct ottl_program *program =
        ottl_compile_condition(OTTL_SPAN, slice_of_string(condition), OTTL_PREFIX_OPTIONAL, &err);
    if (program)
        warn_of_constant(check, path, program);
    if (!program && own) {
        tell_own_path(check, path, own);
        return false;
    }
    return ottl_check_program(check, path, program, &err);
}

/* ---- one condition ---- */

static const char *path_of(struct config_check *check, size_t i, enum keep_kind kind)
{
    return arena_printf(config_check_arena(check), "keep::span_detail_when::%zu::%s", i,
                        kind_names[kind]);
}

/* Returns one of the keys of an item as OTTL; NULL: OTTL does not know CPU time and ratios. */
static const char *as_ottl(struct config_check *check, size_t i, int kind,
                           const struct keep_condition *condition)
{
    static const char *const statuses[] = {"STATUS_CODE_UNSET", "STATUS_CODE_OK",
                                           "STATUS_CODE_ERROR"};
    struct arena *arena = config_check_arena(check);
    const char *of_attribute;
    switch (kind) {
    case KEEP_DURATION_ABOVE:
        return arena_printf(arena, "span.end_time_unix_nano - span.start_time_unix_nano > %" PRId64,
                            condition->duration_above);
    case KEEP_STATUS:
        return arena_printf(arena, "span.status.code == %s", statuses[condition->status]);
    case KEEP_ATTRIBUTE:
        of_attribute =
            attribute_condition(check, path_of(check, i, KEEP_ATTRIBUTE), &condition->attribute);
        return of_attribute ? of_attribute : "true";
    case KEEP_CONDITION:
        return arena_printf(arena, "(%s)", condition->condition);
    default:
        return NULL;
    }
}

/* Appends a text as it is written between the quotes of YAML. */
static void append_quoted(struct text *out, const char *text)
{
    for (; *text; text++)
        text_append(out, *text == '\'' ? "''" : (char[]){*text, '\0'});
}

/* Appends all keys of an item as one condition. Returns the key that cannot be in it; else NULL. */
static const char *join_conditions(struct config_check *check, size_t i,
                                   const struct keep_condition *condition, struct text *out)
{
    for (int kind = 0; kind < KEEP_KINDS; kind++) {
        if (!condition->given[kind])
            continue;
        const char *ottl = as_ottl(check, i, kind, condition);
        if (!ottl)
            return kind_names[kind];
        text_append(out, out->size ? " and " : "");
        append_quoted(out, ottl);
    }
    return NULL;
}

static void tell_several(struct config_check *check, size_t i, unsigned written,
                         const struct keep_condition *condition)
{
    const char *item = config_check_item(check, "keep::span_detail_when", i);
    struct text joined = {0};
    const char *alone = join_conditions(check, i, condition, &joined);
    if (alone)
        config_check_error(check, item,
                           "has %u conditions; one of the items is enough, so write each one as "
                           "an item of its own (%s cannot be combined with others)",
                           written, alone);
    else
        config_check_error(check, item,
                           "has %u conditions; if one of them is enough, write each one as an "
                           "item of its own; if all are needed, write condition: '%s'",
                           written, text_string(&joined));
    text_deinit(&joined);
}

static void tell_none(struct config_check *check, size_t i)
{
    struct text names = {0};
    for (int kind = 0; kind < KEEP_KINDS; kind++)
        text_printf(&names, "%s%s", kind ? ", " : "", kind_names[kind]);
    config_check_error(check, config_check_item(check, "keep::span_detail_when", i),
                       "has no condition; write one of %s", text_string(&names));
    text_deinit(&names);
}

/* ---- names of conditions ---- */

enum { NAME_MAX_BYTES = 120 };

/* Numbers as they are written, too: those that differ only in their last digits are different
 * labels. path: of the block. */
static void name_attribute(struct config_check *check, const char *path,
                           const struct keep_attribute *attribute, struct text *out)
{
    static const char *const keys[] = {"key", "matches", "above", "below"};
    const bool are_given[] = {attribute->key, attribute->matches, attribute->has_above,
                              attribute->has_below};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *at = config_check_key(check, path, keys[i]);
        const char *written = are_given[i] ? config_check_text(check, at) : NULL;
        if (written)
            text_printf(out, "%s%s: %s", i == 0 ? "{" : ", ", keys[i], written);
    }
    text_append(out, "}");
}

/* Returns the condition as it is written, cut if it is long. */
static const char *name_of(struct config_check *check, const char *path,
                           const struct keep_condition *condition)
{
    struct text out = {0};
    const char *written = config_check_text(check, path);
    text_printf(&out, "%s: ", kind_names[condition->kind]);
    if (condition->kind == KEEP_ATTRIBUTE)
        name_attribute(check, path, &condition->attribute, &out);
    else
        text_append(&out, written ? written : "");
    struct slice all = slice_of(out.data, out.size);
    size_t size = text_utf8_cut(all, NAME_MAX_BYTES);
    const char *name = arena_printf(config_check_arena(check), "%.*s%s", (int)size, out.data,
                                    size < all.size ? "..." : "");
    text_deinit(&out);
    return name;
}

static void add_name(struct keep_names *names, struct text *all, int by, const char *name)
{
    enum { NAMES_MAX_BYTES = KEEP_BY_END * (NAME_MAX_BYTES + 8) };
    _Static_assert(NAMES_MAX_BYTES <= UINT16_MAX, "places have 16 bits");
    names->at[by] = (uint16_t)all->size;
    text_append(all, name);
    text_append_char(all, '\0');
    assert(all->size <= NAMES_MAX_BYTES);
}

static void set_names(struct keep_settings *keep, struct arena *arena)
{
    const struct keep_condition *conditions = keep->span_detail_when.items;
    struct keep_names *names = &keep->names;
    struct text all = {0};
    add_name(names, &all, 0, "");
    for (size_t i = 0; i < keep->span_detail_when.count && i < KEEP_BY_NAMED_MAX; i++)
        if (conditions[i].name)
            add_name(names, &all, keep_by_condition(i), conditions[i].name);
    add_name(names, &all, KEEP_BY_OTHER, "other");
    add_name(names, &all, KEEP_BY_EARLIER, "before the reload");
    add_name(names, &all, KEEP_BY_ROOT, "that of the root");
    names->size = (uint32_t)all.size;
    names->text = (const char *)arena_copy(arena, slice_of(all.data, all.size)).data;
    text_deinit(&all);
}

/* A block `attribute` with `enabled: false` has no key: it is refused. */
static bool is_on(struct config_check *check, size_t i, const struct keep_condition *condition)
{
    bool is_off = condition->given[KEEP_ATTRIBUTE] && !condition->attribute.enabled;
    if (is_off)
        config_check_error(check, path_of(check, i, KEEP_ATTRIBUTE),
                           "a condition cannot be turned off; remove it");
    return !is_off;
}

/* Sets the kind by the key that is written. Returns false if it is not exactly one. */
static bool read_kind(struct config_check *check, size_t i, struct keep_condition *condition)
{
    unsigned written = 0;
    if (!is_on(check, i, condition))
        return false;
    for (int kind = 0; kind < KEEP_KINDS; kind++)
        if (condition->given[kind]) {
            condition->kind = (enum keep_kind)kind;
            written++;
        }
    if (written == 0)
        tell_none(check, i);
    else if (written > 1)
        tell_several(check, i, written, condition);
    return written == 1;
}

static void read_condition(struct config_check *check, size_t i, struct keep_settings *keep,
                           struct keep_condition *condition)
{
    const char *path = path_of(check, i, condition->kind);
    condition->name = name_of(check, path, condition);
    switch (condition->kind) {
    case KEEP_DURATION_ABOVE:
        if (condition->duration_above == 0)
            warn_of_all(check, path, "all spans that take any time", "");
        break;
    case KEEP_CPU_ABOVE:
        keep->reads_cpu = true;
        break;
    case KEEP_CPU_SHARE_ABOVE:
        keep->reads_cpu = true;
        cpu_share_check(check, path, condition->cpu_share_above);
        break;
    case KEEP_RATIO:
        condition->threshold = sampling_threshold(condition->ratio, SAMPLING_DIGITS);
        if (condition->ratio >= 1)
            warn_of_all(check, path, "all traces", "; for 1 % write 0.01");
        else if (condition->ratio <= 0)
            warn_of_none(check, path, "no trace");
        break;
    case KEEP_ATTRIBUTE:
        if (!check_attribute(check, path, &condition->attribute))
            break;
        condition->ottl = attribute_condition(check, path, &condition->attribute);
        if (!condition->ottl)
            config_check_error(check, path, "needs `matches`, `above` or `below`");
        break;
    case KEEP_CONDITION:
        condition->ottl = condition->condition;
        break;
    default:
        break;
    }
    if (condition->ottl)
        keep->reads_ottl |= compiles(check, path, condition->ottl);
}

/* ---- what becomes of the others ---- */

static const char *duration_text(struct config_check *check, int64_t ns)
{
    struct text text = {0};
    assert(ns >= 0);
    text_append_duration(&text, (uint64_t)ns);
    const char *copy = arena_strdup(config_check_arena(check), text_string(&text));
    text_deinit(&text);
    return copy;
}

static void check_fates(const struct keep_settings *keep, int64_t samples_wait_ns,
                        struct config_check *check)
{
    if (keep->unjoined != KEEP_PASS)
        config_check_warn(check, "keep::unjoined",
                          "samples of a span that takes longer than samples::wait (%s) leave "
                          "before it arrives, so the slowest requests lose their detail; pass "
                          "keeps it",
                          duration_text(check, samples_wait_ns));
    else if (keep->otherwise == KEEP_PASS)
        config_check_warn(check, "keep::otherwise",
                          "keep changes nothing: otherwise and unjoined are both pass; write "
                          "otherwise: fold to combine the samples of other spans");
}

void keep_check(struct keep_settings *keep, int64_t samples_wait_ns, struct config_check *check)
{
    struct keep_condition *conditions = keep->span_detail_when.items;
    keep->reads_cpu = keep->reads_ottl = false;
    if (keep->span_detail_when.count == 0)
        config_check_error(check, "keep::span_detail_when",
                           "at least one condition is required, such as {duration_above: 1s}");
    for (size_t i = 0; i < keep->span_detail_when.count; i++)
        if (read_kind(check, i, &conditions[i]))
            read_condition(check, i, keep, &conditions[i]);
    set_names(keep, config_check_arena(check));
    check_fates(keep, samples_wait_ns, check);
}

void keep_describe(const struct keep_settings *keep, struct text *out)
{
    const struct keep_condition *conditions = keep->span_detail_when.items;
    if (!keep->enabled) {
        text_append(out, "off");
        return;
    }
    text_append(out, fates[keep->otherwise]);
    for (size_t i = 0; i < keep->span_detail_when.count && i < DESCRIBED_MAX; i++)
        text_printf(out, "%s %s", i == 0 ? " unless" : ",",
                    condition_fields[conditions[i].kind].name);
    if (keep->span_detail_when.count > DESCRIBED_MAX)
        text_append(out, ", ...");
    text_append(out, keep->dry_run ? " (dry_run)" : "");
}
