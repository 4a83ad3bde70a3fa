/* Each detector against a fake service, which answers well, wrongly, or not at all. */
#include "config/config.h"
#include "core/base/hash.h"
#include "core/components.h"
#include "core/data/any_value.h"
#include "processors/resource_detection/detection.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/loopback_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the fake service ---- */

struct page {
    const char *request; /* "GET /path"; a * at the end stands for anything */
    int status;
    const char *body;
    const char *needs; /* a line that the head of the request must have; NULL: none */
};

enum { PAGES_MAX = 12, HUGE_BYTES = 300 * 1024 };

struct service {
    struct page pages[PAGES_MAX];
    bool is_google;          /* its answers have the header Metadata-Flavor */
    bool hangs;              /* it never answers */
    unsigned failures_first; /* so many requests get 503 */
};

static char huge[HUGE_BYTES];

static bool fits(const char *pattern, const char *text)
{
    size_t size = strlen(pattern);
    if (size > 0 && pattern[size - 1] == '*')
        return strncmp(pattern, text, size - 1) == 0;
    return strcmp(pattern, text) == 0;
}

static const struct page *find_page(const struct service *service, const char *wanted,
                                    const char *head)
{
    static const struct page missing = {"", 404, "not here", NULL};
    for (size_t i = 0; i < PAGES_MAX && service->pages[i].request; i++)
        if (fits(service->pages[i].request, wanted))
            return !service->pages[i].needs || strstr(head, service->pages[i].needs)
                       ? &service->pages[i]
                       : &missing;
    return &missing;
}

/* Copies the value of a line "name: value". */
static void take_line(const char *head, const char *name, char *out, size_t size)
{
    const char *at = strstr(head, name);
    assert_non_null(at);
    at += strlen(name) + 2;
    snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
}

static void on_request(void *context, unsigned number, const struct peer_request *request,
                       struct peer_answer *answer)
{
    const struct service *service = context;
    const char *head = request->head.data;
    char method[16], path[200], wanted[220];
    take_line(head, ":method", method, sizeof method);
    take_line(head, ":path", path, sizeof path);
    snprintf(wanted, sizeof wanted, "%s %s", method, path);
    const struct page *page = find_page(service, wanted, head);
    answer->action = service->hangs ? PEER_SILENT : PEER_ANSWER;
    answer->status = number < service->failures_first ? 503 : page->status;
    answer->body = slice_of_string(page->body);
    if (service->is_google)
        answer->headers[0] = (struct peer_header){"Metadata-Flavor", "Google"};
}

/* ---- one detection ---- */

struct outcome {
    struct text attributes; /* "key=value" lines */
    bool has_failed, must_fail, has_schema;
    char err[1024];
};

static struct config *configure(const char *settings)
{
    struct text yaml = {0}, report = {0};
    text_printf(&yaml,
                "receivers: {otlp: {protocols: {http: }}}\nexporters: {nop: }\n"
                "processors: {resource_detection: %s}\nservice: {pipelines: {traces: {receivers: "
                "[otlp], processors: [resource_detection], exporters: [nop]}}}\n",
                settings);
    struct config *config =
        config_load_text(component_types, "test", slice_of_string(text_string(&yaml)), &report);
    if (!config)
        fail_msg("%s", text_string(&report));
    text_deinit(&yaml);
    text_deinit(&report);
    return config;
}

static void print(const struct detected *found, struct text *out)
{
    for (uint32_t i = 0; i < found->count; i++) {
        struct any_value value = any_value_read(found->items[i].value);
        text_printf(out, "%.*s=%.*s\n", SLICE_ARG(found->items[i].key), SLICE_ARG(value.bytes));
    }
}

static void on_done(struct detection *detection)
{
    assert_true(detection->is_done);
}

/* A failure ends the detection that expects it, which would otherwise try until its timeout. */
static void end_after_failure(struct detection *detection)
{
    for (size_t i = 0; i < detection->count && !detection->is_done; i++)
        if (detection->runs[i].err.text[0])
            worker_set_timer(detection->worker, &detection->deadline, 0);
}

static void detect_until(const char *settings, bool expects_failure, struct outcome *out)
{
    struct worker worker;
    struct error err;
    struct config *config = configure(settings);
    assert_true(worker_init(&worker, 0, &err));
    struct detection detection = {
        .worker = &worker,
        .settings = config->components[CONFIG_PROCESSORS][0].settings,
        .label = "test",
        .on_done = on_done,
    };
    detection_start(&detection);
    while (!detection.is_done) {
        if (expects_failure)
            end_after_failure(&detection);
        uv_run(&worker.loop, UV_RUN_ONCE);
    }
    *out = (struct outcome){.has_failed = detection.has_failed,
                            .must_fail = detection.must_fail,
                            .has_schema = detection.detected->has_schema};
    snprintf(out->err, sizeof out->err, "%s", detection.has_failed ? detection.err.text : "");
    print(detection.detected, &out->attributes);
    detection_stop(&detection);
    workers_settle(&worker, 1);
    worker_deinit(&worker);
    config_free(config);
}

static void detect(const char *settings, struct outcome *out)
{
    detect_until(settings, false, out);
}

static void clear_environment(void)
{
    static const char *const names[] = {"OTEL_RESOURCE_ATTRIBUTES",
                                        "OTEL_RESOURCE",
                                        "AWS_EC2_METADATA_DISABLED",
                                        "KUBERNETES_SERVICE_HOST",
                                        "FUNCTION_TARGET",
                                        "CLOUD_RUN_JOB",
                                        "K_CONFIGURATION",
                                        "K_SERVICE",
                                        "K_REVISION",
                                        "GAE_ENV",
                                        "GAE_SERVICE",
                                        "DOCKER_HOST"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

static void point_to(uint16_t port)
{
    char url[100];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url, 1);
    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", url, 1);
    snprintf(url, sizeof url, "127.0.0.1:%u", port);
    setenv("GCE_METADATA_HOST", url, 1);
    snprintf(url, sizeof url, "tcp://127.0.0.1:%u", port);
    setenv("DOCKER_HOST", url, 1);
}

/* ---- cases ---- */

#define TOKEN                                                                                      \
    "PUT /latest/api/token", 200, "secret\n", "x-aws-ec2-metadata-token-ttl-seconds: 21600"
#define DOCUMENT "GET /latest/dynamic/instance-identity/document"
#define WITH_TOKEN "x-aws-ec2-metadata-token: secret"
#define EC2_JSON                                                                                   \
    "{\"region\":\"eu-west-1\",\"accountId\":\"42\",\"instanceId\":\"i-1\",\"imageId\":\"ami-1\"," \
    "\"availabilityZone\":\"eu-west-1a\",\"instanceType\":\"m5.large\",\"kernelId\":null}"
#define EC2_FOUND                                                                                  \
    "cloud.provider=aws\ncloud.platform=aws_ec2\ncloud.region=eu-west-1\ncloud.account.id=42\n"    \
    "host.id=i-1\ncloud.availability_zone=eu-west-1a\nhost.image.id=ami-1\nhost.type=m5.large\n"
#define COMPUTE "GET /metadata/instance/compute?api-version=2020-09-01&format=json", 200
#define GCP(path, value)                                                                           \
    {                                                                                              \
        "GET /computeMetadata/v1/" path, 200, value, "metadata-flavor: Google"                     \
    }

static const struct service_case {
    const char *what, *settings;
    const char *variable, *value; /* of the environment */
    struct service service;
    const char *wanted;  /* attributes */
    const char *problem; /* part of the error; NULL: no detector fails */
    bool must_fail;
} cases[] = {
    /* EC2 */
    {"tokens, host name and tags",
     "{detectors: [ec2], ec2: {tags: ['^Na', team/x], tags_from_imds: true}}",
     NULL,
     NULL,
     {.pages = {{TOKEN},
                {DOCUMENT, 200, EC2_JSON, WITH_TOKEN},
                {"GET /latest/meta-data/hostname", 200, "ip-1.internal", WITH_TOKEN},
                {"GET /latest/meta-data/tags/instance/", 200, "Name\nother\nteam/x\nNature",
                 WITH_TOKEN},
                {"GET /latest/meta-data/tags/instance/Name", 200, "web", WITH_TOKEN},
                {"GET /latest/meta-data/tags/instance/team%2Fx", 200, "a b", WITH_TOKEN}}},
     EC2_FOUND "host.name=ip-1.internal\nec2.tag.Name=web\nec2.tag.team/x=a b\n",
     NULL,
     false},
    {"a service without tokens",
     "{detectors: [ec2], ec2: {resource_attributes: {host.name: {enabled: false}}}}",
     NULL,
     NULL,
     {.pages = {{DOCUMENT, 200, EC2_JSON, NULL},
                {"GET /latest/meta-data/hostname", 200, "ip-1.internal", NULL}}},
     EC2_FOUND,
     NULL,
     false},
    {"another place's service",
     "{detectors: [ec2]}",
     NULL,
     NULL,
     {.hangs = false},
     "",
     NULL,
     false},
    {"a document that is no JSON",
     "{detectors: [env, ec2]}",
     "OTEL_RESOURCE_ATTRIBUTES",
     "a=b",
     {.pages = {{TOKEN}, {DOCUMENT, 200, "<html>", NULL}}},
     "a=b\n",
     "detector ec2: the answer is not a JSON object",
     false},
    {"a document that is no object",
     "{detectors: [ec2]}",
     NULL,
     NULL,
     {.pages = {{TOKEN}, {DOCUMENT, 200, "[]", NULL}}},
     "",
     "the answer is not a JSON object",
     false},
    {"a huge document",
     "{detectors: [ec2]}",
     NULL,
     NULL,
     {.pages = {{TOKEN}, {DOCUMENT, 200, huge, NULL}}},
     "",
     "the answer is larger than 256 KiB",
     false},
    {"a token with a line break",
     "{detectors: [ec2]}",
     NULL,
     NULL,
     {.pages = {{"PUT *", 200, "a\r\nx-other: b", NULL}, {DOCUMENT, 200, "{}", "x-aws"}}},
     "",
     NULL,
     false},
    {"members of other types",
     "{detectors: [ec2]}",
     NULL,
     NULL,
     {.pages = {{TOKEN}, {DOCUMENT, 200, "{\"region\":7,\"accountId\":[\"x\"]}", NULL}}},
     "cloud.provider=aws\ncloud.platform=aws_ec2\n",
     NULL,
     false},
    {"a service that hangs",
     "{detectors: [ec2, env], timeout: 100ms}",
     "OTEL_RESOURCE_ATTRIBUTES",
     "a=b",
     {.hangs = true},
     "a=b\n",
     NULL,
     false},
    {"a service that hangs and must exist",
     "{detectors: [ec2], timeout: 100ms, ec2: {fail_on_missing_metadata: true}}",
     NULL,
     NULL,
     {.hangs = true},
     "",
     "detector ec2: no answer within the timeout",
     true},
    {"a service that is missing and must exist",
     "{detectors: [ec2], ec2: {fail_on_missing_metadata: true}}",
     NULL,
     NULL,
     {.hangs = false},
     "",
     "detector ec2: the answer has status 404",
     true},
    {"the third attempt",
     "{detectors: [ec2], ec2: {max_backoff: 1ms}}",
     NULL,
     NULL,
     {.pages = {{TOKEN},
                {DOCUMENT, 200, EC2_JSON, WITH_TOKEN},
                {"GET /latest/meta-data/hostname", 200, "h", WITH_TOKEN}},
      .failures_first = 2},
     EC2_FOUND "host.name=h\n",
     NULL,
     false},
    {"too few attempts",
     "{detectors: [ec2], ec2: {max_attempts: 2, max_backoff: 1ms}}",
     NULL,
     NULL,
     {.pages = {{TOKEN}, {DOCUMENT, 200, EC2_JSON, WITH_TOKEN}}, .failures_first = 2},
     "",
     NULL,
     false},
    {"EC2 switched off",
     "{detectors: [ec2]}",
     "AWS_EC2_METADATA_DISABLED",
     "TRUE",
     {.pages = {{TOKEN}, {DOCUMENT, 200, EC2_JSON, WITH_TOKEN}}},
     "",
     NULL,
     false},
    /* Google Cloud */
    {"Compute Engine",
     "{detectors: [gcp], gcp: {resource_attributes: {gcp.gce.instance.hostname: {enabled: true}, "
     "gcp.gce.instance.name: {enabled: true}}}}",
     NULL,
     NULL,
     {.pages = {GCP("project/project-id", "p-1"),
                GCP("instance/zone", "projects/1/zones/europe-west1-b"),
                GCP("instance/machine-type", "projects/1/machineTypes/e2-small"),
                GCP("instance/id", "123\n"), GCP("instance/name", "vm"),
                GCP("instance/hostname", "vm.c.internal"),
                GCP("instance/attributes/created-by",
                    "projects/1/zones/europe-west1-b/instanceGroupManagers/group")},
      .is_google = true},
     "cloud.provider=gcp\ncloud.account.id=p-1\ncloud.platform=gcp_compute_engine\n"
     "cloud.availability_zone=europe-west1-b\ncloud.region=europe-west1\n"
     "host.type=projects/1/machineTypes/e2-small\nhost.id=123\nhost.name=vm\n"
     "gcp.gce.instance.name=vm\ngcp.gce.instance.hostname=vm.c.internal\n"
     "gcp.gce.instance_group_manager.name=group\n"
     "gcp.gce.instance_group_manager.zone=europe-west1-b\n",
     NULL,
     false},
    {"Kubernetes Engine, with workload identity",
     "{detectors: [gcp]}",
     "KUBERNETES_SERVICE_HOST",
     "10.0.0.1",
     {.pages = {GCP("project/project-id", "p-1"),
                GCP("instance/attributes/cluster-location", "europe-west1"),
                GCP("instance/attributes/cluster-name", "c"), GCP("instance/id", "123")},
      .is_google = true},
     "cloud.provider=gcp\ncloud.account.id=p-1\ncloud.platform=gcp_kubernetes_engine\n"
     "cloud.region=europe-west1\nk8s.cluster.name=c\nhost.id=123\n",
     NULL,
     false},
    {"another Kubernetes on Compute Engine",
     "{detectors: [gcp]}",
     "KUBERNETES_SERVICE_HOST",
     "10.0.0.1",
     {.pages = {GCP("project/project-id", "p-1"), GCP("instance/id", "123")}, .is_google = true},
     "cloud.provider=gcp\ncloud.account.id=p-1\ncloud.platform=gcp_compute_engine\nhost.id=123\n",
     NULL,
     false},
    {"Cloud Run",
     "{detectors: [gcp]}",
     "K_CONFIGURATION",
     "x",
     {.pages = {GCP("project/project-id", "p-1"), GCP("instance/id", "123"),
                GCP("instance/region", "projects/1/regions/us-east1")},
      .is_google = true},
     "cloud.provider=gcp\ncloud.account.id=p-1\ncloud.platform=gcp_cloud_run\nfaas.instance=123\n"
     "cloud.region=us-east1\n",
     NULL,
     false},
    {"a service that is not Google's",
     "{detectors: [gcp]}",
     NULL,
     NULL,
     {.pages = {GCP("project/project-id", "p-1")}},
     "",
     NULL,
     false},
    {"Google's, which hangs",
     "{detectors: [gcp], timeout: 50ms}",
     NULL,
     NULL,
     {.hangs = true},
     "",
     NULL,
     false},
    {"a value that is not UTF-8",
     "{detectors: [gcp]}",
     "GAE_ENV",
     "standard",
     {.pages = {GCP("project/project-id", "\xff"), GCP("instance/zone", huge),
                GCP("instance/region", "r")},
      .is_google = true},
     "cloud.provider=gcp\ncloud.platform=gcp_app_engine\ncloud.region=r\n",
     NULL,
     false},
    /* Azure */
    {"Azure, with tags",
     "{detectors: [azure], azure: {tags: [team], resource_attributes: {cloud.availability_zone: "
     "{enabled: true}, azure.vm.size: {enabled: false}}}}",
     NULL,
     NULL,
     {.pages = {{COMPUTE,
                 "{\"location\":\"westeurope\",\"name\":\"vm\",\"vmId\":\"id\",\"vmSize\":\"D2\","
                 "\"subscriptionId\":\"s\",\"resourceGroupName\":\"g\",\"vmScaleSetName\":\"\","
                 "\"zone\":\"2\",\"osProfile\":{\"computerName\":\"host\"},\"tagsList\":[{\"name\":"
                 "\"team\",\"value\":\"a\"},{\"name\":\"x\",\"value\":\"b\"},7,{\"name\":3}]}",
                 "metadata: True"}}},
     "cloud.provider=azure\ncloud.platform=azure.vm\nhost.name=host\ncloud.region=westeurope\n"
     "host.id=id\ncloud.account.id=s\ncloud.availability_zone=2\nazure.vm.name=vm\n"
     "azure.resourcegroup.name=g\nazure.tag.team=a\n",
     NULL,
     false},
    {"Azure, without a computer's name",
     "{detectors: [azure]}",
     NULL,
     NULL,
     {.pages = {{COMPUTE, "{\"name\":\"vm\"}", NULL}}},
     "cloud.provider=azure\ncloud.platform=azure.vm\nhost.name=vm\nazure.vm.name=vm\n",
     NULL,
     false},
    {"not Azure", "{detectors: [azure]}", NULL, NULL, {.hangs = false}, "", NULL, false},
    {"Azure, which hangs",
     "{detectors: [azure], timeout: 50ms}",
     NULL,
     NULL,
     {.hangs = true},
     "",
     NULL,
     false},
    {"Azure, with garbage",
     "{detectors: [azure]}",
     NULL,
     NULL,
     {.pages = {{COMPUTE, "{\"name\":", NULL}}},
     "",
     "detector azure: the answer is not a JSON object",
     false},
    {"Azure, with a huge answer",
     "{detectors: [azure]}",
     NULL,
     NULL,
     {.pages = {{COMPUTE, huge, NULL}}},
     "",
     "detector azure: the answer is larger than 256 KiB",
     false},
    /* Docker */
    {"Docker",
     "{detectors: [docker, env]}",
     "OTEL_RESOURCE_ATTRIBUTES",
     "os.type=other,a=b",
     {.pages = {{"GET /info", 200, "{\"OSType\":\"linux\",\"Name\":\"host\",\"NCPU\":2}", NULL}}},
     "os.type=linux\nhost.name=host\na=b\n",
     NULL,
     false},
    {"Docker, with the container",
     "{detectors: [docker], docker: {resource_attributes: {container.name: {enabled: true}, "
     "container.image.name: {enabled: true}, host.name: {enabled: false}}}}",
     NULL,
     NULL,
     {.pages = {{"GET /info", 200, "{\"OSType\":\"linux\",\"Name\":\"host\"}", NULL},
                {"GET /containers/*", 200, "{\"Name\":\"/c\",\"Config\":{\"Image\":\"i:1\"}}",
                 NULL}}},
     "os.type=linux\ncontainer.name=c\ncontainer.image.name=i:1\n",
     NULL,
     false},
    {"Docker, at the second attempt",
     "{detectors: [docker]}",
     NULL,
     NULL,
     {.pages = {{"GET /info", 200, "{\"Name\":\"host\"}", NULL}}, .failures_first = 1},
     "host.name=host\n",
     NULL,
     false},
    {"Docker, which hangs",
     "{detectors: [docker, env], timeout: 100ms}",
     "OTEL_RESOURCE_ATTRIBUTES",
     "a=b",
     {.hangs = true},
     "a=b\n",
     "detector docker: no answer within the timeout",
     false},
    {"Docker without the path",
     "{detectors: [docker]}",
     NULL,
     NULL,
     {.hangs = false},
     "",
     "detector docker: the answer has status 404",
     false},
    {"Docker, with garbage",
     "{detectors: [docker]}",
     NULL,
     NULL,
     {.pages = {{"GET /info", 200, "null", NULL}}},
     "",
     "detector docker: the answer is not a JSON object",
     false},
    {"Docker, with a huge answer",
     "{detectors: [docker]}",
     NULL,
     NULL,
     {.pages = {{"GET /info", 200, huge, NULL}}},
     "",
     "detector docker: the answer is larger than 256 KiB",
     false},
    /* the environment */
    {"a malformed variable",
     "{detectors: [env]}",
     "OTEL_RESOURCE_ATTRIBUTES",
     "a",
     {.hangs = false},
     "",
     "detector env: invalid resource format",
     false},
    {"the old variable", "{}", "OTEL_RESOURCE", " a=b ", {.hangs = false}, "a=b\n", NULL, false},
    {"detectors that profcol lacks",
     "{detectors: [eks, lambda]}",
     NULL,
     NULL,
     {.hangs = false},
     "",
     NULL,
     false},
};

static void check_case(const struct service_case *c)
{
    struct service service = c->service;
    struct outcome got;
    struct peer_options options = {.answer = on_request, .context = &service};
    struct peer *peer = peer_new(&options);
    clear_environment();
    point_to(peer_port(peer));
    if (c->variable)
        setenv(c->variable, c->value, 1);
    detect_until(c->settings, c->problem != NULL, &got);
    peer_free(peer);
    expect_text_of(c->what, text_string(&got.attributes), c->wanted);
    if (got.has_failed != (c->problem != NULL) || got.must_fail != c->must_fail ||
        !strstr(got.err, c->problem ? c->problem : ""))
        fail_msg("%s: failed %d, must fail %d: %s", c->what, got.has_failed, got.must_fail,
                 got.err);
    text_deinit(&got.attributes);
}

static void each_service_is_read(void **state)
{
    (void)state;
    memset(huge, 'x', sizeof huge - 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(&cases[i]);
}

/* Nobody listens: the clouds are absent, the Docker daemon is missing. */
static void refused_connections_end_the_detection(void **state)
{
    (void)state;
    struct outcome got;
    clear_environment();
    point_to(peer_unused_port());
    setenv("OTEL_RESOURCE_ATTRIBUTES", "a=b", 1);
    detect("{detectors: [env, ec2, gcp, azure]}", &got);
    expect_text(text_string(&got.attributes), "a=b\n");
    assert_false(got.has_failed || got.has_schema);
    text_deinit(&got.attributes);
    detect_until("{detectors: [docker]}", true, &got);
    assert_true(got.has_failed && !got.must_fail);
    assert_non_null(strstr(got.err, "connection refused"));
    text_deinit(&got.attributes);
}

static void a_unix_socket_is_the_docker_daemon(void **state)
{
    (void)state;
    char path[100], address[120];
    struct outcome got;
    struct service service = {.pages = {{"GET /info", 200, "{\"Name\":\"h\"}", NULL}}};
    snprintf(path, sizeof path, "/tmp/profcol-test-docker-%d.sock", (int)getpid());
    snprintf(address, sizeof address, "unix://%s", path);
    struct peer_options options = {.answer = on_request, .context = &service, .unix_path = path};
    struct peer *peer = peer_new(&options);
    clear_environment();
    setenv("DOCKER_HOST", address, 1);
    detect("{detectors: [docker]}", &got);
    peer_free(peer);
    unlink(path);
    expect_text(text_string(&got.attributes), "host.name=h\n");
    assert_true(got.has_schema && !got.has_failed);
    text_deinit(&got.attributes);
}

static void addresses_of_other_kinds_are_refused(void **state)
{
    (void)state;
    struct outcome got;
    clear_environment();
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "https://127.0.0.1:1", 1);
    detect("{detectors: [ec2]}", &got);
    assert_non_null(strstr(got.err, "only http:// and unix:// are supported"));
    text_deinit(&got.attributes);
    setenv("DOCKER_HOST", "npipe:////./pipe/docker_engine", 1);
    detect("{detectors: [docker]}", &got);
    assert_non_null(strstr(got.err, "a URL must start with http://"));
    text_deinit(&got.attributes);
}

/* ---- the host ---- */

static void the_host_is_described(void **state)
{
    (void)state;
    char host[256] = "", wanted[400];
    struct outcome got;
    gethostname(host, sizeof host - 1);
    detect("{detectors: [system], system: {hostname_sources: [os]}}", &got);
    snprintf(wanted, sizeof wanted, "host.name=%s\nos.type=linux\n", host);
    expect_text(text_string(&got.attributes), wanted);
    assert_true(got.has_schema);
    text_deinit(&got.attributes);
    detect("{detectors: [system], system: {hostname_sources: [os], resource_attributes: {"
           "host.arch: {enabled: true}, host.ip: {enabled: true}, os.description: {enabled: "
           "true}, host.interface: {enabled: true}, host.mac: {enabled: true}}}}",
           &got);
    assert_non_null(strstr(text_string(&got.attributes), "host.arch="));
    assert_non_null(strstr(text_string(&got.attributes), "os.description="));
    assert_non_null(strstr(text_string(&got.attributes), "host.ip="));
    text_deinit(&got.attributes);
}

/* Whatever the name service of this machine says, some source knows a name. */
static void name_services_are_asked(void **state)
{
    (void)state;
    struct outcome got;
    detect("{detectors: [system], timeout: 2s, system: {hostname_sources: [lookup, cname, dns, "
           "os]}}",
           &got);
    assert_false(got.has_failed);
    assert_non_null(strstr(text_string(&got.attributes), "host.name="));
    text_deinit(&got.attributes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_service_is_read),
        cmocka_unit_test(refused_connections_end_the_detection),
        cmocka_unit_test(a_unix_socket_is_the_docker_daemon),
        cmocka_unit_test(addresses_of_other_kinds_are_refused),
        cmocka_unit_test(the_host_is_described),
        cmocka_unit_test(name_services_are_asked),
    };
    hash_init_with(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
