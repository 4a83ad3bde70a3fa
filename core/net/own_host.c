#include "core/net/own_host.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_address(const char *host)
{
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

bool own_host_is(const char *own, struct slice authority)
{
    char host[256];
    if (own[0] == '\0' || strcmp(own, "0.0.0.0") == 0 || strcmp(own, "::") == 0)
        return true;
    bool bracketed = authority.size > 0 && authority.data[0] == '[';
    const uint8_t *end =
        authority.size > 0 ? memrchr(authority.data, bracketed ? ']' : ':', authority.size) : NULL;
    size_t size = end ? (size_t)(end - authority.data) : authority.size;
    snprintf(host, sizeof host, "%.*s", (int)(size - bracketed),
             size > bracketed ? (const char *)authority.data + bracketed : "");
    return size == 0 || is_address(host) || strcasecmp(host, "localhost") == 0 ||
           strcasecmp(host, own) == 0;
}
