#include "core/memory_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct file {
    const char *path;
    const char *content;
};

static void make_directories(char *path, size_t from)
{
    for (char *slash = strchr(path + from, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

static void write_file(const char *root, const struct file *file)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, file->path);
    make_directories(path, strlen(root) + 1);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(file->content, out);
    fclose(out);
}

#define V2 "/sys/fs/cgroup"
#define V1 "/sys/fs/cgroup/memory"
#define SELF "/proc/self/cgroup"

static const struct {
    const char *what;
    struct file files[5];
    size_t expected;
} cases[] = {
    {"nothing is there", {{0}}, SIZE_MAX},
    {"v2, no limit", {{SELF, "0::/app\n"}, {V2 "/app/memory.max", "max\n"}}, SIZE_MAX},
    {"v2", {{SELF, "0::/app\n"}, {V2 "/app/memory.max", "1000000\n"}}, 1000000},
    {"v2, another group", {{SELF, "0::/app\n"}, {V2 "/other/memory.max", "5\n"}}, SIZE_MAX},
    {"v2, the slice around it is tighter",
     {{SELF, "0::/a.slice/b/app\n"},
      {V2 "/a.slice/b/app/memory.max", "max\n"},
      {V2 "/a.slice/b/memory.max", "3000\n"},
      {V2 "/a.slice/memory.max", "2000\n"}},
     2000},
    {"v2, in a container", {{SELF, "0::/\n"}, {V2 "/memory.max", "777\n"}}, 777},
    {"v2, a container that cannot see its group",
     {{SELF, "0::/../../x\n"}, {V2 "/memory.max", "777\n"}},
     777},
    {"v1",
     {{SELF, "12:cpu,cpuacct:/c\n5:memory:/m\n1:name=systemd:/s\n"},
      {V1 "/m/memory.limit_in_bytes", "4096\n"},
      {V1 "/memory.limit_in_bytes", "9223372036854771712\n"},
      {V1 "/c/memory.limit_in_bytes", "1\n"}},
     4096},
    {"v1, among other controllers",
     {{SELF, "5:hugetlb,memory,pids:/m\n"}, {V1 "/m/memory.limit_in_bytes", "4096\n"}},
     4096},
    {"v1, in a container that sees the host's names",
     {{SELF, "5:memory:/docker/abc\n"}, {V1 "/memory.limit_in_bytes", "8192\n"}},
     8192},
    {"both",
     {{SELF, "5:memory:/m\n0::/m\n"},
      {V1 "/m/memory.limit_in_bytes", "10\n"},
      {V2 "/m/memory.max", "20\n"}},
     10},
    {"no list of groups", {{V2 "/memory.max", "42\n"}}, 42},
    {"not a number", {{SELF, "0::/app\n"}, {V2 "/app/memory.max", "many\n"}}, SIZE_MAX},
    {"lines of another kind",
     {{SELF, "garbage\n0:\n::\n0::/app\n"}, {V2 "/app/memory.max", "9\n"}},
     9},
};

static void the_lowest_limit_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char root[] = "/tmp/test_memory_limit.XXXXXX", command[100];
        assert_non_null(mkdtemp(root));
        for (size_t j = 0; j < 5 && cases[i].files[j].path; j++)
            write_file(root, &cases[i].files[j]);
        size_t limit = memory_limit_under(root);
        snprintf(command, sizeof command, "rm -r %s", root);
        assert_int_equal(system(command), 0);
        if (limit != cases[i].expected)
            fail_msg("%s: %zu, expected %zu", cases[i].what, limit, cases[i].expected);
    }
}

static void there_is_always_a_limit(void **state)
{
    (void)state;
    assert_in_range(memory_limit_bytes(), 1 << 20, SIZE_MAX / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_limit_counts),
        cmocka_unit_test(there_is_always_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
