#include "processors/spanjoin/request_instance.h"

#include "core/base/hash.h"
#include "core/data/any_value.h"
#include "core/net/peer_key.h"
#include "processors/spanjoin/joined_values.h"

enum identity_key {
    SERVICE_NAME,
    SERVICE_NAMESPACE,
    SERVICE_INSTANCE,
    HOST_ID,
    HOST_NAME,
    CONTAINER_ID,
    PROCESS_PID,
    POD_UID,
    POD_NAME,
    SESSION_ID, /* of Pyroscope's SDKs */
    IDENTITY_COUNT
};

static const char *const identity_keys[IDENTITY_COUNT] = {
    [SERVICE_NAME] = "service.name",
    [SERVICE_NAMESPACE] = "service.namespace",
    [SERVICE_INSTANCE] = "service.instance.id",
    [HOST_ID] = "host.id",
    [HOST_NAME] = "host.name",
    [CONTAINER_ID] = "container.id",
    [PROCESS_PID] = "process.pid",
    [POD_UID] = "k8s.pod.uid",
    [POD_NAME] = "k8s.pod.name",
    [SESSION_ID] = "__session_id__",
};

enum { GLOBAL_ID_MIN = 32 }; /* digits of an instance id that is unique without its service */

/* Reads the values, encoded; those that are absent stay empty. Returns a hash of the keys of all
 * attributes, in any order. */
static uint64_t read_identity(struct slice resource, struct slice values[IDENTITY_COUNT])
{
    struct wire_cursor cursor = wire_cursor(resource);
    struct wire_field field;
    uint64_t keys = 0;
    while (wire_next_bytes(&cursor, RESOURCE_ATTRIBUTES, &field)) {
        struct key_value pair = key_value_read(field.bytes);
        keys += hash_bytes(pair.key);
        for (unsigned i = 0; i < IDENTITY_COUNT; i++)
            if (values[i].size == 0 && slice_is(pair.key, identity_keys[i]))
                values[i] = pair.value;
    }
    return keys;
}

enum id_kind {
    ID_SERVICE = 1,
    ID_INSTANCE,
    ID_INSTANCE_OF_SERVICE,
    ID_CONTAINER,
    ID_HOST,
    ID_LOOPBACK,
    ID_REST,
    ID_GROUP,
    ID_GROUP_OF_CONTAINER,
    ID_GROUP_OF_POD
};

static uint64_t id_of(enum id_kind kind, uint64_t scope, struct slice a, struct slice b,
                      struct slice c)
{
    const uint64_t parts[] = {kind, scope, hash_bytes(a), hash_bytes(b), hash_bytes(c)};
    return hash_bytes(slice_of(parts, sizeof parts)) | 1;
}

static struct slice text_of(struct slice value)
{
    struct any_value any = any_value_read(value);
    return any.kind == ANY_VALUE_STRING ? any.bytes : (struct slice){0};
}

static uint64_t id_of_instance(const struct slice *values, uint64_t scope)
{
    struct slice none = {0};
    if (text_of(values[SERVICE_INSTANCE]).size >= GLOBAL_ID_MIN)
        return id_of(ID_INSTANCE, scope, values[SERVICE_INSTANCE], none, none);
    return id_of(ID_INSTANCE_OF_SERVICE, scope, values[SERVICE_INSTANCE], values[SERVICE_NAME],
                 values[SERVICE_NAMESPACE]);
}

static uint64_t id_of_all(const struct slice *values, uint64_t scope, uint64_t peer)
{
    uint64_t parts[IDENTITY_COUNT + 3] = {ID_REST, scope, peer};
    for (unsigned i = 0; i < IDENTITY_COUNT; i++)
        parts[3 + i] = hash_bytes(values[i]);
    return hash_bytes(slice_of(parts, sizeof parts)) | 1;
}

/* Returns 0 if it is not known. */
static int64_t pid_of(struct slice value)
{
    struct any_value pid = any_value_read(value);
    return pid.kind == ANY_VALUE_INT ? pid.integer : 0;
}

/* Whether the pid says which process of a host it is. Process 1 is the first one of a container. */
static bool is_pid_of_host(struct slice value)
{
    return pid_of(value) > 1;
}

/* Adds what identifies a process by its number. A sender on this host, such as a profiler that sees
 * all processes, may know nothing else. */
static void add_pid_ids(struct instance_ids *ids, const struct slice *values,
                        const struct request_sender *sender, uint64_t scope)
{
    struct slice none = {0}, pid = values[PROCESS_PID];
    if (pid.size > 0 && values[CONTAINER_ID].size > 0) {
        ids->ids[ids->count++] = id_of(ID_CONTAINER, scope, values[CONTAINER_ID], pid, none);
        return;
    }
    if (!is_pid_of_host(pid))
        return;
    if (values[HOST_ID].size > 0)
        ids->pids[0] = id_of(ID_HOST, scope, values[HOST_ID], pid, none);
    if (peer_key_is_loopback(sender->batch->peer))
        ids->pids[1] = id_of(ID_LOOPBACK, scope, pid, none, none);
}

/* Returns the first label of a host's name: some senders add the domain. */
static struct slice first_label(struct slice name)
{
    const uint8_t *dot = name.size > 0 ? memchr(name.data, '.', name.size) : NULL;
    return dot ? (struct slice){name.data, (size_t)(dot - name.data)} : name;
}

/* Adds what differs for processes that have the same number in different containers or hosts. */
static void add_claims(struct instance_ids *ids, const struct slice *values)
{
    const struct slice claims[INSTANCE_CLAIMS_MAX] = {values[SERVICE_INSTANCE], values[HOST_ID],
                                                      first_label(text_of(values[HOST_NAME])),
                                                      values[POD_UID], values[POD_NAME]};
    for (unsigned i = 0; i < INSTANCE_CLAIMS_MAX; i++)
        if (claims[i].size > 0)
            ids->claims[i] = hash_bytes(claims[i]) | 1;
}

/* Whether a resource says of which service it is, and nothing else. */
static bool is_bare(const struct slice *values)
{
    for (unsigned i = 0; i < IDENTITY_COUNT; i++)
        if (i != SERVICE_NAME && i != SERVICE_NAMESPACE && values[i].size > 0)
            return false;
    return true;
}

enum { SHORT_CONTAINER_ID = 12 }; /* digits; containers may be named by so many of them */

static bool are_hex_digits(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!(text.data[i] >= '0' && text.data[i] <= '9') &&
            !(text.data[i] >= 'a' && text.data[i] <= 'f'))
            return false;
    return true;
}

/* Returns the first digits of the container's id: Docker gives them to containers as host names. */
static struct slice short_container_id(const struct slice *values)
{
    struct slice id = text_of(values[CONTAINER_ID]), host = text_of(values[HOST_NAME]);
    if (id.size > SHORT_CONTAINER_ID)
        id.size = SHORT_CONTAINER_ID;
    else if (id.size == 0 && host.size == SHORT_CONTAINER_ID && are_hex_digits(host))
        id = host;
    return id;
}

/* Whether a profiler outside of the process sends its profiles, which may know it by its number on
 * the host. What a process sends itself has the number that its spans have. */
static bool is_sent_from_outside(const struct slice *values, struct slice resource)
{
    struct slice language =
        attribute_value(resource, RESOURCE_ATTRIBUTES, SLICE("telemetry.sdk.language"));
    return values[PROCESS_PID].size > 0 && values[SERVICE_INSTANCE].size == 0 &&
           values[SESSION_ID].size == 0 && language.size == 0;
}

static uint64_t group_of_container(const struct slice *values, uint64_t scope)
{
    struct slice none = {0}, container = short_container_id(values);
    return container.size > 0 ? id_of(ID_GROUP_OF_CONTAINER, scope, container, none, none) : 0;
}

static uint64_t group_of_pod(const struct slice *values, uint64_t scope)
{
    struct slice none = {0}, pod = values[POD_UID];
    return pod.size > 0 ? id_of(ID_GROUP_OF_POD, scope, pod, none, none) : 0;
}

/* Notes in which container and pod a process runs. Some SDKs take the id of another container of
 * the pod for their own; then the pod decides. */
static void add_places(struct instance_place *place, const struct slice *values, uint64_t scope)
{
    place->groups[GROUP_OF_CONTAINER] = group_of_container(values, scope);
    place->groups[GROUP_OF_POD] = group_of_pod(values, scope);
}

/* Returns which attributes a resource has. */
static uint32_t form_of(const struct slice *values)
{
    uint32_t form = 0;
    for (unsigned i = 0; i < IDENTITY_COUNT; i++)
        form |= (uint32_t)(values[i].size > 0) << i;
    return form;
}

struct request_process request_process(const struct request_sender *sender, struct slice resource,
                                       const struct span_source *source)
{
    struct slice values[IDENTITY_COUNT] = {{0}}, none = {0};
    struct instance_ids ids = {.owner = source->owner};
    struct request_process process = {.owner = source->owner};
    uint64_t scope = source->scope, peer = sender->batch->peer;
    bool is_traces = sender->batch->signal == SIGNAL_TRACES;
    process.keys = read_identity(resource, values);
    if (values[SERVICE_INSTANCE].size > 0)
        ids.ids[ids.count++] = id_of_instance(values, scope);
    add_pid_ids(&ids, values, sender, scope);
    add_claims(&ids, values);
    process.is_identified = ids.count > 0 || ids.pids[0] != 0 || ids.pids[1] != 0;
    process.place.is_all_known = is_bare(values);
    process.place.pid = pid_of(values[PROCESS_PID]);
    memcpy(process.place.pids, ids.pids, sizeof ids.pids);
    process.form = form_of(values);
    if (ids.count == 0)
        ids.rest = id_of_all(values, scope, peer);
    if (values[SERVICE_NAME].size > 0) {
        struct slice name = values[SERVICE_NAME], space = values[SERVICE_NAMESPACE];
        ids.service = id_of(ID_SERVICE, scope, name, space, none);
        if (is_traces || !process.is_identified)
            process.place.groups[GROUP_OF_SERVICE] =
                id_of(ID_GROUP, scope, name, space, slice_of(&peer, sizeof peer));
    }
    if (is_traces || is_sent_from_outside(values, resource))
        add_places(&process.place, values, scope);
    process.service =
        (struct service_id){text_of(values[SERVICE_NAME]), text_of(values[SERVICE_NAMESPACE])};
    if (is_traces && sender->settings->service_from == SERVICE_FROM_SPAN)
        ids.of_spans = &process.service;
    process.instance = instances_find(span_index_instances(sender->index), &ids, sender->now_ns);
    return process;
}

void request_process_note_threads(const struct request_sender *sender,
                                  const struct request_process *process, struct upload_range ran)
{
    struct instance_clock clock = request_clock(sender);
    if (process->instance != 0)
        instances_note_threads(span_index_instances(sender->index), process->instance,
                               &process->place, process->owner, ran, &clock);
}

struct instance_threads request_process_with_threads(const struct request_sender *sender,
                                                     const struct request_process *process)
{
    struct instance_clock clock = request_clock(sender);
    if (!sender->settings->samples.by_thread || process->instance == 0)
        return (struct instance_threads){.instance = 0};
    return instances_with_threads(span_index_instances(sender->index), process->instance,
                                  &process->place, &clock);
}

bool request_threads_are_known(const struct request_sender *sender)
{
    struct instance_clock clock = request_clock(sender);
    return sender->settings->samples.by_thread &&
           instances_some_have_threads(span_index_instances(sender->index), &clock);
}

/* Returns the sample types by which spans are judged: those of pyroscope.profile.id, or CPU time.
 */
static uint32_t awaited_types(const struct spanjoin_settings *settings)
{
    if (settings->profile_types == 0 && settings->cpu_type >= 0)
        return UINT32_C(1) << settings->cpu_type;
    return settings->profile_types;
}

struct instance_clock request_clock(const struct request_sender *sender)
{
    return (struct instance_clock){.now_ns = sender->now_ns,
                                   .window_ns = span_index_window(sender->index),
                                   .wait_ns = (uint64_t)sender->settings->spans.wait,
                                   .awaited = awaited_types(sender->settings)};
}
