/*
 * jfr_chunk: the outer form of a JFR recording, and the numbers and texts inside.
 *
 * A recording is chunks, one behind the other, each complete in itself: a header, events, among
 * them the metadata (jfr_metadata.h) and the checkpoints (jfr_pools.h). Format version 2, as
 * written by the JDK since 11 and by async-profiler; there is no specification, what is implemented
 * is what jdk.jfr.internal.consumer (ChunkHeader, RecordingInput, StringParser) of OpenJDK 17
 * reads. Numbers have to be compressed (LEB128 of at most nine bytes, the ninth whole), as all
 * writers have them.
 *
 * Owner: everything points into the caller's bytes.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_FORMATS_JFR_CHUNK_H
#define PROFCOL_CORE_FORMATS_JFR_CHUNK_H

#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/data/wire_writer.h"

enum { JFR_HEADER_SIZE = 68 };

struct jfr_chunk {
    struct slice bytes;     /* header and events, less than 4 GiB */
    uint32_t checkpoint_at; /* the last one; places count from the start of the chunk */
    uint32_t metadata_at;
    uint64_t start_unix_nano, duration_nano;
    uint64_t ticks_per_second;
};

/* Takes the first chunk off the front of rest. A chunk larger than rest is an error:
 * the recording was truncated, or is still being written. */
bool jfr_chunk_take(struct slice *rest, struct jfr_chunk *chunk, struct error *err);

struct jfr_cursor {
    const uint8_t *next, *end;
    bool broken; /* something went past the end; stays set */
};

/* Of the bytes of a chunk between two places. */
static inline struct jfr_cursor jfr_cursor(const struct jfr_chunk *chunk, size_t from, size_t to)
{
    return (struct jfr_cursor){chunk->bytes.data + from, chunk->bytes.data + to, false};
}
static inline uint32_t jfr_place(const struct jfr_chunk *chunk, const struct jfr_cursor *cursor)
{
    return (uint32_t)(cursor->next - chunk->bytes.data);
}

/* 0 when broken. */
uint64_t jfr_number_any(struct jfr_cursor *cursor);
static inline uint64_t jfr_number(struct jfr_cursor *cursor)
{
    if (cursor->next < cursor->end && *cursor->next < 0x80)
        return *cursor->next++;
    return jfr_number_any(cursor);
}
void jfr_skip(struct jfr_cursor *cursor, uint64_t bytes);

enum jfr_encoding {
    JFR_TEXT_NULL,
    JFR_TEXT_EMPTY,
    JFR_TEXT_REFERENCE, /* to a constant of java.lang.String */
    JFR_TEXT_UTF8,
    JFR_TEXT_CHARS, /* UTF-16, each unit a number */
    JFR_TEXT_LATIN1,
};
struct jfr_text {
    enum jfr_encoding encoding;
    struct slice bytes; /* as they stand there */
    uint64_t reference;
};
struct jfr_text jfr_text(struct jfr_cursor *cursor);
/* As UTF-8 (what is wrong in a text that says it is UTF-8 stays wrong). A reference is nothing. */
void jfr_text_append(const struct jfr_text *text, struct wire_writer *out);

#endif
