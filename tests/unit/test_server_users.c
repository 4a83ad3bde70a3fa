/*
 * A server that is passed on to another user: who gets which request, and when the former user may
 * go. docs/architecture.md, Reload.
 */
#include "server_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD(PATH) SLICE("POST " PATH " HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n")
#define WHOLE(PATH) SLICE("POST " PATH " HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd")

/* Users are contexts of the fixture's handler; the first one is the fixture itself. */
struct scene {
    struct server_fixture fixture;
    struct server_fixture users[2];
    struct raw_client client;
    unsigned left;
};

static void on_left(void *context)
{
    struct scene *scene = context;
    scene->left++;
}

static struct scene *scene_new(void)
{
    struct scene *scene = calloc(1, sizeof *scene);
    server_fixture_init(&scene->fixture);
    server_fixture_start(&scene->fixture);
    raw_client_open(&scene->client, &scene->fixture);
    return scene;
}

static void scene_free(struct scene *scene)
{
    raw_client_deinit(&scene->client);
    server_fixture_end(&scene->fixture);
    free(scene);
}

static void pass_to(struct scene *scene, struct server_fixture *user)
{
    server_pass(scene->fixture.server, &scene->fixture.options, &server_fixture_handler, user);
}

static void leave(struct scene *scene, const struct server_fixture *user)
{
    server_leave(scene->fixture.server, &scene->fixture.worker, user, on_left, scene);
}

/* Answers the oldest waiting request of a user. */
static void answer(struct scene *scene, struct server_fixture *user)
{
    user->server = scene->fixture.server;
    server_fixture_answer(user);
    user->server = user == &scene->fixture ? user->server : NULL;
}

static bool has(const struct raw_client *client, const char *text)
{
    return client->received.data && strstr(text_string((struct text *)&client->received), text);
}

static void forget(struct raw_client *client)
{
    text_deinit(&client->received);
}

static void new_requests_are_the_new_ones(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, WHOLE("/echo"));
    assert_int_equal(scene->fixture.requests, 1);
    pass_to(scene, &scene->users[0]);
    assert_int_equal(scene->left, 0);
    leave(scene, &scene->fixture);
    assert_int_equal(scene->left, 1); /* nothing was under way */
    forget(&scene->client);
    raw_client_send(&scene->client, WHOLE("/echo"));
    assert_true(has(&scene->client, "\r\n\r\nabcd"));
    assert_false(has(&scene->client, "close"));
    assert_int_equal(scene->fixture.requests, 1);
    assert_int_equal(scene->users[0].requests, 1);
    assert_false(raw_client_is_closed(&scene->client));
    scene_free(scene);
}

static void a_body_that_arrives_is_the_former_ones(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, HEAD("/later"));
    raw_client_send(&scene->client, SLICE("ab"));
    pass_to(scene, &scene->users[0]);
    leave(scene, &scene->fixture);
    raw_client_send(&scene->client, SLICE("cd"));
    assert_int_equal(scene->fixture.requests, 1);
    assert_int_equal(scene->users[0].requests, 0);
    server_fixture_advance(&scene->fixture, 1);
    assert_int_equal(scene->left, 0);
    answer(scene, &scene->fixture);
    assert_true(has(&scene->client, "\r\n\r\nabcd"));
    assert_int_equal(scene->left, 1);
    scene_free(scene);
}

static void an_unfinished_head_is_the_new_ones(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, SLICE("POST /echo HTTP/1.1\r\nHost: a\r\nContent-"));
    pass_to(scene, &scene->users[0]);
    leave(scene, &scene->fixture);
    assert_int_equal(scene->left, 1);
    raw_client_send(&scene->client, SLICE("Length: 4\r\n\r\nabcd"));
    assert_int_equal(scene->users[0].requests, 1);
    scene_free(scene);
}

static void each_has_its_own_after_several(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct raw_client more[2];
    raw_client_send(&scene->client, WHOLE("/later"));
    for (int i = 0; i < 2; i++) {
        pass_to(scene, &scene->users[i]);
        leave(scene, i == 0 ? &scene->fixture : &scene->users[0]);
        raw_client_open(&more[i], &scene->fixture);
        raw_client_send(&more[i], WHOLE("/later"));
        assert_int_equal(scene->users[i].waiting_count, 1);
    }
    answer(scene, &scene->users[0]);
    assert_int_equal(scene->left, 1);
    assert_true(has(&more[0], "200 OK"));
    answer(scene, &scene->users[1]); /* the current one has not left */
    assert_int_equal(scene->left, 1);
    answer(scene, &scene->fixture);
    assert_int_equal(scene->left, 2);
    for (int i = 0; i < 2; i++)
        raw_client_deinit(&more[i]);
    scene_free(scene);
}

/* The handler that holds the exchange is told, and still has to respond. */
static void a_client_that_goes_away(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, WHOLE("/later"));
    pass_to(scene, &scene->users[0]);
    leave(scene, &scene->fixture);
    raw_client_reset(&scene->client);
    assert_int_equal(scene->fixture.gone, 1);
    assert_int_equal(scene->users[0].gone, 0);
    server_fixture_advance(&scene->fixture, 1);
    assert_int_equal(scene->left, 0);
    answer(scene, &scene->fixture);
    assert_int_equal(scene->left, 1);
    scene_free(scene);
}

static void a_client_that_goes_away_before_its_body(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, HEAD("/later"));
    pass_to(scene, &scene->users[0]);
    leave(scene, &scene->fixture);
    assert_int_equal(scene->left, 0);
    raw_client_reset(&scene->client);
    assert_int_equal(scene->left, 1);
    assert_int_equal(scene->fixture.gone + scene->users[0].gone, 0);
    scene_free(scene);
}

static void the_stop_tells_no_former_user(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, WHOLE("/later"));
    pass_to(scene, &scene->users[0]);
    leave(scene, &scene->fixture);
    server_stop(scene->fixture.server, &scene->fixture.worker);
    assert_int_equal(scene->fixture.gone, 1);
    server_free(scene->fixture.server);
    scene->fixture.server = NULL;
    while (scene->fixture.waiting_count > 0)
        server_fixture_answer(&scene->fixture);
    assert_int_equal(scene->left, 0);
    text_deinit(&scene->client.received);
    worker_deinit(&scene->fixture.worker);
    metrics_free(scene->fixture.metrics);
    assert_int_equal(budget_used(&scene->fixture.budget), 0);
    source_accounts_deinit(&scene->fixture.accounts);
    free(scene);
}

/* The new user drains: it waits for requests of the former one, which share its connections. */
static void a_drain_waits_for_both(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client, WHOLE("/later"));
    pass_to(scene, &scene->users[0]);
    leave(scene, &scene->fixture);
    unsigned drained = 0;
    struct scene other = {0};
    server_drain(scene->fixture.server, &scene->fixture.worker, on_left, &other);
    drained = other.left;
    assert_int_equal(drained, 0);
    answer(scene, &scene->fixture);
    assert_true(has(&scene->client, "Connection: close"));
    assert_int_equal(scene->left, 1);
    assert_int_equal(other.left, 1);
    scene_free(scene);
}

static struct config_pair *new_pair(void)
{
    struct config_pair *pair = malloc(sizeof *pair);
    *pair = (struct config_pair){.name = strdup("x-site"), .value = strdup("one")};
    return pair;
}

static void free_pair(struct config_pair *pair)
{
    free((char *)pair->name);
    free((char *)pair->value);
    free(pair);
}

/* The memory of the former options may go. */
static void the_options_are_the_new_ones(void **state)
{
    (void)state;
    struct scene *scene = calloc(1, sizeof *scene);
    const char *origins[] = {"*"};
    struct config_pair *before = new_pair(), *after = new_pair();
    struct cors_settings *cors[2];
    server_fixture_init(&scene->fixture);
    for (int i = 0; i < 2; i++) {
        cors[i] = calloc(1, sizeof **cors);
        *cors[i] = (struct cors_settings){.enabled = true, .allowed_origins = {origins, 1}};
    }
    struct server_options *options = &scene->fixture.options;
    options->response_headers = (struct config_pairs){before, 1};
    options->cors = cors[0];
    options->max_connections = 10;
    server_fixture_start(&scene->fixture);
    raw_client_open(&scene->client, &scene->fixture);
    options->response_headers = (struct config_pairs){after, 1};
    options->cors = cors[1];
    options->max_connections = 20;
    pass_to(scene, &scene->users[0]);
    leave(scene, &scene->fixture);
    free_pair(before);
    free(cors[0]);
    raw_client_send(&scene->client, SLICE("POST /echo HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n"
                                          "Content-Length: 1\r\n\r\nx"));
    assert_true(has(&scene->client, "x-site: one\r\n"));
    assert_true(has(&scene->client, "access-control-allow-origin: *\r\n") ||
                has(&scene->client, "Access-Control-Allow-Origin: *\r\n"));
    assert_int_equal(metrics_value(scene->fixture.metrics, "profcol_server_connections_limit",
                                   "server=\"test\""),
                     20);
    scene_free(scene);
    free_pair(after);
    free(cors[1]);
}

static enum server_auth_result accept_all(const struct server_auth *auth, struct exchange *exchange,
                                          struct verdict *why)
{
    (void)auth;
    (void)exchange;
    (void)why;
    return SERVER_AUTH_ACCEPTED;
}

static void another_authenticator_needs_another_server(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct server_options options = scene->fixture.options;
    assert_true(server_can_pass(scene->fixture.server, &options));
    options.auth = (struct server_auth){.begin = accept_all, .context = scene};
    assert_false(server_can_pass(scene->fixture.server, &options));
    scene_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_requests_are_the_new_ones),
        cmocka_unit_test(a_body_that_arrives_is_the_former_ones),
        cmocka_unit_test(an_unfinished_head_is_the_new_ones),
        cmocka_unit_test(each_has_its_own_after_several),
        cmocka_unit_test(a_client_that_goes_away),
        cmocka_unit_test(a_client_that_goes_away_before_its_body),
        cmocka_unit_test(the_stop_tells_no_former_user),
        cmocka_unit_test(a_drain_waits_for_both),
        cmocka_unit_test(the_options_are_the_new_ones),
        cmocka_unit_test(another_authenticator_needs_another_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
