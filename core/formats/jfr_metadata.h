/*
 * jfr_metadata: how a chunk describes its own events and constants.
 *
 * The metadata event holds classes with fields, as elements of a tree over a table of strings
 * (jdk.jfr.internal.MetadataReader). Of a class that occurs, a layout is made: its fields as they
 * follow each other on the wire, structs inside dissolved. With it a record is passed over, or read
 * as far as its fields are known to us (enum jfr_field), whatever else a writer has added. Every
 * step over a layout takes at least one byte, so reading is linear in the bytes, and classes that
 * contain themselves or each other too deeply are refused.
 *
 * Owner: the caller initialises with jfr_metadata_read, also when that fails, and frees with
 * jfr_metadata_deinit; classes live that long, names point into its arena or the chunk.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_JFR_METADATA_H
#define PROFCOL_CORE_FORMATS_JFR_METADATA_H

#include "core/base/arena.h"
#include "core/formats/id_map.h"
#include "core/formats/jfr_chunk.h"
#include "core/formats/profiles_builder.h"

/* What we read of records, by the names and types that fields have there. */
enum jfr_field {
    JFR_STACK_TRACE, /* events */
    JFR_STATE,
    JFR_SAMPLES,
    JFR_TLAB_SIZE,
    JFR_ALLOCATION_SIZE,
    JFR_WEIGHT,
    JFR_DURATION,
    JFR_SIZE,
    JFR_CONTEXT_ID,
    JFR_SPAN_ID,
    JFR_SPAN_NAME,
    JFR_TRACE_ID_HIGH,
    JFR_TRACE_ID_LOW,
    JFR_SETTING_OF, /* jdk.ActiveSetting: the id of an event class */
    JFR_SETTING_VALUE,
    JFR_NAME_TEXT, /* jdk.ActiveSetting, jdk.types.ThreadState */
    JFR_FRAMES,    /* jdk.types.StackTrace */
    JFR_METHOD,    /* jdk.types.StackFrame */
    JFR_LINE_NUMBER,
    JFR_TYPE,   /* jdk.types.Method: its class */
    JFR_NAME,   /* of methods and classes */
    JFR_STRING, /* jdk.types.Symbol */
    JFR_FIELD_COUNT,
};

struct jfr_class;

/* A number, the id of a constant, or the place of a text or a list; 0 where a class has no such
 * field. */
struct jfr_record {
    uint64_t values[JFR_FIELD_COUNT];
    const struct jfr_class *list_of; /* the elements of JFR_FRAMES */
};

struct jfr_class {
    uint64_t id;
    struct slice name;
    uint8_t role; /* what it is to the owner of the metadata; 0 at first */
    /* the rest is for jfr_metadata.c */
    struct jfr_class_field *first, *last;
    uint8_t shape, fixed_size, state;
    struct jfr_step *steps;
    size_t step_count;
};

struct jfr_metadata {
    struct profiles_builder *builder; /* asked for room */
    struct arena arena;
    struct slice *strings; /* while it is read */
    size_t string_count;
    struct jfr_class **classes;
    uint32_t class_count, class_capacity;
    struct id_map by_id; /* place: 1 + index in classes */
    size_t steps_left;   /* fields that layouts may still look at */
};

/* Reads the metadata of a chunk. If there is no room, here or below, the builder's state says so.
 */
bool jfr_metadata_read(struct jfr_metadata *metadata, const struct jfr_chunk *chunk,
                       struct profiles_builder *builder, struct budget *budget, struct error *err);
void jfr_metadata_deinit(struct jfr_metadata *metadata);

/* NULL: not described. */
struct jfr_class *jfr_metadata_class(const struct jfr_metadata *metadata, uint64_t id);
struct jfr_class *jfr_metadata_class_named(const struct jfr_metadata *metadata, const char *name);

/* Makes the layout of a class, once. Call it before the functions below. */
bool jfr_class_prepare(struct jfr_metadata *metadata, struct jfr_class *type, struct error *err);
/* Skip or read the next record, to its end; check the cursor's `broken` afterwards. */
void jfr_class_skip(const struct jfr_class *type, struct jfr_cursor *cursor);
void jfr_class_read(const struct jfr_class *type, const struct jfr_chunk *chunk,
                    struct jfr_cursor *cursor, struct jfr_record *record);
/* Returns how many records the list that begins here has; always 0 if records take no bytes. */
uint64_t jfr_class_list(const struct jfr_class *type, struct jfr_cursor *cursor);

#endif
