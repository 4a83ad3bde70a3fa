/*
 * A push in each of its forms: protobuf, JSON, a frame of gRPC-Web. An accepted push must pass the
 * scan (pyroscope_fixture.c).
 */
#include "tests/unit/pyroscope_fixture.c" /* NOLINT(bugprone-suspicious-include) */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pyroscope_request request;
    struct pyroscope_result result;
    pyroscope_word(&request, NULL, NULL, slice_of(data, size));
    pyroscope_add_header(&request, "grpc-encoding", "gzip");
    request.settings.server.max_request_body_size = 1 << 20;
    pyroscope_push_json(&request, &result);
    pyroscope_result_deinit(&result);
    pyroscope_grpc_web(&request, &result);
    pyroscope_result_deinit(&result);
    pyroscope_push(&request, &result);
    pyroscope_result_deinit(&result);
    pyroscope_request_deinit(&request);
    return 0;
}
