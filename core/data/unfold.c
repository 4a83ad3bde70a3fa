#include "core/data/unfold.h"

#include "core/base/memory.h"
#include "core/data/wire.h"

#include <assert.h>
#include <inttypes.h>

static uint64_t room_of(struct slice request)
{
    return (uint64_t)request.size * UNFOLD_PER_BYTE + UNFOLD_SPARE;
}

/* ---- scopes and series ---- */

/* Requests of at most this size cannot exceed a limit. The largest products are those of labels
 * (half of the bytes in one resource, the rest scopes of two bytes: n * n / 8) and of frames (half
 * of the bytes in one stack, the rest samples of four bytes: n * n / 16). */
enum { SMALL_BYTES = 8192 };
_Static_assert(UNFOLD_SPARE >= (uint64_t)SMALL_BYTES * SMALL_BYTES / 8, "fits without a look");

struct scopes {
    uint64_t count;
    uint64_t label_bytes; /* bytes of resources, once for each of their scopes */
};

static void count_scopes(struct slice group, struct scopes *scopes)
{
    struct wire_cursor cursor = wire_cursor(group);
    struct wire_field field = {0};
    uint64_t count = 0, labels = 0;
    while (wire_next(&cursor, &field)) {
        if (field.number == GROUP_SCOPES)
            count++;
        else if (field.number == GROUP_RESOURCE)
            labels = field.bytes.size < UNFOLD_LABELS_MAX ? field.bytes.size : UNFOLD_LABELS_MAX;
    }
    assert(!cursor.broken); /* scanned */
    scopes->count += count;
    scopes->label_bytes += count * labels;
}

static struct scopes scopes_of(struct slice request)
{
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field field;
    struct scopes scopes = {0};
    while (wire_next_bytes(&cursor, REQUEST_GROUPS, &field))
        count_scopes(field.bytes, &scopes);
    return scopes;
}

static bool check_count(uint64_t count, uint64_t max, const char *what, struct error *err)
{
    return count <= max ||
           error_set(err, "the request holds %" PRIu64 " %s, more than %" PRIu64, count, what, max);
}

static bool check_memory(struct slice request, const struct scan_result *scan, size_t memory_bytes,
                         struct error *err)
{
    uint64_t most = (uint64_t)scan->elements * UNFOLD_ELEMENT_BYTES;
    uint64_t usual = (uint64_t)request.size + unfold_usual_bytes(scan);
    return memory_bytes == 0 || (most <= memory_bytes && usual <= memory_bytes) ||
           error_set(err,
                     "the request holds %" PRIu32
                     " messages and strings, for which there is not enough memory",
                     scan->elements);
}

bool unfold_traces(struct slice request, const struct scan_result *scan, size_t memory_bytes,
                   struct error *err)
{
    return check_memory(request, scan, memory_bytes, err) &&
           (request.size <= (size_t)2 * UNFOLD_SCOPES_MAX || /* a scope has at least two bytes */
            check_count(scopes_of(request).count, UNFOLD_SCOPES_MAX, "scope_spans", err));
}

/* ---- frames ---- */

static uint32_t at_most(size_t frames)
{
    return frames < UNFOLD_FRAMES_MAX ? (uint32_t)frames : UNFOLD_FRAMES_MAX;
}

/* Returns the size in bytes of each stack, which is at least its number of frames. */
static uint32_t *widths_of(struct slice dictionary, uint32_t count)
{
    uint32_t *widths = memory_array(count, sizeof *widths), stack = 0;
    struct wire_cursor cursor = wire_cursor(dictionary);
    struct wire_field field;
    while (stack < count && wire_next_bytes(&cursor, DICTIONARY_STACK_TABLE, &field))
        widths[stack++] = at_most(field.bytes.size);
    assert(!cursor.broken);
    return widths;
}

static uint32_t stack_of(struct slice sample)
{
    struct wire_cursor cursor = wire_cursor(sample);
    struct wire_field field;
    uint64_t stack = 0;
    while (wire_next(&cursor, &field))
        if (field.number == SAMPLE_STACK_INDEX)
            stack = field.value;
    return (uint32_t)stack;
}

static uint64_t frames_of_profile(struct slice profile, const uint32_t *widths, uint32_t count)
{
    struct wire_cursor cursor = wire_cursor(profile);
    struct wire_field field;
    uint64_t frames = 0;
    while (wire_next_bytes(&cursor, PROFILE_SAMPLES, &field)) {
        uint32_t stack = stack_of(field.bytes);
        assert(stack < count); /* scanned */
        frames += widths[stack];
    }
    return frames;
}

static uint64_t frames_of_group(struct slice group, const uint32_t *widths, uint32_t count)
{
    struct wire_cursor scopes = wire_cursor(group);
    struct wire_field scope, profile;
    uint64_t frames = 0;
    while (wire_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope)) {
        struct wire_cursor profiles = wire_cursor(scope.bytes);
        while (wire_next_bytes(&profiles, SCOPE_PROFILES_PROFILES, &profile))
            frames += frames_of_profile(profile.bytes, widths, count);
    }
    return frames;
}

static uint64_t count_frames(struct slice request, const struct scan_result *scan)
{
    uint32_t count =
        scan->table_sizes[DICTIONARY_STACK_TABLE] + 1; /* normalise may have added the zero entry */
    uint32_t *widths = widths_of(wire_last_bytes(request, PROFILES_DICTIONARY), count);
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field field;
    uint64_t frames = 0;
    while (wire_next_bytes(&cursor, PROFILES_RESOURCE_PROFILES, &field))
        frames += frames_of_group(field.bytes, widths, count);
    free(widths);
    return frames;
}

/* Checks the frames. Ordinary requests are below the limit whatever stacks their samples have. */
static bool check_frames(struct slice request, const struct scan_result *scan, struct error *err)
{
    uint64_t room = room_of(request);
    if ((uint64_t)scan->items * at_most(scan->widest_stack) <= room)
        return true;
    return check_count(count_frames(request, scan), room, "frames over all samples", err);
}

/* Checks the number of profiles: the exporter pyroscope sends a request for each in the worst
 * case. */
static bool check_profiles(struct slice request, const struct scan_result *scan, struct error *err)
{
    uint64_t room = UNFOLD_PROFILES_SPARE + request.size / UNFOLD_BYTES_PER_PROFILE;
    uint64_t max = room < UNFOLD_PROFILES_MAX ? room : UNFOLD_PROFILES_MAX;
    return check_count(scan->profiles, max, "profiles", err);
}

bool unfold_profiles(struct slice request, const struct scan_result *scan, size_t memory_bytes,
                     struct error *err)
{
    if (!check_memory(request, scan, memory_bytes, err))
        return false;
    if (request.size <= SMALL_BYTES)
        return true;
    struct scopes scopes = scopes_of(request);
    return check_profiles(request, scan, err) &&
           check_count(scopes.count, UNFOLD_SCOPES_MAX, "scope_profiles", err) &&
           check_count(scopes.label_bytes, room_of(request), "bytes of labels over all scopes",
                       err) &&
           check_frames(request, scan, err);
}
