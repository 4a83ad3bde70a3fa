/*
 * count_shapes: where the items of each signal are, and their attributes and times.
 *
 * Owner: constants.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CONNECTORS_COUNT_COUNT_SHAPES_H
#define PROFCOL_CONNECTORS_COUNT_COUNT_SHAPES_H

#include "connectors/count/count_settings.h"

enum {
    SHAPE_LEVELS = 3,   /* a metric, its data, a data point */
    SHAPE_CHILDREN = 6, /* the five kinds of data of a metric, and NULL */
};

/* A message of OTLP that is counted, or contains some that are. */
struct shape {
    uint32_t number; /* its field in the message that contains it */
    enum counted kind;
    uint32_t attributes;   /* field number; 0: none */
    bool has_indices;      /* the attributes are indices into the attribute_table */
    bool has_parents_time; /* it has none itself */
    uint32_t times[2];     /* field numbers; 0: none */
    const struct shape *children[SHAPE_CHILDREN]; /* ends with NULL */
};

/* Returns the shape of a scope's items. */
const struct shape *shape_of_signal(enum signal signal);

#endif
