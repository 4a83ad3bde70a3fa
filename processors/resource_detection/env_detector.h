/*
 * env_detector: reads the attributes of OTEL_RESOURCE_ATTRIBUTES.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PROCESSORS_RESOURCE_DETECTION_ENV_DETECTOR_H
#define PROFCOL_PROCESSORS_RESOURCE_DETECTION_ENV_DETECTOR_H

#include "core/base/error.h"
#include "processors/resource_detection/detected.h"

/* Reads `key=value,key=value`. Spaces around keys and values are left out; keys and values are
 * ASCII, of at most 256 bytes; values are decoded as in the query of a URL, as the Collector does:
 * %20 and + are spaces. Of a repeated key the last value counts. Returns false, with err set, if
 * the text is malformed. */
bool env_read_attributes(struct slice text, struct detected *found, struct error *err);

#endif
