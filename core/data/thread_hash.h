/*
 * thread_hash: keyed hashes of what names a thread of a process.
 *
 * Owner: plain values.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_THREAD_HASH_H
#define PROFCOL_CORE_DATA_THREAD_HASH_H

#include "core/base/hash.h"

/* Linux keeps so many bytes of a thread's name, so that only these are compared. */
enum { THREAD_NAME_COMPARED = 15 };

enum thread_id_kind { THREAD_ID_OS, THREAD_ID_RUNTIME };

enum thread_hash_kind {
    THREAD_HASH_OS = THREAD_ID_OS,
    THREAD_HASH_RUNTIME = THREAD_ID_RUNTIME,
    THREAD_HASH_NAME,
    THREAD_HASH_MATCHED, /* of an id in the operating system: of the thread that times show */
    THREAD_HASH_NAMED,   /* of a name: of all threads that may have it */
    THREAD_HASH_KINDS
};

/* Returns the hash of an id, or of the hash of a name; never 0. */
static inline uint64_t thread_hash(enum thread_hash_kind kind, uint16_t instance, uint64_t value)
{
    const uint64_t parts[] = {(uint64_t)kind << 32 | instance, value};
    return hash_bytes(slice_of(parts, sizeof parts)) | 1;
}

/* Returns as much of a name as is compared: samples may share one of any length. */
static inline struct slice thread_name_compared(struct slice name)
{
    return slice_of(name.data, name.size < THREAD_NAME_COMPARED ? name.size : THREAD_NAME_COMPARED);
}

/* Returns the hash of as much of a name as is compared. */
static inline uint64_t thread_hash_of_name(enum thread_hash_kind kind, uint16_t instance,
                                           struct slice name)
{
    return thread_hash(kind, instance, hash_bytes(thread_name_compared(name)));
}

static inline uint64_t thread_hash_name(uint16_t instance, struct slice name)
{
    return thread_hash_of_name(THREAD_HASH_NAME, instance, name);
}

#endif
