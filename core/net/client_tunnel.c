#include "core/net/client_tunnel.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

enum { REASON_MAX = 60, STATUS_OFFSET = 9 /* after "HTTP/1.1 " */ };

void client_tunnel_print(struct text *out, const char *address, const char *authorization)
{
    text_printf(out, "CONNECT %s HTTP/1.1\r\nhost: %s\r\n", address, address);
    if (authorization)
        text_printf(out, "proxy-authorization: %s\r\n", authorization);
    text_append(out, "\r\n");
}

const char *client_tunnel_advice(int status)
{
    return status == 407 ? "; write user and password into the URL of the proxy" : "";
}

/* Returns the size of the head with its empty line; 0: it is not complete. begin: bytes that were
 * searched before. */
static size_t find_end(const struct text *head, size_t begin)
{
    for (size_t i = begin; i < head->size; i++) {
        if (head->data[i] != '\n' || i == 0)
            continue;
        if (head->data[i - 1] == '\n' ||
            (i >= 2 && head->data[i - 1] == '\r' && head->data[i - 2] == '\n'))
            return i + 1;
    }
    return 0;
}

/* Returns the status of "HTTP/1.1 200 OK"; 0 if this is not the answer of a proxy. */
static int read_status(const struct text *head)
{
    if (head->size < STATUS_OFFSET + 4 || memcmp(head->data, "HTTP/1.", 7) != 0 ||
        !isdigit((unsigned char)head->data[7]) || head->data[8] != ' ')
        return 0;
    const char *digits = head->data + STATUS_OFFSET;
    for (int i = 0; i < 3; i++)
        if (!isdigit((unsigned char)digits[i]))
            return 0;
    if (isdigit((unsigned char)digits[3]))
        return 0;
    return (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
}

/* Prints the reason that follows the status, without bytes that do not belong in a log. */
static void print_reason(const struct text *head, char *out)
{
    size_t size = 0;
    for (size_t i = STATUS_OFFSET + 3; i < head->size && size < REASON_MAX; i++) {
        if (head->data[i] == '\r' || head->data[i] == '\n')
            break;
        bool is_printable = head->data[i] >= ' ' && head->data[i] <= '~';
        out[size++] = (char)(is_printable ? head->data[i] : '?');
    }
    assert(size <= REASON_MAX);
    out[size] = '\0';
}

static enum client_tunnel_result judge(const struct text *head, char *why, size_t why_size)
{
    char reason[REASON_MAX + 1];
    int status = read_status(head);
    if (status == 200)
        return TUNNEL_OPEN;
    if (status == 0) {
        snprintf(why, why_size, "the proxy's answer to CONNECT is not HTTP/1.1");
        return TUNNEL_REFUSED;
    }
    assert(status < 1000 && head->size >= STATUS_OFFSET + 3);
    print_reason(head, reason);
    snprintf(why, why_size, "the proxy answered CONNECT with status %d%s%s", status, reason,
             client_tunnel_advice(status));
    return TUNNEL_REFUSED;
}

enum client_tunnel_result client_tunnel_feed(struct client_tunnel *tunnel, struct slice bytes,
                                             struct slice *rest_out, char *why, size_t why_size)
{
    struct text *head = &tunnel->head;
    size_t before = head->size;
    size_t room = TUNNEL_HEAD_MAX - before;
    assert(before < TUNNEL_HEAD_MAX);
    size_t taken = bytes.size < room ? bytes.size : room;
    text_append_slice(head, slice_of(bytes.data, taken));
    size_t end = find_end(head, before);
    if (end > 0) {
        assert(end > before && end - before <= taken);
        *rest_out = slice_of(bytes.data + (end - before), bytes.size - (end - before));
        return judge(head, why, why_size);
    }
    if (head->size < TUNNEL_HEAD_MAX)
        return TUNNEL_UNFINISHED;
    snprintf(why, why_size, "the headers of the proxy's answer to CONNECT are too large");
    return TUNNEL_REFUSED;
}

void client_tunnel_deinit(struct client_tunnel *tunnel)
{
    text_deinit(&tunnel->head);
}
