#include "core/net/peer_key.h"

#include <arpa/inet.h>
#include <string.h>

enum { LOOPBACK_V6 = 1 };

/* Returns the prefix 0:ffff:a.b.c.d::/64, which no IPv6 client can have, because ::/8 is
 * reserved. */
static uint64_t key_of_v4(const void *bytes)
{
    uint32_t address;
    memcpy(&address, bytes, sizeof address);
    return UINT64_C(0xffff) << 32 | ntohl(address);
}

static uint64_t key_of_v6(const struct in6_addr *address)
{
    if (IN6_IS_ADDR_V4MAPPED(address))
        return key_of_v4(address->s6_addr + 12);
    uint64_t prefix = 0;
    for (unsigned i = 0; i < 8; i++)
        prefix = prefix << 8 | address->s6_addr[i];
    return prefix ? prefix
                  : LOOPBACK_V6; /* for ::1: 0 means no address, and 0:0:0:1::/64 is reserved */
}

uint64_t peer_key(const struct sockaddr *address)
{
    if (!address)
        return 0;
    if (address->sa_family == AF_INET)
        return key_of_v4(&((const struct sockaddr_in *)(const void *)address)->sin_addr);
    if (address->sa_family == AF_INET6)
        return key_of_v6(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    return 0;
}

bool peer_key_is_loopback(uint64_t key)
{
    return key == LOOPBACK_V6 || key >> 24 == (UINT64_C(0xffff) << 8 | IN_LOOPBACKNET);
}

void peer_print(const struct sockaddr *address, char out[INET6_ADDRSTRLEN])
{
    const void *bytes = NULL;
    int family = address->sa_family;
    if (family == AF_INET) {
        bytes = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    } else if (family == AF_INET6) {
        const struct in6_addr *v6 =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        bool is_mapped = IN6_IS_ADDR_V4MAPPED(v6);
        family = is_mapped ? AF_INET : AF_INET6;
        bytes = v6->s6_addr + (is_mapped ? 12 : 0);
    }
    if (!bytes || !inet_ntop(family, bytes, out, INET6_ADDRSTRLEN))
        out[0] = '\0';
}
