/*
 * detector: the contract between the detectors and the detection that runs them.
 *
 * A detector finds out attributes of the host or the cloud that profcol runs in. An attempt begins
 * with `start` and ends with one call of detector_succeeded, detector_is_absent, detector_failed or
 * detector_gives_up, inside `start` or later; these calls free the attempt's state, so each is the
 * last thing that a callback does. detection.h limits the time, and tries again.
 *
 * Owner: the detection owns the runs; an attempt's own struct is `state`.
 *
 * Thread: the worker of the detection.
 */
#ifndef PROFCOL_PROCESSORS_RESOURCE_DETECTION_DETECTOR_H
#define PROFCOL_PROCESSORS_RESOURCE_DETECTION_DETECTOR_H

#include "core/base/error.h"
#include "core/base/worker.h"
#include "processors/resource_detection/detected.h"
#include "processors/resource_detection/resource_detection_settings.h"

struct detection;
struct detector_run;

struct detector_type {
    const char *name;
    const struct field *attributes; /* which can be switched; NULL: none */
    size_t switches_offset;         /* of its switches in the settings */
    bool may_be_absent;             /* a cloud's: without any answer, this is another place */
    void (*start)(struct detector_run *run);
    /* Cancels what is in progress and frees run->state, which may be NULL. NULL: an attempt ends
     * within `start`. */
    void (*stop)(struct detector_run *run);
};

extern const struct detector_type env_detector, system_detector, docker_detector, ec2_detector,
    gcp_detector, azure_detector;

enum detector_outcome { DETECTOR_PENDING, DETECTOR_SUCCEEDED, DETECTOR_ABSENT, DETECTOR_FAILED };

/* One detector in one detection. */
struct detector_run {
    const struct detector_type *type;
    const struct resource_detection_settings *settings;
    struct worker *worker;
    const char *label;       /* of the component, for logs */
    struct detected *found;  /* of this attempt */
    void *state;             /* the detector's own */
    bool has_answered;       /* set by the detector: the service exists */
    bool absence_is_failure; /* set by the detector: it must exist */
    /* Set by detection.c: */
    struct detection *detection;
    enum detector_outcome outcome;
    uint64_t backoff_ns;
    struct timer retry;
    struct error err; /* of the last attempt; an empty text: none has failed */
};

/* End the attempt: everything was found; there is no such service here, which is no mistake; it
 * failed and is tried again; it failed and would fail again. err may be &run->err. */
void detector_succeeded(struct detector_run *run);
void detector_is_absent(struct detector_run *run, const char *why);
void detector_failed(struct detector_run *run, const struct error *err);
void detector_gives_up(struct detector_run *run, const struct error *err);

/* Whether the attribute, which is in the detector's table, is switched on. */
bool detector_wants(const struct detector_run *run, const char *name);
/* Set an attribute if it is switched on. detector_set_given leaves out an empty text. */
void detector_set(struct detector_run *run, const char *name, struct slice text);
void detector_set_given(struct detector_run *run, const char *name, struct slice text);

#endif
