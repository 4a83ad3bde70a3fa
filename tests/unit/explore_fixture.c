#include "tests/unit/explore_fixture.h"

#include "core/base/memory.h"
#include "core/pipeline/join_feed.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

extern const struct component_type spanjoin_processor_type;

static void on_wake(void *context)
{
    (void)context;
}

void scene_begin(struct scene *scene, size_t budget_bytes, const char *settings)
{
    char yaml[512];
    snprintf(yaml, sizeof yaml, "processors: {spanjoin: {%s}}", settings);
    *scene = (struct scene){.wall_ns = WALL, .pace = 1};
    fixture_init(&scene->fixture, 1);
    struct process *process = &scene->fixture.process;
    process->join_feed = join_feed_new();
    const struct join_subscriber subscriber = {(size_t)64 << 20, on_wake, NULL};
    assert_true(join_feed_open(process->join_feed, &subscriber));
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
        scene->places[signal] =
            fixture_place(&scene->fixture, &spanjoin_processor_type, "spanjoin", yaml,
                          signal_name((enum signal)signal), (enum signal)signal);
    scene->store = store_new(budget_bytes, scene->wall_ns);
    scene->context = (struct api_context){.version = "test",
                                          .links = {"", "", "", "", ""},
                                          .limit_bytes = budget_bytes,
                                          .feed = process->join_feed};
}

void scene_end(struct scene *scene)
{
    struct join_feed *feed = scene->fixture.process.join_feed;
    store_free(scene->store);
    join_feed_close(feed);
    fixture_deinit(&scene->fixture);
    join_feed_free(feed);
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static void make_room(struct scene *scene)
{
    for (bool has_more = true; has_more;) {
        uint64_t began = cpu_ns();
        has_more = store_reduce(scene->store);
        uint64_t took = cpu_ns() - began;
        scene->step_ns = took > scene->step_ns ? took : scene->step_ns;
    }
}

static void take_all(struct scene *scene)
{
    struct join_feed *feed = scene->fixture.process.join_feed;
    for (struct join_offer *offer; (offer = join_feed_take(feed));) {
        store_add(scene->store, offer, scene->wall_ns, fixture_now(&scene->fixture));
        make_room(scene);
        join_offer_free(offer);
    }
}

void scene_send(struct scene *scene, struct request *request)
{
    struct probe probe;
    enum signal signal = request->traces ? SIGNAL_TRACES : SIGNAL_PROFILES;
    fixture_consume(&scene->fixture, scene->places[signal]->nodes[0], request_encode(request),
                    request->items, &probe);
    request_free(request);
    fixture_advance(&scene->fixture, 0);
    assert_int_equal(probe.settled, 1);
    assert_int_equal(probe.verdict.code, GRPC_OK);
    take_all(scene);
}

void scene_wait(struct scene *scene, uint64_t ns)
{
    fixture_advance(&scene->fixture, ns);
    scene->wall_ns += ns * scene->pace;
    take_all(scene);
}

int scene_ask_raw(struct scene *scene, const char *path, const char *query, struct text *body)
{
    struct api_request request = {
        .store = scene->store, .context = &scene->context, .now_ns = scene->wall_ns};
    api_answer(&request, slice_of_string(path), slice_of_string(query));
    *body = request.body;
    request.body = (struct text){0};
    api_deinit(&request);
    return request.status;
}

json_t *scene_ask(struct scene *scene, const char *path, const char *query)
{
    struct text body;
    json_error_t error;
    int status = scene_ask_raw(scene, path, query, &body);
    if (status != 200)
        fail_msg("%s?%s: %d %s", path, query, status, text_string(&body));
    json_t *json = json_loadb(body.data, body.size, 0, &error);
    if (!json)
        fail_msg("%s?%s: %s in %s", path, query, error.text, text_string(&body));
    text_deinit(&body);
    return json;
}

static const json_t *json_at(const json_t *json, const char *path)
{
    char key[128];
    for (const char *at = path; *at; at += strlen(key) + (at[strlen(key)] == '.')) {
        snprintf(key, sizeof key, "%.*s", (int)strcspn(at, "."), at);
        json = json_is_array(json) ? json_array_get(json, (size_t)strtoul(key, NULL, 10))
                                   : json_object_get(json, key);
        if (!json)
            fail_msg("there is no %s in %s", key, path);
    }
    return json;
}

int64_t json_number_at(const json_t *json, const char *path)
{
    return json_integer_value(json_at(json, path));
}

const char *json_text_at(const json_t *json, const char *path)
{
    const char *text = json_string_value(json_at(json, path));
    assert_non_null(text);
    return text;
}
