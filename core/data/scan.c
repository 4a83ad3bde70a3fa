/*
 * The scan first tries a fast pass: one look-up per field in the tables of scan_schema.h, an
 * explicit stack, the fast path (scan_runs.h) for frequent messages, and only the highest index for
 * each table is noted, because tables may follow the messages that refer to them. If the fast pass
 * does not accept the request, a careful pass follows: it counts the tables first and checks every
 * field, so that it finds the first error. A third pass finds the path of the error, so the others
 * need not count for it.
 */
#include "core/data/scan.h"

#include "core/data/scan_runs.h"
#include "core/data/scan_schema.h"
#include "core/data/scan_tables.h"
#include "core/data/utf8.h"
#include "core/data/wire.h"
#include "core/data/zero_entry.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>

#define PLACE_SIZE 800 /* leaves room for the problem in struct error */
#define TAG_MAX 5      /* protobuf allows numbers up to 2^29 - 1 */
#define LENGTH_MAX 5   /* enough: 2^31 is far above the limit of a body */

const struct scan_limits scan_limits_default = {
    .items_max = 1000000, .elements_max = 8000000, .groups_max = 100000};

enum problem {
    NO_PROBLEM,
    PROBLEM_TAG,
    PROBLEM_TYPE,
    PROBLEM_GROUP,
    PROBLEM_NUMBER,
    PROBLEM_VARINT,
    PROBLEM_LENGTH,
    PROBLEM_SHORT,
    PROBLEM_PACKED,
    PROBLEM_UTF8,
    PROBLEM_ID,
    PROBLEM_TWICE,
    PROBLEM_DEPTH,
    PROBLEM_ELEMENTS,
    PROBLEM_INDEX,
    PROBLEM_SAMPLE_EMPTY,
    PROBLEM_SAMPLE_UNEVEN,
    PROBLEM_BOTH_KEYS,
};

static const char *const table_names[DICTIONARY_TABLE_COUNT] = {
    [DICTIONARY_MAPPING_TABLE] = "mapping_table",
    [DICTIONARY_LOCATION_TABLE] = "location_table",
    [DICTIONARY_FUNCTION_TABLE] = "function_table",
    [DICTIONARY_LINK_TABLE] = "link_table",
    [DICTIONARY_STRING_TABLE] = "string_table",
    [DICTIONARY_ATTRIBUTE_TABLE] = "attribute_table",
    [DICTIONARY_STACK_TABLE] = "stack_table",
};

/* A message being read. */
struct frame {
    const struct scan_schema *schema;
    const uint8_t *start; /* its tag in the parent */
    const uint8_t *end;
    uint32_t marks;
};

struct walk {
    /* Read only: */
    const struct scan_schema_set *set;
    bool is_quick;
    uint32_t elements_max;
    uint32_t table_sizes[DICTIONARY_TABLE_COUNT];
    uint32_t index_ends[DICTIONARY_TABLE_COUNT]; /* table sizes, but 1 for an empty table;
                                                    UINT32_MAX in the fast pass */
    /* Results: */
    struct scan_found found;
    const uint8_t *starts[DICTIONARY_TABLE_COUNT]; /* the first entry of each table */
    uint32_t nonzero_starts; /* bit per table that does not start with its zero value */
    /* Of the sample being read: */
    size_t values;
    size_t timestamps;
    /* The problem: */
    enum problem problem;
    const uint8_t *at; /* the tag of the field, or of the message */
    uint64_t number;   /* depends on the problem */
    size_t element;    /* index in a packed list */
    const struct scan_rule *rule;
    const uint8_t *sample_end; /* end of the sample with the problem; NULL: not in a sample */
    struct frame frames[SCAN_DEPTH_MAX];
};

static void init_walk(struct walk *walk, const struct scan_schema_set *set,
                      const struct scan_limits *limits, bool is_quick)
{
    memset(walk, 0, offsetof(struct walk, frames));
    walk->set = set;
    walk->is_quick = is_quick;
    walk->elements_max = limits->elements_max;
    memset(walk->index_ends, 0xff, sizeof walk->index_ends);
}

static bool refuse(struct walk *walk, enum problem problem, uint64_t number)
{
    walk->problem = problem;
    walk->number = number;
    return false;
}

/* Returns the address after the varint at `p`; NULL if it is too long or truncated. */
static const uint8_t *skip_varint(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *limit = end - p > SCAN_NUMBER_SIZE_MAX ? p + SCAN_NUMBER_SIZE_MAX : end;

    if (end - p >= 8) { /* lengths vary, so branches for each byte would be mispredicted */
        uint64_t word;
        memcpy(&word, p, sizeof word);
        word = ~le64toh(word) & UINT64_C(0x8080808080808080);
        if (word != 0)
            return p + __builtin_ctzll(word) / 8 + 1;
    }
    while (p < limit)
        if (*p++ < 0x80)
            return p;
    return NULL;
}

/* Reads a varint of up to bytes_max bytes. Returns the address after it; NULL if it is longer or
 * truncated. */
static inline const uint8_t *read_varint(const uint8_t *p, const uint8_t *end, unsigned bytes_max,
                                         uint64_t *out)
{
    uint64_t value = 0;

    if (end - p >= 2 && (p[0] & p[1]) < 0x80) { /* one byte or two: nearly every index */
        unsigned two = p[0] >> 7;
        *out = (uint64_t)(p[0] & 0x7f) | (uint64_t)(p[1] & (0u - two)) << 7;
        return p + 1 + two;
    }

    for (unsigned i = 0; i < bytes_max && p < end; i++) {
        uint8_t byte = *p++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *out = value;
            return p;
        }
    }
    return NULL;
}

/* Reads the payload of a BYTES field whose length is at `p`. */
static inline bool read_payload(struct walk *walk, const uint8_t *p, const uint8_t *end,
                                struct slice *out)
{
    uint64_t size;

    if (p < end && *p < 0x80) {
        size = *p++;
    } else {
        p = read_varint(p, end, LENGTH_MAX, &size);
        if (!p)
            return refuse(walk, PROBLEM_LENGTH, 0);
    }
    if (size > (uint64_t)(end - p))
        return refuse(walk, PROBLEM_SHORT, size);
    *out = slice_of(p, (size_t)size);
    return true;
}

/* Checks each index of a list. */
static bool check_indices(struct walk *walk, struct slice list, unsigned table)
{
    const uint8_t *p = list.data;
    const uint8_t *end = list.data + list.size;
    uint32_t index_end = walk->index_ends[table];
    uint64_t needed = list.size > 0 ? scan_needed_by(list) : 0;
    uint64_t value;

    if (needed == 0 || needed > index_end)
        for (walk->element = 0; p < end; walk->element++) {
            p = read_varint(p, end, SCAN_NUMBER_SIZE_MAX, &value);
            if (!p)
                return refuse(walk, PROBLEM_PACKED, 0);
            if (value >= index_end)
                return refuse(walk, PROBLEM_INDEX, value);
            needed = value >= needed ? value + 1 : needed;
        }
    walk->element = 0;
    scan_need(&walk->found, table, needed);
    return true;
}

static bool count_fixed64(struct walk *walk, struct slice list, size_t *count)
{
    *count += list.size / 8;
    return list.size % 8 == 0 || refuse(walk, PROBLEM_PACKED, 0);
}

static bool check_index(struct walk *walk, struct frame *frame, uint64_t value)
{
    unsigned table = walk->rule->argument;

    if (value >= walk->index_ends[table])
        return refuse(walk, PROBLEM_INDEX, value);
    scan_need(&walk->found, table, value + 1);
    walk->found.counts[walk->rule->counter]++;
    if (value != 0)
        frame->marks |= walk->rule->mark;
    return true;
}

static bool check_elements(struct walk *walk)
{
    return walk->found.elements <= walk->elements_max || refuse(walk, PROBLEM_ELEMENTS, 0);
}

static void note_first_entry(struct walk *walk, unsigned table, struct slice payload)
{
    walk->starts[table] = walk->at;
    if (!zero_entry_is((int)table, payload))
        walk->nonzero_starts |= 1u << table;
}

/* Counts a message, or an entry of a table. */
static inline bool count_element(struct walk *walk, struct slice payload)
{
    uint32_t counter = walk->rule->counter;

    walk->found.elements++;
    if (counter == SCAN_COUNT_ENTRIES + DICTIONARY_STACK_TABLE)
        scan_note_stack(&walk->found, payload.size);
    if (walk->found.counts[counter]++ == 0 && counter > SCAN_COUNT_ENTRIES)
        note_first_entry(walk, counter - SCAN_COUNT_ENTRIES, payload);
    return check_elements(walk);
}

/* Checks the rules for a message as a whole, at its end. */
static bool check_message(struct walk *walk, const struct frame *frame)
{
    if (frame->schema->is_sample) {
        if (walk->values == 0 && walk->timestamps == 0)
            return refuse(walk, PROBLEM_SAMPLE_EMPTY, 0);
        if (walk->values != 0 && walk->timestamps != 0 && walk->values != walk->timestamps)
            return refuse(walk, PROBLEM_SAMPLE_UNEVEN, 0);
    }
    if (frame->schema->excluding &&
        (frame->marks & frame->schema->excluding) == frame->schema->excluding)
        return refuse(walk, PROBLEM_BOTH_KEYS, 0);
    return true;
}

/* Checks the payload of a BYTES field by its rule. */
static inline bool check_payload(struct walk *walk, struct frame *frame, struct slice payload)
{
    const struct scan_rule *rule = walk->rule;
    size_t unused = 0;

    switch (rule->action) {
    case SCAN_SKIP_BYTES:
        return true;
    case SCAN_ENTRY_STRING:
        if (!count_element(walk, payload))
            return false;
        /* fall through */
    case SCAN_STRING:
        if (payload.size > 0)
            frame->marks |= rule->mark;
        return utf8_is_valid(payload) || refuse(walk, PROBLEM_UTF8, 0);
    case SCAN_ID:
        return payload.size == rule->argument || payload.size == 0 ||
               refuse(walk, PROBLEM_ID, payload.size);
    case SCAN_INDICES:
        return check_indices(walk, payload, rule->argument);
    case SCAN_VALUES:
        return scan_count_numbers(payload, &walk->values) || refuse(walk, PROBLEM_PACKED, 0);
    case SCAN_PACKED_VARINTS:
        return scan_count_numbers(payload, &unused) || refuse(walk, PROBLEM_PACKED, 0);
    case SCAN_PACKED_FIXED64:
        return count_fixed64(walk, payload, &unused);
    default:
        assert(rule->action == SCAN_TIMESTAMPS);
        return count_fixed64(walk, payload, &walk->timestamps);
    }
}

/* Enters a message. Returns the new frame; NULL if it is refused. */
static inline struct frame *enter(struct walk *walk, struct frame *frame, struct slice payload)
{
    const struct scan_rule *rule = walk->rule;
    struct frame *child = frame + 1;

    if (frame->marks & rule->mark) {
        refuse(walk, PROBLEM_TWICE, 0);
        return NULL;
    }
    frame->marks |= rule->mark;
    if (child == walk->frames + SCAN_DEPTH_MAX) {
        refuse(walk, PROBLEM_DEPTH, 0);
        return NULL;
    }
    if (!count_element(walk, payload))
        return NULL;
    walk->values = 0;
    walk->timestamps = 0;
    child->schema = &walk->set->schemas[rule->argument];
    child->start = walk->at;
    child->end = payload.data + payload.size;
    child->marks = 0;
    return child;
}

/* Finds the rule for the tag at `p`. Returns the address after the tag; NULL if it is refused. */
static inline const uint8_t *read_tag(struct walk *walk, const struct frame *frame,
                                      const uint8_t *p)
{
    /* The rules for unknown fields, by wire type. */
    static const struct scan_rule unknown[8] = {
        [WIRE_VARINT] = {.action = SCAN_SKIP_VARINT},
        [WIRE_FIXED64] = {.action = SCAN_SKIP_FIXED64},
        [WIRE_BYTES] = {.action = SCAN_SKIP_BYTES},
        [WIRE_GROUP_START] = {.action = SCAN_REFUSE_GROUP},
        [WIRE_GROUP_END] = {.action = SCAN_REFUSE_GROUP},
        [WIRE_FIXED32] = {.action = SCAN_SKIP_FIXED32},
        [6] = {.action = SCAN_REFUSE_GROUP},
        [7] = {.action = SCAN_REFUSE_GROUP},
    };
    uint64_t tag;

    walk->at = p;
    if (*p < 0x80) {
        walk->rule = &frame->schema->rules[*p];
        return p + 1;
    }
    p = read_varint(p, frame->end, TAG_MAX, &tag);
    if (!p || tag > UINT32_MAX) {
        refuse(walk, PROBLEM_TAG, 0);
        return NULL;
    }
    walk->rule = tag < SCAN_TAGS ? &frame->schema->rules[tag] : &unknown[tag & 7];
    return p;
}

/* Checks a field of one number, or a refused one. Returns the address after it, or NULL. */
static const uint8_t *check_number(struct walk *walk, struct frame *frame, const uint8_t *p)
{
    static const enum problem problems[] = {
        [SCAN_REFUSE_TYPE] = PROBLEM_TYPE,
        [SCAN_REFUSE_GROUP] = PROBLEM_GROUP,
        [SCAN_REFUSE_NUMBER] = PROBLEM_NUMBER,
    };
    const struct scan_rule *rule = walk->rule;
    const uint8_t *next = p;
    uint64_t value = 0;
    size_t size = 0;

    switch (rule->action) {
    case SCAN_VALUE:
        walk->values++;
        /* fall through */
    case SCAN_SKIP_VARINT:
        next = skip_varint(p, frame->end);
        break;
    case SCAN_INDEX:
        next = read_varint(p, frame->end, SCAN_NUMBER_SIZE_MAX, &value);
        if (next && !check_index(walk, frame, value))
            return NULL;
        break;
    case SCAN_TIMESTAMP:
        walk->timestamps++;
        /* fall through */
    case SCAN_SKIP_FIXED64:
        size = 8;
        break;
    case SCAN_SKIP_FIXED32:
        size = 4;
        break;
    default:
        assert(rule->action >= SCAN_REFUSE_TYPE && rule->action <= SCAN_REFUSE_NUMBER);
        refuse(walk, problems[rule->action], 0);
        return NULL;
    }
    if (!next) {
        refuse(walk, PROBLEM_VARINT, 0);
        return NULL;
    }
    if ((size_t)(frame->end - next) < size) {
        refuse(walk, PROBLEM_SHORT, size);
        return NULL;
    }
    return next + size;
}

/* Notes whether a problem is inside a sample, and so may depend on the layout. */
static void note_sample(struct walk *walk, const struct frame *frame)
{
    walk->sample_end = frame->schema->is_sample ? frame->end : NULL;
}

/* Leaves the messages that end at `p`. Returns the frame to continue in; NULL at the end of the
 * request, or if it is refused. */
static inline struct frame *leave(struct walk *walk, struct frame *frame, const uint8_t *p)
{
    while (p == frame->end) {
        if (!check_message(walk, frame)) {
            walk->at = frame->start;
            note_sample(walk, frame);
            return NULL;
        }
        if (frame == walk->frames)
            return NULL;
        frame--;
    }
    return frame;
}

/* Whether the depth allows the fast path, which does not enter messages. */
static inline bool has_depth(const struct walk *walk, const struct frame *frame)
{
    return frame + SCAN_RUN_DEPTH < walk->frames + SCAN_DEPTH_MAX;
}

/* Tries the fast path. Returns the address after the field, and perhaps more fields of its kind;
 * NULL if the fast path does not accept the field. */
static inline const uint8_t *take_run(struct walk *walk, const struct frame *frame)
{
    const struct scan_rule *rule = walk->rule;
    const uint8_t *p;

    if (!has_depth(walk, frame))
        return NULL;
    if (rule->counter > SCAN_COUNT_ENTRIES && walk->found.counts[rule->counter] == 0)
        return NULL; /* count_element checks the first entry of a table */
    p = scan_run((enum scan_action)rule->action, &walk->found, walk->at, frame->end,
                 walk->frames[0].end);
    return p != walk->at ? p : NULL;
}

/* Checks a field with a length. May enter a message, and then sets *frame. Returns the address to
 * continue at, or NULL. */
static inline const uint8_t *check_bytes(struct walk *walk, struct frame **frame, const uint8_t *p)
{
    const struct scan_rule *rule = walk->rule;
    struct slice payload;

    if (walk->is_quick && rule->action >= SCAN_FIRST_RUN && rule->action != SCAN_MESSAGE) {
        const uint8_t *next = take_run(walk, *frame);
        if (next)
            return check_elements(walk) ? next : NULL;
    }
    if (!read_payload(walk, p, (*frame)->end, &payload))
        return NULL;
    if (rule->action < SCAN_FIRST_MESSAGE)
        return check_payload(walk, *frame, payload) ? payload.data + payload.size : NULL;
    if (rule->action == SCAN_ATTRIBUTE && has_depth(walk, *frame) &&
        scan_is_plain_attribute(payload.data, payload.size)) {
        walk->found.elements += 2;
        return check_elements(walk) ? payload.data + payload.size : NULL;
    }
    *frame = enter(walk, *frame, payload);
    return *frame ? payload.data : NULL;
}

/* Walks the whole request, without recursion. */
static bool walk_request(struct walk *walk, struct slice request)
{
    struct frame *frame = walk->frames;
    const uint8_t *p = request.data;

    *frame = (struct frame){&walk->set->schemas[0], p, p + request.size, 0};
    while ((frame = leave(walk, frame, p))) {
        p = read_tag(walk, frame, p);
        if (!p)
            break;
        if (walk->rule->action < SCAN_FIRST_BYTES)
            p = check_number(walk, frame, p);
        else
            p = check_bytes(walk, &frame, p);
        if (!p)
            break;
    }
    if (frame)
        note_sample(walk, frame);
    assert(walk->problem != NO_PROBLEM || !frame); /* there is no frame only at the end */
    return walk->problem == NO_PROBLEM;
}

/* Writes the text of the problem, without its path. */
static void describe_problem(const struct walk *walk, char *to, size_t size)
{
    unsigned argument = walk->rule ? walk->rule->argument : 0;

    switch (walk->problem) {
    case PROBLEM_TAG:
        snprintf(to, size, "a field has a malformed tag");
        return;
    case PROBLEM_TYPE:
        snprintf(to, size, "has the wrong wire type: %u", *walk->at & 7u);
        return;
    case PROBLEM_GROUP:
        snprintf(to, size, "a group, or an unknown wire type: OTLP has none");
        return;
    case PROBLEM_NUMBER:
        snprintf(to, size, "a field has the number 0");
        return;
    case PROBLEM_VARINT:
        snprintf(to, size, "a number is truncated, or longer than %d bytes", SCAN_NUMBER_SIZE_MAX);
        return;
    case PROBLEM_LENGTH:
        snprintf(to, size, "a length is truncated, or longer than %d bytes", LENGTH_MAX);
        return;
    case PROBLEM_SHORT:
        snprintf(to, size, "%" PRIu64 " bytes do not fit into the enclosing message", walk->number);
        return;
    case PROBLEM_PACKED:
        snprintf(to, size, "the packed numbers are truncated, or one is longer than %d bytes",
                 SCAN_NUMBER_SIZE_MAX);
        return;
    case PROBLEM_UTF8:
        snprintf(to, size, "is not valid UTF-8");
        return;
    case PROBLEM_ID:
        snprintf(to, size, "has %" PRIu64 " bytes, must have %u or none", walk->number, argument);
        return;
    case PROBLEM_TWICE:
        snprintf(to, size, "must not appear more than once");
        return;
    case PROBLEM_DEPTH:
        snprintf(to, size, "messages are nested more than %d deep", SCAN_DEPTH_MAX);
        return;
    case PROBLEM_ELEMENTS:
        snprintf(to, size, "more than %" PRIu32 " messages and strings in one request",
                 walk->elements_max);
        return;
    case PROBLEM_INDEX:
        snprintf(to, size, "%" PRId64 " is outside the %s, which has %" PRIu32 " entries",
                 (int64_t)walk->number, table_names[argument], walk->table_sizes[argument]);
        return;
    case PROBLEM_SAMPLE_EMPTY:
        snprintf(to, size, "has neither values nor timestamps");
        return;
    case PROBLEM_SAMPLE_UNEVEN:
        snprintf(to, size, "has %zu values and %zu timestamps", walk->values, walk->timestamps);
        return;
    case PROBLEM_BOTH_KEYS:
        snprintf(to, size, "has both key and key_strindex");
        return;
    case NO_PROBLEM:
        break;
    }
    assert(false && "described");
}

static bool report(const struct walk *walk, struct slice request, struct error *err)
{
    assert(walk->problem != NO_PROBLEM && walk->at);
    char place[PLACE_SIZE];
    char problem[160];

    scan_schema_place(walk->set, request, walk->at, walk->element, place, sizeof place);
    describe_problem(walk, problem, sizeof problem);
    return error_set(err, "%s: %s", place[0] ? place : "the request", problem);
}

static bool check_count(uint32_t count, uint32_t max, const char *what, struct error *err)
{
    return count <= max ||
           error_set(err, "the request holds %" PRIu32 " %s, more than %" PRIu32, count, what, max);
}

/* Checks counts that are limited only at the end, because they use no memory. */
static bool check_counts(const struct walk *walk, const struct scan_limits *limits,
                         const char *items, const char *groups, struct error *err)
{
    uint32_t groups_max = limits->groups_max ? limits->groups_max : UINT32_MAX;

    return check_count(walk->found.counts[SCAN_COUNT_ITEMS], limits->items_max, items, err) &&
           check_count(walk->found.counts[SCAN_COUNT_GROUPS], groups_max, groups, err);
}

static uint32_t table_size(const struct walk *walk, unsigned table)
{
    return walk->found.counts[SCAN_COUNT_ENTRIES + table];
}

static void store_counts(const struct walk *walk, struct scan_result *result)
{
    const uint32_t *counts = walk->found.counts;

    result->items = counts[SCAN_COUNT_ITEMS];
    result->groups = counts[SCAN_COUNT_GROUPS];
    result->profiles = counts[SCAN_COUNT_PROFILES];
    result->elements = walk->found.elements;
    result->widest_stack = walk->found.widest_stack;
    for (unsigned table = 1; table < DICTIONARY_TABLE_COUNT; table++) {
        result->table_sizes[table] = table_size(walk, table);
        if (walk->starts[table])
            result->table_starts[table] = (uint32_t)(walk->starts[table] - walk->frames[0].start);
    }
    result->has_references = counts[SCAN_COUNT_REFERENCES] > 0;
    result->dictionaries = counts[SCAN_COUNT_DICTIONARIES] > 1;
}

/* Returns a request with an address, because an empty one may be NULL. */
static struct slice with_address(struct slice request)
{
    return request.size > 0 ? request : slice_of("", 0);
}

void scan_init(void)
{
    scan_schema_init();
}

static bool walk_plain(struct walk *walk, enum scan_flavour flavour, struct slice request,
                       const struct scan_limits *limits, bool is_quick)
{
    init_walk(walk, scan_schema_set(flavour), limits, is_quick);
    return walk_request(walk, request);
}

/* Scans a request without dictionary. */
static bool scan_plain(enum scan_flavour flavour, const char *items, const char *groups,
                       struct slice request, const struct scan_limits *limits,
                       struct scan_result *result, struct error *err)
{
    struct walk walk; /* not zeroed: frames are written before they are read, and zeroing them takes
                         as long as a small request */

    *result = (struct scan_result){0};
    request = with_address(request);
    if (!walk_plain(&walk, flavour, request, limits, !limits->careful) &&
        !walk_plain(&walk, flavour, request, limits, false))
        return report(&walk, request, err);
    if (!check_counts(&walk, limits, items, groups, err))
        return false;
    store_counts(&walk, result);
    return true;
}

bool scan_traces(struct slice request, const struct scan_limits *limits, struct scan_result *result,
                 struct error *err)
{
    return scan_plain(SCAN_TRACES, "spans", "resource_spans", request, limits, result, err);
}

bool scan_metrics(struct slice request, const struct scan_limits *limits,
                  struct scan_result *result, struct error *err)
{
    return scan_plain(SCAN_METRICS, "data points", "resource_metrics", request, limits, result,
                      err);
}

bool scan_logs(struct slice request, const struct scan_limits *limits, struct scan_result *result,
               struct error *err)
{
    return scan_plain(SCAN_LOGS, "log records", "resource_logs", request, limits, result, err);
}

/* Whether entry 0 of the table is referred to, by an index of 0 or an absent index. */
static bool is_read(const struct walk *walk, unsigned table)
{
    if (walk->found.needed[table] > 0)
        return true;
    switch (table) {
    case DICTIONARY_STACK_TABLE:
        return walk->found.counts[SCAN_COUNT_ITEMS] > 0;
    case DICTIONARY_MAPPING_TABLE:
        return table_size(walk, DICTIONARY_LOCATION_TABLE) > 0;
    case DICTIONARY_FUNCTION_TABLE:
        return walk->found.counts[SCAN_COUNT_LINES] > 0;
    case DICTIONARY_STRING_TABLE:
        return walk->found.counts[SCAN_COUNT_PROFILES] > 0 ||
               table_size(walk, DICTIONARY_FUNCTION_TABLE) > 0 ||
               table_size(walk, DICTIONARY_MAPPING_TABLE) > 0 ||
               table_size(walk, DICTIONARY_ATTRIBUTE_TABLE) > 0;
    default:
        return false;
    }
}

static bool misses_zero_entries(const struct walk *walk)
{
    for (unsigned table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        if (table_size(walk, table) == 0 && is_read(walk, table))
            return true;
    return walk->nonzero_starts != 0;
}

/* Returns the first invalid index. Index 0 is always valid. */
static uint32_t index_end_of(uint32_t table_size)
{
    return table_size > 0 ? table_size : 1;
}

static bool walk_quickly(struct walk *walk, struct slice request, const struct scan_limits *limits)
{
    init_walk(walk, scan_schema_set(SCAN_PROFILES), limits, true);
    if (!walk_request(walk, request))
        return false;
    for (unsigned table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        if (walk->found.needed[table] > index_end_of(table_size(walk, table)))
            return false;
    return true;
}

static bool walk_carefully(struct walk *walk, enum scan_layout layout, struct slice request,
                           const struct scan_limits *limits, const struct scan_tables *tables)
{
    init_walk(walk, scan_schema_set(layout == SCAN_LAYOUT_V19 ? SCAN_PROFILES_V19 : SCAN_PROFILES),
              limits, false);
    for (unsigned table = 1; table < DICTIONARY_TABLE_COUNT; table++) {
        walk->table_sizes[table] = tables->sizes[table];
        walk->index_ends[table] = index_end_of(tables->sizes[table]);
    }
    return walk_request(walk, request);
}

/* Both layouts fail. The sender meant 1.9 if that error is after the sample in which the current
 * layout fails. */
static bool report_further(const struct walk *current, const struct walk *v19, struct slice request,
                           struct error *err)
{
    assert(current->sample_end && v19->problem != NO_PROBLEM);
    if (v19->at < current->sample_end)
        return report(current, request, err);
    report(v19, request, err);
    return error_prefix(err, "read as OTLP 1.9");
}

bool scan_profiles(struct slice request, const struct scan_limits *limits,
                   struct scan_result *result, struct error *err)
{
    struct scan_tables tables;
    struct walk current;
    struct walk v19;
    const struct walk *walk = &current;

    request = with_address(request);
    *result = (struct scan_result){0};
    if (limits->careful || !walk_quickly(&current, request, limits)) {
        scan_tables_count(request, &tables);
        if (!walk_carefully(&current, SCAN_LAYOUT_CURRENT, request, limits, &tables)) {
            if (!current.sample_end)
                return report(&current, request, err);
            if (!walk_carefully(&v19, SCAN_LAYOUT_V19, request, limits, &tables))
                return report_further(&current, &v19, request, err);
            walk = &v19;
        }
    }
    if (!check_counts(walk, limits, "samples", "resource_profiles", err))
        return false;
    store_counts(walk, result);
    result->layout = walk == &v19 ? SCAN_LAYOUT_V19 : SCAN_LAYOUT_CURRENT;
    result->misses_zero_entries = misses_zero_entries(walk);
    return true;
}
