#include "processors/resource_detection/detection.h"

#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/any_value.h"

#include <assert.h>
#include <inttypes.h>

static const struct detector_type *const types[] = {
    &env_detector, &system_detector, &docker_detector,
    &ec2_detector, &gcp_detector,    &azure_detector,
    NULL,
};

static const struct detector_type *find_type(const char *name)
{
    const struct detector_type *const *type = types;
    while (*type && strcmp((*type)->name, name) != 0)
        type++;
    return *type; /* NULL: one that profcol does not have */
}

/* ---- attributes ---- */

bool detector_wants(const struct detector_run *run, const char *name)
{
    const char *switches = (const char *)run->settings + run->type->switches_offset;
    assert(run->type->attributes);
    assert(run->outcome == DETECTOR_PENDING && run->found);
    return attribute_is_enabled(run->type->attributes, (const void *)switches, name);
}

void detector_set(struct detector_run *run, const char *name, struct slice text)
{
    if (detector_wants(run, name))
        detected_add_text(run->found, slice_of_string(name), text);
}

void detector_set_given(struct detector_run *run, const char *name, struct slice text)
{
    if (text.size > 0)
        detector_set(run, name, text);
}

/* ---- the end ---- */

static void merge(struct detection *detection)
{
    assert(!detection->detected);
    struct detected *detected = detected_new();
    for (size_t i = 0; i < detection->count; i++)
        if (detection->runs[i].outcome == DETECTOR_SUCCEEDED)
            detected_merge(detected, detection->runs[i].found);
    detected_encode(detected);
    detection->detected = detected;
}

static void print_attributes(const struct detected *detected, struct text *out)
{
    for (uint32_t i = 0; i < detected->count; i++) {
        const struct detected_attribute *attribute = &detected->items[i];
        struct any_value value = any_value_read(attribute->value);
        text_printf(out, "%s%.*s", i > 0 ? ", " : "", SLICE_ARG(attribute->key));
        if (value.kind == ANY_VALUE_STRING)
            text_printf(out, "=%.*s", SLICE_ARG(value.bytes));
        else if (value.kind == ANY_VALUE_INT)
            text_printf(out, "=%" PRId64, value.integer);
    }
}

static void log_result(const struct detection *detection)
{
    const struct detected *detected = detection->detected;
    struct text attributes = {0};
    print_attributes(detected, &attributes);
    log_info(
        log_component(detection->label), "detected resource information",
        LOG_TEXT("resource_attributes", detected->count > 0 ? text_string(&attributes) : "none"));
    if (detected->left_out > 0)
        log_warn(log_component(detection->label),
                 "Detected attributes are left out: they are too large, too many or not UTF-8",
                 LOG_U64("left_out", detected->left_out));
    text_deinit(&attributes);
}

static void finish(struct detection *detection)
{
    assert(!detection->is_done && detection->pending == 0);
    worker_cancel_timer(detection->worker, &detection->deadline);
    merge(detection);
    log_result(detection);
    detection->is_done = true;
    detection->on_done(detection);
}

static void free_attempt(struct detector_run *run)
{
    worker_cancel_timer(run->worker, &run->retry);
    if (run->type->stop)
        run->type->stop(run);
    run->state = NULL;
}

/* May end the detection, which may free the run. */
static void end_run(struct detector_run *run, enum detector_outcome outcome)
{
    struct detection *detection = run->detection;
    assert(run->outcome == DETECTOR_PENDING && outcome != DETECTOR_PENDING);
    assert(detection->pending > 0);
    free_attempt(run);
    run->outcome = outcome;
    if (outcome == DETECTOR_FAILED && !detection->has_failed) {
        detection->has_failed = true;
        detection->err = run->err;
        error_prefix(&detection->err, "detector %s", run->type->name);
    }
    if (outcome == DETECTOR_FAILED && run->absence_is_failure)
        detection->must_fail = true;
    detection->pending--;
    if (detection->pending == 0 && !detection->is_starting)
        finish(detection);
}

/* ---- attempts ---- */

static void start_attempt(struct detector_run *run)
{
    assert(run->outcome == DETECTOR_PENDING && !run->state);
    detected_unref(run->found);
    run->found = detected_new();
    run->type->start(run);
}

static void on_retry(struct timer *timer)
{
    start_attempt(container_of(timer, struct detector_run, retry));
}

void detector_succeeded(struct detector_run *run)
{
    end_run(run, DETECTOR_SUCCEEDED);
}

void detector_is_absent(struct detector_run *run, const char *why)
{
    struct error err;
    if (run->absence_is_failure) {
        error_set(&err, "%s", why);
        detector_failed(run, &err);
        return;
    }
    log_debug(log_component(run->label), "The detector has no metadata",
              LOG_TEXT("detector", run->type->name), LOG_TEXT("reason", why));
    end_run(run, DETECTOR_ABSENT);
}

static void note_failure(struct detector_run *run, const struct error *err)
{
    assert(err->text[0]); /* time_out sees by it that an attempt has failed */
    if (err != &run->err)
        run->err = *err;
    log_warn(log_component(run->label), "failed to detect resource",
             LOG_TEXT("detector", run->type->name), LOG_TEXT("error", run->err.text));
}

void detector_failed(struct detector_run *run, const struct error *err)
{
    assert(run->outcome == DETECTOR_PENDING && run->backoff_ns >= DETECTION_RETRY_NS);
    note_failure(run, err);
    free_attempt(run);
    worker_set_timer(run->worker, &run->retry, run->backoff_ns);
    run->backoff_ns *= 2;
}

void detector_gives_up(struct detector_run *run, const struct error *err)
{
    note_failure(run, err);
    end_run(run, DETECTOR_FAILED);
}

/* Ends a run that has found nothing within the timeout. A cloud's service of which nothing was
 * heard does not exist here. */
static void time_out(struct detector_run *run)
{
    bool has_tried = run->err.text[0] != '\0';
    if (run->type->may_be_absent && !run->has_answered && !run->absence_is_failure && !has_tried) {
        log_warn(log_component(run->label),
                 "The detector got no answer within the timeout; it is left out",
                 LOG_TEXT("detector", run->type->name));
        end_run(run, DETECTOR_ABSENT);
        return;
    }
    if (!has_tried)
        error_set(&run->err, "no answer within the timeout");
    log_warn(log_component(run->label), "failed to detect resource, gave up at the timeout",
             LOG_TEXT("detector", run->type->name), LOG_TEXT("error", run->err.text));
    end_run(run, DETECTOR_FAILED);
}

static void on_deadline(struct timer *timer)
{
    struct detection *detection = container_of(timer, struct detection, deadline);
    assert(!detection->is_done && detection->pending > 0);
    detection->is_starting = true; /* the last one does not end it yet */
    for (size_t i = 0; i < detection->count; i++)
        if (detection->runs[i].outcome == DETECTOR_PENDING)
            time_out(&detection->runs[i]);
    detection->is_starting = false;
    finish(detection);
}

/* ---- start and stop ---- */

static void add_run(struct detection *detection, const struct detector_type *type)
{
    assert(detection->count < detection->settings->detectors.count);
    struct detector_run *run = &detection->runs[detection->count++];
    *run = (struct detector_run){
        .type = type,
        .settings = detection->settings,
        .worker = detection->worker,
        .label = detection->label,
        .detection = detection,
        .backoff_ns = DETECTION_RETRY_NS,
        .retry.on_timer = on_retry,
    };
}

void detection_start(struct detection *detection)
{
    const struct config_strings *names = &detection->settings->detectors;
    assert(worker_is_current(detection->worker) && detection->on_done && !detection->runs);
    worker_now(detection->worker);
    detection->runs = memory_array(names->count + 1, sizeof *detection->runs);
    for (size_t i = 0; i < names->count; i++) {
        const struct detector_type *type = find_type(names->items[i]);
        if (type)
            add_run(detection, type);
    }
    detection->pending = detection->count;
    detection->is_starting = true;
    detection->deadline.on_timer = on_deadline;
    worker_set_timer(detection->worker, &detection->deadline,
                     (uint64_t)detection->settings->timeout);
    for (size_t i = 0; i < detection->count; i++)
        start_attempt(&detection->runs[i]);
    detection->is_starting = false;
    if (detection->pending == 0)
        finish(detection);
}

void detection_stop(struct detection *detection)
{
    if (!detection->runs)
        return;
    assert(worker_is_current(detection->worker));
    worker_cancel_timer(detection->worker, &detection->deadline);
    for (size_t i = 0; i < detection->count; i++) {
        if (detection->runs[i].outcome == DETECTOR_PENDING)
            free_attempt(&detection->runs[i]);
        detected_unref(detection->runs[i].found);
    }
    free(detection->runs);
    detected_unref(detection->detected);
    detection->runs = NULL;
    detection->count = 0;
    detection->detected = NULL;
}
