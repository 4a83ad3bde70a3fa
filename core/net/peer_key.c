#include "core/net/peer_key.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

/* The prefix 0:ffff:a.b.c.d::/64 cannot be an IPv6 client's: ::/8 is reserved. */
static uint64_t key_of_v4(const void *bytes)
{
    uint32_t address;
    memcpy(&address, bytes, sizeof(address));
    return UINT64_C(0xffff) << 32 | ntohl(address);
}

static uint64_t key_of_v6(const struct in6_addr *address)
{
    if (IN6_IS_ADDR_V4MAPPED(address))
        return key_of_v4(address->s6_addr + 12);
    uint64_t prefix = 0;
    for (unsigned i = 0; i < 8; i++)
        prefix = prefix << 8 | address->s6_addr[i];
    return prefix ? prefix : 1; /* ::1; 0 is taken, and 0:0:0:1::/64 reserved */
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
