/*
 * own_host: whether the Host of a request names this server, against DNS rebinding.
 *
 * A web page can make its own name resolve to this machine and then read what a local listener
 * answers, but its requests have its own name as Host.
 *
 * Owner: nothing is owned.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_NET_OWN_HOST_H
#define PROFCOL_CORE_NET_OWN_HOST_H

#include "core/base/slice.h"

/* own: the host that the listener is configured with. authority: the request's Host, with or
 * without a port. A listener on all addresses ("", 0.0.0.0, ::) accepts any name, because it may be
 * reached by any; the others accept their own, IP addresses and localhost. */
bool own_host_is(const char *own, struct slice authority);

#endif
