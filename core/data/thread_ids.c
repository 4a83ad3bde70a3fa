#include "core/data/thread_ids.h"

#include "core/base/text.h"
#include "core/data/attributes.h"

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

static struct any_value language_of(struct slice resource)
{
    return any_value_read(
        attribute_value(resource, RESOURCE_ATTRIBUTES, SLICE("telemetry.sdk.language")));
}

struct thread_ids thread_ids_of(struct slice resource)
{
    struct any_value language = language_of(resource);
    if (language.kind == ANY_VALUE_STRING)
        return of_language(language.bytes);
    return of_process(attribute_value(resource, RESOURCE_ATTRIBUTES, SLICE("process.pid")));
}

bool thread_ids_are_guessed(struct slice resource)
{
    return language_of(resource).kind != ANY_VALUE_STRING;
}

bool thread_id_read_text(const struct any_value *value, int64_t *id_out)
{
    enum { DIGITS_MAX = 19 }; /* so that many samples may refer to one long text */
    uint64_t number;
    if (value->kind != ANY_VALUE_STRING || value->bytes.size > DIGITS_MAX ||
        !text_read_u64(value->bytes, &number) || number > INT64_MAX)
        return false;
    *id_out = (int64_t)number;
    return true;
}
