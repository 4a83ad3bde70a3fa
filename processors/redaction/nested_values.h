/*
 * nested_values: writes the value of an attribute anew with changes to what is inside its maps and
 * lists.
 *
 * The owner of the rules decides about each value of a map and each element of a list, from the
 * outside in. The depth of a value is limited by the scan.
 *
 * Owner: the writer is the caller's; the new value is in it.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_NESTED_VALUES_H
#define PROFCOL_PROCESSORS_REDACTION_NESTED_VALUES_H

#include "core/data/wire_writer.h"

/* A value of a map, or an element of a list. */
struct nested_part {
    struct slice key;     /* of the map around it, or around its list */
    bool is_member;       /* of a map: the key is its own */
    struct slice payload; /* of an AnyValue */
};

enum nested_verdict {
    NESTED_STAYS, /* with all that is inside it */
    NESTED_OPENS, /* what is inside it is asked about; it is a map or list */
    NESTED_CHANGES
};

struct nested_values {
    struct wire_writer writer;
    bool changed;
    /* Decides about a part. NESTED_CHANGES: a string with *text_out takes its place; the text must
     * live until the next call. */
    enum nested_verdict (*decide)(void *context, const struct nested_part *part,
                                  struct slice *text_out);
    /* Returns the key that takes the place of one; NULL: all stay. */
    struct slice (*rename)(void *context, struct slice key);
    void *context;
};

/* Whether a value, or one inside it, has several members, or a map inside it a member with several
 * keys. Only the last ones count, but the others are on the wire. Takes time proportional to the
 * number of fields. */
bool nested_values_repeat(struct slice payload);
/* Whether anything inside the value of `key`, a map or list, changes. Then *payload is the new
 * value, in the writer. */
bool nested_values_rewrite(struct nested_values *nested, struct slice key, struct slice *payload);

#endif
