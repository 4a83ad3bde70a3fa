/*
 * otlp_sender: sends batches to an OTLP backend, for the exporters otlp_grpc and otlp_http.
 *
 * A target has the backend's address and options, once per component and signal. A sender is the
 * part on one worker: queue and retries (delivery.h), encoding, compression, one request per
 * attempt (net/client.h) and the meaning of the answer (otlp_answer.h). Uncompressed protobuf is
 * written to the socket without being copied.
 *
 * Owner: the component owns targets; the node owns its sender.
 *
 * Thread: targets are read-only after init; a sender stays on its worker.
 */
#ifndef PROFCOL_CORE_PIPELINE_OTLP_SENDER_H
#define PROFCOL_CORE_PIPELINE_OTLP_SENDER_H

#include "core/net/client.h"
#include "core/net/compression.h"
#include "core/pipeline/delivery.h"
#include "core/pipeline/endpoint.h"

struct otlp_target {
    enum signal signal;
    bool grpc;
    bool json; /* HTTP only */
    const char *path;
    const char *url;              /* for messages */
    const struct endpoint *place; /* HTTP: redirects to it are followed once; NULL: none are */
    bool keeps_cookies;           /* HTTP, with `place` */
    struct http_header *headers;
    size_t header_count;
    struct component *auth; /* the extension that changes the headers; NULL: none */
    enum compression compression;
    int level;
    int64_t timeout_ns;
    const struct sending_queue_settings *queue;
    const struct retry_settings *retry;
    struct delivery_shared shared;
};

/* Sets the headers of every request: the user's, which must be checked, and those that follow from
 * the other members of the target, which must be set before. arena: the component's. */
void otlp_target_set_headers(struct otlp_target *target, struct arena *arena,
                             const char *user_agent, const struct config_pairs *user);
/* Checks that the name and the value are allowed in a request, and that the exporter does not set
 * the header itself. Returns false, with err set, if not. */
bool otlp_header_check(const struct config_pair *pair, bool grpc, struct error *err);
/* Checks that names and values are allowed in a request, and that the exporter does not set them
 * itself; reports errors at `key`. */
void otlp_headers_check(const struct config_pairs *headers, bool grpc, struct config_check *check,
                        const char *key);

/* Determines the proxy for an endpoint: `url`, or without one (NULL, "") that of the environment;
 * returns false after reporting an error at `key`. is_https: see proxy_from_environment. */
bool otlp_proxy_check(const struct endpoint *endpoint, bool is_https, const char *url,
                      struct config_check *check, const char *key, struct proxy *out);

/* Returns the options of the component's client for this endpoint. At the level detailed, its
 * requests are measured. */
struct client_options otlp_client_options(const struct endpoint *endpoint,
                                          const struct component *component);

/* Texts of read_buffer_size and write_buffer_size, and what they mean to the client. */
#define OTLP_READ_BUFFER_HELP                                                                      \
    "Bytes that are read from a connection at once, 4096 to 1048576; 0: 65536."
#define OTLP_WRITE_BUFFER_HELP                                                                     \
    "HTTP/2: bytes of frames that are prepared while a connection is busy, 4096 to 1048576; 0: "   \
    "262144."
void otlp_set_buffers(struct client_options *options, uint64_t read_bytes, uint64_t write_bytes);

/* Appends the Collector's labels for the metrics of an exporter:
 * server_address="x",server_port="1". */
void otlp_place_labels(const struct endpoint *endpoint, struct text *labels);

/* The values of `compression` in YAML: names at the index of their enum compression, and "" for
 * none. */
extern const char *const otlp_compression_names[];
/* Returns the compression for an index of otlp_compression_names. */
enum compression otlp_compression(int setting);

struct otlp_sender {
    struct delivery delivery;
    const struct otlp_target *target;
    struct client *client;
    struct cookie_jar *cookies; /* NULL: none are kept */
};

/* Starts a sender. client: of the node's worker; it must live until otlp_sender_stop. */
void otlp_sender_start(struct otlp_sender *sender, struct node *node, struct otlp_target *target,
                       struct client *client);
/* Implement the exporter's consume, node_drain and node_stop. */
void otlp_sender_consume(struct otlp_sender *sender, struct batch *batch);
void otlp_sender_drain(struct otlp_sender *sender);
void otlp_sender_stop(struct otlp_sender *sender);

#endif
