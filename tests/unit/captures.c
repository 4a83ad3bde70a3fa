#include "tests/unit/captures.h"

#include "core/base/memory.h"
#include "core/net/compression.h"

#include <assert.h>
#include <fts.h>
#include <jansson.h>
#include <stdio.h>

struct walk {
    void (*on_capture)(const struct capture *capture, void *context);
    void *context;
    unsigned count;
};

static struct buffer *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert(file);
    struct buffer *buffer = buffer_new_charged(0, NULL);
    size_t n;
    do {
        bool ok = buffer_reserve(buffer, 65536, SIZE_MAX / 2);
        assert(ok);
        n = fread(buffer->data + buffer->size, 1, 65536, file);
        buffer->size += n;
    } while (n > 0);
    fclose(file);
    return buffer;
}

static const char *header(json_t *meta, const char *name)
{
    json_t *headers = json_object_get(meta, "headers"), *pair;
    size_t i;
    json_array_foreach(headers, i,
                       pair) if (strcasecmp(json_string_value(json_array_get(pair, 0)), name) ==
                                 0) return json_string_value(json_array_get(pair, 1));
    return "";
}

static bool signal_of(const char *path, enum signal *out)
{
    *out = strcasestr(path, "trace") ? SIGNAL_TRACES : SIGNAL_PROFILES;
    return strcasestr(path, "trace") || strcasestr(path, "profiles");
}

static struct buffer *plain_body(json_t *meta, const char *path)
{
    bool grpc = strcmp(json_string_value(json_object_get(meta, "kind")), "otlp-grpc") == 0;
    bool compressed =
        !grpc || json_integer_value(json_object_get(meta, "grpc_compressed_flag")) == 1;
    const char *name = compressed ? header(meta, grpc ? "grpc-encoding" : "content-encoding") : "";
    int encoding = compression_by_name(slice_of_string(name));
    struct buffer *body = read_file(path), *plain;
    struct error err;
    assert(encoding >= 0);
    if (encoding == COMPRESSION_NONE)
        return body;
    enum decompress_result result = decompress((enum compression)encoding, buffer_slice(body),
                                               (size_t)1 << 28, NULL, &plain, &err);
    assert(result == DECOMPRESS_OK);
    buffer_unref(body);
    return plain;
}

static void call(struct walk *walk, const char *path, size_t suffix, enum signal signal, bool json,
                 struct buffer *body)
{
    const char *name = strstr(path, "captures/") + strlen("captures/");
    char *short_name = memory_strndup(name, strlen(name) - suffix);
    struct capture capture = {
        .name = short_name, .signal = signal, .json = json, .body = buffer_slice(body)};
    walk->on_capture(&capture, walk->context);
    walk->count++;
    free(short_name);
    buffer_unref(body);
}

static void visit_meta(struct walk *walk, const char *path)
{
    static const char suffix[] = ".meta.json";
    json_t *meta = json_load_file(path, 0, NULL);
    assert(meta);
    enum signal signal;
    const char *kind = json_string_value(json_object_get(meta, "kind"));
    if (signal_of(json_string_value(json_object_get(meta, "path")), &signal)) {
        char body_path[4096];
        snprintf(body_path, sizeof body_path, "%.*s.body", (int)(strlen(path) - strlen(suffix)),
                 path);
        call(walk, path, strlen(suffix), signal, strcmp(kind, "otlp-http-json") == 0,
             plain_body(meta, body_path));
    }
    json_decref(meta);
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

unsigned captures_each(void (*on_capture)(const struct capture *capture, void *context),
                       void *context)
{
    struct walk walk = {.on_capture = on_capture, .context = context};
    char root[4096];
    const char *source = getenv("PROFCOL_SOURCE");
    snprintf(root, sizeof root, "%s/tests/data/captures", source ? source : ".");
    char *roots[] = {root, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    assert(tree);
    for (FTSENT *entry; (entry = fts_read(tree));) {
        if (ends_with(entry->fts_path, ".meta.json"))
            visit_meta(&walk, entry->fts_path);
        else if (ends_with(entry->fts_path, ".otlp.pb"))
            call(&walk, entry->fts_path, 0, SIGNAL_PROFILES, false, read_file(entry->fts_path));
    }
    fts_close(tree);
    assert(walk.count > 0);
    return walk.count;
}
