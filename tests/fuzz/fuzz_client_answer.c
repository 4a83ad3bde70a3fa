/*
 * Any bytes as the answer of a backend: the client must call back exactly once, within its limits,
 * and its answer must be readable as an OTLP answer. The first byte selects HTTP/1.1 or HTTP/2, and
 * a proxy in front; the second the number of pieces into which the rest is split.
 */
#include "core/base/hash.h"
#include "core/net/client_private.h"
#include "core/pipeline/otlp_answer.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned answers;

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void on_done(struct client_request *request, const struct client_answer *answer)
{
    struct otlp_answer meaning;
    (void)request;
    answers++;
    require(answer->body.size <= CLIENT_BODY_MAX);
    require(answer->failure == CLIENT_OK ? answer->status >= 0 : answer->failure_text != NULL);
    otlp_answer_http(answer, SIGNAL_PROFILES, "http://backend/", UINT64_C(1600000000000000000),
                     &meaning);
    otlp_answer_grpc(answer, &meaning);
}

static void run(struct worker *worker)
{
    for (int i = 0; i < 4; i++)
        uv_run(&worker->loop, UV_RUN_NOWAIT);
}

static void answer_with(struct worker *worker, struct client *client, struct slice bytes,
                        unsigned pieces)
{
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    client_connection_adopt(client, ends[0]);
    run(worker);
    size_t piece = bytes.size / (pieces + 1) + 1;
    while (bytes.size > 0) {
        size_t part = bytes.size < piece ? bytes.size : piece;
        if (send(ends[1], bytes.data, part, MSG_NOSIGNAL) != (ssize_t)part)
            break;
        bytes = slice_of(bytes.data + part, bytes.size - part);
        run(worker);
    }
    close(ends[1]);
    run(worker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct worker worker;
    static bool ready;
    struct error err;
    if (!ready) {
        hash_init_with(1);
        require(worker_init(&worker, 0, &err));
        ready = true;
    }
    if (size < 2)
        return 0;
    struct client_options options = {.protocol = data[0] & 1 ? CLIENT_H2 : CLIENT_HTTP1,
                                     .host = "/nowhere/at/all",
                                     .unix_socket = true};
    if (data[0] & 2) {
        /* With a wrong answer, the client tries the proxy itself, where nobody listens. */
        options.host = "backend";
        options.port = 1;
        options.unix_socket = false;
        options.proxy = (struct proxy){.host = "127.0.0.1", .port = 1, .authorization = "Basic eA"};
    }
    struct client *client = client_new(&worker, &options, &err);
    struct slice body = SLICE("request");
    struct client_request request = {.method = "POST",
                                     .path = "/v1/traces",
                                     .body = &body,
                                     .body_count = 1,
                                     .body_size = body.size,
                                     .on_done = on_done};
    answers = 0;
    client_send(client, &request);
    answer_with(&worker, client, slice_of(data + 2, size - 2), data[1] & 15);
    for (int i = 0; i < 1000 && answers == 0; i++)
        uv_run(&worker.loop, UV_RUN_ONCE);
    require(answers == 1);
    client_free(client);
    run(&worker);
    return 0;
}
