#include "extensions/basicauth/htpasswd.h"

#include "extensions/basicauth/password_hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct slice take_line(struct slice *text)
{
    assert(text->size > 0);
    const uint8_t *end = memchr(text->data, '\n', text->size);
    struct slice line = slice_of(text->data, end ? (size_t)(end - text->data) : text->size);
    size_t taken = line.size + (end ? 1 : 0);
    *text = slice_of(text->data + taken, text->size - taken);
    return slice_trim(line, SLICE_SPACES);
}

static const char *problem_of(struct slice line, const uint8_t *colon)
{
    if (!colon)
        return "it has no colon";
    if (colon == line.data)
        return "it has no user name";
    if (memchr(line.data, '\0', line.size))
        return "it contains a NUL";
    return colon + 1 == line.data + line.size ? "it has no password" : NULL;
}

static bool add_line(struct htpasswd *table, struct slice line, uint32_t number,
                     struct arena *arena, const struct htpasswd_problems *problems,
                     struct error *err)
{
    const uint8_t *colon = memchr(line.data, ':', line.size);
    const char *problem = problem_of(line, colon);
    if (problem) {
        if (problems)
            problems->on_problem(problems->context, number, problem);
        return true;
    }
    size_t name_size = (size_t)(colon - line.data);
    assert(name_size > 0 && name_size + 1 < line.size);
    struct htpasswd_user user = {
        .name = arena_string(arena, slice_of(line.data, name_size)),
        .hash = arena_string(arena, slice_of(colon + 1, line.size - name_size - 1)),
        .order = table->count,
    };
    if (!password_hash_check(user.hash, err))
        return error_prefix(err, "line %u", number);
    table->users =
        arena_grow(arena, table->users, table->count, &table->capacity, sizeof *table->users);
    table->users[table->count++] = user;
    return true;
}

bool htpasswd_add(struct htpasswd *table, struct slice text, struct arena *arena,
                  const struct htpasswd_problems *problems, struct error *err)
{
    for (uint32_t number = 1; text.size > 0; number++) {
        struct slice line = take_line(&text);
        if (line.size > 0 && line.data[0] != '#' &&
            !add_line(table, line, number, arena, problems, err))
            return false;
    }
    return true;
}

static int compare(const void *one, const void *other)
{
    const struct htpasswd_user *a = one, *b = other;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (a->order > b->order) - (a->order < b->order);
}

void htpasswd_finish(struct htpasswd *table)
{
    uint32_t kept = 0;
    if (table->count > 1)
        qsort(table->users, table->count, sizeof *table->users, compare);
    for (uint32_t i = 0; i < table->count; i++) {
        bool is_replaced =
            i + 1 < table->count && strcmp(table->users[i].name, table->users[i + 1].name) == 0;
        if (!is_replaced)
            table->users[kept++] = table->users[i];
    }
    assert((kept > 0) == (table->count > 0)); /* the last of each name stays */
    table->count = kept;
}

static int compare_name(struct slice name, const char *other)
{
    size_t size = strlen(other);
    int order = memcmp(name.data, other, name.size < size ? name.size : size);
    return order != 0 ? order : (name.size > size) - (name.size < size);
}

long htpasswd_find(const struct htpasswd *table, struct slice name)
{
    size_t low = 0, high = name.size > 0 ? table->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_name(name, table->users[middle].name);
        if (order == 0)
            return (long)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}
