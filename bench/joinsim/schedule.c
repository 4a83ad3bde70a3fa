#include "bench/joinsim/schedule.h"

#include <string.h>

/* What most schedules have: SDKs send spans every 5 s, and profiles every 10 s or more. */
#define USUAL                                                                                      \
    .services = 20, .seconds = 120, .requests = 5000, .durations = {600, 300, 90, 10},             \
    .linked = 1000, .samples = 20, .upload_interval = 10000, .export_interval = 5000,              \
    .window = 120000, .wait = 10000, .threads = 16, .is_labelled = true

/* Many short requests. */
#define WEB USUAL, .services = 4, .requests = 50000, .durations = {900, 97, 3, 0}, .samples = 50

/* One process with about as many spans and samples in a request as in the rows of bench/compare
 * that are named after an SDK. */
#define BUSY WEB, .services = 1, .requests = 400000

/* A profiler that knows no spans. */
#define THREADS USUAL, .upload_interval = 5000, .linked = 0, .by_thread = true

/* The recordings of a Java program. */
#define RECORDINGS THREADS, .upload_interval = 10000, .is_recording = true

/* A schedule says in what it differs from the usual one. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
const struct schedule schedules[] = {
    {USUAL, .name = "short", .services = 4, .seconds = 40},
    {USUAL, .name = "usual"},
    {USUAL, .name = "ebpf", .upload_interval = 5000, .linked = 500, .is_labelled = false},
    {USUAL, .name = "one service", .services = 1, .requests = 100000},
    {USUAL, .name = "1,000 services", .services = 1000, .requests = 200},
    {USUAL, .name = "10,000 services", .services = 10000, .seconds = 60, .requests = 50},
    {USUAL, .name = "1 % linked", .linked = 10},
    {USUAL, .name = "long spans", .requests = 1000, .durations = {100, 200, 400, 300}},
    {USUAL, .name = "costs of long spans", .requests = 1000, .durations = {100, 200, 400, 300},
     .span_wait = 40000},
    {USUAL, .name = "upload 60 s", .upload_interval = 60000, .seconds = 240},
    {USUAL, .name = "window 30 s", .upload_interval = 60000, .seconds = 240, .window = 30000},
    {USUAL, .name = "wait 2 s", .wait = 2000},
    {USUAL, .name = "skew 50 ms", .skew = 50},
    {USUAL, .name = "skew 10 s", .skew = 10000},
    {USUAL, .name = "disorder", .disorder = 8000},
    {USUAL, .name = "duplicates", .duplicates = 200},
    {USUAL, .name = "restarts", .restarts = 1000},
    {USUAL, .name = "reused ids", .reused_ids = 100},
    {USUAL, .name = "inherited", .inherited = 100},
    {USUAL, .name = "hops", .hops = 200},
    {USUAL, .name = "new threads", .threads = 0},
    {USUAL, .name = "all at once", .upload_interval = 15000, .disorder = 6000, .duplicates = 50,
     .restarts = 200, .reused_ids = 20, .inherited = 50, .hops = 200, .skew = 500, .linked = 700},
    {USUAL, .name = "keep 1 s", .keep_above = 1000},
    {USUAL, .name = "keep 1 s, ebpf", .keep_above = 1000, .is_labelled = false},
    {THREADS, .name = "threads"},
    {THREADS, .name = "threads, skew 50 ms", .skew = 50},
    {THREADS, .name = "threads, 1 s ahead", .offset = 1000},
    {THREADS, .name = "threads, 3 s behind", .offset = -3000},
    {THREADS, .name = "threads, 10 s ahead", .offset = 10000},
    {THREADS, .name = "threads, hops", .hops = 200},
    {THREADS, .name = "threads, event loops", .turn = 10},
    {THREADS, .name = "threads, quiet loops", .turn = 10, .durations = {950, 50, 0, 0}},
    {THREADS, .name = "threads, long spans", .requests = 1000, .durations = {100, 200, 400, 300}},
    {THREADS, .name = "threads, costs of long spans", .requests = 1000,
     .durations = {100, 200, 400, 300}, .span_wait = 40000},
    {THREADS, .name = "threads, new threads", .threads = 0},
    {THREADS, .name = "threads, containers", .in_container = true},
    {THREADS, .name = "threads, pools", .in_container = true, .in_pool = true, .seconds = 480},
    {THREADS, .name = "threads, busy pools", .in_container = true, .in_pool = true, .seconds = 480,
     .requests = 10000},
    {THREADS, .name = "threads, 1,000 services", .services = 1000, .requests = 200},
    {THREADS, .name = "threads, all at once", .skew = 50, .hops = 200, .disorder = 4000,
     .duplicates = 50, .restarts = 200, .inherited = 50},
    {RECORDINGS, .name = "recordings"},
    {RECORDINGS, .name = "recordings, skew 50 ms", .skew = 50},
    {RECORDINGS, .name = "recordings, 3 s ahead", .offset = 3000},
    {RECORDINGS, .name = "recordings, hops", .hops = 200},
    {RECORDINGS, .name = "recordings, costs of long spans", .requests = 1000,
     .durations = {100, 200, 400, 300}, .span_wait = 40000},
    {RECORDINGS, .name = "recordings, new threads", .threads = 0},
    {RECORDINGS, .name = "recordings, all at once", .skew = 50, .hops = 200, .disorder = 4000,
     .duplicates = 50, .restarts = 200, .inherited = 50},
    {WEB, .name = "web"},
    {WEB, .name = "web, keep 1 s", .keep_above = 1000},
    {WEB, .name = "web, no times", .is_timeless = true},
    {WEB, .name = "web, no times, keep 1 s", .is_timeless = true, .keep_above = 1000},
    {WEB, .name = "web, no times, keep 1 %", .is_timeless = true, .keep_ratio = 10},
    {BUSY, .name = "busy, no times, keep 1 %", .is_timeless = true, .keep_ratio = 10},
};
#pragma GCC diagnostic pop
const size_t schedule_count = sizeof schedules / sizeof schedules[0];

const struct schedule *schedule_find(const char *name)
{
    for (size_t i = 0; i < schedule_count; i++)
        if (strcmp(schedules[i].name, name) == 0)
            return &schedules[i];
    return NULL;
}
