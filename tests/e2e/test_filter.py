"""The processor filter: what arrives behind it, and what no longer does."""

import gzip
import os
import sys
import time
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, make, pyroscope, server, testing

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}
processors:
  filter: FILTER
exporters:
  EXPORTER
service:
  pipelines:
    traces:   {receivers: [otlp], processors: [filter], exporters: [NAME]}
    profiles: {receivers: [otlp], processors: [filter], exporters: [NAME]}
"""
OWN, FOREIGN = "kept_function", "deleted_function"
LINK = ("64" * 8, "64" * 16)                  # d, d, d...
GONE = [b"deleted_", b"d" * 16, b"64" * 8]    # names, keys and values; the id in a link, also in hex


def render(settings, exporter):
    """Return YAML with these settings of the filter, and one exporter: (name, settings)."""
    name, text = exporter
    config = CONFIG.replace("    traces: ", "    #") if name == "pyroscope" else CONFIG
    return config.replace("FILTER", settings).replace("EXPORTER", f"{name}: {text}").replace("NAME", name)


def grpc_to(target):
    return "otlp_grpc", f'{{endpoint: "{target.address}", tls: {{insecure: true}}, compression: none, sending_queue: {{enabled: false}}}}'


def spans(*names):
    """Return a request with spans of these names."""
    return make.traces([{"span_id": f"{n + 1:016x}", "trace_id": "0" * 31 + "1", "name": name, "attributes": {"n": n}}
                        for n, name in enumerate(names)])


def samples():
    """Return a request with a sample that stays, and three that have everything that can be deleted."""
    builder = make.ProfilesBuilder()
    make.set_attributes(builder.resource.resource, {"service.name": "shop"})
    builder.profile.period_type.type_strindex = builder.string("cpu")
    builder.profile.period_type.unit_strindex = builder.string("nanoseconds")
    builder.sample(stack=builder.stack(OWN, "main"), values=[7], attributes={"kept_key": "kept_value"})
    for n in range(3):
        builder.sample(stack=builder.stack(FOREIGN, "main"), values=[100 + n], link=LINK,
                       attributes={"deleted_key": f"deleted_value{n}"})
    function = builder.request.dictionary.function_table[-2]
    function.filename_strindex = builder.string("deleted_file.c")
    builder.profile.time_unix_nano = int(time.time() - 10) * 10**9
    builder.profile.original_payload_format = "text"
    builder.profile.original_payload = b"deleted_original"
    return builder.request


DROP_SAMPLES = '{profile_conditions: [\'profilesample.leaf.function == "deleted_function"\']}'


class FilterTest(unittest.TestCase):
    """One process, and what its backend got."""

    def test_spans_and_counters(self):
        settings = '{trace_conditions: [\'span.name == "a"\', \'span.attributes["n"] == 3\']}'
        with backend.Backend("grpc") as target, server.Profcol(render(settings, grpc_to(target))) as process:
            self.assertTrue(client.succeeded(client.export("grpc", process.address("grpc"), spans("a", "b", "a", "c", "d"))))
            (received,) = target.accepted("traces")
            self.assertEqual([span.name for group in received.message().resource_spans
                              for scope in group.scope_spans for span in scope.spans], ["b", "d"])
            self.assertEqual(process.metric("otelcol_processor_filter_spans_filtered", filter="filter"), 3)
            self.assertEqual([process.metric("profcol_filter_dropped_spans", processor="filter", condition=f"trace_conditions[{n}]")
                              for n in (0, 1)], [2, 1])

    def test_nothing_left_is_success(self):
        for settings, message in (("{traces: {span: ['true']}}", spans("a")), ("{profiles: {profile: ['true']}}", samples())):
            with self.subTest(settings), backend.Backend("grpc") as target, \
                    server.Profcol(render(settings, grpc_to(target))) as process:
                self.assertTrue(client.succeeded(client.export("grpc", process.address("grpc"), message)))
                self.assertEqual(target.of(), [])

    def test_an_error_can_refuse_the_request(self):
        for mode, wanted in (("propagate", False), ("ignore", True), ("silent", True)):
            settings = f"{{error_mode: {mode}, traces: {{span: ['name + 1 == 2']}}}}"
            with self.subTest(mode), backend.Backend("grpc") as target, \
                    server.Profcol(render(settings, grpc_to(target))) as process:
                answer = client.export("grpc", process.address("grpc"), spans("a"))
                self.assertEqual(client.succeeded(answer), wanted)
                self.assertEqual(len(target.accepted("traces")), wanted)
                if not wanted:
                    self.assertEqual(answer.grpc_status, 14)
                    self.assertRegex(client.status(answer).message, r"^failed to eval condition: name \+ 1 == 2, ")
                self.assertEqual("failed to eval condition" in process.log(), mode != "silent")

    def check_bytes(self, data):
        self.assertIn(OWN.encode(), data)
        for text in GONE:
            self.assertNotIn(text, data)

    def send(self, exporter, settings=DROP_SAMPLES):
        """Send the samples through a process that then ends."""
        with server.Profcol(render(settings, exporter)) as process:
            self.assertTrue(client.succeeded(client.export("grpc", process.address("grpc"), samples())))
            self.assertEqual(process.stop(), 0)
            return process.log(), {path.name: path.read_bytes() for path in process.directory.glob("*.out")}

    def test_the_request_has_the_text_that_must_go(self):
        """Or the next tests prove nothing."""
        data = samples().SerializeToString()
        for text in GONE[:2]:
            self.assertIn(text, data)

    def test_deleted_is_gone_over_otlp(self):
        for protocol in ("grpc", "http"):
            for more in ("", ", encoding: json"):
                if protocol == "grpc" and more:
                    continue
                with self.subTest(protocol + more), backend.Backend(protocol) as target:
                    http = ("otlp_http", f'{{endpoint: "{target.url}", compression: none{more}}}')
                    self.send(grpc_to(target) if protocol == "grpc" else http)
                    (received,) = target.accepted("profiles")
                    self.check_bytes(received.payload)
                    (profile,) = received.message().resource_profiles[0].scope_profiles[0].profiles
                    self.assertEqual([list(sample.values) for sample in profile.samples], [[7]])

    def test_deleted_is_gone_in_files_and_the_log(self):
        _, files = self.send(("file", "{path: '@dir@/proto.out', format: proto}"))
        self.check_bytes(files["proto.out"])
        _, files = self.send(("file", "{path: '@dir@/json.out'}"))
        self.check_bytes(files["json.out"])
        log, _ = self.send(("debug", "{verbosity: detailed}"))
        self.check_bytes(log.encode())

    def test_deleted_is_gone_in_pyroscope(self):
        with pyroscope.Pyroscope() as fake:
            self.send(("pyroscope", f'{{endpoint: "{fake.url}"}}'))
            self.assertEqual(fake.problems, [])
            data = b"".join(push.data for push in fake.pushes())
        self.check_bytes(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)


if __name__ == "__main__":
    testing.main()
