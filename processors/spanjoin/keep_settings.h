/*
 * keep_settings: the block `keep` of spanjoin: of which spans samples keep their detail, and what
 * becomes of the others.
 *
 * Owner: the configuration; everything lives in its arena.
 *
 * Thread: read-only after the check.
 */
#ifndef PROFCOL_SPANJOIN_KEEP_SETTINGS_H
#define PROFCOL_SPANJOIN_KEEP_SETTINGS_H

#include "config/config.h"
#include "core/base/text.h"

enum keep_kind {
    KEEP_DURATION_ABOVE,
    KEEP_STATUS,
    KEEP_CPU_ABOVE,
    KEEP_CPU_SHARE_ABOVE,
    KEEP_ATTRIBUTE,
    KEEP_RATIO,
    KEEP_CONDITION,
    KEEP_KINDS
};

struct keep_attribute {
    bool enabled;
    const char *key;
    const char *matches; /* NULL: any */
    double above;
    double below;
    bool has_above;
    bool has_below;
};

struct keep_condition {
    int64_t duration_above;
    int status; /* of OTLP: 0 unset, 1 ok, 2 error */
    int64_t cpu_above;
    double cpu_share_above;
    struct keep_attribute attribute;
    double ratio;
    const char *condition;
    bool given[KEEP_KINDS]; /* the keys that were written */
    /* derived */
    enum keep_kind kind;
    const char *name;   /* for people, as it is written: "duration_above: 1s" */
    const char *ottl;   /* of KEEP_ATTRIBUTE and KEEP_CONDITION, on spans */
    uint64_t threshold; /* of KEEP_RATIO (core/data/sampling.h) */
};

/* Why samples keep their detail: 0: they do not; from 1: the number of a condition, in their order;
 * then: */
enum keep_by {
    KEEP_BY_NAMED_MAX = 16,                /* conditions with a number of their own */
    KEEP_BY_OTHER = KEEP_BY_NAMED_MAX + 1, /* a further condition */
    KEEP_BY_EARLIER,                       /* one of the `keep` before a reload */
    KEEP_BY_ROOT,                          /* their root keeps it (attribute_children) */
    KEEP_BY_END
};

/* What becomes of samples. */
enum keep_fate { KEEP_FOLD, KEEP_DROP, KEEP_PASS };

/* Names for people of why samples keep their detail, by enum keep_by. */
struct keep_names {
    const char *text; /* one after another, each with its NUL; the first is empty: of 0 */
    uint32_t size;
    uint16_t at[KEEP_BY_END]; /* where it begins; 0: there is none */
};

struct keep_settings {
    bool enabled;
    struct config_list span_detail_when; /* struct keep_condition; one that is true is enough */
    int otherwise;                       /* enum keep_fate, of samples whose span matches none */
    int unjoined;                        /* enum keep_fate */
    bool dry_run;
    /* derived */
    bool reads_cpu;
    bool reads_ottl;
    struct keep_names names;
};

extern const struct field keep_fields[];

/* Returns why samples keep their detail if the i-th condition is true. */
static inline uint8_t keep_by_condition(size_t i)
{
    return (uint8_t)(i < KEEP_BY_NAMED_MAX ? i + 1 : KEEP_BY_OTHER);
}
static inline const char *keep_by_name(const struct keep_settings *keep, int by)
{
    return keep->names.text + keep->names.at[by];
}
/* Whether the condition is judged when samples leave, rather than when the span arrives. */
static inline bool keep_condition_reads_cpu(const struct keep_condition *condition)
{
    return condition->kind == KEEP_CPU_ABOVE || condition->kind == KEEP_CPU_SHARE_ABOVE;
}

/* Whether some samples may lose their detail. */
static inline bool keep_takes_any(const struct keep_settings *keep)
{
    return keep->enabled && !keep->dry_run &&
           (keep->otherwise != KEEP_PASS || keep->unjoined != KEEP_PASS);
}

/* Checks an enabled block, and sets what is derived. samples_wait_ns: of the component. */
void keep_check(struct keep_settings *keep, int64_t samples_wait_ns, struct config_check *check);
/* Appends for people what becomes of which samples: "fold unless duration_above, status", "off". */
void keep_describe(const struct keep_settings *keep, struct text *out);

#endif
