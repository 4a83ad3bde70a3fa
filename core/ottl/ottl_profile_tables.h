/*
 * ottl_profile_tables: what OTTL reads of the dictionary of a profiles batch.
 *
 * Many samples refer to one stack, many stacks to one location, many functions to one name. So what
 * is made of an entry is remembered by its index, and never computed once for each sample. What
 * cannot be remembered (a walk over the frames of a stack, a long text that a function reads)
 * takes steps from a number that grows with the size of the request; without any left, the
 * condition that is evaluated fails.
 *
 * Owner: everything is in the arena that was given to ottl_item_set_dictionary.
 *
 * Thread: that of the item.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_PROFILE_TABLES_H
#define PROFCOL_CORE_OTTL_OTTL_PROFILE_TABLES_H

#include "core/base/error.h"
#include "core/data/dictionary.h"

struct ottl_matcher;
struct ottl_regex;

/* What the first frame of a stack has. */
enum ottl_leaf { OTTL_LEAF_FUNCTION, OTTL_LEAF_FILE, OTTL_LEAF_MAPPING, OTTL_LEAF_COUNT };

struct ottl_profile_tables {
    struct dictionary *dictionary;
    struct arena *arena;
    const struct message_iter *profile; /* the item's, at their start */
    const struct message_iter *sample;
    const uint32_t *stack; /* that is asked about; NULL: that of the sample */
    const uint32_t *leaf;  /* the name of its leaf's function; NULL: it has to be found */
    size_t steps;          /* that are left */
    bool ran_out;          /* since it was set to false: something was not read to its end */
    struct slice indices;  /* a copy of the profile's attribute_indices */
    bool has_indices;
    size_t indices_capacity;
    uint32_t *depths;                  /* of each stack, plus 1; 0: not known */
    uint32_t *lines;                   /* frames of each location, plus 1 */
    uint32_t *leaves[OTTL_LEAF_COUNT]; /* of each location as the leaf, plus 1 */
    uint32_t stack_count, leaf_count, location_count;
};

/* The error of a condition that ran out of steps. */
extern const char *const ottl_steps_error;

/* Returns the index of the current sample's stack. */
uint32_t ottl_sample_stack(const struct ottl_profile_tables *tables);
/* Returns the number of frames of a stack. A location with several lines has a frame for each,
 * because functions were inlined there; one without lines is one frame. */
uint32_t ottl_stack_depth(struct ottl_profile_tables *tables, uint32_t stack);
/* Returns the index in the string_table of a name that the first frame has, 0 for an empty stack.
 */
uint32_t ottl_stack_leaf(struct ottl_profile_tables *tables, uint32_t stack, enum ottl_leaf leaf);
/* Sets the element of each stack to the name of its leaf's function. Returns their number; 0 if
 * there were no steps left. */
uint32_t ottl_stack_leaves(struct ottl_profile_tables *tables, uint32_t *names);
/* Returns a string of the dictionary, and counts the steps of reading it. */
struct slice ottl_table_string(struct ottl_profile_tables *tables, uint32_t index);

/* Returns a number for each entry of a table, all 0, and some room more. */
void *ottl_numbers_for(struct ottl_profile_tables *tables, int table, size_t size,
                       uint32_t *count_out);

/* ---- frames ---- */

/* Goes over the frames of a stack, the leaf first. */
struct ottl_frames {
    struct wire_cursor stack;
    struct wire_cursor packed;
    struct wire_cursor lines; /* of the current location */
    bool in_location;
};
struct ottl_frames ottl_frames(struct ottl_profile_tables *tables, uint32_t stack);
/* Moves to the next frame; returns false at the end, or without steps. *name_out is an index in the
 * string_table: that of the function's name, 0 if there is none. */
bool ottl_frames_next(struct ottl_profile_tables *tables, struct ottl_frames *frames,
                      uint32_t *name_out);

/* ---- numbers and attributes of the current profile or sample ---- */

/* Goes over a repeated number of a message. */
struct ottl_numbers {
    struct message_iter message;
    struct wire_cursor packed;
    uint32_t number;
    bool is_fixed; /* fixed64, else varint */
    uint64_t last; /* index of an attribute that ottl_table_attribute_next has read */
};
bool ottl_numbers_next(struct ottl_numbers *numbers, uint64_t *out);

/* Returns the indices of the attributes of the current profile (PROFILE_ATTRIBUTE_INDICES) or
 * sample (SAMPLE_ATTRIBUTE_INDICES). Those of the profile, which contains its samples, are copied
 * at their first use. */
struct ottl_numbers ottl_attribute_indices(struct ottl_profile_tables *tables, uint32_t number);
/* Sets those of the profile, until another one is entered or its message changes. */
void ottl_tables_set_indices(struct ottl_profile_tables *tables, struct slice indices);
/* Moves to the next attribute; returns false at the end. The value is the payload of an AnyValue.
 */
bool ottl_table_attribute_next(struct ottl_profile_tables *tables, struct ottl_numbers *indices,
                               struct slice *key_out, struct slice *value_out);
/* Finds the value of the first attribute with this key. Returns false if there is none. */
bool ottl_table_attribute_get(struct ottl_profile_tables *tables, uint32_t number, struct slice key,
                              struct slice *value_out);

/* ---- patterns ---- */

/* What StackContains has found, one for each call in a condition. All zero: nothing. */
enum { OTTL_STACK_MISSES = 1 };
struct ottl_stack_search {
    uint64_t batch;  /* whose tables these are */
    uint8_t *stacks; /* a result for each; OTTL_STACK_MISSES: no name in it matches */
    uint8_t *locations;
    uint8_t *functions;
    uint8_t *strings;
    uint32_t stack_count, location_count, function_count, string_count;
};
/* Sets *found_out to whether the name of a function of the stack matches. Each name of the
 * dictionary is matched once. Returns false with err set if a match takes too many steps. */
bool ottl_stack_contains(struct ottl_profile_tables *tables, struct ottl_stack_search *search,
                         uint64_t batch, uint32_t stack, const struct ottl_regex *regex,
                         struct ottl_matcher *matcher, bool *found_out, struct error *err);

#endif
