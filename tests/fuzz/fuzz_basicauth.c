/* What clients and files give the extension basicauth. The first line of the input is a header or a
 * query, the rest the text of a htpasswd file. */
#include "core/base/memory.h"
#include "core/pipeline/auth.h"
#include "extensions/basicauth/basic_credentials.h"
#include "extensions/basicauth/htpasswd.h"
#include "extensions/basicauth/password_hash.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_problem(void *context, uint32_t line, const char *problem)
{
    assert(line > 0 && problem[0]);
    ++*(size_t *)context;
}

/* Those that take milliseconds are left out. */
static void try_password(const struct htpasswd *table, const struct basic_credentials *credentials)
{
    long user = htpasswd_find(table, credentials->username);
    assert(user < (long)table->count);
    if (user < 0)
        return;
    const char *hash = table->users[user].hash;
    assert(slice_is(credentials->username, table->users[user].name));
    struct slice password = password_hash_significant(hash, credentials->password);
    assert(password.size <= credentials->password.size);
    if (!password_hash_is_slow(hash))
        password_hash_matches(hash, password);
}

static void read_header(const struct htpasswd *table, struct slice header)
{
    uint8_t room[BASIC_ROOM_BYTES];
    char param[AUTH_PARAM_MAX];
    struct basic_credentials credentials;
    if (!basic_credentials_read(header, room, &credentials)) {
        assert(credentials.username.size + credentials.password.size < sizeof room);
        try_password(table, &credentials);
    }
    struct slice value = auth_query_get(header, "token", param);
    assert(value.size < AUTH_PARAM_MAX && value.size <= header.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t header_size = end ? (size_t)(end - data) : size, problem_count = 0;
    char *header = memory_strndup(data, header_size); /* its own block, for the sanitizer */
    struct arena arena = {0};
    struct htpasswd table = {0};
    struct error err;
    const struct htpasswd_problems problems = {on_problem, &problem_count};
    if (end)
        htpasswd_add(&table, slice_of(end + 1, size - header_size - 1), &arena, &problems, &err);
    htpasswd_finish(&table);
    read_header(&table, slice_of(header, header_size));
    arena_deinit(&arena);
    free(header);
    return 0;
}
