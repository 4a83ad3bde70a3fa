#include "core/explain_report.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { BODY_MAX = 1 << 20, ID_MAX = 64, URL_MAX = 1024 };

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* A terminal gets no control characters of others' names. */
static void append_plain(struct text *out, const char *text)
{
    for (; *text; text++)
        text_append_char(out, iscntrl((unsigned char)*text) ? '?' : *text);
}

static bool is_time(const char *name)
{
    return strcmp(name, "start") == 0 || strcmp(name, "arrived") == 0;
}

static bool is_duration(const char *name)
{
    size_t size = strlen(name);
    return size > 3 && strcmp(name + size - 3, "_ns") == 0;
}

static void append_duration(struct text *out, uint64_t ns)
{
    if (ns < 1000000)
        text_printf(out, "%g µs", (double)ns / 1e3);
    else
        text_append_duration(out, ns);
}

/* Times and durations, which are nanoseconds, as people read them, and then as they are. */
static void append_value(struct text *out, const char *name, const char *value)
{
    uint64_t number = strtoull(value, NULL, 10);
    if (is_time(name))
        text_append_utc(out, number);
    else if (is_duration(name))
        append_duration(out, number);
    if (is_time(name) || is_duration(name))
        text_append(out, " = ");
    append_plain(out, value);
    text_append(out, is_duration(name) ? " ns" : "");
}

static void print_facts(const json_t *answer, struct text *out)
{
    const json_t *fact;
    size_t i;
    json_array_foreach(json_object_get(answer, "facts"), i, fact)
    {
        text_printf(out, "  %-15s ", text_of(fact, "name"));
        append_value(out, text_of(fact, "name"), text_of(fact, "value"));
        text_append_char(out, '\n');
    }
}

/* type: empty if none of them left with the id of the span. */
static void print_count(long long samples, const char *type, struct text *out)
{
    text_printf(out, "  %lld%s", samples, type[0] ? " of " : samples == 1 ? " sample" : " samples");
    append_plain(out, type);
}

static void print_samples(const json_t *answer, struct text *out)
{
    const json_t *sample;
    size_t i;
    if (json_array_size(json_object_get(answer, "samples")) > 0)
        text_append(out, "Its samples, newest first:\n");
    json_array_foreach(json_object_get(answer, "samples"), i, sample)
    {
        const json_t *lag = json_object_get(sample, "lag_ns");
        text_append(out, "  ");
        text_append_utc(out, strtoull(text_of(sample, "arrived"), NULL, 10));
        print_count(json_integer_value(json_object_get(sample, "samples")),
                    text_of(sample, "profile_type"), out);
        text_append(out, ": ");
        append_plain(out, text_of(sample, "text"));
        if (json_is_integer(lag))
            text_printf(out, ", %+.1f s after it", (double)json_integer_value(lag) / 1e9);
        text_append_char(out, '\n');
    }
}

static void print(const json_t *answer, struct text *out)
{
    text_printf(out, "%s %s: ", text_of(answer, "kind"), text_of(answer, "id"));
    append_plain(out, text_of(json_object_get(answer, "reason"), "text"));
    text_printf(out, " [%s]\n", text_of(json_object_get(answer, "reason"), "code"));
    print_facts(answer, out);
    print_samples(answer, out);
}

/* Appends the message of an error's body, if there is one. */
static void append_message(struct text *out, const struct http_answer *answer)
{
    struct slice body = answer->body ? buffer_slice(answer->body) : SLICE("");
    json_t *json = json_loadb((const char *)body.data, body.size, 0, NULL);
    const char *message = text_of(json_object_get(json, "error"), "message");
    text_append(out, message[0] ? ": " : "");
    append_plain(out, message);
    json_decref(json);
}

/* What to do about an error. */
static bool refuse(const char *url, const struct http_answer *answer, struct error *err)
{
    struct text why = {0};
    text_printf(&why, "%s: status %s", url, answer->status);
    if (strncmp(answer->status, "401", 3) == 0)
        text_printf(&why, "; %s PROFCOL_EXPLORE_TOKEN, or write http://USER:PASSWORD@HOST:PORT",
                    getenv("PROFCOL_EXPLORE_TOKEN") ? "check" : "set");
    else if (strncmp(answer->status, "404", 3) == 0)
        text_append(&why, "; that is not the extension explore");
    else
        append_message(&why, answer);
    error_set(err, "%s", text_string(&why));
    text_deinit(&why);
    return false;
}

static bool read_answer(const char *url, const struct http_answer *answer, struct text *report,
                        struct error *err)
{
    json_error_t why;
    if (answer->status[0] != '2')
        return refuse(url, answer, err);
    struct slice body = answer->body ? buffer_slice(answer->body) : SLICE("");
    json_t *json = json_loadb((const char *)body.data, body.size, JSON_ALLOW_NUL, &why);
    if (!json)
        return error_set(err, "%s: the answer is no JSON: %s", url, why.text);
    print(json, report);
    json_decref(json);
    return true;
}

/* Returns the URL to ask; free it with text_deinit. */
static struct text make_url(const char *base, const char *id)
{
    struct text url = {0};
    size_t size = strlen(base);
    while (size > 0 && base[size - 1] == '/')
        size--;
    text_printf(&url, "%.*s/api/explain?id=", (int)(size > URL_MAX ? URL_MAX : size), base);
    text_append_percent(&url, slice_of_string(id));
    return url;
}

static bool is_id(const char *id)
{
    size_t size = strlen(id);
    for (const char *c = id; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_=+/", *c))
            return false;
    return size > 0 && size <= ID_MAX;
}

/* What to do if nothing answers. Returns false. */
static bool add_advice(struct error *err)
{
    char why[sizeof err->text];
    snprintf(why, sizeof why, "%s", err->text);
    return error_set(err,
                     "%s. Nothing answers there: run profcol with the extension explore "
                     "(extensions: {explore: }, service: {extensions: [explore]}), or give its "
                     "URL",
                     why);
}

bool explain_report(const char *id, const char *url, const struct http_get_options *options,
                    struct text *report, struct error *err)
{
    struct http_answer answer = {0};
    struct http_get_options ask = *options;
    ask.timeout_s = 10;
    ask.body_max = BODY_MAX;
    ask.bearer_token = getenv("PROFCOL_EXPLORE_TOKEN");
    if (!is_id(id))
        return error_set(err,
                         "\"%s\" is not the id of a span (16 hex digits) or trace (32), and no "
                         "traceparent",
                         id);
    struct text full = make_url(url, id);
    bool is_fine = http_get(text_string(&full), &ask, &answer, err)
                       ? read_answer(http_get_shown(text_string(&full)), &answer, report, err)
                       : add_advice(err);
    buffer_unref(answer.body);
    text_deinit(&full);
    return is_fine;
}
