#include "extensions/explore/json_text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

static void begin(struct json_text *json, const char *key)
{
    if (json->has_members)
        text_append_char(json->out, ',');
    json->has_members = true;
    if (!key)
        return;
    text_append_char(json->out, '"');
    text_append_json(json->out, slice_of_string(key));
    text_append(json->out, "\":");
}

void json_text_open(struct json_text *json, const char *key, char bracket)
{
    assert(bracket == '{' || bracket == '[');
    begin(json, key);
    text_append_char(json->out, bracket);
    json->has_members = false;
}

void json_text_close(struct json_text *json, char bracket)
{
    assert(bracket == '}' || bracket == ']');
    text_append_char(json->out, bracket);
    json->has_members = true;
}

void json_text_slice(struct json_text *json, const char *key, struct slice value)
{
    begin(json, key);
    text_append_char(json->out, '"');
    text_append_json(json->out, value);
    text_append_char(json->out, '"');
}

void json_text_string(struct json_text *json, const char *key, const char *value)
{
    json_text_slice(json, key, slice_of_string(value));
}

void json_text_number(struct json_text *json, const char *key, double value)
{
    begin(json, key);
    if (!isfinite(value))
        text_append(json->out, "null");
    else if (value == floor(value) && fabs(value) < 1e15)
        text_printf(json->out, "%.0f", value);
    else
        text_printf(json->out, "%.9g", value);
}

void json_text_time(struct json_text *json, const char *key, uint64_t ns)
{
    begin(json, key);
    text_printf(json->out, "\"%" PRIu64 "\"", ns);
}
