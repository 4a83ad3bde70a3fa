/*
 * health_answer: what the second form of health_check answers, from the health of the process: the
 * statuses and JSON of the Collector's extension healthcheckv2.
 *
 * Owner: the caller.
 *
 * Thread: any.
 */
#ifndef PROFCOL_HEALTH_ANSWER_H
#define PROFCOL_HEALTH_ANSWER_H

#include "core/base/slice.h"
#include "core/pipeline/health.h"
#include "extensions/health_check/health_settings.h"

struct text;

/* Returns the HTTP status for the health of the process or a pipeline. now_ns: since 1970. */
int health_http_status(const struct health *health,
                       const struct component_health_settings *settings, uint64_t now_ns);
/* Appends the JSON object. started_ns: since 1970; is_verbose: with the parts. */
void health_print_json(const struct health *health,
                       const struct component_health_settings *settings, uint64_t started_ns,
                       uint64_t now_ns, bool is_verbose, struct text *out);

/* Reads the service of a grpc.health.v1.HealthCheckRequest. Returns false if it is not one. */
bool health_grpc_read_service(struct slice request, struct slice *service_out);
enum { HEALTH_GRPC_RESPONSE_MAX = 2 };
/* Writes the HealthCheckResponse and returns its size in bytes. */
size_t health_grpc_write_response(const struct health *health,
                                  const struct component_health_settings *settings, uint64_t now_ns,
                                  uint8_t out[HEALTH_GRPC_RESPONSE_MAX]);

#endif
