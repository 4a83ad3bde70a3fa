/*
 * profiles_builder: builds an ExportProfilesServiceRequest, for the readers of all formats.
 *
 * Equal table entries are stored once, tables begin with their zero value, resources have their
 * attributes inline, every index is valid, strings are UTF-8. So the result has the form that the
 * pipelines expect (core/data/normalise.h), and needs no scan. The order of calls:
 *
 *     struct profiles_builder *b = profiles_builder_new(budget, max_bytes);
 *     profiles_builder_resource(b, &resource);                  // begins a ResourceProfiles
 *     uint32_t cpu = profiles_builder_profile(b, &header);      // several may be open
 *     uint32_t stack = profiles_builder_stack(b, locations, n); // leaf first
 *     profiles_builder_sample(b, cpu, &sample);                 // or _add, which sums
 *     struct buffer *request = profiles_builder_finish(b, &samples);
 *
 * Calls do not fail: beyond its limits the builder adds nothing more, and profiles_builder_finish
 * reports that.
 *
 * The limits are proportional to the plain size of the request, which readers announce with
 * profiles_builder_admit. They apply to the bytes of tables and samples, and to the work that
 * exceeds a constant for each reference, which readers count with profiles_builder_work. Each limit
 * has a minimum, because small requests are rarely expensive.
 *
 * Owner: the caller owns the builder; arguments are copied.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_PROFILES_BUILDER_H
#define PROFCOL_CORE_FORMATS_PROFILES_BUILDER_H

#include "core/base/buffer.h"
#include "core/data/otlp.h"

struct profiles_builder;

enum {
    PROFILES_BUILDER_BYTES_MIN = 4 << 20,
    PROFILES_BUILDER_BYTES_PER_BYTE = 32,
    PROFILES_BUILDER_WORK_MIN = 4 << 20,
    PROFILES_BUILDER_WORK_PER_BYTE = 32,
    PROFILES_BUILDER_WORK_MAX = 256 << 20,
};

/* Creates a builder. It uses at most max_bytes (tables, samples, hashes), however much is
 * admitted. */
struct profiles_builder *profiles_builder_new(struct budget *budget, size_t max_bytes);
void profiles_builder_free(struct profiles_builder *builder); /* NULL is allowed */

enum profiles_builder_state {
    PROFILES_BUILDER_FINE,
    PROFILES_BUILDER_TOO_LARGE,   /* the request unfolds to too many bytes or too much work */
    PROFILES_BUILDER_OVER_BUDGET, /* the process has no memory for the request now */
};
/* Returns the state. For loops that stop early. */
enum profiles_builder_state profiles_builder_state(const struct profiles_builder *builder);
/* Announces that a reader begins with this many plain bytes. Several calls add up. */
void profiles_builder_admit(struct profiles_builder *builder, size_t plain_bytes);
/* Counts work, before a reader reads something again: the bytes of a text that something refers to,
 * the frames of a stack. Returns false if the total is too much; the state then says so. */
bool profiles_builder_work(struct profiles_builder *builder, uint64_t amount);
/* Returns the builder's budget; NULL if there is none. */
struct budget *profiles_builder_budget(const struct profiles_builder *builder);
/* Returns zeroed memory for a reader's own tables, owned and counted by the builder. Returns NULL
 * if it exceeds the limits; the state then says so. */
void *profiles_builder_scratch(struct profiles_builder *builder, size_t count, size_t element_size);
/* Whether a reader may use this many bytes for temporary data; otherwise the state says why not.
 * The reader owns and charges them itself. */
bool profiles_builder_has_room(struct profiles_builder *builder, size_t bytes);

/* ---- the dictionary: each returns the index of an equal entry or of a new one ---- */

enum { PROFILES_BUILDER_REPAIR_MAX = 1 << 20 };
/* Bytes that are not UTF-8 become U+FFFD, here and in values of attributes. If such a text has more
 * than PROFILES_BUILDER_REPAIR_MAX bytes, the request is too large. "" is index 0. */
uint32_t profiles_builder_string(struct profiles_builder *builder, struct slice text);
/* Like profiles_builder_string, for a text known to be UTF-8, which is not checked. */
uint32_t profiles_builder_utf8_string(struct profiles_builder *builder, struct slice text);
/* Returns the text as it is in the table: unchanged, or repaired. It exists as long as the builder.
 */
struct slice profiles_builder_repair(struct profiles_builder *builder, struct slice text);
/* Attributes of samples, profiles, mappings and locations. */
uint32_t profiles_builder_attribute_string(struct profiles_builder *builder, struct slice key,
                                           struct slice value);
/* key and unit are indices of profiles_builder_string. */
uint32_t profiles_builder_attribute_int(struct profiles_builder *builder, uint32_t key,
                                        int64_t value, uint32_t unit);
/* Returns an attribute with a bool value. */
uint32_t profiles_builder_attribute_bool(struct profiles_builder *builder, struct slice key,
                                         bool value);
/* trace_id: 16 bytes or NULL; span_id: 8 bytes or NULL. */
uint32_t profiles_builder_link(struct profiles_builder *builder, const uint8_t *trace_id,
                               const uint8_t *span_id);

struct built_mapping {
    uint64_t memory_start, memory_limit, file_offset;
    uint32_t filename; /* strings are indices of profiles_builder_string */
    const uint32_t *attributes;
    size_t attribute_count;
};
/* Returns a mapping. */
uint32_t profiles_builder_mapping(struct profiles_builder *builder,
                                  const struct built_mapping *mapping);

struct built_function {
    uint32_t name, system_name, filename;
    int64_t start_line;
};
/* Returns a function. */
uint32_t profiles_builder_function(struct profiles_builder *builder,
                                   const struct built_function *function);

struct built_line {
    uint32_t function;
    int64_t line, column;
};
struct built_location {
    uint32_t mapping;
    uint64_t address;
    const struct built_line *lines; /* innermost inlined function first */
    size_t line_count;
    const uint32_t *attributes;
    size_t attribute_count;
};
/* Returns a location. */
uint32_t profiles_builder_location(struct profiles_builder *builder,
                                   const struct built_location *location);
/* Returns a location with this function, for formats that have only names. */
uint32_t profiles_builder_frame(struct profiles_builder *builder, struct slice function_name);
/* locations: leaf first. Without locations, returns 0. */
uint32_t profiles_builder_stack(struct profiles_builder *builder, const uint32_t *locations,
                                size_t count);

/* ---- resources, profiles, samples ---- */

struct built_attribute {
    struct slice key, value; /* a string value */
};
struct built_resource {
    const struct built_attribute *attributes;
    size_t attribute_count;
    struct slice scope_name, scope_version;
};
/* Begins a resource; all following profiles belong to it. */
void profiles_builder_resource(struct profiles_builder *builder,
                               const struct built_resource *resource);

struct built_profile {
    uint32_t sample_type, sample_unit, period_type, period_unit; /* strings */
    int64_t period;
    uint64_t time_unix_nano, duration_nano;
    const uint32_t *attributes;
    size_t attribute_count;
    bool is_sibling; /* of the previous profile: another sample type of the same measurement */
};
/* Begins a profile, and returns its number for the samples. A profile is left out if neither it nor
 * a sibling gets samples, but others do; profiles_builder_keep_empty prevents that. */
uint32_t profiles_builder_profile(struct profiles_builder *builder,
                                  const struct built_profile *profile);

struct built_sample {
    uint32_t stack, link;
    const uint32_t *attributes;
    size_t attribute_count;
};
/* Profiles without samples are not left out. */
void profiles_builder_keep_empty(struct profiles_builder *builder);
bool profiles_builder_keeps_empty(const struct profiles_builder *builder);

/* Adds a sample with one value and no timestamp. */
void profiles_builder_sample(struct profiles_builder *builder, uint32_t profile,
                             const struct built_sample *sample, int64_t value);
/* Adds the value to the sample of the same profile, stack, attributes (in the same order) and link;
 * sums stop at INT64_MIN and INT64_MAX. */
void profiles_builder_add(struct profiles_builder *builder, uint32_t profile,
                          const struct built_sample *sample, int64_t value);

/* Like profiles_builder_add, but the value stays apart, with its time: the sample gets a list of
 * values and of as many timestamps. */
void profiles_builder_add_at(struct profiles_builder *builder, uint32_t profile,
                             const struct built_sample *sample, int64_t value,
                             uint64_t time_unix_nano);

/* Returns the request, and sets *samples to its number of samples; with 0, the request has all
 * profiles, which only say that there were none (core/pipeline/empty_profiles.h). Returns NULL if
 * the limits were exceeded (profiles_builder_state). Nothing may be added afterwards. */
struct buffer *profiles_builder_finish(struct profiles_builder *builder, uint32_t *samples);

#endif
