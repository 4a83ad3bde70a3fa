/*
 * store_names: texts, frames and stacks of the store, each stored once.
 *
 * A frame is a function's name and file. Stacks are a tree: a node is a frame below its caller, and
 * a stack is the node of its leaf. A node's number is greater than that of its parent.
 *
 * Numbers stay valid until store_names_sweep. When a table is full, the nearest thing that exists
 * is returned, so nothing here fails: a text is "(other)", a stack ends at a caller.
 *
 * Owner: the store.
 *
 * Thread: that of the store.
 */
#ifndef PROFCOL_EXPLORE_STORE_NAMES_H
#define PROFCOL_EXPLORE_STORE_NAMES_H

#include "core/base/slice.h"
#include "extensions/explore/store_table.h"

/* Numbers that always exist. */
enum { STORE_TEXT_EMPTY, STORE_TEXT_MERGED };
enum { STORE_FRAME_EMPTY, STORE_FRAME_MERGED };
enum { STORE_NODE_ROOT, STORE_NODE_MERGED /* stacks that were merged when the store was full */ };

enum { STORE_TEXT_MAX = 1024 }; /* bytes of a name; longer ones are cut, with "..." */

struct store_frame {
    uint32_t name, file; /* texts */
};

struct store_node {
    uint32_t parent;
    uint32_t frame;
};

struct store_text {
    uint32_t at;
    uint32_t size;
};

struct store_names {
    struct store_pool *pool;
    struct store_table texts;
    struct store_table frames;
    struct store_table nodes;
    uint8_t *bytes;
    uint32_t byte_count, byte_capacity;
    uint64_t missed; /* texts, frames and nodes for which there was no room */
};

void store_names_init(struct store_names *names, struct store_pool *pool);
void store_names_deinit(struct store_names *names);

/* Returns the number of a text. text_max: bytes, for texts that are not names. */
uint32_t store_names_text(struct store_names *names, struct slice text, size_t text_max);
/* Returns the text; valid until the next text is added. */
struct slice store_names_read(const struct store_names *names, uint32_t text);
uint32_t store_names_frame(struct store_names *names, uint32_t name, uint32_t file);
/* Returns the node of a frame below a parent; the parent, if there is no room. */
uint32_t store_names_node(struct store_names *names, uint32_t parent, uint32_t frame);

static inline const struct store_frame *store_frame_at(const struct store_names *names,
                                                       uint32_t number)
{
    return store_table_at(&names->frames, number);
}
static inline const struct store_node *store_node_at(const struct store_names *names,
                                                     uint32_t number)
{
    return store_table_at(&names->nodes, number);
}

size_t store_names_bytes(const struct store_names *names);

/* Removes what is not used, which changes numbers. The caller marks what it uses, calls
 * store_names_number, and takes the new number of each text and node that it has. */
struct store_sweep {
    struct store_names *names;
    uint32_t *texts; /* marks, then new numbers */
    uint32_t *nodes;
};
struct store_sweep store_sweep_begin(struct store_names *names);
static inline void store_sweep_text(struct store_sweep *sweep, uint32_t text)
{
    sweep->texts[text] = 1;
}
static inline void store_sweep_node(struct store_sweep *sweep, uint32_t node)
{
    sweep->nodes[node] = 1;
}
void store_sweep_number(struct store_sweep *sweep);
void store_sweep_end(struct store_sweep *sweep);

#endif
