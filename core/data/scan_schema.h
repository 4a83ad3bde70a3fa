/*
 * scan_schema: what scan does with each field of each OTLP message, as tables.
 *
 * The tag of a field (number << 3 | wire type) is the index of its rule, so that scanning needs one
 * look-up per field. The tables are built from the protobuf-c descriptors, which have names and
 * types; rules that OTLP states only in prose (id lengths, the table of an index) are recognised by
 * field name.
 *
 * Owner: static tables.
 *
 * Thread: scan_schema_init once, before any other function; read-only afterwards.
 */
#ifndef PROFCOL_CORE_DATA_SCAN_SCHEMA_H
#define PROFCOL_CORE_DATA_SCAN_SCHEMA_H

#include "core/base/slice.h"
#include "core/data/otlp.h"

#include <protobuf-c/protobuf-c.h>

#define SCAN_NUMBERS 17               /* field numbers of OTLP messages are below this */
#define SCAN_TAGS (SCAN_NUMBERS << 3) /* larger ones are tags of unknown fields */

enum scan_action {
    /* Fields of one number */
    SCAN_SKIP_VARINT,
    SCAN_SKIP_FIXED64,
    SCAN_SKIP_FIXED32,
    SCAN_INDEX,     /* argument: the dictionary table that it points into */
    SCAN_VALUE,     /* of a sample */
    SCAN_TIMESTAMP, /* of a sample */
    /* Refused fields */
    SCAN_REFUSE_TYPE,   /* a known field with the wrong wire type */
    SCAN_REFUSE_GROUP,  /* group start or end, or a wire type that does not exist */
    SCAN_REFUSE_NUMBER, /* field number 0 */
    /* Fields with a length */
    SCAN_SKIP_BYTES,
    SCAN_STRING,  /* UTF-8 */
    SCAN_ID,      /* argument: its size; an empty id is allowed */
    SCAN_INDICES, /* this and the next two: packed SCAN_INDEX, SCAN_VALUE, SCAN_TIMESTAMP */
    SCAN_VALUES,
    SCAN_TIMESTAMPS,
    SCAN_PACKED_VARINTS, /* this and the next: packed numbers that are not used */
    SCAN_PACKED_FIXED64,
    /* Also has a length; consecutive ones take the fast path (scan_runs.h) */
    SCAN_ENTRY_STRING, /* an entry of the string_table */
    /* Messages; argument: the schema. All but the last take the fast path, too */
    SCAN_ATTRIBUTE, /* a KeyValue in a list */
    SCAN_SPAN,
    SCAN_SAMPLE, /* in the current layout */
    SCAN_LOCATION,
    SCAN_FUNCTION,
    SCAN_LINK,            /* of the link_table */
    SCAN_ATTRIBUTE_ENTRY, /* a KeyValueAndUnit */
    SCAN_STACK,
    SCAN_NUMBER_POINT,
    SCAN_HISTOGRAM_POINT,
    SCAN_LOG_RECORD,
    SCAN_METRIC,
    SCAN_MESSAGE, /* any other message */
};
#define SCAN_FIRST_BYTES SCAN_SKIP_BYTES
#define SCAN_FIRST_RUN SCAN_ENTRY_STRING
#define SCAN_FIRST_MESSAGE SCAN_ATTRIBUTE

/* What the scan counts. */
enum scan_counter {
    SCAN_COUNT_OTHER,
    SCAN_COUNT_GROUPS,
    SCAN_COUNT_PROFILES,
    SCAN_COUNT_ITEMS,
    SCAN_COUNT_LINES,
    SCAN_COUNT_REFERENCES, /* key_strindex and string_value_strindex */
    SCAN_COUNT_DICTIONARIES,
    SCAN_COUNT_ENTRIES, /* of a table: SCAN_COUNT_ENTRIES + number of the table */
    SCAN_COUNTERS = SCAN_COUNT_ENTRIES + DICTIONARY_TABLE_COUNT,
};

struct scan_rule {
    uint8_t action;
    uint8_t argument;
    uint8_t mark; /* bit that is set for a message that has this field (for an index or string: not
                     zero) */
    uint8_t counter; /* enum scan_counter */
};

struct scan_schema {
    struct scan_rule rules[SCAN_TAGS];
    uint8_t excluding; /* marks that exclude one another; 0: no such rule */
    bool is_sample;
    const ProtobufCMessageDescriptor *descriptor;
    const ProtobufCFieldDescriptor *fields[SCAN_NUMBERS];
};

enum scan_flavour {
    SCAN_TRACES,
    SCAN_PROFILES,
    SCAN_PROFILES_V19,
    SCAN_METRICS,
    SCAN_LOGS,
    SCAN_FLAVOURS
};

/* The messages of one kind of request; the request itself is the first. */
#define SCAN_SCHEMAS_MAX 24
struct scan_schema_set {
    struct scan_schema schemas[SCAN_SCHEMAS_MAX];
    size_t count;
};

/* Builds the tables. */
void scan_schema_init(void);
/* Returns the schemas of a kind of request. */
const struct scan_schema_set *scan_schema_set(enum scan_flavour flavour);

/* Writes the path of the field whose tag is at `at`,
 * "resource_spans[0].scope_spans[1].spans[3].name", truncated to `size` bytes. Everything before
 * `at` must be well formed. element: the index in a packed list. Slow; for error messages. */
void scan_schema_place(const struct scan_schema_set *set, struct slice request, const uint8_t *at,
                       size_t element, char *to, size_t size);

#endif
