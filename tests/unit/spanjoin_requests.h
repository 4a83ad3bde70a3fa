/*
 * spanjoin_requests: builds and reads small OTLP requests for tests of the join, with protobuf-c.
 *
 * Ids are numbers here (0: none); a trace id has its number in the last 8 bytes and 0xaa before
 * them. protobuf-c is independent of the tested code.
 *
 * Owner: everything lives in the request's arena, which request_free frees.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_UNIT_SPANJOIN_REQUESTS_H
#define PROFCOL_TESTS_UNIT_SPANJOIN_REQUESTS_H

#include "core/base/arena.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest TracesMessage;
typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    ProfilesMessage;
typedef Opentelemetry__Proto__Trace__V1__Span SpanMessage;
typedef Opentelemetry__Proto__Profiles__V1development__Profile ProfileMessage;
typedef Opentelemetry__Proto__Profiles__V1development__Sample SampleMessage;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary DictionaryMessage;
typedef Opentelemetry__Proto__Common__V1__KeyValue KeyValueMessage;

#define SECOND UINT64_C(1000000000)
#define WALL UINT64_C(1700000000000000000) /* where the tests' spans lie */

struct request {
    struct arena arena;
    TracesMessage *traces; /* one of the two */
    ProfilesMessage *profiles;
    uint32_t items;
};

/* service: NULL: none. */
void traces_begin(struct request *request, const char *service);
void traces_resource_string(struct request *request, const char *key, const char *value);
/* Adds a server span with status ok to the only scope of the request. */
SpanMessage *traces_span(struct request *request, uint64_t trace, uint64_t span, uint64_t start_ns,
                         uint64_t end_ns, const char *name);
void span_set_parent(struct request *request, SpanMessage *span, uint64_t parent);
void span_string(struct request *request, SpanMessage *span, const char *key, const char *value);
void span_int(struct request *request, SpanMessage *span, const char *key, int64_t value);

/* Adds attributes to the last resource: "key=value key=#number". */
void request_resource(struct request *request, const char *text);

/* Begins a request with one resource. profiles_resource adds another, to which later profiles
 * belong. */
void profiles_begin(struct request *request);
void profiles_resource(struct request *request);
void profiles_resource_string(struct request *request, const char *key, const char *value);
ProfileMessage *profiles_profile(struct request *request, const char *type, const char *unit);
void profile_period(struct request *request, ProfileMessage *profile, const char *type,
                    const char *unit, int64_t period);
void profile_id(struct request *request, ProfileMessage *profile, uint64_t id);
void profile_attribute(struct request *request, ProfileMessage *profile, const char *key,
                       const char *value);
/* Makes the stack one frame of a function, called by `main`. */
void profiles_stack(struct request *request, int32_t stack, const char *function);
/* Adds a stack of functions, leaf first, and returns its number for profiles_sample. */
int32_t profiles_add_stack(struct request *request, const char *const *functions, size_t count);
/* Adds a sample to the last profile. stack: any number. */
SampleMessage *profiles_sample(struct request *request, int32_t stack);
void sample_link(struct request *request, SampleMessage *sample, uint64_t trace, uint64_t span);
void sample_string(struct request *request, SampleMessage *sample, const char *key,
                   const char *value);
void sample_int(struct request *request, SampleMessage *sample, const char *key, int64_t value);
void sample_value(struct request *request, SampleMessage *sample, int64_t value);
void sample_time(struct request *request, SampleMessage *sample, uint64_t time_ns);

struct slice request_encode(struct request *request);
void request_free(struct request *request);
/* Returns 16 hex digits. */
const char *span_hex(uint64_t span);

/* Read an output; free it with request_free. The arena is not used. */
void request_read_traces(struct request *request, struct slice bytes);
void request_read_profiles(struct request *request, struct slice bytes);
SpanMessage *request_span(const struct request *request, size_t i);
ProfileMessage *request_profile(const struct request *request, size_t i);
SampleMessage *request_sample(const struct request *request, size_t profile, size_t i);
/* Return the value of an attribute as text (a list of texts as "a, b"), valid until the next call;
 * NULL if it is absent. Fail the test if the key occurs twice. */
const char *span_attribute(const SpanMessage *span, const char *key);
const char *sample_attribute(const struct request *request, const SampleMessage *sample,
                             const char *key);
const char *resource_attribute(const struct request *request, size_t resource, const char *key);
const char *profile_attribute_of(const struct request *request, const ProfileMessage *profile,
                                 const char *key);
/* Gets the ids of the sample's Link as numbers; 0: empty. */
void sample_read_link(const struct request *request, const SampleMessage *sample,
                      uint64_t *trace_out, uint64_t *span_out);

#endif
