/*
 * scan against protobuf-c: what the scan accepts, protobuf-c unpacks; what it refuses for its
 * encoding, protobuf-c refuses too, apart from what only we ask for. The input is a request, read
 * as traces and as profiles.
 */
#include "core/data/scan.h"

#include "core/data/message.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* protobuf-c recurses without a limit; what the scan refused may be too deep for it. */
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

/* Texts of refusals that protobuf-c shares. (It drops the upper bits of a tag that is too large.)
 */
static bool is_about_encoding(const char *text)
{
    static const char *const encoding[] = {
        "has a wire type that does not fit",
        "a group, or an unknown wire type",
        "a number is cut off",
        "a length is cut off",
        "bytes are announced, but",
        "the packed numbers are cut off",
    };

    /* protobuf-c does not look at the wire type of a bool. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct scan_limits limits = {.items_max = 10000, .elements_max = 30000};
    struct slice request = slice_of(data, size);
    struct scan_result result;
    struct error err = {""};
    bool accepted;

    scan_init();
    accepted = scan_traces(request, &limits, &result, &err);
    check(request,
          &opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor,
          accepted, &result, err.text);
    err.text[0] = '\0';
    accepted = scan_profiles(request, &limits, &result, &err);
    check(
        request,
        &opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__descriptor,
        accepted, &result, err.text);
    return 0;
}
