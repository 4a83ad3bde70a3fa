/*
 * dictionary: random access to the tables of one profiles request, and appending to them.
 *
 * ProfilesDictionary of OTLP 1.10+. A table is indexed at its first use, and hashed at the
 * first search in it. Appended entries come after the received ones, so existing indices stay
 * valid; an entry that already exists is found by its hash and not added twice.
 *
 * Owner: lives in the batch's arena and uses the batch's tree. While it is in use, nobody else
 * changes the dictionary message; a second dictionary over the same tree sees the entries that the
 * first one added.
 *
 * Thread: the worker that owns the batch.
 */
#ifndef PROFCOL_CORE_DATA_DICTIONARY_H
#define PROFCOL_CORE_DATA_DICTIONARY_H

#include "core/data/any_value.h"
#include "core/data/message.h"
#include "core/data/otlp.h"

struct arena;
struct dictionary;

/* The tables of a request as it was received; all-zero if they are not known. */
struct dictionary_layout {
    bool are_known;
    uint32_t counts[DICTIONARY_TABLE_COUNT];
    uint32_t starts[DICTIONARY_TABLE_COUNT]; /* offset of the first entry, with its tag */
};

/* Returns the dictionary of a scanned, normalised request with this root. If the request has none,
 * the first addition appends one. Until then, the tree is not changed. */
struct dictionary *dictionary_new(struct message *root, struct arena *arena);
/* Tells what the scan knows of the bytes of the root, so that the tables need not be counted
 * again. Call it before anything else. */
void dictionary_know(struct dictionary *dictionary, const struct dictionary_layout *layout);

/* Returns the size of the request as it was received, for limits. */
size_t dictionary_request_size(const struct dictionary *dictionary);
/* Returns the number of entries in the table, including appended ones. */
uint32_t dictionary_count(struct dictionary *dictionary, int table);
/* Returns the payload of an entry (in the string table: the string itself); empty for index 0 of an
 * empty table. Asserts that the index is in range, which the scan has checked. */
struct slice dictionary_entry(struct dictionary *dictionary, int table, uint32_t index);

/* Returns the payloads of all entries, dictionary_count of them: for whoever reads many. Valid
 * until an entry is added. */
const struct slice *dictionary_entries(struct dictionary *dictionary, int table);

/* Returns a string of the string_table. */
static inline struct slice dictionary_string(struct dictionary *dictionary, uint32_t index)
{
    return dictionary_entry(dictionary, DICTIONARY_STRING_TABLE, index);
}

/* Returns the index of an entry with the same bytes; 0 if there is none (or it is the zero value).
 */
uint32_t dictionary_find(struct dictionary *dictionary, int table, struct slice payload);
/* Returns the index of an entry with the same bytes, or adds one; 0 for the zero value
 * (zero_entry_is). payload is copied. A table without entries gets its zero value first. */
uint32_t dictionary_add(struct dictionary *dictionary, int table, struct slice payload);

/* Returns the index of an attribute_table entry, adding it if it is new. Key and unit must be in
 * the string_table. To give an entry another value, add a second entry with the same key and unit
 * (dictionary_attribute returns them); never change one in place, because samples, profiles,
 * locations and mappings share the table. */
uint32_t dictionary_add_entry(struct dictionary *dictionary,
                              const struct key_value_and_unit *entry);
/* The same with key and unit as text, and the value as an encoded AnyValue payload. Each call
 * hashes both texts, so it is for keys that the component chooses. Use dictionary_add_entry for a
 * key of the request, which may be long and shared by many entries. */
uint32_t dictionary_add_attribute(struct dictionary *dictionary, struct slice key,
                                  struct slice any_value, struct slice unit);
/* Returns the index of a link_table entry, adding it if it is new. trace_id may be empty. */
uint32_t dictionary_add_link(struct dictionary *dictionary, struct slice trace_id,
                             struct slice span_id);

/* Return an attribute or a link. A long entry is read only once; of its value, only the member that
 * counts is returned. */
struct key_value_and_unit dictionary_attribute(struct dictionary *dictionary, uint32_t index);

struct dictionary_link {
    struct slice trace_id; /* 16 bytes or empty */
    struct slice span_id;  /* 8 bytes or empty */
};
struct dictionary_link dictionary_link(struct dictionary *dictionary, uint32_t index);

#endif
