/*
 * fold: takes from samples what names one span, and combines those that are equal then.
 *
 * A rule decides about each sample of a request. From a folded one the Link goes, and with it the
 * attributes that name a span or a trace, or say when it ran and for how long; name, kind, status
 * and route of the span stay. Folded samples of one profile that are equal then (stack, attributes,
 * shape) become one: without timestamps their values are added, with timestamps the values and
 * timestamps are appended. Totals are exact: a sum that does not fit into 64 bits begins another
 * sample. A sample with several values and no timestamps stays apart, because OTLP does not say
 * what they mean, and so does one with fields that profcol does not know.
 *
 * A rule may also move samples to other stacks, and combine those that are equal then without
 * taking anything away. And it may strip samples of attributes that were added inside the process:
 * they lose their timestamps, too, and those that are equal then become one.
 *
 * A profile in which nothing changes keeps its bytes; so does a kept sample, among others that
 * change. A profile whose samples are all dropped goes, too. The dictionary keeps what samples no
 * longer refer to: call batch_prune afterwards.
 *
 * Owner: the new profiles live in the arena of the batch.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_CORE_DATA_FOLD_H
#define PROFCOL_CORE_DATA_FOLD_H

#include "core/data/dictionary.h"
#include "core/data/sample_marks.h"

enum fold_decision {
    FOLD_KEEP, /* as it is */
    FOLD_FOLD,
    FOLD_DROP,
    FOLD_MOVE, /* keep it, on the stack that the rule names; equal ones are combined */
    /* Keep it, with its values multiplied by the rule's weight. Timestamps without values gain
     * values, because each of them counts 1. What rounding takes from a value is added to the next
     * one of the profile. */
    FOLD_WEIGH,
};

/* What a rule decides by. */
struct fold_sample {
    struct slice trace_id; /* of its Link: 16 bytes; empty: none */
    struct slice span_id;  /* 8 bytes; empty: none */
    uint32_t stack;        /* index in the stack_table */
};

struct fold_gain {
    struct slice attributes; /* packed indices, which exist until profiles_fold returns */
    uint32_t link;           /* in place of its own, if it is not folded; 0: its own stays */
};

/* What is known of samples that were read before, so that they need not be read again. */
struct fold_known {
    /* By their number in the request. One with one value, one timestamp at most and no Link; */
    struct fold_known_sample {
        uint32_t stack;
        uint32_t list; /* number of its attributes in `lists` + 1; 0: the sample is not known */
        int64_t value;
    } * samples;
    const struct slice *lists; /* packed; two may be equal */
    uint32_t list_count;
};

struct fold_rule {
    /* NULL: all are kept. */
    enum fold_decision (*decide)(void *context, const struct fold_sample *sample);
    bool ignores_ids; /* it needs no ids of a sample, which are then not set */
    /* Called before the samples of each profile, with its bytes; may be NULL. */
    void (*begin_profile)(void *context, struct slice profile);
    /* The stack that a folded or moved sample gets. NULL: the one that it has. */
    uint32_t (*stack)(void *context, uint32_t stack);
    /* What the sample of which `decide` was just asked gains before it is folded or stripped. A
     * sample to which neither happens gains nothing. NULL: nothing; so may be what it returns,
     * which exists until profiles_fold returns. */
    const struct fold_gain *(*gains)(void *context);
    void *context;
    double weight; /* of FOLD_WEIGH */
    /* Keys of attributes that folding takes away in addition to those that it knows. */
    const struct slice *keys;
    size_t key_count;
    /* Attributes that folding takes away whatever their key is: indices in the attribute_table. */
    const uint32_t *taken;
    size_t taken_count;
    /* A sample with an attribute of one of these keys loses it, and its timestamps; its values
     * become one, their sum. So does one that is folded or moved. Not together with FOLD_WEIGH.
     * What is only stripped is equal if it refers to the same entries of the dictionary, and has
     * its attributes in the same order. */
    const struct slice *stripped_keys;
    size_t stripped_count;
    const struct fold_known *known; /* used for what is stripped; not together with `stack`. NULL:
                                       nothing is known */
    bool counts_only;               /* the request stays as it is */
    /* Set to what the samples that are left refer to, for batch_prune_marked; zero before. NULL:
     * nobody needs it. Neither together with counts_only, nor if `stack` adds entries. */
    const struct sample_marks *marks;
};

/* Numbers of samples. */
struct fold_result {
    uint32_t kept;   /* also those that were weighed or stripped */
    uint32_t merged; /* of these: became part of another one, because they were stripped */
    uint32_t folded; /* became part of `combined` samples */
    uint32_t moved;  /* too */
    uint32_t dropped;
    uint32_t combined;
};

/* Applies the rule to all samples of a scanned, normalised request. Returns how many samples became
 * what; kept - merged + combined are left. */
struct fold_result profiles_fold(struct message *root, struct dictionary *dictionary,
                                 struct arena *arena, const struct fold_rule *rule);

#endif
