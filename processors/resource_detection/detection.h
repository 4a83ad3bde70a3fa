/*
 * detection: runs the configured detectors at the same time, and merges what they find.
 *
 * An attempt that fails is repeated after 1 s, then 2 s and so on, until the timeout; then the
 * detection ends with what there is. Of an attribute that several detectors found, the first of
 * them in the configured order counts. A failed detector is logged; it fails the detection only if
 * its settings say that its service must exist.
 *
 * Owner: whoever has the struct; detection_stop must be called before its memory goes.
 *
 * Thread: its worker.
 */
#ifndef PROFCOL_PROCESSORS_RESOURCE_DETECTION_DETECTION_H
#define PROFCOL_PROCESSORS_RESOURCE_DETECTION_DETECTION_H

#include "processors/resource_detection/detector.h"

enum { DETECTION_RETRY_NS = 1000000000 };

struct detection {
    /* Set by the caller: */
    struct worker *worker;
    const struct resource_detection_settings *settings;
    const char *label; /* of the component */
    /* Called once when the results below are set, perhaps inside detection_start. May call
     * detection_stop. */
    void (*on_done)(struct detection *detection);
    /* Results: */
    bool is_done;
    bool has_failed;           /* some detector has failed */
    bool must_fail;            /* a service is missing that must exist; err says which */
    struct error err;          /* of the first failure */
    struct detected *detected; /* merged and encoded; owned until detection_stop */
    /* Set by detection.c: */
    struct detector_run *runs;
    size_t count, pending;
    bool is_starting;
    struct timer deadline;
};

void detection_start(struct detection *detection);
/* Cancels what is in progress and frees the results. Allowed without detection_start. */
void detection_stop(struct detection *detection);

#endif
