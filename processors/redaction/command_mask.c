#include "processors/redaction/command_mask.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

/* Which arguments of a command are values. Arguments are counted from 0. */
enum rule {
    RULE_NONE,    /* keys and numbers only */
    RULE_ALL,     /* all of them */
    RULE_NTH,     /* the one at `from` */
    RULE_REST,    /* all from `from` on */
    RULE_EACH,    /* the one at `from`, and each `step` later */
    RULE_SCORES,  /* of ZADD: after options, every second one */
    RULE_CONFIG,  /* of CONFIG SET: the value */
    RULE_BITFIELD /* of BITFIELD: what SET and INCRBY write */
};

struct command {
    const char *name;
    enum rule rule;
    uint8_t from, step;
};

/* In the order of their names. */
static const struct command commands[] = {
    {"APPEND", RULE_NTH, 1, 0},
    {"AUTH", RULE_REST, 0, 0},
    {"BITCOUNT", RULE_NONE, 0, 0},
    {"BITFIELD", RULE_BITFIELD, 0, 0},
    {"BLPOP", RULE_NONE, 0, 0},
    {"BRPOP", RULE_NONE, 0, 0},
    {"CONFIG", RULE_CONFIG, 0, 0},
    {"DBSIZE", RULE_NONE, 0, 0},
    {"DECR", RULE_NONE, 0, 0},
    {"DECRBY", RULE_NONE, 0, 0},
    {"DEL", RULE_NONE, 0, 0},
    {"DISCARD", RULE_NONE, 0, 0},
    {"EXEC", RULE_NONE, 0, 0},
    {"EXISTS", RULE_NONE, 0, 0},
    {"EXPIRE", RULE_NONE, 0, 0},
    {"EXPIREAT", RULE_NONE, 0, 0},
    {"FLUSHALL", RULE_NONE, 0, 0},
    {"FLUSHDB", RULE_NONE, 0, 0},
    {"GEOADD", RULE_EACH, 3, 3},
    {"GEODIST", RULE_REST, 1, 0},
    {"GEOHASH", RULE_REST, 1, 0},
    {"GEOPOS", RULE_REST, 1, 0},
    {"GEORADIUSBYMEMBER", RULE_NTH, 1, 0},
    {"GET", RULE_NONE, 0, 0},
    {"GETBIT", RULE_NONE, 0, 0},
    {"GETDEL", RULE_NONE, 0, 0},
    {"GETEX", RULE_NONE, 0, 0},
    {"GETRANGE", RULE_NONE, 0, 0},
    {"GETSET", RULE_NTH, 1, 0},
    {"HDEL", RULE_NONE, 0, 0},
    {"HEXISTS", RULE_NONE, 0, 0},
    {"HGET", RULE_NONE, 0, 0},
    {"HGETALL", RULE_NONE, 0, 0},
    {"HINCRBY", RULE_NONE, 0, 0},
    {"HKEYS", RULE_NONE, 0, 0},
    {"HLEN", RULE_NONE, 0, 0},
    {"HMGET", RULE_NONE, 0, 0},
    {"HMSET", RULE_EACH, 2, 2},
    {"HSCAN", RULE_NONE, 0, 0},
    {"HSET", RULE_EACH, 2, 2},
    {"HSETNX", RULE_NTH, 2, 0},
    {"HSTRLEN", RULE_NONE, 0, 0},
    {"HVALS", RULE_NONE, 0, 0},
    {"INCR", RULE_NONE, 0, 0},
    {"INCRBY", RULE_NONE, 0, 0},
    {"INCRBYFLOAT", RULE_NONE, 0, 0},
    {"INFO", RULE_NONE, 0, 0},
    {"KEYS", RULE_NONE, 0, 0},
    {"LINDEX", RULE_NONE, 0, 0},
    {"LINSERT", RULE_REST, 2, 0},
    {"LLEN", RULE_NONE, 0, 0},
    {"LPOP", RULE_NONE, 0, 0},
    {"LPUSH", RULE_REST, 1, 0},
    {"LPUSHX", RULE_REST, 1, 0},
    {"LRANGE", RULE_NONE, 0, 0},
    {"LREM", RULE_NTH, 2, 0},
    {"LSET", RULE_NTH, 2, 0},
    {"LTRIM", RULE_NONE, 0, 0},
    {"MGET", RULE_NONE, 0, 0},
    {"MSET", RULE_EACH, 1, 2},
    {"MSETNX", RULE_EACH, 1, 2},
    {"MULTI", RULE_NONE, 0, 0},
    {"PERSIST", RULE_NONE, 0, 0},
    {"PEXPIRE", RULE_NONE, 0, 0},
    {"PING", RULE_ALL, 0, 0},
    {"PSETEX", RULE_NTH, 2, 0},
    {"PTTL", RULE_NONE, 0, 0},
    {"RENAME", RULE_NONE, 0, 0},
    {"RESTORE", RULE_NTH, 2, 0},
    {"RPOP", RULE_NONE, 0, 0},
    {"RPOPLPUSH", RULE_NONE, 0, 0},
    {"RPUSH", RULE_REST, 1, 0},
    {"RPUSHX", RULE_REST, 1, 0},
    {"SADD", RULE_REST, 1, 0},
    {"SCAN", RULE_NONE, 0, 0},
    {"SCARD", RULE_NONE, 0, 0},
    {"SDIFF", RULE_NONE, 0, 0},
    {"SELECT", RULE_NONE, 0, 0},
    {"SET", RULE_NTH, 1, 0},
    {"SETBIT", RULE_NTH, 2, 0},
    {"SETEX", RULE_NTH, 2, 0},
    {"SETNX", RULE_NTH, 1, 0},
    {"SETRANGE", RULE_NTH, 2, 0},
    {"SINTER", RULE_NONE, 0, 0},
    {"SISMEMBER", RULE_NTH, 1, 0},
    {"SMEMBERS", RULE_NONE, 0, 0},
    {"SMOVE", RULE_NTH, 2, 0},
    {"SPOP", RULE_NONE, 0, 0},
    {"SREM", RULE_REST, 1, 0},
    {"SSCAN", RULE_NONE, 0, 0},
    {"STRLEN", RULE_NONE, 0, 0},
    {"SUNION", RULE_NONE, 0, 0},
    {"TTL", RULE_NONE, 0, 0},
    {"TYPE", RULE_NONE, 0, 0},
    {"UNLINK", RULE_NONE, 0, 0},
    {"UNWATCH", RULE_NONE, 0, 0},
    {"WATCH", RULE_NONE, 0, 0},
    {"XACK", RULE_NONE, 0, 0},
    {"XLEN", RULE_NONE, 0, 0},
    {"XRANGE", RULE_NONE, 0, 0},
    {"XREAD", RULE_NONE, 0, 0},
    {"ZADD", RULE_SCORES, 0, 0},
    {"ZCARD", RULE_NONE, 0, 0},
    {"ZCOUNT", RULE_NONE, 0, 0},
    {"ZINCRBY", RULE_NTH, 2, 0},
    {"ZRANGE", RULE_NONE, 0, 0},
    {"ZRANGEBYSCORE", RULE_NONE, 0, 0},
    {"ZRANK", RULE_NTH, 1, 0},
    {"ZREM", RULE_REST, 1, 0},
    {"ZREVRANGE", RULE_NONE, 0, 0},
    {"ZREVRANK", RULE_NTH, 1, 0},
    {"ZSCORE", RULE_NTH, 1, 0},
};

static int compare_names(const void *key, const void *element)
{
    return strcasecmp(key, ((const struct command *)element)->name);
}

static const struct command *find_command(struct slice name)
{
    static const struct command unknown = {"", RULE_ALL, 0, 0};
    char copy[32];
    if (name.size == 0 || name.size >= sizeof copy || memchr(name.data, '\0', name.size))
        return &unknown;
    memcpy(copy, name.data, name.size);
    copy[name.size] = '\0';
    const struct command *found = bsearch(copy, commands, sizeof commands / sizeof *commands,
                                          sizeof *commands, compare_names);
    return found ? found : &unknown;
}

/* ---- arguments ---- */

/* What was seen of the arguments of a command. */
struct arguments {
    const struct command *command;
    uint64_t count;
    uint64_t options; /* of ZADD, after the key */
    bool is_set;      /* CONFIG SET */
    uint64_t written; /* BITFIELD: arguments since SET or INCRBY, 0: none */
};

static bool is_option(struct slice text)
{
    static const char *const options[] = {"NX", "XX", "GT", "LT", "CH", "INCR"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (slice_is_ignoring_case(text, options[i]))
            return true;
    return false;
}

/* ZADD key [options] score member [score member ...] */
static bool is_member(struct arguments *arguments, struct slice text)
{
    uint64_t index = arguments->count - arguments->options;
    if (index == 1 && is_option(text)) {
        arguments->options++;
        return false;
    }
    return index > 1 && index % 2 == 0;
}

/* BITFIELD key [GET type offset] [SET type offset value] ... */
static bool is_bits(struct arguments *arguments, struct slice text)
{
    bool begins = slice_is_ignoring_case(text, "SET") || slice_is_ignoring_case(text, "INCRBY");
    bool is_value = arguments->written == 3;
    if (begins || is_value || arguments->written > 0)
        arguments->written = begins ? 1 : is_value ? 0 : arguments->written + 1;
    return is_value;
}

/* Whether the next argument is a value. */
static bool is_value(struct arguments *arguments, struct slice text)
{
    const struct command *command = arguments->command;
    switch (command->rule) {
    case RULE_NONE:
        return false;
    case RULE_ALL:
        return true;
    case RULE_NTH:
        return arguments->count == command->from;
    case RULE_REST:
        return arguments->count >= command->from;
    case RULE_EACH:
        return arguments->count >= command->from &&
               (arguments->count - command->from) % command->step == 0;
    case RULE_SCORES:
        return is_member(arguments, text);
    case RULE_CONFIG:
        arguments->is_set |= arguments->count == 0 && slice_is_ignoring_case(text, "SET");
        return arguments->is_set && arguments->count >= 2;
    case RULE_BITFIELD:
        return is_bits(arguments, text);
    }
    return true;
}

/* After a value of RULE_ALL or RULE_REST, no other argument is shown. */
static bool ends_shown(const struct command *command)
{
    return command->rule == RULE_ALL || command->rule == RULE_REST;
}

/* ---- texts ---- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct slice *rest)
{
    size_t at = 0;
    while (at < rest->size && is_blank(rest->data[at]))
        at++;
    *rest = slice_of(rest->data + at, rest->size - at);
}

static struct slice take(struct slice *rest, size_t size)
{
    struct slice taken = slice_of(rest->data, size);
    *rest = slice_of(rest->data + size, rest->size - size);
    return taken;
}

static struct slice take_name(struct slice *rest)
{
    size_t at = 0;
    while (at < rest->size && !is_blank(rest->data[at]) && rest->data[at] != '\n')
        at++;
    return take(rest, at);
}

/* Quotes hide blanks and line ends; a backslash hides a quote. */
static struct slice take_argument(struct slice *rest)
{
    bool is_quoted = false;
    size_t at = 0;
    for (; at < rest->size; at++) {
        uint8_t c = rest->data[at];
        if (!is_quoted && (is_blank(c) || c == '\n'))
            break;
        if (c == '\\' && at + 1 < rest->size && rest->data[at + 1] != '\n')
            at++;
        else if (c == '"')
            is_quoted = !is_quoted;
    }
    return take(rest, at < rest->size ? at : rest->size);
}

/* Whether a name may be that of a command that is not in the table. */
static bool is_plausible(struct slice name)
{
    enum { NAME_MAX_SIZE = 24 };
    for (size_t i = 0; i < name.size; i++)
        if (!isalpha(name.data[i]) && !slice_is_one_of(name.data[i], "._-"))
            return false;
    return name.size <= NAME_MAX_SIZE;
}

/* In the protocol of Redis each argument has a line, so a name that is not known may be a value. */
static void append_name(const struct command *command, struct slice name, bool is_first,
                        struct text *out)
{
    bool is_known = command->name[0] != '\0';
    if (is_known || (is_first && is_plausible(name)))
        text_append_slice(out, name);
    else if (name.size > 0)
        text_append_char(out, '?');
}

/* Takes a line, with the line ends that are in quotes. */
static void mask_command(struct slice *rest, bool is_first, struct text *out)
{
    bool is_shown = true;
    struct slice name = take_name(rest);
    struct arguments arguments = {.command = find_command(name)};
    append_name(arguments.command, name, is_first, out);
    for (skip_blanks(rest); rest->size > 0 && rest->data[0] != '\n'; skip_blanks(rest)) {
        struct slice argument = take_argument(rest);
        if (!is_shown)
            continue;
        text_append_char(out, ' ');
        if (is_value(&arguments, argument)) {
            text_append_char(out, '?');
            is_shown = !ends_shown(arguments.command);
        } else {
            text_append_slice(out, argument);
        }
        arguments.count++;
    }
}

void redis_mask(struct slice text, struct text *out)
{
    bool is_first = true;
    for (skip_blanks(&text); text.size > 0; skip_blanks(&text)) {
        mask_command(&text, is_first, out);
        is_first = false;
        if (text.size > 0)
            text_append_slice(out, take(&text, 1)); /* the line end */
    }
}

void memcached_mask(struct slice command, struct text *out)
{
    size_t size = 0;
    command = slice_trim(command, SLICE_SPACES);
    while (size < command.size && command.data[size] != '\r' && command.data[size] != '\n')
        size++;
    text_append_slice(out, slice_trim(slice_of(command.data, size), SLICE_SPACES));
}
