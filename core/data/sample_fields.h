/*
 * sample_fields: reads the fields of one encoded Sample, in whatever order and form they are.
 *
 * Repeated numbers may be packed, in several fields or one by one.
 *
 * Owner: results borrow from the sample, or are in the arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_SAMPLE_FIELDS_H
#define PROFCOL_CORE_DATA_SAMPLE_FIELDS_H

#include "core/data/otlp.h"
#include "core/data/usual_fields.h"

struct arena;

/* What a sample refers to. */
struct sample_references {
    uint32_t stack, link;
    struct slice attributes; /* packed; empty: no field */
};
/* Reads a usual Sample whose lists are short, as most are, for whoever needs no more of it. Returns
 * false if it is another one, which sample_layout_read may read. */
static inline bool sample_references_read(struct slice raw, struct sample_references *out)
{
    const uint8_t *at = raw.data, *end = at + raw.size;
    struct slice unused;
    *out = (struct sample_references){.stack = 0};
    at = usual_index(at, end, SAMPLE_STACK_INDEX, &out->stack);
    at = usual_bytes(at, end, SAMPLE_ATTRIBUTE_INDICES, &out->attributes);
    at = usual_index(at, end, SAMPLE_LINK_INDEX, &out->link);
    at = usual_bytes(at, end, SAMPLE_VALUES, &unused);
    at = usual_bytes(at, end, SAMPLE_TIMESTAMPS_UNIX_NANO, &unused);
    return at == end;
}

/* Where the fields of a usual sample are: in the order of their numbers, each of them once at most,
 * lists packed. Samples are as profilers write them, so that nearly all are usual. */
struct sample_layout {
    const uint8_t *attributes_start; /* the field; if there is none, where it would be */
    const uint8_t *attributes_end;
    struct slice attributes; /* packed; empty: no field */
    struct slice values;     /* likewise */
    struct slice timestamps; /* likewise */
    uint32_t stack;
    uint32_t link;
};
/* Takes a field with a packed list, which is not empty, if it is there. One that is too long for
 * its length to have one byte or two stays, and the sample is not usual. */
static inline const uint8_t *sample_take_list(const uint8_t *at, const uint8_t *end, uint32_t field,
                                              struct slice *out)
{
    if (end - at < 3 || *at != (field << 3 | WIRE_BYTES))
        return at;
    size_t size = at[1];
    const uint8_t *list = at + 2;
    if (size >= 0x80) {
        if (at[2] >= 0x80)
            return at;
        size = (size & 0x7f) + ((size_t)at[2] << 7);
        list++;
    }
    if (size - 1 >= (size_t)(end - list)) /* also if it is 0 */
        return at;
    *out = (struct slice){list, size};
    return list + size;
}
/* Reads the layout of an encoded Sample. Returns false if it is not a usual one. Inline, because it
 * is done for each sample, often for nothing but two or three of these members. */
static inline bool sample_layout_read(struct slice raw, struct sample_layout *out)
{
    if (raw.size == 0)
        return false;
    const uint8_t *at = raw.data, *end = at + raw.size;
    out->attributes = out->values = out->timestamps = (struct slice){0};
    out->stack = out->link = 0;
    out->attributes_start = at = usual_index(at, end, SAMPLE_STACK_INDEX, &out->stack);
    out->attributes_end = at =
        sample_take_list(at, end, SAMPLE_ATTRIBUTE_INDICES, &out->attributes);
    at = usual_index(at, end, SAMPLE_LINK_INDEX, &out->link);
    at = sample_take_list(at, end, SAMPLE_VALUES, &out->values);
    at = sample_take_list(at, end, SAMPLE_TIMESTAMPS_UNIX_NANO, &out->timestamps);
    return at == end;
}
/* Reads what any usual Sample refers to. Returns false if it is another one. */
static inline bool sample_references_read_usual(struct slice raw, struct sample_references *out)
{
    struct sample_layout layout;
    if (sample_references_read(raw, out))
        return true;
    if (!sample_layout_read(raw, &layout))
        return false;
    *out = (struct sample_references){layout.stack, layout.link, layout.attributes};
    return true;
}
/* Returns a list of one to seven bytes as a number that no other list has; otherwise 0. */
static inline uint64_t sample_short_list(struct slice list)
{
    return list.size - 1 < 7 ? wire_load_few(list.data, list.size) | (uint64_t)list.size << 56 : 0;
}
/* A usual sample of one event, as recordings contain them: a stack, a few attributes, no Link,
 * values and one timestamp. */
struct sample_event {
    uint64_t list; /* the attributes, as sample_short_list returns them */
    uint64_t time_ns;
    struct slice values;             /* packed */
    const uint8_t *attributes_start; /* the field: tag, length of one byte, list */
    uint32_t stack;
};
static inline struct slice sample_event_attributes(const struct sample_event *event)
{
    return (struct slice){event->attributes_start + 2, event->list >> 56};
}
/* Returns false if it is another one, which sample_layout_read may read. */
static inline bool sample_event_read(struct slice raw, struct sample_event *out)
{
    enum { LIST_MAX = 7, LIST_MIN = 2 + 1, TIME = 2 + sizeof(uint64_t) }; /* with tag and length */
    const uint8_t *at = raw.data, *end = at + raw.size;
    out->stack = 0;
    out->attributes_start = at = usual_index(at, end, SAMPLE_STACK_INDEX, &out->stack);
    if (end - at < 2 * LIST_MIN + TIME || at[0] != (SAMPLE_ATTRIBUTE_INDICES << 3 | WIRE_BYTES))
        return false;
    size_t size = at[1];
    if (size - 1 >= LIST_MAX)
        return false;
    uint64_t list = wire_load_fixed64(at + 2); /* more than the list, but not beyond the end */
    out->list = (list & ((UINT64_C(1) << 8 * size) - 1)) | (uint64_t)size << 56;
    at += 2 + size;
    if (end - at < LIST_MIN + TIME || at[0] != (SAMPLE_VALUES << 3 | WIRE_BYTES) || at[1] >= 0x80 ||
        at[1] != end - at - 2 - TIME)
        return false;
    out->values = (struct slice){at + 2, at[1]};
    at += 2 + at[1];
    out->time_ns = wire_load_fixed64(at + 2);
    return at[0] == (SAMPLE_TIMESTAMPS_UNIX_NANO << 3 | WIRE_BYTES) && at[1] == sizeof(uint64_t);
}
/* Returns the sum of packed varints, and adds their number to *count. The first one is for any
 * list. */
uint64_t sample_sum_any(struct slice values, uint64_t *count);
static inline uint64_t sample_sum(struct slice values, uint64_t *count)
{
    uint64_t value;
    if (!wire_packed_single(values, &value))
        return sample_sum_any(values, count);
    ++*count;
    return value;
}
/* Whether the list has exactly one value, which it sets. The first one is for any list. */
bool sample_single_value_any(struct slice values, uint64_t *value_out);
static inline bool sample_single_value(struct slice values, uint64_t *value_out)
{
    return wire_packed_single(values, value_out) || sample_single_value_any(values, value_out);
}

struct sample_head {
    uint32_t stack, link;
};

/* Returns the indices of stack and link. */
struct sample_head sample_head(struct slice sample);
/* Returns all numbers of a repeated field (SAMPLE_VALUES, ...) as one packed list. */
struct slice sample_list(struct slice sample, uint32_t number, struct arena *arena);
/* Returns the fields that OTLP 1.10 does not have, encoded one after another. */
struct slice sample_other_fields(struct slice sample, struct arena *arena);

/* All of them, mostly with one look at each field. */
struct sample_fields {
    struct sample_layout layout; /* also of others than usual samples, but without the place of
                                    their attributes */
    struct slice others;
};
void sample_fields_read_any(struct slice sample, struct arena *arena, struct sample_fields *out);
static inline void sample_fields_read(struct slice sample, struct arena *arena,
                                      struct sample_fields *out)
{
    out->others = (struct slice){0};
    if (!sample_layout_read(sample, &out->layout))
        sample_fields_read_any(sample, arena, out);
}

#endif
