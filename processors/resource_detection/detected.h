/*
 * detected: the attributes that detectors found, encoded once for all requests.
 *
 * Each attribute has a key, a value (the payload of an AnyValue) and its encoded field of a
 * Resource. Values come from metadata services, so their number and size are limited; whatever
 * does not fit is left out and counted.
 *
 * Owner: references; the last detected_unref frees it.
 *
 * Thread: one until it is shared; from then on it is read-only, and any thread may hold a
 * reference.
 */
#ifndef PROFCOL_PROCESSORS_RESOURCE_DETECTION_DETECTED_H
#define PROFCOL_PROCESSORS_RESOURCE_DETECTION_DETECTED_H

#include "core/base/arena.h"
#include "core/base/index_table.h"

#include <stdatomic.h>

enum {
    DETECTED_MAX = 256,             /* attributes */
    DETECTED_KEY_MAX = 512,         /* bytes of a key */
    DETECTED_VALUE_MAX = 4096,      /* bytes of a value */
    DETECTED_BYTES_MAX = 32 * 1024, /* of all keys and values */
};

struct detected_attribute {
    struct slice key;
    struct slice value; /* the payload of an AnyValue */
    struct slice pair;  /* the payload of the KeyValue; in `fields`, like the next member */
    struct slice field; /* the encoded field of a Resource */
};

struct detected {
    atomic_uint references;
    struct arena arena;
    struct detected_attribute items[DETECTED_MAX];
    uint32_t count;
    uint32_t left_out; /* attributes that did not fit */
    size_t bytes;      /* of all keys and values */
    struct index_table table;
    bool has_schema;     /* the attributes follow DETECTED_SCHEMA_URL */
    struct slice fields; /* all attributes, encoded in a row; after detected_encode */
};

/* The version of the semantic conventions that the Collector 0.158 names. */
#define DETECTED_SCHEMA_URL "https://opentelemetry.io/schemas/1.40.0"

/* Returns an empty set with one reference. */
struct detected *detected_new(void);
struct detected *detected_ref(struct detected *detected);
/* Drops a reference. NULL is allowed. */
void detected_unref(struct detected *detected);

/* Set an attribute; an existing one of this key is kept. Texts that are not UTF-8 are left out. */
void detected_add_text(struct detected *detected, struct slice key, struct slice text);
void detected_add_int(struct detected *detected, struct slice key, int64_t number);
void detected_add_texts(struct detected *detected, struct slice key, const struct slice *texts,
                        size_t count);
/* Adds the attributes of `from` whose keys are absent. */
void detected_merge(struct detected *detected, const struct detected *from);

/* Encodes the attributes for requests. Nothing may be added afterwards. */
void detected_encode(struct detected *detected);

/* Finds the attribute of a key. Returns false if there is none. */
bool detected_find(const struct detected *detected, struct slice key, uint32_t *number_out);
/* Whether a request would not be changed by it. */
bool detected_is_empty(const struct detected *detected);
/* Whether both have the same attributes in the same order. */
bool detected_equal(const struct detected *a, const struct detected *b);

#endif
