/*
 * wire_runs: steps over consecutive fields with the same tag, such as the entries of a table or the
 * samples of a profile, faster than wire_next.
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_WIRE_RUNS_H
#define PROFCOL_CORE_DATA_WIRE_RUNS_H

#include "core/data/wire.h"

/* Reads a field with this tag of one byte and a length of one or two bytes, as most entries have.
 * Returns the address after it; NULL if it is any other field. */
static inline const uint8_t *wire_short_payload(const uint8_t *at, const uint8_t *end, uint8_t tag,
                                                struct slice *payload_out)
{
    ptrdiff_t room = end - at - 2;
    if (room < 0 || *at != tag)
        return NULL;
    size_t size = at[1];
    at += 2;
    if (size >= 0x80) {
        if (room == 0 || *at >= 0x80)
            return NULL;
        size = (size & 0x7f) | (size_t)*at++ << 7;
        room--;
    }
    if (size > (size_t)room)
        return NULL;
    *payload_out = (struct slice){at, size};
    return at + size;
}

/* Skips short fields with the same tag after the field that was read. Returns their number. */
static inline uint32_t wire_skip_run(struct wire_cursor *cursor, const struct wire_field *field)
{
    const uint8_t *at = cursor->next, *next;
    const uint8_t tag = *field->start;
    uint32_t skipped = 0;
    struct slice payload;
    if (tag >= 0x80) /* it has more bytes */
        return 0;
    at = wire_skip_short(at, cursor->end, tag, &skipped);
    while ((next = wire_short_payload(at, cursor->end, tag, &payload))) {
        skipped++;
        at = wire_skip_short(next, cursor->end, tag, &skipped);
    }
    cursor->next = at;
    return skipped;
}

#endif
