#include "core/pipeline/component_status.h"

#include "core/base/clock.h"
#include "core/base/container_of.h"
#include "core/base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const names[STATUS_KIND_COUNT] = {
    [STATUS_NONE] = "StatusNone",
    [STATUS_STARTING] = "StatusStarting",
    [STATUS_OK] = "StatusOK",
    [STATUS_RECOVERABLE_ERROR] = "StatusRecoverableError",
    [STATUS_PERMANENT_ERROR] = "StatusPermanentError",
    [STATUS_FATAL_ERROR] = "StatusFatalError",
    [STATUS_STOPPING] = "StatusStopping",
    [STATUS_STOPPED] = "StatusStopped",
};

const char *status_name(enum status_kind status)
{
    assert(status < STATUS_KIND_COUNT);
    return names[status];
}

bool status_is_error(enum status_kind status)
{
    return status == STATUS_RECOVERABLE_ERROR || status == STATUS_PERMANENT_ERROR ||
           status == STATUS_FATAL_ERROR;
}

static enum status_kind status_of(const struct status_source *source)
{
    return (enum status_kind)atomic_load_explicit(&source->status, memory_order_relaxed);
}

/* ---- the component's ---- */

void component_status_set(struct component_status *status, enum status_kind life, const char *error)
{
    assert(status_is_error(life) == (error != NULL));
    pthread_mutex_lock(&status->lock);
    if (status->life.status != STATUS_FATAL_ERROR) { /* the reason why the others are stopped */
        status->life.status = life;
        status->life.since_ns = clock_wall_ns();
        snprintf(status->life.error, sizeof status->life.error, "%s", error ? error : "");
    }
    pthread_mutex_unlock(&status->lock);
}

/* Whether the source says more than what is known: a worse status, an error that began earlier, or
 * a success that is more recent. */
static bool outranks(const struct status_source *source, const struct status_event *known)
{
    enum status_kind status = status_of(source);
    if (status != known->status)
        return status > known->status;
    return status_is_error(status) ? source->since_ns < known->since_ns
                                   : source->since_ns > known->since_ns;
}

static bool concerns(const struct status_source *source, int signal)
{
    return signal == STATUS_ALL_SIGNALS || source->signal == STATUS_ALL_SIGNALS ||
           source->signal == signal;
}

static void take_worst(const struct component_status *status, int signal, struct status_event *out)
{
    assert(out->status == STATUS_OK); /* while the component starts or stops, that counts */
    for (struct list_link *link = status->sources.first; link; link = link->next) {
        const struct status_source *source = container_of(link, struct status_source, link);
        if (!concerns(source, signal) || !outranks(source, out))
            continue;
        out->status = status_of(source);
        out->since_ns = source->since_ns;
        snprintf(out->error, sizeof out->error, "%s",
                 status_is_error(out->status) && source->error ? source->error : "");
    }
}

void component_status_read(struct component_status *status, int signal, struct status_event *out)
{
    pthread_mutex_lock(&status->lock);
    *out = status->life;
    if (out->status == STATUS_OK)
        take_worst(status, signal, out);
    pthread_mutex_unlock(&status->lock);
    assert(status_is_error(out->status) || out->error[0] == '\0');
}

uint64_t component_status_last_error(struct component_status *status, int signal,
                                     char out[STATUS_ERROR_MAX])
{
    uint64_t failed_ns = 0;
    out[0] = '\0';
    pthread_mutex_lock(&status->lock);
    for (struct list_link *link = status->sources.first; link; link = link->next) {
        const struct status_source *source = container_of(link, struct status_source, link);
        if (!concerns(source, signal) || source->failed_ns <= failed_ns)
            continue;
        failed_ns = source->failed_ns;
        assert(source->error);
        snprintf(out, STATUS_ERROR_MAX, "%s", source->error);
    }
    pthread_mutex_unlock(&status->lock);
    return failed_ns;
}

/* ---- a source ---- */

void status_source_add(struct status_source *source, struct component_status *owner, int signal)
{
    assert(!source->owner);
    source->owner = owner;
    source->signal = signal;
    source->since_ns = clock_wall_ns();
    atomic_init(&source->status, STATUS_OK);
    pthread_mutex_lock(&owner->lock);
    list_append(&owner->sources, &source->link);
    pthread_mutex_unlock(&owner->lock);
}

void status_source_remove(struct status_source *source)
{
    struct component_status *owner = source->owner;
    if (!owner)
        return;
    pthread_mutex_lock(&owner->lock);
    list_remove(&owner->sources, &source->link);
    pthread_mutex_unlock(&owner->lock);
    free(source->error);
    *source = (struct status_source){0};
}

/* With the lock. */
static void remember(struct status_source *source, const char *error)
{
    source->failed_ns = clock_wall_ns();
    if (source->error && strcmp(source->error, error) == 0)
        return;
    free(source->error);
    source->error = memory_strdup(error);
}

/* With the lock. */
static void set_status(struct status_source *source, enum status_kind status)
{
    assert(source->owner && (status == STATUS_OK || status_is_error(status)));
    if (status_of(source) == status)
        return;
    source->since_ns = clock_wall_ns();
    atomic_store_explicit(&source->status, status, memory_order_relaxed);
}

void status_source_fail(struct status_source *source, enum status_kind kind, const char *error)
{
    struct component_status *owner = source->owner;
    assert(owner && (kind == STATUS_RECOVERABLE_ERROR || kind == STATUS_PERMANENT_ERROR));
    pthread_mutex_lock(&owner->lock);
    set_status(source, kind);
    remember(source, error);
    pthread_mutex_unlock(&owner->lock);
}

void status_source_refuse(struct status_source *source, const char *error)
{
    assert(source->owner);
    pthread_mutex_lock(&source->owner->lock);
    set_status(source, STATUS_OK);
    remember(source, error);
    pthread_mutex_unlock(&source->owner->lock);
}

void status_source_recover(struct status_source *source)
{
    assert(source->owner);
    pthread_mutex_lock(&source->owner->lock);
    set_status(source, STATUS_OK);
    pthread_mutex_unlock(&source->owner->lock);
}

/* Whether the code is about the request, so that its sender decides when it occurs. */
static bool is_about_data(const struct verdict *verdict)
{
    return !verdict_is_retryable(verdict) &&
           (verdict->code == GRPC_INVALID_ARGUMENT || verdict->code == GRPC_RESOURCE_EXHAUSTED ||
            verdict->code == GRPC_ALREADY_EXISTS || verdict->code == GRPC_FAILED_PRECONDITION);
}

/* Whether it stays as long as nobody changes the configuration here or there. */
static bool needs_action(const struct verdict *verdict)
{
    return verdict->code == GRPC_UNAUTHENTICATED || verdict->code == GRPC_PERMISSION_DENIED ||
           verdict->code == GRPC_UNIMPLEMENTED || verdict->code == GRPC_NOT_FOUND;
}

/* With the lock: counts a failure, or ends the outage. */
static struct status_outage note_outcome(struct status_source *source, bool works)
{
    struct status_outage outage = {0};
    uint64_t now = clock_monotonic_ns();
    if (works && source->failures == 0)
        return outage;
    if (source->failures == 0) {
        source->down_since_ns = now;
        outage.change = STATUS_WENT_AWAY;
    }
    if (works)
        outage.change = STATUS_CAME_BACK;
    else
        source->failures++;
    outage.failures = source->failures;
    outage.duration_ns = now - source->down_since_ns;
    if (works)
        source->failures = 0;
    return outage;
}

static struct status_outage settle_error(struct status_source *source,
                                         const struct verdict *verdict)
{
    char error[VERDICT_ERROR_MAX];
    enum status_kind kind =
        needs_action(verdict) ? STATUS_PERMANENT_ERROR : STATUS_RECOVERABLE_ERROR;
    bool works = is_about_data(verdict);
    pthread_mutex_lock(&source->owner->lock);
    set_status(source, works ? STATUS_OK : kind);
    remember(source, verdict_print(verdict, error));
    struct status_outage outage = note_outcome(source, works);
    pthread_mutex_unlock(&source->owner->lock);
    return outage;
}

struct status_outage status_source_settle(struct status_source *source,
                                          const struct verdict *verdict)
{
    assert(source->owner);
    if (!verdict_is_ok(verdict))
        return settle_error(source, verdict);
    if (atomic_load_explicit(&source->status, memory_order_relaxed) == STATUS_OK)
        return (struct status_outage){0};
    pthread_mutex_lock(&source->owner->lock);
    set_status(source, STATUS_OK);
    struct status_outage outage = note_outcome(source, true);
    pthread_mutex_unlock(&source->owner->lock);
    return outage;
}
