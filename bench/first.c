/*
 * bench_first: how long from exec until a server has accepted its first request.
 *
 *     bench_first PORT -- SERVER ARGUMENTS...
 *
 * Starts the server, sends one span over OTLP/HTTP to PORT again and again until the answer is 200,
 * prints the milliseconds, ends the server.
 */
#include "bench/payload.h"
#include "bench/sockets.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fcntl.h>

#define GIVE_UP_NS UINT64_C(10000000000)

static pid_t start(char **argv)
{
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        execv(argv[0], argv);
        _exit(127);
    }
    return child;
}

static bool send_all(int fd, const void *data, size_t size)
{
    return send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size; /* small: fits into the buffer */
}

static bool request(uint16_t port, struct slice body)
{
    int fd = socket_connect(port);
    if (fd < 0)
        return false;
    char head[200], answer[200] = "";
    int size = snprintf(head, sizeof head,
                        "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n"
                        "Content-Type: application/x-protobuf\r\nContent-Length: %zu\r\n\r\n",
                        body.size);
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    bool fine = send_all(fd, head, (size_t)size) && send_all(fd, body.data, body.size) &&
                poll(&readable, 1, 5000) == 1 && recv(fd, answer, sizeof answer - 1, 0) > 0 &&
                strncmp(answer, "HTTP/1.1 200", 12) == 0;
    close(fd);
    return fine;
}

int main(int argc, char **argv)
{
    if (argc < 4 || strcmp(argv[2], "--") != 0) {
        fprintf(stderr, "usage: bench_first PORT -- SERVER ARGUMENTS...\n");
        return 1;
    }
    uint16_t port = (uint16_t)number_argument(argv[1]);
    struct payload span = payload_traces(1);
    uint64_t begin = now_ns();
    pid_t child = start(argv + 3);
    bool fine = false;
    while (!fine && now_ns() - begin < GIVE_UP_NS && waitpid(child, NULL, WNOHANG) == 0) {
        fine = request(port, payload_slice(&span));
        if (!fine)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    uint64_t end = now_ns();
    kill(child, SIGKILL); /* it would try to deliver the span */
    waitpid(child, NULL, 0);
    payload_deinit(&span);
    if (!fine)
        fprintf(stderr, "bench_first: no request was accepted\n");
    else
        printf("%.2f\n", (double)(end - begin) / 1e6);
    return fine ? 0 : 1;
}
