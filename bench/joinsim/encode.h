/*
 * encode: the requests of a traffic as OTLP, for the join simulator.
 *
 * Each request has a resource attribute with its number, by which the output is recognised.
 *
 * Owner: the encoder, whose memory is used again; free it with encoder_deinit.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_BENCH_JOINSIM_ENCODE_H
#define PROFCOL_BENCH_JOINSIM_ENCODE_H

#include "bench/joinsim/traffic.h"
#include "core/base/text.h"

#define REQUEST_NUMBER_KEY "joinsim.request"
#define SAMPLE_VALUE INT64_C(10000000) /* nanoseconds of CPU */

struct encoder {
    struct text out, group, scope, profile, item, part, packed;
    struct text dictionary, strings, attributes, links;
    struct {
        uint32_t thread, attribute;
    } * threads; /* of this request */
    uint32_t thread_count;
    uint64_t *request_of_span; /* that numbered the span last */
    uint32_t *number_of_span;
    uint32_t string_count, attribute_count, link_count;
};

/* Returns the encoded request, valid until the next call. */
struct slice encoder_encode(struct encoder *encoder, const struct traffic *traffic,
                            const struct sim_request *request);
void encoder_deinit(struct encoder *encoder);
/* Returns the number of the stack whose leaf has this name; 0: none. */
uint64_t encoded_stack(struct slice leaf);
/* Writes the name of a route's spans. */
void encode_route(uint16_t route, char name_out[32]);

#endif
