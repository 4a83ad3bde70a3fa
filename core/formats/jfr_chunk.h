/*
 * jfr_chunk: splits a JFR recording into chunks, and reads the numbers and texts inside.
 *
 * A recording is a sequence of chunks. Each is complete in itself: a header and events, which
 * include the metadata (jfr_metadata.h) and the checkpoints (jfr_pools.h). The format is version 2,
 * as written by the JDK since 11 and by async-profiler. There is no specification; this code reads
 * what jdk.jfr.internal.consumer (ChunkHeader, RecordingInput, StringParser) of OpenJDK 17 reads.
 * Numbers must be compressed, as all writers do (LEB128 of at most nine bytes; the ninth has eight
 * bits).
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
    uint32_t checkpoint_at; /* place of the last checkpoint; places are offsets from the start of
                               the chunk */
    uint32_t metadata_at;
    uint64_t start_unix_nano, duration_nano;
    uint64_t start_ticks, ticks_per_second;
};

/* Removes the first chunk from the front of *rest. Returns false, with err set, if it is invalid or
 * larger than *rest: the recording was truncated, or is still being written. */
bool jfr_chunk_take(struct slice *rest, struct jfr_chunk *chunk, struct error *err);

struct jfr_cursor {
    const uint8_t *next, *end;
    bool broken; /* a value extended past the end; stays set */
};

/* Returns a cursor over the bytes of a chunk between two places. */
static inline struct jfr_cursor jfr_cursor(const struct jfr_chunk *chunk, size_t from, size_t to)
{
    return (struct jfr_cursor){chunk->bytes.data + from, chunk->bytes.data + to, false};
}
/* Returns the place of the cursor in its chunk. */
static inline uint32_t jfr_place(const struct jfr_chunk *chunk, const struct jfr_cursor *cursor)
{
    return (uint32_t)(cursor->next - chunk->bytes.data);
}

/* Read a number. Return 0 if the cursor is broken. */
uint64_t jfr_number_any(struct jfr_cursor *cursor);
static inline uint64_t jfr_number(struct jfr_cursor *cursor)
{
    if (cursor->next < cursor->end && *cursor->next < 0x80)
        return *cursor->next++;
    return jfr_number_any(cursor);
}
/* Skips bytes. */
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
    struct slice bytes; /* as encoded */
    uint64_t reference;
};
/* Reads a text. */
struct jfr_text jfr_text(struct jfr_cursor *cursor);
/* Appends the text as UTF-8. Invalid bytes in a text of encoding UTF-8 are copied unchanged. A
 * reference appends nothing. */
void jfr_text_append(const struct jfr_text *text, struct wire_writer *out);

#endif
