#include "processors/spanjoin/thread_of_span.h"

#include "core/base/text.h"
#include "core/data/any_value.h"

#include <assert.h>

/* Linux has no larger id of a process or thread (PID_MAX_LIMIT). */
enum { OS_ID_MAX = 4 << 20 };
/* Linux gives the numbers below only once (RESERVED_PIDS), so that programs of a host have larger
 * ones, if it has run for some time. In a container they may be as small as ids of a runtime. */
enum { HOST_PID_MIN = 300 };

static struct thread_ids of_language(struct slice language)
{
    static const char *const of_os[] = {"cpp", "swift", "erlang", "go", "php"};
    for (size_t i = 0; i < sizeof of_os / sizeof *of_os; i++)
        if (slice_is(language, of_os[i]))
            return (struct thread_ids){INT64_MIN, INT64_MAX};
    if (slice_is(language, "python"))
        return (struct thread_ids){INT64_MIN, OS_ID_MAX};
    return (struct thread_ids){1, 0};
}

/* Not all senders keep the language: those that translate from other formats may not. */
static struct thread_ids of_process(struct slice pid_value)
{
    struct any_value pid = any_value_read(pid_value);
    if (pid.kind == ANY_VALUE_INT && pid.integer >= HOST_PID_MIN)
        return (struct thread_ids){pid.integer, OS_ID_MAX};
    return (struct thread_ids){1, 0};
}

struct thread_ids thread_ids_of(struct slice resource)
{
    struct any_value language = any_value_read(
        attribute_value(resource, RESOURCE_ATTRIBUTES, SLICE("telemetry.sdk.language")));
    if (language.kind == ANY_VALUE_STRING)
        return of_language(language.bytes);
    return of_process(attribute_value(resource, RESOURCE_ATTRIBUTES, SLICE("process.pid")));
}

static enum thread_id_kind kind_of(struct thread_ids ids, int64_t id)
{
    return id >= ids.os_first && id <= ids.os_last ? THREAD_ID_OS : THREAD_ID_RUNTIME;
}

bool thread_id_read(const struct any_value *value, int64_t *id_out)
{
    enum { DIGITS_MAX = 19 }; /* so that many samples may refer to one long text */
    uint64_t number;
    if (value->kind == ANY_VALUE_INT) {
        *id_out = value->integer;
        return true;
    }
    if (value->kind != ANY_VALUE_STRING || value->bytes.size > DIGITS_MAX ||
        !text_read_u64(value->bytes, &number) || number > INT64_MAX)
        return false;
    *id_out = (int64_t)number;
    return true;
}

bool thread_of_span(const struct span_view *span, const struct span_key *key, struct thread_ids ids,
                    struct thread_span *out)
{
    assert(span->wanted);
    int64_t id;
    struct any_value id_value = any_value_read(span->wanted->values[WANTED_THREAD_ID]);
    if (!thread_id_read(&id_value, &id))
        return false;
    struct slice name_value = span->wanted->values[WANTED_THREAD_NAME];
    *out = (struct thread_span){.key = *key,
                                .start_ns = span->fields.start_ns,
                                .end_ns = span->fields.end_ns,
                                .kind = kind_of(ids, id),
                                .id = id};
    struct any_value name =
        name_value.size > 0 ? any_value_read(name_value) : (struct any_value){.kind = 0};
    if (name.kind == ANY_VALUE_STRING)
        out->name = name.bytes;
    if (span->fields.parent_id.size == SPAN_ID_SIZE)
        memcpy(out->parent_id, span->fields.parent_id.data, SPAN_ID_SIZE);
    return true;
}
