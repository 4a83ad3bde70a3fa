/*
 * jfr_metadata: reads a chunk's description of its own events and constants.
 *
 * The metadata event contains classes with fields, as elements of a tree over a table of strings
 * (jdk.jfr.internal.MetadataReader). For each class that occurs, a layout is built: its fields in
 * the order of the bytes, with nested structs replaced by their fields. With the layout, a record
 * can be skipped, or the fields that we know (enum jfr_field) can be read, whatever else a writer
 * has added. Every step of a layout reads at least one byte, so reading takes linear time. Classes
 * that contain themselves, or are nested too deeply, are refused.
 *
 * Owner: the caller initialises it with jfr_metadata_read, and frees it and its classes with
 * jfr_metadata_deinit, also if jfr_metadata_read failed. Names point into its arena or the chunk.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_JFR_METADATA_H
#define PROFCOL_CORE_FORMATS_JFR_METADATA_H

#include "core/base/arena.h"
#include "core/formats/id_map.h"
#include "core/formats/jfr_chunk.h"
#include "core/formats/profiles_builder.h"

/* The fields of records that we read, recognised by name and type. */
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
    JFR_TYPE,       /* jdk.types.Method: its class */
    JFR_NAME,       /* of methods and classes */
    JFR_STRING,     /* jdk.types.Symbol */
    JFR_START_TIME, /* events: ticks */
    JFR_SAMPLED_THREAD,
    JFR_EVENT_THREAD,
    JFR_JAVA_THREAD_ID, /* java.lang.Thread */
    JFR_OS_THREAD_ID,
    JFR_JAVA_NAME,
    JFR_OS_NAME,
    JFR_FIELD_COUNT,
};

struct jfr_class;

/* The values of a record: a number, the id of a constant, or the place of a text or a list; 0 if
 * the class does not have the field. */
struct jfr_record {
    uint64_t values[JFR_FIELD_COUNT];
    const struct jfr_class *list_of; /* the elements of JFR_FRAMES */
};

struct jfr_class {
    uint64_t id;
    struct slice name;
    uint8_t role; /* free for the owner of the metadata; 0 at first */
    /* the rest is for jfr_metadata.c */
    struct jfr_class_field *first, *last;
    uint8_t shape, fixed_size, state;
    struct jfr_step *steps;
    size_t step_count;
};

struct jfr_metadata {
    struct profiles_builder *builder; /* limits the memory */
    struct arena arena;
    struct slice *strings; /* used while the metadata is read */
    size_t string_count;
    struct jfr_class **classes;
    uint32_t class_count, class_capacity;
    struct id_map by_id; /* place: 1 + index in classes */
    size_t steps_left;   /* number of fields that layouts may still visit */
};

/* Reads the metadata of a chunk. Returns false, with err set, if it is invalid. If there is no
 * room, here or below, the builder's state says so. */
bool jfr_metadata_read(struct jfr_metadata *metadata, const struct jfr_chunk *chunk,
                       struct profiles_builder *builder, struct budget *budget, struct error *err);
/* Frees the metadata and its classes. */
void jfr_metadata_deinit(struct jfr_metadata *metadata);

/* Return the class with this id or name; NULL if the metadata does not describe it. */
struct jfr_class *jfr_metadata_class(const struct jfr_metadata *metadata, uint64_t id);
struct jfr_class *jfr_metadata_class_named(const struct jfr_metadata *metadata, const char *name);

/* Builds the layout of a class, once. Call it before the functions below. Returns false, with err
 * set, if the class is refused. */
bool jfr_class_prepare(struct jfr_metadata *metadata, struct jfr_class *type, struct error *err);
/* Skip or read the whole next record; check the cursor's `broken` afterwards. */
void jfr_class_skip(const struct jfr_class *type, struct jfr_cursor *cursor);
void jfr_class_read(const struct jfr_class *type, const struct jfr_chunk *chunk,
                    struct jfr_cursor *cursor, struct jfr_record *record);
/* Reads the number of records in the list that begins here; 0 if records take no bytes. */
uint64_t jfr_class_list(const struct jfr_class *type, struct jfr_cursor *cursor);

#endif
