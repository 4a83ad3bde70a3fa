/* Folded text, lines, tree, trie and speedscope: see cost.h. */
#include "core/base/memory.h"
#include "tests/unit/cost_uploads.h"

#include <stdio.h>

/* ---- folded text and lines ---- */

static void put_line(struct wire_writer *out, const char *name, size_t frames, const char *end)
{
    for (size_t i = 0; i < frames; i++) {
        wire_writer_raw(out, slice_of_string(name));
        wire_writer_raw(out, SLICE(";"));
    }
    wire_writer_raw(out, slice_of_string(end));
}

static void folded_equal_frames(struct wire_writer *out, size_t size)
{
    for (unsigned i = 0; out->size < size; i++) {
        char end[32];
        snprintf(end, sizeof end, "%u 1\n", i);
        put_line(out, "a", 4000, end);
    }
}

static void folded_short_lines(struct wire_writer *out, size_t size)
{
    while (out->size < size)
        wire_writer_raw(out, SLICE("a 1\n"));
}

static void folded_distinct_names(struct wire_writer *out, size_t size)
{
    for (unsigned i = 0; out->size < size; i++) {
        char line[32];
        snprintf(line, sizeof line, "%u 1\n", i);
        wire_writer_raw(out, slice_of_string(line));
    }
}

static void folded_bad_utf8(struct wire_writer *out, size_t size)
{
    while (out->size < size) {
        for (int i = 0; i < 1000; i++)
            wire_writer_raw(out, SLICE("\xff"));
        wire_writer_raw(out, SLICE(" 1\n"));
    }
}

static void lines_equal(struct wire_writer *out, size_t size)
{
    while (out->size < size)
        wire_writer_raw(out, SLICE("a\n"));
}

/* ---- tree and trie ---- */

/* size of the name, name, value, children */
static void put_node(struct wire_writer *out, const char *name, size_t name_size, uint64_t value,
                     uint64_t children)
{
    uint8_t number[16], *end = wire_write_varint(number, name_size);
    wire_writer_raw(out, slice_of(number, (size_t)(end - number)));
    wire_writer_raw(out, slice_of(name, name_size));
    end = wire_write_varint(number, value);
    end = wire_write_varint(end, children);
    wire_writer_raw(out, slice_of(number, (size_t)(end - number)));
}

/* Writes a deep path, and as many leaves as there is room for. */
static void put_deep(struct wire_writer *out, size_t size, size_t depth, size_t node_size,
                     const char *leaf)
{
    depth = depth < size / 2 / node_size ? depth : size / 2 / node_size;
    size_t leaves = (size - depth * node_size) / (strlen(leaf) + 3);
    for (size_t i = 0; i < depth; i++)
        put_node(out, ";a", 2, 1, i + 1 < depth ? 1 : leaves);
    for (size_t i = 0; i < leaves; i++)
        put_node(out, leaf, strlen(leaf), 1, 0);
}

static void tree_deep(struct wire_writer *out, size_t size)
{
    put_deep(out, size, 4000, 5, "");
}

static void tree_wide(struct wire_writer *out, size_t size)
{
    put_deep(out, size, 30, 5, "");
}

static void tree_distinct_leaves(struct wire_writer *out, size_t size)
{
    size_t leaves = size / 11;
    put_node(out, "a", 1, 0, leaves);
    for (size_t i = 0; i < leaves; i++) {
        char name[24];
        snprintf(name, sizeof name, "%08zu", i);
        put_node(out, name, 8, 1, 0);
    }
}

/* Names may be empty: nodes without frames. */
static void tree_empty_nodes(struct wire_writer *out, size_t size)
{
    size_t leaves = size / 3;
    put_node(out, "a", 1, 1, leaves);
    for (size_t i = 0; i < leaves; i++)
        put_node(out, "", 0, 1, 0);
}

static void trie_deep(struct wire_writer *out, size_t size)
{
    put_deep(out, size, 4000, 5, "b");
}

static void trie_wide(struct wire_writer *out, size_t size)
{
    put_deep(out, size, 30, 5, "b");
}

/* The name of a frame that every node below continues. */
static void put_long_piece(struct wire_writer *out, size_t size, size_t piece)
{
    char *name = memory_alloc(piece);
    memset(name, 'x', piece);
    size_t leaves = (size - piece) / 4;
    put_node(out, name, piece, 0, leaves);
    for (size_t i = 0; i < leaves; i++)
        put_node(out, "b", 1, 1, 0);
    free(name);
}

static void trie_long_piece(struct wire_writer *out, size_t size)
{
    put_long_piece(out, size, size / 2);
}

static void trie_piece(struct wire_writer *out, size_t size)
{
    put_long_piece(out, size, 100);
}

/* ---- speedscope ---- */

static void put_speedscope(struct wire_writer *out, const char *frame, size_t frames)
{
    wire_writer_raw(out, SLICE("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json"
                               "\",\"shared\":{\"frames\":["));
    for (size_t i = 0; i < frames; i++) {
        wire_writer_raw(out, i > 0 ? SLICE(",") : SLICE(""));
        wire_writer_raw(out, slice_of_string(frame));
    }
    wire_writer_raw(out, SLICE("]},\"profiles\":["));
}

static void put_json_list(struct wire_writer *out, const char *item, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        wire_writer_raw(out, i > 0 ? SLICE(",") : SLICE("["));
        wire_writer_raw(out, slice_of_string(item));
    }
    wire_writer_raw(out, count > 0 ? SLICE("]") : SLICE("[]"));
}

static void put_sampled(struct wire_writer *out, const char *sample, size_t samples)
{
    wire_writer_raw(out, SLICE("{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":"));
    put_json_list(out, sample, samples);
    wire_writer_raw(out, SLICE(",\"weights\":"));
    put_json_list(out, "1", samples);
    wire_writer_raw(out, SLICE("}"));
}

static void speedscope_samples(struct wire_writer *out, size_t size)
{
    struct wire_writer sample = {0};
    put_json_list(&sample, "0", 2000);
    wire_writer_raw(&sample, slice_of("", 1));
    put_speedscope(out, "{\"name\":\"a\"}", 1);
    put_sampled(out, (const char *)sample.data, size / sample.size);
    wire_writer_raw(out, SLICE("]}"));
    wire_writer_deinit(&sample);
}

static void speedscope_short_samples(struct wire_writer *out, size_t size)
{
    put_speedscope(out, "{\"name\":\"a\"}", 1);
    put_sampled(out, "[0]", size / 6);
    wire_writer_raw(out, SLICE("]}"));
}

static void speedscope_frames(struct wire_writer *out, size_t size)
{
    put_speedscope(out, "{}", size / 3);
    put_sampled(out, "[0]", 1);
    wire_writer_raw(out, SLICE("]}"));
}

static void speedscope_members(struct wire_writer *out, size_t size)
{
    put_speedscope(out, "{\"name\":\"a\"}", 1);
    put_sampled(out, "[0]", 1);
    wire_writer_raw(out, SLICE("]"));
    while (out->size < size)
        wire_writer_raw(out, SLICE(",\"\":0"));
    wire_writer_raw(out, SLICE("}"));
}

static void speedscope_profiles(struct wire_writer *out, size_t size)
{
    put_speedscope(out, "{\"name\":\"a\"}", 1);
    for (bool first = true; out->size < size; first = false) {
        wire_writer_raw(out, first ? SLICE("") : SLICE(","));
        put_sampled(out, "[0]", 1);
    }
    wire_writer_raw(out, SLICE("]}"));
}

static void put_events(struct wire_writer *out, size_t size, size_t depth)
{
    char event[64];
    unsigned at = 0;
    depth = depth < size / 100 ? depth : size / 100;
    put_speedscope(out, "{\"name\":\"a\"}", 1);
    wire_writer_raw(out, SLICE("{\"type\":\"evented\",\"unit\":\"none\",\"events\":["));
    for (size_t i = 0; i < depth; i++)
        wire_writer_raw(out, SLICE("{\"type\":\"O\",\"at\":0},"));
    for (; out->size < size - depth * 25; at++) {
        snprintf(event, sizeof event, "{\"type\":\"O\",\"at\":%u},{\"type\":\"C\",\"at\":%u},", at,
                 at + 1);
        wire_writer_raw(out, slice_of_string(event));
    }
    for (size_t i = 0; i < depth; i++) {
        snprintf(event, sizeof event, "{\"type\":\"C\",\"at\":%u}%s", at, i + 1 < depth ? "," : "");
        wire_writer_raw(out, slice_of_string(event));
    }
    wire_writer_raw(out, SLICE("]}]}"));
}

static void speedscope_events(struct wire_writer *out, size_t size)
{
    put_events(out, size, 300);
}

static void speedscope_deep_events(struct wire_writer *out, size_t size)
{
    put_events(out, size, size < 400000 ? 300 : 4000); /* if there is room for that many */
}

int main(int argc, char **argv)
{
    static const struct cost_case cases[] = {
        {"folded_frame", folded_equal_frames, send_folded, GRPC_OK},
        {"folded_line", folded_short_lines, send_folded, GRPC_OK},
        {"folded_name", folded_distinct_names, send_folded, GRPC_RESOURCE_EXHAUSTED},
        {"folded_name_bad_utf8", folded_bad_utf8, send_folded, GRPC_OK},
        {"lines_line", lines_equal, send_lines, GRPC_OK},
        {"tree_deep", tree_deep, send_tree, GRPC_RESOURCE_EXHAUSTED},
        {"tree_wide", tree_wide, send_tree, GRPC_OK},
        {"tree_name", tree_distinct_leaves, send_tree, GRPC_RESOURCE_EXHAUSTED},
        {"tree_empty_name", tree_empty_nodes, send_tree, GRPC_OK},
        {"trie_deep", trie_deep, send_trie, GRPC_RESOURCE_EXHAUSTED},
        {"trie_wide", trie_wide, send_trie, GRPC_OK},
        {"trie_long_piece", trie_long_piece, send_trie, GRPC_RESOURCE_EXHAUSTED},
        {"trie_piece", trie_piece, send_trie, GRPC_OK},
        {"speedscope_sample_frame", speedscope_samples, send_speedscope, GRPC_OK},
        {"speedscope_sample", speedscope_short_samples, send_speedscope, GRPC_OK},
        {"speedscope_frame", speedscope_frames, send_speedscope, GRPC_OK},
        {"speedscope_member", speedscope_members, send_speedscope, GRPC_OK},
        {"speedscope_profile", speedscope_profiles, send_speedscope, GRPC_OK},
        {"speedscope_event", speedscope_events, send_speedscope, GRPC_OK},
        {"speedscope_event_deep", speedscope_deep_events, send_speedscope, GRPC_RESOURCE_EXHAUSTED},
    };
    return cost_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
