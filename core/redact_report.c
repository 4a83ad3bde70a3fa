#include "core/redact_report.h"

#include "config/model.h"
#include "core/base/clock.h"
#include "core/data/json.h"
#include "core/data/normalise.h"
#include "core/formats/pprof.h"
#include "core/formats/pprof_read.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/received_profiles.h"
#include "processors/redaction/redact_lists.h"
#include "processors/redaction/redact_profiles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A profile that is taken on request takes its time first. */
enum { FILE_BYTES_MAX = 256 << 20, ANSWER_TIMEOUT_S = 300 };

/* A request, ready to be read. */
struct read_request {
    enum signal signal;
    struct buffer *bytes;
};

/* ---- files and URLs ---- */

static struct buffer *read_file(const char *path, struct error *err)
{
    uint8_t piece[64 << 10];
    struct buffer *bytes = buffer_new(0, NULL);
    FILE *file = fopen(path, "re");
    size_t size;
    bool fits = true;
    if (!file) {
        error_set(err, "%s: %s", path, strerror(errno));
        buffer_unref(bytes);
        return NULL;
    }
    while (fits && (size = fread(piece, 1, sizeof piece, file)) > 0)
        fits = buffer_append(bytes, piece, size, FILE_BYTES_MAX);
    bool is_read = !ferror(file) && fits;
    if (!is_read)
        error_set(err, "%s: %s", path, fits ? strerror(errno) : "is larger than 256 MiB");
    fclose(file);
    if (is_read)
        return bytes;
    buffer_unref(bytes);
    return NULL;
}

static struct buffer *read_url(const char *url, const struct http_get_options *http,
                               struct error *err)
{
    struct http_get_options options = *http;
    struct http_answer answer;
    options.timeout_s = ANSWER_TIMEOUT_S;
    options.body_max = FILE_BYTES_MAX;
    if (!http_get(url, &options, &answer, err))
        return NULL;
    if (answer.status[0] == '2')
        return answer.body;
    error_set(err, "%s: status %s", http_get_shown(url), answer.status);
    buffer_unref(answer.body);
    return NULL;
}

/* Takes over the buffer; returns NULL with err set if it cannot be decompressed. */
static struct buffer *decompressed(struct buffer *bytes, struct error *err)
{
    struct buffer *plain = NULL;
    enum compression compression = received_profiles_compression(buffer_slice(bytes));
    if (compression == COMPRESSION_NONE)
        return bytes;
    enum decompress_result result =
        decompress(compression, buffer_slice(bytes), FILE_BYTES_MAX, NULL, &plain, err);
    buffer_unref(bytes);
    if (result == DECOMPRESS_OK)
        return plain;
    if (result != DECOMPRESS_CORRUPT)
        error_set(err, "the decompressed data is too large");
    return NULL;
}

/* ---- formats ---- */

static bool is_json(struct slice bytes)
{
    bytes = slice_trim(bytes, SLICE_SPACES);
    return bytes.size > 0 && bytes.data[0] == '{';
}

/* Requests have the fields 1 and 2 only; a pprof has texts. */
static bool is_pprof(struct slice bytes)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number == PPROF_STRING_TABLE && field.type == WIRE_BYTES)
            return true;
    return false;
}

static bool has_key(struct slice json, const char *key, const char *other)
{
    return memmem(json.data, json.size, key, strlen(key)) ||
           memmem(json.data, json.size, other, strlen(other));
}

static struct buffer *read_json(struct slice json, struct error *err)
{
    bool over_budget;
    bool has_profiles = has_key(json, "resourceProfiles", "resource_profiles");
    if (!has_profiles && !has_key(json, "resourceSpans", "resource_spans")) {
        error_set(err, "the JSON has neither resourceSpans nor resourceProfiles");
        return NULL;
    }
    return json_to_protobuf(has_profiles ? JSON_PROFILES_REQUEST : JSON_TRACES_REQUEST, json, NULL,
                            &over_budget, err);
}

static struct buffer *read_pprof(struct slice pprof, struct error *err)
{
    static const struct pprof_options options = {.time_unix_nano = 0};
    struct profiles_builder *builder = received_profiles_builder(FILE_BYTES_MAX, NULL);
    struct buffer *request = NULL;
    struct built_resource resource = {.attributes = NULL};
    struct verdict why;
    uint32_t samples;
    profiles_builder_resource(builder, &resource);
    if (pprof_read(builder, pprof, &options, err)) {
        request = received_profiles_finish(builder, &samples, &why);
        if (!request)
            error_set(err, "%s", why.text);
    }
    profiles_builder_free(builder);
    return request;
}

/* Checks the request, and brings profiles into the form that processors read. */
static bool scan_request(struct read_request *request, struct error *err)
{
    struct slice bytes = buffer_slice(request->bytes);
    struct scan_result scan;
    struct error of_traces;
    bool is_too_large;
    request->signal = SIGNAL_TRACES;
    if (scan_traces(bytes, &scan_limits_default, &scan, &of_traces))
        return true;
    request->signal = SIGNAL_PROFILES;
    if (!scan_profiles(bytes, &scan_limits_default, &scan, err))
        return error_set(err, "neither traces (%s) nor profiles", of_traces.text);
    if (!normalise_needed(&scan))
        return true;
    struct buffer *normal = normalise_profiles(bytes, &scan, NULL, &is_too_large);
    if (!normal)
        return error_set(err, "the request is too large");
    buffer_unref(request->bytes);
    request->bytes = normal;
    return true;
}

/* Takes over the bytes. */
static bool read_request(struct buffer *bytes, struct read_request *request, struct error *err)
{
    bytes = decompressed(bytes, err);
    if (!bytes)
        return false;
    struct slice content = buffer_slice(bytes);
    if (content.size == 0)
        error_set(err, "there is no data");
    else if (is_json(content))
        request->bytes = read_json(content, err);
    else if (is_pprof(content))
        request->bytes = read_pprof(content, err);
    else
        request->bytes = buffer_ref(bytes);
    buffer_unref(bytes);
    return request->bytes && scan_request(request, err);
}

/* ---- the report ---- */

struct report {
    struct text *out;
    unsigned matches;
};

/* Appends the text on one line. */
static void append_text(struct text *out, struct slice text)
{
    text_append_json(out, text);
}

static void add_match(void *context, const struct redaction_match *match)
{
    struct report *report = context;
    struct text *out = report->out;
    report->matches++;
    text_printf(out, "%s\t%s", redaction_kind_names[match->kind], match->rule);
    if (match->pattern[0]) {
        text_append(out, ": ");
        append_text(out, slice_of_string(match->pattern));
    }
    text_append_char(out, '\t');
    if (match->kind == REDACTION_ATTRIBUTE) {
        append_text(out, match->key);
        text_append_char(out, '=');
    }
    append_text(out, match->text);
    text_append_char(out, '\n');
}

static void report_request(const struct redaction_rules *rules, const struct read_request *request,
                           struct text *out)
{
    struct report report = {.out = out};
    struct batch_part part = {.buffer = request->bytes};
    struct batch batch = {.signal = request->signal, .parts = &part, .part_count = 1};
    struct redactor redactor;
    struct redact_lists lists = {.redactor = &redactor};
    message_init(&part.root, buffer_slice(request->bytes));
    redactor_init(&redactor, rules);
    redactor.on_match = add_match;
    redactor.context = &report;
    redactor_begin(&redactor, &batch);
    redact_lists_batch(&lists, &batch);
    if (request->signal == SIGNAL_PROFILES)
        redact_profiles_batch(&redactor, &batch, false);
    text_printf(out, "%u %s\n", report.matches, report.matches == 1 ? "match" : "matches");
    redactor_deinit(&redactor);
    arena_deinit(&batch.arena);
}

/* ---- the processor ---- */

static const struct redaction_settings *find_settings(const struct config *config, const char *id,
                                                      struct error *err)
{
    const struct redaction_settings *found = NULL;
    for (size_t i = 0; i < config->component_count[CONFIG_PROCESSORS]; i++) {
        const struct config_component *component = &config->components[CONFIG_PROCESSORS][i];
        if (strcmp(component->type->name, "redaction") != 0 ||
            (id && strcmp(component->id, id) != 0))
            continue;
        if (found) {
            error_set(err, "there are several processors redaction; choose one with --processor");
            return NULL;
        }
        found = component->settings;
    }
    if (!found)
        error_set(err, "there is no processor %s in the configuration", id ? id : "redaction");
    return found;
}

/* The rules without a configuration: the default words. */
static const struct redaction_settings *default_settings(void)
{
    static const char *words[] = {"password", "secret",  "credential",
                                  "token",    "api_key", "access_key"};
    static const struct redaction_settings settings = {
        .allow_all_keys = true,
        .secret_words = {.enabled = true, .words = {words, sizeof words / sizeof *words}}};
    return &settings;
}

bool redact_report(const struct config *config, const char *id, const char *place,
                   const struct http_get_options *http, struct text *report, struct error *err)
{
    const struct redaction_settings *settings =
        config ? find_settings(config, id, err) : default_settings();
    struct redaction_rules *rules = settings ? redaction_rules_new(settings, err) : NULL;
    struct read_request request = {.bytes = NULL};
    if (!rules)
        return false;
    scan_init();
    struct buffer *bytes =
        strstr(place, "://") ? read_url(place, http, err) : read_file(place, err);
    bool is_read = bytes && read_request(bytes, &request, err);
    if (is_read)
        report_request(rules, &request, report);
    buffer_unref(request.bytes);
    redaction_rules_free(rules);
    return is_read;
}
