/* The thread of explore: queries and offers from several threads, givers-up, the end. */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "extensions/explore/explore_engine.h"
#include "tests/unit/pipeline_fixture.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ASKERS = 3, QUERIES = 200, OFFERS = 300 };

static const struct api_context context = {.version = "test", .links = {"", "", "", "", ""}};

static struct explore_engine *engine_new(struct join_feed *feed)
{
    struct error err;
    struct explore_engine *engine = explore_engine_new((size_t)1 << 20, feed, &err);
    assert_non_null(engine);
    return engine;
}

struct asker {
    pthread_t thread;
    struct explore_engine *engine;
    struct join_feed *feed;
    struct worker worker;
    unsigned answered, refused;
};

static void on_answer(struct worker *worker, struct post *post)
{
    struct explore_query *query = (struct explore_query *)post; /* its first member */
    struct asker *asker = query->owner;
    assert_ptr_equal(worker, query->worker);
    assert_true(query->request.status == 200 || query->request.status == 503);
    asker->answered++;
    api_deinit(&query->request);
    free(query->path);
    free(query->query);
    free(query);
}

static void ask(struct asker *asker, const char *path, bool gives_up)
{
    struct explore_query *query = memory_zalloc(sizeof *query);
    query->post.on_post = on_answer;
    query->worker = &asker->worker;
    query->owner = asker;
    query->path = memory_strdup(path);
    query->query = memory_strdup("service=x&type=");
    if (explore_engine_ask(asker->engine, query, &context)) {
        atomic_store(&query->is_given_up, gives_up);
        return;
    }
    asker->refused++;
    asker->answered++;
    free(query->path);
    free(query->query);
    free(query);
}

static void *run_asker(void *argument)
{
    static const char *const paths[] = {"histogram", "operations", "spans", "flamegraph",
                                        "functions"};
    struct asker *asker = argument;
    worker_init_manual(&asker->worker, 0, 1);
    for (unsigned i = 0; i < QUERIES; i++) {
        ask(asker, paths[i % 5], i % 7 == 0);
        worker_advance(&asker->worker, i + 2);
    }
    explore_engine_forget(asker->engine, asker);
    while (asker->answered < QUERIES)
        worker_advance(&asker->worker, QUERIES + 2);
    worker_deinit(&asker->worker);
    return NULL;
}

static void *run_sender(void *argument)
{
    struct asker *sender = argument;
    worker_init_manual(&sender->worker, 0, 1);
    for (int i = 0; i < OFFERS; i++) {
        struct buffer *buffer = fixture_span("a span");
        struct batch *batch = batch_new(&sender->worker, SIGNAL_TRACES, buffer, 1, NULL, NULL);
        join_feed_offer(sender->feed, batch, "spanjoin", 0, NULL);
        batch_free(batch);
    }
    worker_deinit(&sender->worker);
    return NULL;
}

/* A reload takes a second reference, and an engine of another size listens instead of the first. */
static void test_threads(void **state)
{
    (void)state;
    struct join_feed *feed = join_feed_new();
    struct explore_engine *engine = engine_new(feed), *other = engine_new(feed);
    struct asker askers[ASKERS] = {0}, sender = {.feed = feed};
    assert_true(explore_engine_listen(engine));
    assert_false(explore_engine_listen(other));
    pthread_create(&sender.thread, NULL, run_sender, &sender);
    for (int i = 0; i < ASKERS; i++) {
        askers[i].engine = explore_engine_ref(engine);
        pthread_create(&askers[i].thread, NULL, run_asker, &askers[i]);
    }
    explore_engine_stop_listening(engine);
    assert_true(explore_engine_listen(other));
    for (int i = 0; i < ASKERS; i++) {
        pthread_join(askers[i].thread, NULL);
        assert_int_equal(askers[i].answered, QUERIES);
        explore_engine_unref(askers[i].engine);
    }
    pthread_join(sender.thread, NULL);
    explore_engine_unref(engine);
    explore_engine_unref(other);
    join_feed_free(feed);
}

/* A query that has waited for its deadline, or for which nobody waits, is answered so. */
static void check_stop(struct api_request *request, const char *code)
{
    assert_true(api_must_stop(request));
    assert_int_equal(request->status, 503);
    assert_non_null(strstr(text_string(&request->body), code));
    text_deinit(&request->body);
}

static void test_queries_that_stop(void **state)
{
    (void)state;
    atomic_bool is_given_up;
    atomic_init(&is_given_up, false);
    struct api_request late = {.context = &context, .deadline_ns = clock_monotonic_ns() - 1};
    struct api_request given_up = {.context = &context, .is_given_up = &is_given_up};
    check_stop(&late, "\"deadline\"");
    assert_false(api_must_stop(&given_up));
    atomic_store(&is_given_up, true);
    check_stop(&given_up, "\"given_up\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_queries_that_stop),
    };
    return cmocka_run_group_tests_name("engine of explore", tests, NULL, NULL);
}
