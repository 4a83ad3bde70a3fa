#include "core/formats/span_labels.h"

#include "core/data/id_text.h"
#include "core/formats/profiles_builder.h"

#include <assert.h>

struct spelling {
    struct slice key;
    bool is_trace;
    bool is_decimal;
};

#define HEX_SPAN(key)                                                                              \
    {                                                                                              \
        {(const uint8_t *)(key), sizeof(key) - 1}, false, false                                    \
    }
#define DECIMAL_SPAN(key)                                                                          \
    {                                                                                              \
        {(const uint8_t *)(key), sizeof(key) - 1}, false, true                                     \
    }
#define HEX_TRACE(key)                                                                             \
    {                                                                                              \
        {(const uint8_t *)(key), sizeof(key) - 1}, true, false                                     \
    }

/* The names, in order of precedence. */
static const struct spelling spellings[] = {
    HEX_SPAN("span_id"),      HEX_SPAN("profile_id"),    HEX_SPAN("span.id"),
    HEX_SPAN("otel.span_id"), DECIMAL_SPAN("span id"),   DECIMAL_SPAN("local root span id"),
    HEX_TRACE("trace_id"),    HEX_TRACE("otel.traceid"),
};

enum { SPELLING_COUNT = sizeof spellings / sizeof spellings[0] };

/* Returns the index of a name in `spellings`; SPELLING_COUNT if it is unknown. */
static uint8_t spelling_of(struct slice key)
{
    uint8_t i = 0;
    while (i < SPELLING_COUNT && !slice_equal(key, spellings[i].key))
        i++;
    return i;
}

static void keep_span(struct span_labels *labels, uint8_t spelling, const uint8_t *id)
{
    assert(spelling < SPELLING_COUNT && !spellings[spelling].is_trace);
    if (labels->has_span && labels->span_spelling <= spelling)
        return;
    labels->has_span = true;
    labels->span_spelling = spelling;
    memcpy(labels->span_id, id, SPAN_ID_SIZE);
}

static void keep_trace(struct span_labels *labels, uint8_t spelling, const uint8_t *id)
{
    if (labels->has_trace && labels->trace_spelling <= spelling)
        return;
    labels->has_trace = true;
    labels->trace_spelling = spelling;
    memcpy(labels->trace_id, id, TRACE_ID_SIZE);
}

/* Parses a decimal id. The text must be short, because it is read for each sample that refers to
 * it, and could begin with any number of zeros. */
static bool is_decimal_id(struct slice text, uint8_t *id)
{
    enum { DIGITS_MAX = 64 };
    return text.size <= DIGITS_MAX && id_from_decimal(text, id);
}

bool span_labels_take(struct span_labels *labels, struct slice key, struct slice value)
{
    uint8_t id[TRACE_ID_SIZE];
    uint8_t spelling = spelling_of(key);
    if (spelling == SPELLING_COUNT)
        return false;
    if (spellings[spelling].is_trace) {
        if (!id_from_hex(value, id, TRACE_ID_SIZE))
            return false;
        keep_trace(labels, spelling, id);
        return true;
    }
    if (spellings[spelling].is_decimal ? !is_decimal_id(value, id)
                                       : !id_from_hex(value, id, SPAN_ID_SIZE))
        return false;
    keep_span(labels, spelling, id);
    return true;
}

bool span_labels_take_number(struct span_labels *labels, struct slice key, int64_t value)
{
    uint8_t id[SPAN_ID_SIZE];
    uint8_t spelling = spelling_of(key);
    if (spelling == SPELLING_COUNT || !spellings[spelling].is_decimal ||
        !id_from_number((uint64_t)value, id))
        return false;
    keep_span(labels, spelling, id);
    return true;
}

void span_labels_inherit(struct span_labels *sample, const struct span_labels *upload)
{
    if (upload->has_span && !sample->has_span)
        keep_span(sample, 0, upload->span_id);
    if (upload->has_trace && !sample->has_trace)
        keep_trace(sample, 0, upload->trace_id);
}

uint32_t span_labels_link(const struct span_labels *labels, struct profiles_builder *builder)
{
    if (!labels->has_span && !labels->has_trace)
        return 0;
    return profiles_builder_link(builder, labels->has_trace ? labels->trace_id : NULL,
                                 labels->has_span ? labels->span_id : NULL);
}
