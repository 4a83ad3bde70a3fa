/*
 * sockets: what the load generator, the sink and the relay share. Failures end the program.
 *
 * Owner: descriptors are the caller's.
 *
 * Thread: one.
 */
#ifndef PROFCOL_BENCH_SOCKETS_H
#define PROFCOL_BENCH_SOCKETS_H

#include <stdint.h>

void die(const char *what) __attribute__((noreturn)); /* with errno's text */

/* On loopback; port 0: one that the system chooses. */
int socket_listen(uint16_t port, uint16_t *port_out);
/* To a port on loopback; non-blocking once connected. -1 when refused. */
int socket_connect(uint16_t port);
/* The next connection, non-blocking; -1: none. */
int socket_accept(int listener);

/* Adds the descriptor to the set, or changes what is waited for there (EPOLLIN, EPOLLOUT). */
void poll_add(int poll, int fd, uint32_t events, void *data);
void poll_change(int poll, int fd, uint32_t events, void *data);
/* A descriptor in the set that becomes readable with SIGTERM, SIGINT, SIGUSR1 or SIGUSR2; its data
 * is NULL.
 */
int poll_signals(int poll);

uint64_t now_ns(void);
/* A whole number or exit. */
uint64_t number_argument(const char *text);

#endif
