#include "core/net/h2_refusals.h"

#include "core/base/memory.h"
#include "core/net/grpc_status.h"

#include <assert.h>
#include <stdio.h>

#define RESET_DELAY_NS UINT64_C(50000000)

static nghttp2_nv field(struct slice name, struct slice value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.data, (uint8_t *)(uintptr_t)value.data,
                        name.size, value.size, NGHTTP2_NV_FLAG_NONE};
}

static int answer_grpc(nghttp2_session *session, int32_t stream_id)
{
    const struct verdict *verdict = &verdict_over_budget;
    char code[4], details[GRPC_DETAILS_MAX_BYTES];
    snprintf(code, sizeof code, "%d", verdict->code);
    size_t size = grpc_encode_details(verdict, details);
    const nghttp2_nv fields[] = {
        field(SLICE(":status"), SLICE("200")),
        field(SLICE("content-type"), SLICE("application/grpc")),
        field(SLICE("grpc-status"), slice_of_string(code)),
        field(SLICE("grpc-message"), slice_of_string(verdict->text)),
        field(SLICE("grpc-status-details-bin"), slice_of(details, size)),
    };
    return nghttp2_submit_response(session, stream_id, fields, 5, NULL);
}

static int answer_http(nghttp2_session *session, int32_t stream_id)
{
    const nghttp2_nv fields[] = {
        field(SLICE(":status"), SLICE("503")),
        field(SLICE("retry-after"), SLICE("1")),
        field(SLICE("content-length"), SLICE("0")),
    };
    return nghttp2_submit_response(session, stream_id, fields, 3, NULL);
}

bool h2_refusals_answer(struct h2_refusals *refusals, unsigned *worker_count,
                        nghttp2_session *session, int32_t stream_id, bool is_grpc)
{
    assert(refusals->count <= H2_REFUSALS_MAX && *worker_count >= refusals->count);
    if (refusals->count == H2_REFUSALS_MAX || *worker_count >= H2_REFUSALS_WORKER_MAX)
        return false;
    int rc = is_grpc ? answer_grpc(session, stream_id) : answer_http(session, stream_id);
    if (rc != 0)
        return false;
    if (!refusals->streams)
        refusals->streams = memory_array(H2_REFUSALS_MAX, sizeof *refusals->streams);
    refusals->streams[refusals->count++] = (struct h2_refusal){stream_id, is_grpc};
    (*worker_count)++;
    refusals->reset_ns = UINT64_MAX;
    return true;
}

bool h2_refusals_is_grpc(const struct h2_refusals *refusals, int32_t stream_id)
{
    for (unsigned i = 0; i < refusals->count; i++)
        if (refusals->streams[i].stream_id == stream_id)
            return refusals->streams[i].is_grpc;
    return false;
}

uint64_t h2_refusals_sent(struct h2_refusals *refusals, uint64_t now_ns)
{
    refusals->reset_ns = now_ns + RESET_DELAY_NS;
    return refusals->reset_ns;
}

void h2_refusals_closed(struct h2_refusals *refusals, unsigned *worker_count, int32_t stream_id)
{
    for (unsigned i = 0; i < refusals->count; i++) {
        if (refusals->streams[i].stream_id != stream_id)
            continue;
        refusals->streams[i] = refusals->streams[--refusals->count];
        assert(*worker_count > 0);
        (*worker_count)--;
        return;
    }
}

uint64_t h2_refusals_check(const struct h2_refusals *refusals, nghttp2_session *session,
                           uint64_t now_ns)
{
    if (refusals->count == 0)
        return UINT64_MAX;
    if (now_ns < refusals->reset_ns)
        return refusals->reset_ns;
    /* A reset before the answer would take its place. */
    for (unsigned i = 0; i < refusals->count; i++)
        if (nghttp2_session_get_stream_local_close(session, refusals->streams[i].stream_id) == 1)
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, refusals->streams[i].stream_id,
                                      NGHTTP2_NO_ERROR);
    return UINT64_MAX;
}

void h2_refusals_deinit(struct h2_refusals *refusals, unsigned *worker_count)
{
    assert(*worker_count >= refusals->count);
    *worker_count -= refusals->count;
    free(refusals->streams);
    *refusals = (struct h2_refusals){0};
}
