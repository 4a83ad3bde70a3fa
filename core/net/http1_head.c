#include "core/net/http1_head.h"

#include <assert.h>
#include <ctype.h>
#include <strings.h>

#ifdef PROFCOL_HAVE_LLHTTP
#include <llhttp.h>
#else
#include <http_parser.h>
#endif

enum http1_scan_result http1_scan(struct http1_scan *scan, struct slice data, size_t *size_out,
                                  int *status_out)
{
    assert(scan->line_start <= scan->scanned && scan->scanned <= data.size);
    *status_out = 400;
    for (;;) {
        const uint8_t *from = data.data + scan->scanned;
        const uint8_t *lf =
            data.size > scan->scanned ? memchr(from, '\n', data.size - scan->scanned) : NULL;
        if (!lf)
            break;
        size_t at = (size_t)(lf - data.data);
        if (at == 0 || lf[-1] != '\r')
            return HTTP1_SCAN_BAD;
        bool line_is_empty = at == scan->line_start + 1;
        scan->scanned = scan->line_start = at + 1;
        if (at >= HTTP_HEAD_MAX_BYTES)
            break;
        if (line_is_empty) {
            *size_out = at + 1;
            return HTTP1_SCAN_WHOLE;
        }
    }
    if (scan->line_start == 0 && data.size > HTTP1_TARGET_MAX_BYTES + 64) {
        *status_out = 414;
        return HTTP1_SCAN_BAD;
    }
    if (data.size > HTTP_HEAD_MAX_BYTES) {
        *status_out = 431;
        return HTTP1_SCAN_BAD;
    }
    scan->scanned = data.size;
    return HTTP1_SCAN_MORE;
}

/* Checks by the parser library: methods, characters of targets and names, the version. */
#ifdef PROFCOL_HAVE_LLHTTP
static int on_headers_complete(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED;
}

static bool library_accepts(const uint8_t *data, size_t size)
{
    static const llhttp_settings_t settings = {.on_headers_complete = on_headers_complete};
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    llhttp_errno_t result = llhttp_execute(&parser, (const char *)data, size);
    return result == HPE_PAUSED || result == HPE_PAUSED_UPGRADE;
}
#else
static int on_headers_complete(http_parser *parser)
{
    http_parser_pause(parser, 1);
    return 0;
}

static bool library_accepts(const uint8_t *data, size_t size)
{
    static const http_parser_settings settings = {.on_headers_complete = on_headers_complete};
    http_parser parser;
    http_parser_init(&parser, HTTP_REQUEST);
    http_parser_execute(&parser, &settings, (const char *)data, size);
    return HTTP_PARSER_ERRNO(&parser) == HPE_PAUSED;
}
#endif

/* RFC 9110, section 5.6.2. */
static bool is_token_char(uint8_t c)
{
    return isalnum(c) || (c != 0 && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!is_token_char(text.data[i]))
            return false;
    return text.size > 0;
}

static bool is_field_value(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((text.data[i] < 0x20 && text.data[i] != '\t') || text.data[i] == 0x7f)
            return false;
    return true;
}

/* Reduces "http://host/path", the form for proxies (RFC 9112, section 3.2.2), to "/path". */
static struct slice strip_authority(struct slice target, struct slice *authority_out)
{
    *authority_out = SLICE("");
    if (target.size < 7 || strncasecmp((const char *)target.data, "http://", 7) != 0)
        return target;
    *authority_out = slice_of(target.data + 7, target.size - 7);
    const uint8_t *slash = memchr(target.data + 7, '/', target.size - 7);
    if (!slash)
        return SLICE("/");
    authority_out->size = (size_t)(slash - authority_out->data);
    return slice_of(slash, target.size - (size_t)(slash - target.data));
}

static int parse_target(struct slice target, struct http1_head *head)
{
    if (target.size > HTTP1_TARGET_MAX_BYTES)
        return 414;
    for (size_t i = 0; i < target.size; i++)
        if (target.data[i] <= 0x20 || target.data[i] >= 0x7f || target.data[i] == '#')
            return 400;
    struct slice authority;
    target = strip_authority(target, &authority);
    if (!http_is_authority(authority) || target.size == 0 ||
        (target.data[0] != '/' && !slice_is(target, "*")))
        return 400;
    head->path = target;
    const uint8_t *mark = memchr(target.data, '?', target.size);
    if (mark) {
        head->path.size = (size_t)(mark - target.data);
        head->query = slice_of(mark + 1, target.size - head->path.size - 1);
    }
    return 0;
}

/* Parses METHOD SP TARGET SP HTTP/1.x with single blanks. */
static int parse_request_line(struct slice line, struct http1_head *head)
{
    const uint8_t *first = memchr(line.data, ' ', line.size);
    if (!first)
        return 400;
    head->method = slice_of(line.data, (size_t)(first - line.data));
    struct slice rest = slice_of(first + 1, line.size - head->method.size - 1);
    const uint8_t *second = rest.size > 0 ? memchr(rest.data, ' ', rest.size) : NULL;
    if (!second || !is_token(head->method))
        return 400;
    struct slice target = slice_of(rest.data, (size_t)(second - rest.data));
    struct slice version = slice_of(second + 1, rest.size - target.size - 1);
    if (!slice_is(version, "HTTP/1.1") && !slice_is(version, "HTTP/1.0"))
        return version.size == 8 && memcmp(version.data, "HTTP/", 5) == 0 ? 505 : 400;
    head->minor = (unsigned)(version.data[7] - '0');
    return parse_target(target, head);
}

static int parse_field(uint8_t *line, size_t size, struct http_headers *headers)
{
    uint8_t *colon = memchr(line, ':', size);
    if (!colon)
        return 400; /* also for a folded line: it starts with a blank, which a name must not contain
                     */
    struct slice name = slice_of(line, (size_t)(colon - line));
    struct slice value = slice_trim(slice_of(colon + 1, size - name.size - 1), SLICE_BLANKS);
    if (!is_token(name) || !is_field_value(value))
        return 400;
    if (headers->count == HTTP_FIELDS_MAX || name.size + value.size > HTTP_FIELD_MAX_BYTES)
        return 431;
    for (uint8_t *c = line; c < colon; c++)
        *c = (uint8_t)tolower(*c);
    headers->items[headers->count++] = (struct http_header){name, value};
    return 0;
}

static bool parse_length(struct slice text, uint64_t *out)
{
    if (text.size == 0 || text.size > 18)
        return false;
    *out = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (!isdigit(text.data[i]))
            return false;
        *out = *out * 10 + (uint64_t)(text.data[i] - '0');
    }
    return true;
}

/* Determines the length of the body by RFC 9112, section 6.3. Refuses everything that the RFC
 * leaves to servers. */
static int decide_framing(const struct http_headers *headers, struct http1_head *head)
{
    size_t lengths = http_header_count(headers, "content-length");
    size_t codings = http_header_count(headers, "transfer-encoding");
    if (lengths + codings > 1)
        return 400;
    if (codings == 1) {
        struct slice coding = http_header_get(headers, "transfer-encoding");
        if (head->minor == 0 || !slice_is_ignoring_case(coding, "chunked"))
            return 400;
        head->chunked = true;
    }
    if (lengths == 1) {
        struct slice length = http_header_get(headers, "content-length");
        if (!parse_length(length, &head->content_length))
            return 400;
        head->has_length = true;
    }
    return 0;
}

/* Whether the comma-separated list in the header contains this word. */
static bool header_has_word(const struct http_headers *headers, const char *name, const char *word)
{
    for (size_t i = 0; i < headers->count; i++) {
        if (!slice_is(headers->items[i].name, name))
            continue;
        struct slice rest = headers->items[i].value;
        while (rest.size > 0) {
            const uint8_t *comma = memchr(rest.data, ',', rest.size);
            size_t size = comma ? (size_t)(comma - rest.data) : rest.size;
            if (slice_is_ignoring_case(slice_trim(slice_of(rest.data, size), SLICE_BLANKS), word))
                return true;
            size += comma != NULL;
            rest = slice_of(rest.data + size, rest.size - size);
        }
    }
    return false;
}

static int decide_rest(const struct http_headers *headers, struct http1_head *head)
{
    size_t hosts = http_header_count(headers, "host");
    if (hosts > 1 || (hosts == 0 && head->minor == 1) ||
        !http_is_authority(http_header_get(headers, "host")))
        return 400;
    head->keep_alive = head->minor == 1 ? !header_has_word(headers, "connection", "close")
                                        : header_has_word(headers, "connection", "keep-alive");
    struct slice expect = http_header_get(headers, "expect");
    if (expect.data && head->minor == 1) {
        if (!slice_is_ignoring_case(expect, "100-continue"))
            return 417;
        head->expect_continue = true;
    }
    return 0;
}

int http1_head_parse(uint8_t *data, size_t size, struct http1_head *head,
                     struct http_headers *headers)
{
    assert(size > 2 && size <= HTTP_HEAD_MAX_BYTES &&
           data[size - 1] == '\n'); /* http1_scan has checked it */
    *head = (struct http1_head){0};
    headers->count = 0;
    uint8_t *line = data;
    uint8_t *end = data + size - 2; /* the empty line */
    int status = 0;
    while (line < end && status == 0) {
        uint8_t *cr = memchr(line, '\r', (size_t)(end + 2 - line));
        if (cr[1] != '\n')
            return 400;
        size_t length = (size_t)(cr - line);
        status = line == data ? parse_request_line(slice_of(line, length), head)
                              : parse_field(line, length, headers);
        line = cr + 2;
    }
    if (status == 0)
        status = decide_framing(headers, head);
    if (status == 0)
        status = decide_rest(headers, head);
    if (status == 0 && !library_accepts(data, size))
        status = 400;
    return status;
}
