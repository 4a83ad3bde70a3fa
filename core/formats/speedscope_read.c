#include "core/formats/speedscope_read.h"

#include "core/base/memory.h"
#include "core/data/json_reader.h"

#include <assert.h>
#include <math.h>

enum { JSON_DEPTH_MAX = 64 };

/* The members of a file and of the current profile, as JSON texts, because members may be in any
 * order. */
struct file {
    struct slice schema, profiles, frames;
};
struct profile {
    struct slice type, name, unit, start_value, events, samples, weights;
};

struct speedscope {
    struct profiles_builder *builder;
    const struct stacks_options *options;
    uint32_t *frames; /* locations */
    size_t frame_count, frame_capacity;
    uint8_t *text; /* an unescaped string */
    size_t text_capacity;
};

/* ---- JSON ---- */

static bool broken(const struct json_reader *reader, struct error *err)
{
    return error_set(err, "byte %zu: %s", (size_t)(reader->next - reader->start),
                     reader->problem ? reader->problem : "not a JSON value");
}

/* Takes the text of the next value. */
static bool take_value(struct json_reader *reader, struct slice *value, struct error *err)
{
    json_peek(reader);
    const uint8_t *start = reader->next;
    if (!json_skip(reader, JSON_DEPTH_MAX))
        return broken(reader, err);
    *value = slice_of(start, (size_t)(reader->next - start));
    return true;
}

struct member {
    const char *key;
    struct slice *value;
};

/* Takes the given members as texts, and skips others. */
static bool take_members(struct slice object, const struct member *members, size_t count,
                         struct error *err)
{
    struct json_reader reader = json_reader(object);
    struct slice key, value;
    bool first = true, has_escapes;
    if (json_peek(&reader) != JSON_OBJECT)
        return error_set(err, "is not an object");
    while (json_next_member(&reader, &first, &key, &has_escapes)) {
        if (!take_value(&reader, &value, err))
            return false;
        for (size_t i = 0; i < count; i++)
            if (slice_is(key, members[i].key))
                *members[i].value = value;
    }
    return !reader.problem || broken(&reader, err);
}

/* Moves to the next element of a list. Returns false at its end, and with *fine false on an
 * error. */
static bool next_element(struct json_reader *reader, bool *first, struct slice *value, bool *fine,
                         struct error *err)
{
    if (!json_next_element(reader, first)) {
        *fine = !reader->problem || broken(reader, err);
        return false;
    }
    *fine = take_value(reader, value, err);
    return *fine;
}

static bool open_list(struct slice list, const char *name, struct json_reader *reader,
                      struct error *err)
{
    if (list.size == 0)
        return error_set(err, "%s is missing", name);
    *reader = json_reader(list);
    return json_peek(reader) == JSON_LIST || error_set(err, "%s is not a list", name);
}

/* Reads a number of few digits, which is exact. Nearly all numbers are. */
static bool read_digits(struct slice text, double *number)
{
    enum { EXACT_DIGITS = 15 };
    uint64_t value = 0;
    if (text.size == 0 || text.size > EXACT_DIGITS || (text.data[0] == '0' && text.size > 1))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    *number = (double)value;
    return true;
}

/* Reads a number; a missing one and null are 0. */
static bool read_number(struct slice text, double *number, struct error *err)
{
    char digits[64];
    *number = 0;
    if (read_digits(text, number) || text.size == 0 || slice_is(text, "null"))
        return true;
    if (!json_is_number(text) || text.size >= sizeof digits)
        return error_set(err, "%.*s is not a number", (int)(text.size < 40 ? text.size : 40),
                         (const char *)text.data);
    memcpy(digits, text.data, text.size);
    digits[text.size] = 0;
    *number = strtod(digits, NULL);
    return isfinite(*number) || error_set(err, "%s is too large", digits);
}

/* Returns the text of a JSON string, valid until the next call; "" for anything else. */
static struct slice read_string(struct speedscope *file, struct slice text)
{
    struct json_reader reader;
    struct slice raw;
    bool has_escapes;
    if (text.size == 0)
        return text;
    reader = json_reader(text);
    if (json_peek(&reader) != JSON_STRING || !json_take_string(&reader, &raw, &has_escapes))
        return (struct slice){0};
    if (!has_escapes)
        return raw;
    if (file->text_capacity < raw.size) {
        file->text = memory_realloc(file->text, raw.size);
        file->text_capacity = raw.size;
    }
    return slice_of(file->text, json_unescape(raw, file->text));
}

/* ---- frames ---- */

static bool read_frame(struct speedscope *file, struct slice object, uint32_t *location,
                       struct error *err)
{
    struct slice name = {0}, path = {0}, line_text = {0}, column_text = {0};
    const struct member members[] = {
        {"name", &name}, {"file", &path}, {"line", &line_text}, {"col", &column_text}};
    double line, column;
    if (!take_members(object, members, 4, err) || !read_number(line_text, &line, err) ||
        !read_number(column_text, &column, err))
        return false;
    struct built_function function = {
        .name = profiles_builder_string(file->builder, read_string(file, name)),
        .filename = profiles_builder_string(file->builder, read_string(file, path)),
    };
    struct built_line at = {
        .function = profiles_builder_function(file->builder, &function),
        .line = line > 0 && line < 1e9 ? (int64_t)line : 0,
        .column = column > 0 && column < 1e9 ? (int64_t)column : 0,
    };
    struct built_location built = {.lines = &at, .line_count = 1};
    *location = profiles_builder_location(file->builder, &built);
    return true;
}

static bool read_frames(struct speedscope *file, struct slice frames, struct error *err)
{
    struct json_reader reader;
    struct slice frame;
    bool first = true, fine;
    if (!open_list(frames, "shared.frames", &reader, err))
        return false;
    while (next_element(&reader, &first, &frame, &fine, err)) {
        if (file->frame_count == file->frame_capacity) {
            file->frame_capacity = file->frame_capacity ? file->frame_capacity * 2 : 256;
            file->frames = memory_grow(file->frames, file->frame_capacity, sizeof *file->frames);
        }
        assert(file->frame_count < file->frame_capacity);
        if (!read_frame(file, frame, &file->frames[file->frame_count], err))
            return error_prefix(err, "shared.frames[%zu]", file->frame_count);
        file->frame_count++;
    }
    return fine;
}

static bool find_frame(const struct speedscope *file, struct slice text, uint32_t *index,
                       struct error *err)
{
    double number;
    if (!read_number(text, &number, err))
        return false;
    if (!(number >= 0 && number < (double)file->frame_count) || number != floor(number))
        return error_set(err, "frame %g is outside shared.frames, which has %zu", number,
                         file->frame_count);
    *index = (uint32_t)number;
    return true;
}

/* ---- profiles ---- */

static const struct {
    const char *name;
    double nanoseconds; /* 0: not a unit of time */
} units[] = {{"nanoseconds", 1}, {"microseconds", 1e3}, {"milliseconds", 1e6},
             {"seconds", 1e9},   {"none", 0},           {"bytes", 0}};

/* Chooses what is measured, and the factor for the profile's unit. */
static bool choose_kind(const struct speedscope *file, struct slice unit,
                        struct stacks_options *options, double *scale, struct error *err)
{
    *options = *file->options;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (!slice_is(unit, units[i].name))
            continue;
        *scale = units[i].nanoseconds;
        if (slice_is(unit, "bytes")) {
            *scale = 1;
            if (!slice_is(options->kind.sample_unit,
                          "bytes")) /* otherwise the application's name decides */
                options->kind =
                    (struct stacks_kind){SLICE("memory"), SLICE("samples"), SLICE("bytes"), false};
        } else if (*scale == 0) {
            *scale = (double)stacks_period(options);
        } else if (!options->kind.is_time) {
            options->kind =
                (struct stacks_kind){SLICE("wall"), SLICE("wall"), SLICE("nanoseconds"), true};
        }
        return true;
    }
    return error_set(err, "unit: unknown unit %.*s", SLICE_ARG(unit));
}

static bool add_amount(struct stacks *stacks, double amount, double scale, struct error *err)
{
    if (amount < 0)
        return error_set(err, "%g is negative", amount);
    amount *= scale;
    return stacks_add(stacks, amount < 9e18 ? (int64_t)llround(amount) : INT64_MAX, err);
}

struct events {
    struct stacks *stacks;
    const struct speedscope *file;
    double scale, last;
};

static bool read_event(struct events *events, struct slice object, struct error *err)
{
    struct slice type = {0}, at_text = {0}, frame_text = {0};
    const struct member members[] = {{"type", &type}, {"at", &at_text}, {"frame", &frame_text}};
    struct stacks *stacks = events->stacks;
    uint32_t frame;
    double at;
    if (!take_members(object, members, 3, err) || !read_number(at_text, &at, err) ||
        !find_frame(events->file, frame_text, &frame, err))
        return false;
    if (at < events->last)
        return error_set(err, "is at %g, before the previous one at %g", at, events->last);
    if (stacks->depth > 0 && !add_amount(stacks, at - events->last, events->scale, err))
        return false;
    events->last = at;
    assert(frame < events->file->frame_count);
    uint32_t location = events->file->frames[frame];
    if (slice_is(type, "\"O\""))
        return stacks_push_location(stacks, location, err);
    if (!slice_is(type, "\"C\""))
        return error_set(err, "is neither \"O\" nor \"C\"");
    if (stacks->depth == 0 || stacks->frames[stacks->depth - 1] != location)
        return error_set(err, "closes frame %u, which is not the innermost open one", frame);
    stacks_pop_to(stacks, stacks->depth - 1);
    return true;
}

static bool read_events(struct events *events, const struct profile *profile, struct error *err)
{
    struct json_reader reader;
    struct slice event;
    bool first = true, fine;
    if (!read_number(profile->start_value, &events->last, err) ||
        !open_list(profile->events, "events", &reader, err))
        return false;
    for (size_t i = 0; next_element(&reader, &first, &event, &fine, err); i++)
        if (!read_event(events, event, err))
            return error_prefix(err, "events[%zu]", i);
    return fine &&
           (events->stacks->depth == 0 ||
            error_set(err, "events: %u frames are still open at the end", events->stacks->depth));
}

static bool open_sample(const struct speedscope *file, struct stacks *stacks, struct slice list,
                        struct error *err)
{
    struct json_reader reader;
    struct slice text;
    bool first = true, fine;
    uint32_t frame;
    stacks_pop_to(stacks, 0);
    if (!open_list(list, "a sample", &reader, err))
        return false;
    while (next_element(&reader, &first, &text, &fine, err))
        if (!find_frame(file, text, &frame, err) ||
            !stacks_push_location(stacks, file->frames[frame], err))
            return false;
    return fine;
}

static bool read_samples(const struct speedscope *file, struct stacks *stacks,
                         const struct profile *profile, double scale, struct error *err)
{
    struct json_reader samples, weights;
    struct slice sample, weight;
    bool first = true, first_weight = true, fine, fine_weight;
    if (!open_list(profile->samples, "samples", &samples, err) ||
        !open_list(profile->weights, "weights", &weights, err))
        return false;
    size_t i = 0;
    for (; next_element(&samples, &first, &sample, &fine, err); i++) {
        double amount;
        if (!next_element(&weights, &first_weight, &weight, &fine_weight, err))
            return fine_weight ? error_set(err, "there are fewer weights than samples") : false;
        if (!open_sample(file, stacks, sample, err) || !read_number(weight, &amount, err) ||
            !add_amount(stacks, amount, scale, err))
            return error_prefix(err, "samples[%zu]", i);
    }
    if (!fine)
        return false;
    if (next_element(&weights, &first_weight, &weight, &fine_weight, err))
        return error_set(err, "there are more weights than samples");
    return fine_weight;
}

static bool read_profile(struct speedscope *file, struct slice object, struct error *err)
{
    struct profile profile = {0};
    const struct member members[] = {
        {"type", &profile.type},       {"name", &profile.name},
        {"unit", &profile.unit},       {"startValue", &profile.start_value},
        {"events", &profile.events},   {"samples", &profile.samples},
        {"weights", &profile.weights},
    };
    struct stacks_options options;
    double scale = 0;
    if (!take_members(object, members, sizeof members / sizeof *members, err) ||
        !choose_kind(file, read_string(file, profile.unit), &options, &scale, err))
        return false;
    struct stacks stacks;
    stacks_begin(&stacks, file->builder, &options);
    uint32_t name = profiles_builder_attribute_string(file->builder, SLICE("profile_name"),
                                                      read_string(file, profile.name));
    stacks.attributes = &name;
    stacks.attribute_count = 1;
    struct events events = {.stacks = &stacks, .file = file, .scale = scale};
    bool fine;
    if (slice_is(profile.type, "\"evented\""))
        fine = read_events(&events, &profile, err);
    else if (slice_is(profile.type, "\"sampled\""))
        fine = read_samples(file, &stacks, &profile, scale, err);
    else
        fine = error_set(err, "type is neither evented nor sampled");
    stacks_end(&stacks);
    return fine;
}

/* ---- the file ---- */

static bool split_file(struct slice body, struct file *out, struct error *err)
{
    struct json_reader reader = json_reader(body);
    struct slice whole, shared = {0};
    const struct member members[] = {
        {"$schema", &out->schema}, {"profiles", &out->profiles}, {"shared", &shared}};
    const struct member shared_members[] = {{"frames", &out->frames}};
    if (!take_value(&reader, &whole, err))
        return false;
    if (json_peek(&reader) != JSON_BROKEN || reader.next != reader.end)
        return error_set(err, "byte %zu: there is text after the JSON value",
                         (size_t)(reader.next - reader.start));
    if (!take_members(whole, members, 3, err))
        return false;
    if (!slice_is(out->schema, "\"https://www.speedscope.app/file-format-schema.json\""))
        return error_set(err, "$schema is not the one of speedscope");
    return take_members(shared.size > 0 ? shared : SLICE("{}"), shared_members, 1, err) ||
           error_prefix(err, "shared");
}

static bool read_file(struct speedscope *file, struct slice body, struct error *err)
{
    struct file parts = {0};
    struct json_reader reader;
    struct slice profile;
    bool first = true, fine;
    if (body.size == 0)
        return error_set(err, "there is no JSON value");
    if (!split_file(body, &parts, err) || !read_frames(file, parts.frames, err) ||
        !open_list(parts.profiles, "profiles", &reader, err))
        return false;
    for (size_t i = 0; next_element(&reader, &first, &profile, &fine, err); i++)
        if (!read_profile(file, profile, err))
            return error_prefix(err, "profiles[%zu]", i);
    return fine;
}

bool speedscope_read(struct profiles_builder *builder, struct slice body,
                     const struct stacks_options *options, struct error *err)
{
    struct speedscope file = {.builder = builder, .options = options};
    profiles_builder_admit(builder, body.size);
    bool fine = read_file(&file, body, err);
    free(file.frames);
    free(file.text);
    return fine || profiles_builder_state(builder) != PROFILES_BUILDER_FINE;
}
