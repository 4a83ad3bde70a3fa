/*
 * server_fixture: a server without sockets on a worker that the test drives, and clients that write
 * and read bytes.
 *
 * The path /echo answers with the body at once, /later when server_fixture_answer is called,
 * /refuse with 401 at the head, others with 404. gRPC: /s/Echo and /s/Later likewise, others
 * UNIMPLEMENTED.
 *
 * Owner: the test.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_UNIT_SERVER_FIXTURE_H
#define PROFCOL_TESTS_UNIT_SERVER_FIXTURE_H

#include "core/base/source_accounts.h"
#include "core/base/text.h"
#include "core/net/server_private.h"

struct server_fixture {
    struct worker worker;
    struct budget budget;
    struct source_accounts
        accounts; /* children of `budget`; test clients have no address, and so share one */
    struct metrics *metrics;
    struct server *server;
    struct server_options options; /* may be changed before server_fixture_start */
    struct exchange *waiting[512]; /* requests of /later, in order of arrival */
    size_t waiting_count;
    size_t requests;
    size_t gone;
    bool drained;
};

extern const struct server_handler server_fixture_handler; /* its context is the fixture */

void server_fixture_init(struct server_fixture *fixture);
void server_fixture_start(struct server_fixture *fixture);
/* Stops and frees the server, and checks that nothing is left charged. */
void server_fixture_end(struct server_fixture *fixture);
void server_fixture_advance(struct server_fixture *fixture, uint64_t seconds);
/* Answers the oldest request of /later. */
void server_fixture_answer(struct server_fixture *fixture);
double server_fixture_closed(struct server_fixture *fixture, const char *reason);

struct raw_client {
    struct server_fixture *fixture;
    struct connection *connection; /* NULL once the server closed it */
    struct text received;
    size_t accepts; /* bytes that the socket accepts until it is full */
    bool is_away;   /* writing to it fails with a reset */
};

void raw_client_open(struct raw_client *client, struct server_fixture *fixture);
void raw_client_send(struct raw_client *client, struct slice data);
void raw_client_half_close(struct raw_client *client);
void raw_client_reset(struct raw_client *client);
void raw_client_deinit(struct raw_client *client);
bool raw_client_is_closed(const struct raw_client *client);

#endif
