/*
 * scan against protobuf-c: protobuf-c must unpack requests that the scan accepts, and refuse those
 * that the scan refuses for their encoding, except for our own additional rules. The scan with its
 * fast path is also compared with the scan without it. The input is a request, read as each signal;
 * metrics and logs are also split.
 */
#include "core/data/scan.h"

#include "core/data/groups_split.h"
#include "core/data/json_schema.h"
#include "core/data/message.h"
#include "core/data/signals.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* protobuf-c recurses without a limit, so large refused requests could be too deep for it. */
enum { REFUSED_SIZE_MAX = 4096 };

static bool unpacks(const ProtobufCMessageDescriptor *descriptor, struct slice request)
{
    ProtobufCMessage *message =
        protobuf_c_message_unpack(descriptor, NULL, request.size, request.data);

    if (!message)
        return false;
    protobuf_c_message_free_unpacked(message, NULL);
    return true;
}

/* Whether protobuf-c refuses a request for the same reason. (It drops the upper bits of a tag that
 * is too large.) */
static bool is_about_encoding(const char *text)
{
    static const char *const encoding[] = {
        "has a wire type that does not fit",
        "a group, or an unknown wire type",
        "a number is cut off",
        "a length is cut off",
        "bytes do not fit",
        "the packed numbers are cut off",
    };

    /* protobuf-c does not check the wire type of a bool. */
    if (strstr(text, "bool_value: has a wire type"))
        return false;
    for (size_t i = 0; i < sizeof encoding / sizeof encoding[0]; i++)
        if (strstr(text, encoding[i]))
            return true;
    return false;
}

static void check(struct slice request, const ProtobufCMessageDescriptor *descriptor, bool accepted,
                  const struct scan_result *result, const char *text)
{
    if (accepted) {
        assert(result->items <= result->elements && result->groups <= result->elements);
        if (result->layout == SCAN_LAYOUT_CURRENT && !unpacks(descriptor, request)) {
            fprintf(stderr, "accepted, but protobuf-c refuses it\n");
            abort();
        }
        return;
    }
    assert(text[0] != '\0' && strlen(text) < sizeof((struct error *)0)->text);
    if (is_about_encoding(text) && !strstr(text, "read as OTLP 1.9") &&
        request.size <= REFUSED_SIZE_MAX && unpacks(descriptor, request)) {
        fprintf(stderr, "refused, but protobuf-c accepts it: %s\n", text);
        abort();
    }
}

/* Parts of whole groups have all items of the request. */
static void check_split(enum signal signal, struct slice request, uint32_t items)
{
    enum { STEP = 3 };
    struct groups_source *source = groups_source_new(signal, &request, 1, NULL);
    struct scan_result result;
    struct error err;

    assert(groups_source_items(source) == items);
    for (uint32_t first = 0, count; first < items; first += count) {
        count = groups_source_fit(source, first, STEP, request.size / 2);
        struct buffer *part = groups_source_part(source, first, count);
        bool accepted =
            signal_traits(signal)->scan(buffer_slice(part), &scan_limits_default, &result, &err);
        assert(accepted && result.items == count && part->size <= request.size);
        assert(part->size == groups_source_item_bytes(source, first, count));
        buffer_unref(part);
    }
    groups_source_free(source);
}

static void scan_as(enum signal signal, struct slice request)
{
    static const struct scan_limits limits[] = {
        {.items_max = 10000, .elements_max = 30000},
        {.items_max = 10000, .elements_max = 30000, .careful = true},
    };
    const struct signal_traits *traits = signal_traits(signal);
    struct scan_result results[2];
    struct error errs[2] = {0};
    bool accepted[2];

    for (unsigned i = 0; i < 2; i++)
        accepted[i] = traits->scan(request, &limits[i], &results[i], &errs[i]);
    assert(accepted[0] == accepted[1] && strcmp(errs[0].text, errs[1].text) == 0);
    assert(memcmp(&results[0], &results[1], offsetof(struct scan_result, layout)) == 0);
    assert(results[0].layout == results[1].layout &&
           results[0].has_references == results[1].has_references &&
           results[0].dictionaries == results[1].dictionaries &&
           results[0].misses_zero_entries == results[1].misses_zero_entries);
    check(request, json_schema_message(traits->request), accepted[0], &results[0], errs[0].text);
    if (accepted[0] && traits->is_relayed)
        check_split(signal, request, results[0].items);
}

/* Scans the request followed by an unknown field, because the fast path stops before the end of a
 * request. */
static void scan_longer(enum signal signal, struct slice request)
{
    enum { UNKNOWN = 15 << 3 | 2, UNKNOWN_SIZE = 120, TIMES = 5 };
    size_t more = (UNKNOWN_SIZE + 2) * TIMES;
    uint8_t *longer = calloc(1, request.size + more);

    assert(longer);
    if (request.size > 0)
        memcpy(longer, request.data, request.size);
    for (uint8_t *p = longer + request.size; p < longer + request.size + more;
         p += UNKNOWN_SIZE + 2) {
        p[0] = UNKNOWN;
        p[1] = UNKNOWN_SIZE;
    }
    scan_as(signal, slice_of(longer, request.size + more));
    free(longer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scan_init();
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        scan_as((enum signal)signal, slice_of(data, size));
        scan_longer((enum signal)signal, slice_of(data, size));
    }
    return 0;
}
