/*
 * explore_fixture: a spanjoin, its feed, and a store that gets what it offers.
 *
 *     struct scene scene;
 *     scene_begin(&scene, 64 << 20, "");
 *     scene_send(&scene, &request);           // frees the request
 *     scene_wait(&scene, 5 * SECOND);
 *     json_t *answer = scene_ask(&scene, "services", "");
 *
 * Owner: the test.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_UNIT_EXPLORE_FIXTURE_H
#define PROFCOL_TESTS_UNIT_EXPLORE_FIXTURE_H

#include "extensions/explore/api.h"
#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/spanjoin_requests.h"

#include <jansson.h>

struct scene {
    struct fixture fixture;
    struct fixture_place *places[SIGNAL_OPENED_COUNT];
    struct store *store;
    struct api_context context;
    uint64_t wall_ns; /* moves with scene_wait, times `pace` */
    unsigned pace;
    uint64_t step_ns; /* processor time of the longest step that made room in the store */
};

/* settings: of spanjoin. */
void scene_begin(struct scene *scene, size_t budget_bytes, const char *settings);
void scene_end(struct scene *scene);
/* Sends a request to the join, and what has left it to the store. */
void scene_send(struct scene *scene, struct request *request);
/* Time passes; what waited leaves. */
void scene_wait(struct scene *scene, uint64_t ns);
/* Answers a query, which must succeed with JSON; free it with json_decref. */
json_t *scene_ask(struct scene *scene, const char *path, const char *query);
/* Answers a query; free the body with text_deinit. Returns the status. */
int scene_ask_raw(struct scene *scene, const char *path, const char *query, struct text *body);
/* Returns a number, or text, at a path of keys and places "services.0.costs.cpu". Fails the test if
 * there is none. */
int64_t json_number_at(const json_t *json, const char *path);
const char *json_text_at(const json_t *json, const char *path);

#endif
