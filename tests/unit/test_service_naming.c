#include "core/data/service_naming.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define WINDOW (60 * SECOND)

/* What an instance named "app" sees, in this order, and which service its profiles get. A step is
 * the time in s, then s: spans of a service (two processes: s, S), u: an upload with samples of
 * these spans (u, U), i: one without samples. */
struct naming_case {
    const char *name;
    const char *steps;
    const char *expected; /* of the last upload */
};

static const struct naming_case cases[] = {
    {"nothing is learned", "1i", "stays"},
    {"spans without samples teach nothing", "1s:shop 2i", "stays"},
    {"samples name spans", "1s:shop 2u", "shop"},
    {"the name is equal", "1s:app 2u", "stays"},
    {"an upload without samples, after that", "1s:shop 2u 3i", "shop"},
    {"kept for a window", "1s:shop 2u 62i", "shop"},
    {"but not longer", "1s:shop 2u 63i", "stays"},
    {"each upload keeps it", "1s:shop 2u 62i 122i 182i", "shop"},
    {"two services", "1s:shop 2u 3S:cart 4U", "disputed"},
    {"two processes of one service", "1s:shop 2u 3S:shop 4U", "shop"},
    {"the dispute ends", "1s:shop 2u 3S:cart 4U 50U 65U", "cart"},
    {"but not while it goes on", "1s:shop 2u 3S:cart 4U 50u 65U", "disputed"},
    {"a window without uploads, then another service", "1s:shop 2u 3S:cart 63U", "cart"},
    {"spans of one process change their service", "1s:shop 2u 3s:cart 4u", "disputed"},
    {"and keep it", "1s:shop 2u 3s:cart 4u 50i 65u", "cart"},
    {"before any upload", "1s:shop 2s:cart 3u", "disputed"},
    {"long after the first one", "1s:shop 2u 50i 73s:cart 74u", "cart"},
    {"or just before", "1s:shop 2u 50i 60s:cart 61u", "disputed"},
    {"long after, by another process", "1s:shop 2u 50i 73S:cart 74U", "cart"},
    {"a window after the last sample of the first one", "1s:shop 2u 3s:cart 4u 30u 62u",
     "disputed"},
    {"but not longer, whatever came then", "1s:shop 2u 3s:cart 4u 30u 63u", "cart"},
    {"long after, before any upload", "1s:shop 62s:cart 63u", "cart"},
    {"spans of the first one go on without samples", "1s:shop 2u 50s:shop 73s:cart 74u",
     "disputed"},
    {"three services", "1s:shop 2u 3s:cart 40u 41s:till 42u 70u", "disputed"},
    {"the last of three", "1s:shop 2u 3s:cart 4u 5s:till 6u 66u", "till"},
    {"no name", "1s: 2u", "stays"},
    {"no name of its own", "1s:unknown_service:java 2u", "stays"},
    {"a name that begins like it", "1s:unknown_servic 2u", "unknown_servic"},
    {"a default between", "1s:shop 2s:unknown_service 3u", "shop"},
    {"a namespace", "1s:shop/eu 2u", "shop/eu"},
    {"a namespace only", "1s:app/eu 2u", "app/eu"},
    {"two namespaces", "1s:shop/eu 2u 3S:shop/us 4U", "disputed"},
};

static struct service_id id_of(const char *text)
{
    size_t size = strcspn(text, "/ ");
    struct service_id id = {.name = slice_of(text, size)};
    if (text[size] == '/')
        id.space = slice_of(text + size + 1, strcspn(text + size + 1, " "));
    return id;
}

static const char *decide(const struct service_naming *naming, uint64_t now_ns)
{
    static char text[64];
    struct service_id own = id_of("app"), is;
    switch (service_naming_decide(naming, &own, now_ns, WINDOW, &is)) {
    case SERVICE_STAYS:
        return "stays";
    case SERVICE_IS_DISPUTED:
        return "disputed";
    default:
        snprintf(text, sizeof text, "%.*s%s%.*s", (int)is.name.size, (const char *)is.name.data,
                 is.space.size ? "/" : "", (int)is.space.size, (const char *)is.space.data);
        return text;
    }
}

static const char *run(const char *steps)
{
    struct service_naming processes[2] = {{0}}, uploader = {0};
    const char *result = "";
    for (const char *step = steps; *step;) {
        char *what;
        uint64_t now_ns = strtoull(step, &what, 10) * SECOND;
        struct service_naming *process = &processes[*what == 'S' || *what == 'U'];
        if (*what == 's' || *what == 'S') {
            struct service_id service = id_of(what + 2);
            service_naming_note(process, &service, now_ns);
        } else {
            if (*what != 'i')
                service_naming_learn(&uploader, process, now_ns);
            service_naming_keep(&uploader, now_ns, WINDOW);
            result = decide(&uploader, now_ns);
        }
        step = what + strcspn(what, " ");
        step += *step == ' ';
    }
    service_naming_deinit(&processes[0]);
    service_naming_deinit(&processes[1]);
    service_naming_deinit(&uploader);
    return result;
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = run(cases[i].steps);
        if (strcmp(got, cases[i].expected) != 0)
            fail_msg("%s: %s, expected %s", cases[i].name, got, cases[i].expected);
    }
}

/* The profiles and the spans may be of the same instance. */
static void test_an_instance_learns_from_its_own_spans(void **state)
{
    (void)state;
    struct service_naming naming = {0};
    struct service_id shop = id_of("shop");
    service_naming_note(&naming, &shop, 1);
    service_naming_learn(&naming, &naming, 2);
    assert_string_equal(decide(&naming, 2), "shop");
    assert_int_not_equal(service_naming_memory(&naming), 0);
    service_naming_deinit(&naming);
}

static void test_long_names_are_not_learned(void **state)
{
    (void)state;
    char text[SERVICE_NAME_MAX + 1];
    memset(text, 'a', sizeof text);
    struct service_id names[] = {
        {.name = slice_of(text, SERVICE_NAME_MAX + 1)},
        {.name = slice_of(text, 3), .space = slice_of(text, SERVICE_NAME_MAX + 1)}};
    for (size_t i = 0; i < 2; i++) {
        struct service_naming naming = {0};
        service_naming_note(&naming, &names[i], 1);
        service_naming_learn(&naming, &naming, 2);
        assert_string_equal(decide(&naming, 2), "stays");
        service_naming_deinit(&naming);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_an_instance_learns_from_its_own_spans),
        cmocka_unit_test(test_long_names_are_not_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
