/*
 * ec2_detector: asks the instance metadata service of EC2 (version 2, or 1 where the service has no
 * tokens) for the identity document, the host name and the tags.
 *
 * The environment variables of Amazon's SDKs apply: AWS_EC2_METADATA_DISABLED,
 * AWS_EC2_METADATA_SERVICE_ENDPOINT, AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE.
 *
 * Owner: the state belongs to the run.
 *
 * Thread: the worker.
 */
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/utf8.h"
#include "processors/resource_detection/detector.h"
#include "processors/resource_detection/key_patterns.h"
#include "processors/resource_detection/metadata_answers.h"
#include "processors/resource_detection/metadata_client.h"

#include <assert.h>
#include <stdio.h>
#include <strings.h>

enum { TAGS_MAX = 64 }; /* an instance has 50 at most */

enum ec2_step { EC2_TOKEN, EC2_DOCUMENT, EC2_HOSTNAME, EC2_TAG_KEYS, EC2_TAG };

struct ec2_state {
    struct detector_run *run;
    struct metadata_client client;
    struct key_patterns *patterns;
    enum ec2_step step;
    struct arena arena;
    struct slice tags[TAGS_MAX]; /* keys that match */
    size_t tag_count, tag_at;
};

static void ask(struct ec2_state *state, enum ec2_step step, const char *path)
{
    state->step = step;
    metadata_client_send(&state->client, "GET", path);
}

static bool ask_document(struct ec2_state *state)
{
    ask(state, EC2_DOCUMENT, "/latest/dynamic/instance-identity/document");
    return true;
}

/* ---- tags ---- */

/* Returns false if there is no further tag. */
static bool ask_next_tag(struct ec2_state *state)
{
    struct text path = {0};
    assert(state->tag_at <= state->tag_count);
    if (state->tag_at == state->tag_count)
        return false;
    text_append(&path, "/latest/meta-data/tags/instance/");
    text_append_percent(&path, state->tags[state->tag_at]);
    ask(state, EC2_TAG, text_string(&path));
    text_deinit(&path);
    return true;
}

static bool take_tag_keys(struct ec2_state *state, struct slice body)
{
    struct slice rest = body, key;
    assert(state->step == EC2_TAG_KEYS && state->tag_count == 0);
    while (state->tag_count < TAGS_MAX && metadata_next_line(&rest, &key))
        if (key.size < DETECTED_KEY_MAX - sizeof "ec2.tag." && utf8_is_valid(key) &&
            key_patterns_match(state->patterns, key))
            state->tags[state->tag_count++] = arena_copy(&state->arena, key);
    return ask_next_tag(state);
}

static bool take_tag(struct ec2_state *state, struct slice value)
{
    char key[DETECTED_KEY_MAX];
    assert(state->tag_at < state->tag_count);
    struct slice tag = state->tags[state->tag_at++];
    int size = snprintf(key, sizeof key, "ec2.tag.%.*s", SLICE_ARG(tag));
    assert(size > 0 && (size_t)size < sizeof key); /* take_tag_keys */
    detected_add_text(state->run->found, slice_of(key, (size_t)size), value);
    return ask_next_tag(state);
}

/* ---- answers: each returns whether it has asked for something more ---- */

static bool is_token(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] <= ' ' || text.data[i] >= 0x7f)
            return false;
    return text.size > 0 && text.size <= 1024;
}

static bool take_token(struct ec2_state *state, struct slice body)
{
    assert(state->step == EC2_TOKEN);
    struct slice token = slice_trim(body, SLICE_SPACES);
    state->client.header_count = 0;
    if (is_token(token)) {
        state->client.headers[0] = (struct http_header){SLICE("x-aws-ec2-metadata-token"),
                                                        arena_copy(&state->arena, token)};
        state->client.header_count = 1;
    }
    return ask_document(state);
}

static bool take_hostname(struct ec2_state *state, struct slice body)
{
    detector_set_given(state->run, "host.name", slice_trim(body, SLICE_SPACES));
    if (state->run->settings->ec2.tags.count == 0)
        return false;
    ask(state, EC2_TAG_KEYS, "/latest/meta-data/tags/instance/");
    return true;
}

static bool take_document(struct ec2_state *state, struct slice body, struct error *err)
{
    struct detector_run *run = state->run;
    run->has_answered = true;
    run->found->has_schema = true;
    if (!ec2_read_document(body, run, err))
        return false;
    ask(state, EC2_HOSTNAME, "/latest/meta-data/hostname");
    return true;
}

static bool take_later(struct ec2_state *state, const struct metadata_answer *answer)
{
    static const char *const what[] = {
        [EC2_HOSTNAME] = "host name", [EC2_TAG_KEYS] = "tags", [EC2_TAG] = "tag"};
    bool is_fine = answer->problem[0] == '\0';
    assert(state->step >= EC2_HOSTNAME);
    if (!is_fine)
        log_warn(log_component(state->run->label), "failed to get a part of the metadata",
                 LOG_TEXT("detector", "ec2"), LOG_TEXT("what", what[state->step]),
                 LOG_TEXT("error", answer->problem));
    struct slice body = is_fine ? answer->body : (struct slice){0};
    if (state->step == EC2_HOSTNAME)
        return take_hostname(state, body);
    if (state->step == EC2_TAG_KEYS)
        return take_tag_keys(state, body);
    if (is_fine)
        return take_tag(state, body);
    state->tag_at++;
    return ask_next_tag(state);
}

/* A service without tokens refuses to make one; then it is asked without. */
static bool has_no_tokens(int status)
{
    return status == 403 || status == 404 || status == 405;
}

static void on_answer(struct metadata_client *client, const struct metadata_answer *answer)
{
    struct ec2_state *state = container_of(client, struct ec2_state, client);
    struct detector_run *run = state->run;
    struct error err = {0};
    assert(run->state == state && run->outcome == DETECTOR_PENDING);
    if (state->step == EC2_TOKEN && (!answer->problem[0] || has_no_tokens(answer->status))) {
        take_token(state, answer->problem[0] ? (struct slice){0} : answer->body);
        return;
    }
    if (state->step <= EC2_DOCUMENT && answer->status != 200) {
        detector_is_absent(run, answer->problem);
        return;
    }
    if (state->step <= EC2_DOCUMENT) {
        bool fine = !answer->problem[0] || error_set(&err, "%s", answer->problem);
        if (!fine || !take_document(state, answer->body, &err))
            detector_failed(run, &err);
        return;
    }
    if (!take_later(state, answer))
        detector_succeeded(run);
}

/* ---- start and stop ---- */

static const char *service_address(void)
{
    const char *mode = metadata_environment("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv4");
    return metadata_environment("AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                strcasecmp(mode, "ipv6") == 0 ? "http://[fd00:ec2::254]"
                                                              : "http://169.254.169.254");
}

static struct ec2_state *new_state(struct detector_run *run)
{
    const struct ec2_settings *settings = &run->settings->ec2;
    struct ec2_state *state = memory_zalloc(sizeof *state);
    struct error err;
    state->run = run;
    state->patterns = key_patterns_new(&settings->tags, &err);
    assert(state->patterns); /* resource_detection_check has compiled them */
    state->client = (struct metadata_client){
        .worker = run->worker,
        .label = run->label,
        .headers = {{SLICE("x-aws-ec2-metadata-token-ttl-seconds"), SLICE("21600")}},
        .header_count = 1,
        .max_attempts = (unsigned)settings->max_attempts,
        .max_backoff_ns = (uint64_t)settings->max_backoff,
        .on_answer = on_answer,
    };
    return state;
}

static void ec2_start(struct detector_run *run)
{
    struct error err;
    struct ec2_state *state = new_state(run);
    run->state = state;
    run->absence_is_failure = run->settings->ec2.fail_on_missing_metadata;
    if (strcasecmp(metadata_environment("AWS_EC2_METADATA_DISABLED", ""), "true") == 0)
        detector_is_absent(run, "AWS_EC2_METADATA_DISABLED is set");
    else if (metadata_client_init(&state->client, service_address(), &err))
        metadata_client_send(&state->client, "PUT", "/latest/api/token");
    else
        detector_gives_up(run, &err);
}

static void ec2_stop(struct detector_run *run)
{
    struct ec2_state *state = run->state;
    if (!state)
        return;
    metadata_client_deinit(&state->client);
    key_patterns_free(state->patterns);
    arena_deinit(&state->arena);
    free(state);
}

const struct detector_type ec2_detector = {
    .name = "ec2",
    .attributes = ec2_attribute_fields,
    .switches_offset = offsetof(struct resource_detection_settings, ec2.resource_attributes),
    .may_be_absent = true,
    .start = ec2_start,
    .stop = ec2_stop,
};
