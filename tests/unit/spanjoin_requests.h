/*
 * spanjoin_requests: small OTLP requests for the tests of the join, made and read through
 * protobuf-c.
 *
 * Ids are numbers here (0: none); a trace id has its number in the last 8 bytes and 0xaa before
 * them. protobuf-c is independent of what is tested.
 *
 * Owner: everything lives in the request's arena; request_free.
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

void traces_begin(struct request *request, const char *service);
/* A server span, status ok, in the request's one scope. */
SpanMessage *traces_span(struct request *request, uint64_t trace, uint64_t span, uint64_t start_ns,
                         uint64_t end_ns, const char *name);
void span_string(struct request *request, SpanMessage *span, const char *key, const char *value);

/* With one resource; profiles_resource adds another, to which what follows belongs. */
void profiles_begin(struct request *request);
void profiles_resource(struct request *request);
void profiles_resource_string(struct request *request, const char *key, const char *value);
ProfileMessage *profiles_profile(struct request *request, const char *type, const char *unit);
void profile_period(struct request *request, ProfileMessage *profile, const char *type,
                    const char *unit, int64_t period);
void profile_id(struct request *request, ProfileMessage *profile, uint64_t id);
void profile_attribute(struct request *request, ProfileMessage *profile, const char *key,
                       const char *value);
/* In the last profile; stack is only a number. */
SampleMessage *profiles_sample(struct request *request, int32_t stack);
void sample_link(struct request *request, SampleMessage *sample, uint64_t trace, uint64_t span);
void sample_string(struct request *request, SampleMessage *sample, const char *key,
                   const char *value);
void sample_int(struct request *request, SampleMessage *sample, const char *key, int64_t value);
void sample_value(struct request *request, SampleMessage *sample, int64_t value);
void sample_time(struct request *request, SampleMessage *sample, uint64_t time_ns);

struct slice request_encode(struct request *request);
void request_free(struct request *request);
/* 16 hex digits. */
const char *span_hex(uint64_t span);

/* Reading what came out; freed with request_free (the arena is not used). */
void request_read_traces(struct request *request, struct slice bytes);
void request_read_profiles(struct request *request, struct slice bytes);
SpanMessage *request_span(const struct request *request, size_t i);
ProfileMessage *request_profile(const struct request *request, size_t i);
SampleMessage *request_sample(const struct request *request, size_t profile, size_t i);
/* The value as text; NULL: not there. Fails the test when the key appears twice. Valid until the
 * next call. */
const char *span_attribute(const SpanMessage *span, const char *key);
const char *sample_attribute(const struct request *request, const SampleMessage *sample,
                             const char *key);
const char *resource_attribute(const struct request *request, size_t resource, const char *key);
const char *profile_attribute_of(const struct request *request, const ProfileMessage *profile,
                                 const char *key);
/* The ids of its Link as numbers; 0: empty. has_trace_bytes: the trace id has 16 bytes, also when
 * they are zero. */
void sample_read_link(const struct request *request, const SampleMessage *sample,
                      uint64_t *trace_out, uint64_t *span_out);

#endif
