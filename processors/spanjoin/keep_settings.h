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
    const char *ottl;   /* of KEEP_ATTRIBUTE and KEEP_CONDITION, on spans */
    uint64_t threshold; /* of KEEP_RATIO (core/data/sampling.h) */
};

/* What becomes of samples. */
enum keep_fate { KEEP_FOLD, KEEP_DROP, KEEP_PASS };

struct keep_settings {
    bool enabled;
    struct config_list span_detail_when; /* struct keep_condition; one that is true is enough */
    int otherwise;                       /* enum keep_fate, of samples whose span matches none */
    int unjoined;                        /* enum keep_fate */
    bool dry_run;
    /* derived */
    bool reads_cpu;
    bool reads_ottl;
};

extern const struct field keep_fields[];

/* Checks an enabled block, and sets what is derived. samples_wait_ns: of the component. */
void keep_check(struct keep_settings *keep, int64_t samples_wait_ns, struct config_check *check);
/* Appends for people what becomes of which samples: "fold unless duration_above, status", "off". */
void keep_describe(const struct keep_settings *keep, struct text *out);

#endif
