#include "extensions/explore/store_names.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"

/* ---- texts ---- */

/* Makes room for so many bytes more. */
static bool has_bytes(struct store_names *names, size_t size)
{
    enum { STEP_MIN = 4096 };
    if (names->byte_capacity - names->byte_count >= size)
        return true;
    uint64_t capacity = (uint64_t)names->byte_capacity + names->byte_capacity / 16 + STEP_MIN;
    uint64_t most = names->byte_capacity + (uint64_t)store_pool_left(names->pool);
    most = most > UINT32_MAX ? UINT32_MAX : most;
    capacity = capacity > most ? most : capacity;
    if (capacity < names->byte_count + size ||
        !store_pool_take(names->pool, capacity - names->byte_capacity))
        return false;
    names->bytes = memory_grow(names->bytes, capacity, 1);
    names->byte_capacity = (uint32_t)capacity;
    return true;
}

static uint32_t add_text(struct store_names *names, uint64_t hash, struct slice text)
{
    uint32_t number =
        has_bytes(names, text.size) ? store_table_append(&names->texts, 0) : STORE_NONE;
    if (number == STORE_NONE) {
        names->missed++;
        return STORE_TEXT_MERGED;
    }
    *(struct store_text *)store_table_at(&names->texts, number) =
        (struct store_text){names->byte_count, (uint32_t)text.size};
    if (text.size > 0)
        memcpy(names->bytes + names->byte_count, text.data, text.size);
    names->byte_count += (uint32_t)text.size;
    store_table_index(&names->texts, hash, number);
    return number;
}

static uint32_t find_text(struct store_names *names, struct slice text)
{
    uint64_t hash = hash_bytes(text);
    struct store_probe probe = store_table_probe(&names->texts, hash);
    for (uint32_t number; store_table_next(&names->texts, &probe, &number);)
        if (slice_equal(store_names_read(names, number), text))
            return number;
    return add_text(names, hash, text);
}

/* Returns the size of the character at a place; 0: it is a NUL, or not UTF-8. */
static size_t length_at(struct slice text, size_t at)
{
    if (text.data[at] < 0x80)
        return text.data[at] != 0;
    return text_utf8_length(text.data + at, text.size - at);
}

static struct slice replace_invalid(struct slice text, struct text *room)
{
    for (size_t at = 0; at < text.size;) {
        size_t length = length_at(text, at);
        text_append_slice(room,
                          length > 0 ? slice_of(text.data + at, length) : SLICE("\xef\xbf\xbd"));
        at += length > 0 ? length : 1;
    }
    return slice_of(room->data, room->size);
}

/* Answers show U+FFFD for what is not UTF-8, and for NUL. It is kept so, too: a selection names
 * what was shown. */
static uint32_t find_shown(struct store_names *names, struct slice text, size_t text_max)
{
    struct text room = {0};
    size_t at = 0;
    while (at < text.size && length_at(text, at) > 0)
        at += length_at(text, at);
    if (at == text.size)
        return find_text(names, text);
    struct slice shown = replace_invalid(text, &room);
    uint32_t number = find_text(names, slice_of(shown.data, text_utf8_cut(shown, text_max)));
    text_deinit(&room);
    return number;
}

/* Returns the beginning of a text that may be invalid UTF-8, without a part of a character. */
static size_t cut_at(struct slice text, size_t max)
{
    size_t size = max;
    while (size > max - 4 && (text.data[size] & 0xc0) == 0x80)
        size--;
    return size;
}

uint32_t store_names_text(struct store_names *names, struct slice text, size_t text_max)
{
    uint8_t cut[STORE_TEXT_MAX + 3];
    if (text.size <= text_max)
        return find_shown(names, text, text_max);
    assert(text_max <= STORE_TEXT_MAX && text_max > 4);
    size_t size = cut_at(text, text_max);
    memcpy(cut, text.data, size);
    memset(cut + size, '.', 3);
    return find_shown(names, slice_of(cut, size + 3), text_max + 3);
}

struct slice store_names_read(const struct store_names *names, uint32_t text)
{
    const struct store_text *at = store_table_at(&names->texts, text);
    assert(names->bytes || at->size == 0);
    return slice_of(names->bytes ? names->bytes + at->at : NULL, at->size);
}

/* ---- pairs: frames and nodes ---- */

struct pair {
    uint32_t first, second;
};

_Static_assert(sizeof(struct store_frame) == sizeof(struct pair), "frames are pairs");
_Static_assert(sizeof(struct store_node) == sizeof(struct pair), "nodes are pairs");

static uint64_t hash_pair(struct pair pair)
{
    return hash_u64((uint64_t)pair.first << 32 | pair.second);
}

/* Returns the number of a pair; STORE_NONE: there is no room. */
static uint32_t find_pair(struct store_table *table, struct pair pair)
{
    struct store_probe probe = store_table_probe(table, hash_pair(pair));
    for (uint32_t number; store_table_next(table, &probe, &number);) {
        const struct pair *found = store_table_at(table, number);
        if (found->first == pair.first && found->second == pair.second)
            return number;
    }
    uint32_t number = store_table_append(table, 0);
    if (number == STORE_NONE)
        return STORE_NONE;
    *(struct pair *)store_table_at(table, number) = pair;
    store_table_index(table, hash_pair(pair), number);
    return number;
}

uint32_t store_names_frame(struct store_names *names, uint32_t name, uint32_t file)
{
    uint32_t number = find_pair(&names->frames, (struct pair){name, file});
    names->missed += number == STORE_NONE;
    return number == STORE_NONE ? STORE_FRAME_MERGED : number;
}

uint32_t store_names_node(struct store_names *names, uint32_t parent, uint32_t frame)
{
    uint32_t number = find_pair(&names->nodes, (struct pair){parent, frame});
    names->missed += number == STORE_NONE;
    return number == STORE_NONE ? parent : number;
}

/* ---- life ---- */

void store_names_init(struct store_names *names, struct store_pool *pool)
{
    *names = (struct store_names){.pool = pool};
    store_table_init(&names->texts, pool, sizeof(struct store_text), 0, STORE_RECORDS_MAX, true);
    store_table_init(&names->frames, pool, sizeof(struct store_frame), 0, STORE_RECORDS_MAX, true);
    store_table_init(&names->nodes, pool, sizeof(struct store_node), 0, STORE_RECORDS_MAX, true);
    find_text(names, SLICE(""));
    find_text(names, SLICE("(other)"));
    store_names_frame(names, STORE_TEXT_EMPTY, STORE_TEXT_EMPTY);
    store_names_frame(names, STORE_TEXT_MERGED, STORE_TEXT_EMPTY);
    find_pair(&names->nodes, (struct pair){STORE_NODE_ROOT, STORE_FRAME_EMPTY});
    store_names_node(names, STORE_NODE_ROOT, STORE_FRAME_MERGED);
    assert(names->texts.count == 2 && names->frames.count == 2 && names->nodes.count == 2);
}

void store_names_deinit(struct store_names *names)
{
    store_table_deinit(&names->texts);
    store_table_deinit(&names->frames);
    store_table_deinit(&names->nodes);
    free(names->bytes);
    names->bytes = NULL;
}

size_t store_names_bytes(const struct store_names *names)
{
    return store_table_bytes(&names->texts) + store_table_bytes(&names->frames) +
           store_table_bytes(&names->nodes) + names->byte_capacity;
}

/* ---- sweep ---- */

struct store_sweep store_sweep_begin(struct store_names *names)
{
    struct store_sweep sweep = {
        .names = names,
        .texts = memory_zalloc((names->texts.count + 1) * sizeof(uint32_t)),
        .nodes = memory_zalloc((names->nodes.count + 1) * sizeof(uint32_t)),
    };
    sweep.texts[STORE_TEXT_EMPTY] = sweep.texts[STORE_TEXT_MERGED] = 1;
    sweep.nodes[STORE_NODE_ROOT] = sweep.nodes[STORE_NODE_MERGED] = 1;
    return sweep;
}

/* Turns marks into numbers: those that are marked get the next one. Returns how many there are. */
static uint32_t number_marks(uint32_t *marks, uint32_t count)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++)
        marks[i] = marks[i] ? next++ : STORE_NONE;
    return next;
}

/* Moves the records that have a new number to their place. */
static void compact(struct store_table *table, const uint32_t *numbers, uint32_t left)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (numbers[i] != STORE_NONE && numbers[i] != i)
            memcpy(store_table_at(table, numbers[i]), store_table_at(table, i), table->record_size);
    assert(left <= table->count);
    table->count = left;
    store_table_clear_index(table);
    store_table_trim(table);
}

static void index_pairs(struct store_table *table)
{
    for (uint32_t i = 0; i < table->count; i++)
        store_table_index(table, hash_pair(*(struct pair *)store_table_at(table, i)), i);
}

/* Marks the callers of the marked nodes, and the frames of both; then removes the others. */
static void sweep_nodes(struct store_sweep *sweep, uint32_t *frames)
{
    struct store_names *names = sweep->names;
    for (uint32_t i = names->nodes.count; i-- > 0;)
        if (sweep->nodes[i]) {
            sweep->nodes[store_node_at(names, i)->parent] = 1;
            frames[store_node_at(names, i)->frame] = 1;
        }
    uint32_t count = names->nodes.count, left = number_marks(sweep->nodes, count);
    compact(&names->nodes, sweep->nodes, left);
    for (uint32_t i = 0; i < left; i++) {
        struct store_node *node = store_table_at(&names->nodes, i);
        node->parent = sweep->nodes[node->parent];
        assert(node->parent <= i);
    }
}

static void sweep_frames(struct store_sweep *sweep, uint32_t *frames)
{
    struct store_names *names = sweep->names;
    uint32_t count = names->frames.count;
    for (uint32_t i = 0; i < count; i++)
        if (frames[i]) {
            sweep->texts[store_frame_at(names, i)->name] = 1;
            sweep->texts[store_frame_at(names, i)->file] = 1;
        }
    compact(&names->frames, frames, number_marks(frames, count));
    for (uint32_t i = 0; i < names->nodes.count; i++) {
        struct store_node *node = store_table_at(&names->nodes, i);
        node->frame = frames[node->frame];
    }
    index_pairs(&names->nodes);
}

static void trim_bytes(struct store_names *names)
{
    store_pool_give(names->pool, names->byte_capacity - names->byte_count);
    names->bytes = memory_grow(names->bytes, names->byte_count, 1);
    names->byte_capacity = names->byte_count;
}

static void sweep_texts(struct store_sweep *sweep)
{
    struct store_names *names = sweep->names;
    uint32_t at = 0;
    compact(&names->texts, sweep->texts, number_marks(sweep->texts, names->texts.count));
    for (uint32_t i = 0; i < names->texts.count; i++) {
        struct store_text *text = store_table_at(&names->texts, i);
        assert(at <= text->at); /* texts are in the order of their bytes */
        memmove(names->bytes + at, names->bytes + text->at, text->size);
        text->at = at;
        at += text->size;
        store_table_index(&names->texts, hash_bytes(store_names_read(names, i)), i);
    }
    names->byte_count = at;
    trim_bytes(names);
    for (uint32_t i = 0; i < names->frames.count; i++) {
        struct store_frame *frame = store_table_at(&names->frames, i);
        *frame = (struct store_frame){sweep->texts[frame->name], sweep->texts[frame->file]};
    }
    index_pairs(&names->frames);
}

void store_sweep_number(struct store_sweep *sweep)
{
    uint32_t *frames = memory_zalloc((sweep->names->frames.count + 1) * sizeof *frames);
    frames[STORE_FRAME_EMPTY] = frames[STORE_FRAME_MERGED] = 1;
    sweep_nodes(sweep, frames);
    sweep_frames(sweep, frames);
    sweep_texts(sweep);
    free(frames);
}

void store_sweep_end(struct store_sweep *sweep)
{
    free(sweep->texts);
    free(sweep->nodes);
}
