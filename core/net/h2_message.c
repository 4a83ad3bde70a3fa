#include "core/net/h2_message.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <string.h>
#include <strings.h>

enum field_id {
    FIELD_METHOD,
    FIELD_SCHEME,
    FIELD_PATH,
    FIELD_AUTHORITY,
    FIELD_HOST,
    FIELD_CONTENT_LENGTH,
    FIELD_TE,
    FIELD_OF_A_CONNECTION, /* forbidden (RFC 9113, section 8.2.2) */
    FIELD_OTHER,
};

static const struct {
    struct slice name;
    enum field_id id;
} known[] = {
    {SLICE(":method"), FIELD_METHOD},
    {SLICE(":scheme"), FIELD_SCHEME},
    {SLICE(":path"), FIELD_PATH},
    {SLICE(":authority"), FIELD_AUTHORITY},
    {SLICE("host"), FIELD_HOST},
    {SLICE("content-length"), FIELD_CONTENT_LENGTH},
    {SLICE("te"), FIELD_TE},
    {SLICE("connection"), FIELD_OF_A_CONNECTION},
    {SLICE("keep-alive"), FIELD_OF_A_CONNECTION},
    {SLICE("proxy-connection"), FIELD_OF_A_CONNECTION},
    {SLICE("transfer-encoding"), FIELD_OF_A_CONNECTION},
    {SLICE("upgrade"), FIELD_OF_A_CONNECTION},
};

static bool is_pseudo(struct slice name)
{
    return name.size > 0 && name.data[0] == ':';
}

static enum field_id identify(struct slice name)
{
    assert(name.size > 0 && name.data[0] != '\0'); /* nghttp2_check_header_name */
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (slice_equal(name, known[i].name))
            return known[i].id;
    return FIELD_OTHER;
}

void h2_message_begin(struct h2_message *message, bool is_trailers)
{
    *message = (struct h2_message){.is_trailers = is_trailers, .content_length = -1};
}

static bool has_upper_case(struct slice name)
{
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] >= 'A' && name.data[i] <= 'Z')
            return true;
    return false;
}

static bool is_scheme(struct slice value)
{
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] <= ' ' || value.data[i] >= 0x7f)
            return false;
    return value.size > 0;
}

static bool is_good_value(enum field_id id, struct slice value)
{
    switch (id) {
    case FIELD_METHOD:
        return nghttp2_check_method(value.data, value.size);
    case FIELD_SCHEME:
        return is_scheme(value);
    case FIELD_PATH:
        return value.size > 0 && nghttp2_check_path(value.data, value.size);
    case FIELD_AUTHORITY:
    case FIELD_HOST:
        return value.size == 0 || nghttp2_check_authority(value.data, value.size);
    default:
        return nghttp2_check_header_value_rfc9113(value.data, value.size);
    }
}

/* Returns -1 if it is no number, or too long for one. */
static int64_t parse_length(struct slice value)
{
    int64_t length = 0;
    if (value.size == 0 || value.size > 18)
        return -1;
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return -1;
        length = length * 10 + (value.data[i] - '0');
    }
    return length;
}

static bool take_known(struct h2_message *message, enum field_id id, struct slice value)
{
    assert(id < FIELD_OTHER);
    const unsigned bit = 1u << id;
    switch (id) {
    case FIELD_OF_A_CONNECTION:
        return false;
    case FIELD_TE:
        return slice_is_ignoring_case(value, "trailers");
    case FIELD_CONTENT_LENGTH:
        message->content_length = parse_length(value);
        if (message->content_length < 0)
            return false;
        break;
    case FIELD_METHOD:
        message->is_options = slice_is(value, "OPTIONS");
        message->is_connect = slice_is(value, "CONNECT");
        break;
    case FIELD_SCHEME:
        message->is_http = slice_is(value, "http") || slice_is(value, "https");
        break;
    case FIELD_PATH:
        assert(value.size > 0); /* is_good_value */
        message->path_start = (char)value.data[0];
        if (value.data[0] == '*' && value.size > 1)
            message->path_start = '\0';
        break;
    default:
        break;
    }
    bool is_first = !(message->seen & bit);
    message->seen |= bit;
    return is_first;
}

/* The bytes of a pseudo-field must be right; another field with wrong ones is ignored. */
static enum h2_field_verdict wrong_bytes(struct h2_message *message, struct slice name)
{
    if (is_pseudo(name))
        return H2_FIELD_MALFORMED;
    message->has_fields = true;
    return H2_FIELD_IGNORED;
}

enum h2_field_verdict h2_message_field(struct h2_message *message, struct slice name,
                                       struct slice value)
{
    if (!nghttp2_check_header_name(name.data, name.size))
        return has_upper_case(name) ? H2_FIELD_MALFORMED : wrong_bytes(message, name);
    enum field_id id = identify(name);
    if (!is_good_value(id, value))
        return wrong_bytes(message, name);
    if (is_pseudo(name) && (message->is_trailers || message->has_fields || id == FIELD_OTHER))
        return H2_FIELD_MALFORMED;
    message->has_fields |= !is_pseudo(name);
    if (id != FIELD_OTHER && !take_known(message, id, value))
        return H2_FIELD_MALFORMED;
    return H2_FIELD_GOOD;
}

bool h2_message_is_complete(const struct h2_message *message)
{
    const unsigned target = 1u << FIELD_SCHEME | 1u << FIELD_PATH;
    assert(!message->is_trailers);
    if (!(message->seen & 1u << FIELD_METHOD))
        return false;
    if (message->is_connect)
        return !(message->seen & target) && (message->seen & 1u << FIELD_AUTHORITY);
    if ((message->seen & target) != target)
        return false;
    return !message->is_http || message->path_start == '/' ||
           (message->is_options && message->path_start == '*');
}
