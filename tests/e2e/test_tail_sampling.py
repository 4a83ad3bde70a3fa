"""Processor tail_sampling in a pipeline of traces and one of profiles: decisions, the end of the process, reloads, warnings."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, make, outputs, server, testing
from tests.oracle.reloading import Reloading

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors:
  batch/one: {timeout: 0s}
  tail_sampling:
    decision_wait: WAIT
    policies: [{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]
    profiles: {wait: 3s}
exporters: {file/traces: {path: "@dir@/traces"}, file/profiles: {path: "@dir@/profiles"}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [batch/one, tail_sampling], exporters: [file/traces]}
    profiles: {receivers: [otlp], processors: [tail_sampling], exporters: [file/profiles]}
""".replace("3s", f"{3 * server.PATIENCE}s")
TRACE = "{:032x}"
UNAVAILABLE = 14
JOIN = """
receivers: {otlp: {protocols: {grpc: {endpoint: localhost:0}}}}
processors: {tail_sampling: {decision_wait: 15s, policies: [{name: busy, type: cpu_above, cpu_above: {threshold: 1s}}]}}
exporters: {nop: {}}
service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling], exporters: [nop]}PROFILES}}
"""


def span(trace, number, status=0):
    return {"trace_id": TRACE.format(trace), "span_id": f"{number:016x}", "name": str(number), "status": status}


class TailSampling(unittest.TestCase):
    def send(self, profcol, request):
        self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), request)))

    def spans(self, profcol):
        """Return the numbers of the spans that left."""
        path = profcol.directory / "traces"
        records = [json.loads(record) for record in outputs.records(path, "json", is_growing=True)] if path.exists() else []
        return sorted(int(s["name"]) for r in records for g in r["resourceSpans"] for c in g["scopeSpans"] for s in c["spans"])

    def samples(self, profcol):
        """Return (trace or "", value) of the samples that left."""
        found, path = [], profcol.directory / "profiles"
        for record in outputs.records(path, "json", is_growing=True) if path.exists() else []:
            request = json.loads(record)
            links = request["dictionary"].get("linkTable", [{}])
            for group in request["resourceProfiles"]:
                for sample in (s for c in group["scopeProfiles"] for p in c["profiles"] for s in p["samples"]):
                    link = links[sample.get("linkIndex", 0)]
                    found.append((link.get("traceId", ""), int(sample["values"][0])))
        return sorted(found)

    def test_profiles_follow_the_traces(self):
        with server.Profcol(CONFIG.replace("WAIT", f"{server.PATIENCE}s"), arguments=["--workers", "2"]) as profcol:
            for number, (trace, status) in enumerate([(1, 0), (2, 0), (1, 2), (2, 1), (1, 0)]):
                self.send(profcol, make.traces([span(trace, number, status)]))
            link = [(f"{i:016x}", TRACE.format(i)) for i in (0, 1, 2, 3)]
            self.send(profcol, make.profiles([{"values": [1], "link": link[1]}, {"values": [20], "link": link[2]}, {"values": [300], "link": link[2]},
                                              {"values": [4000]}, {"values": [50000], "link": link[3]}]))
            server.wait_until(lambda: self.spans(profcol) == [0, 2, 4], what="the spans of the trace with an error")
            server.wait_until(lambda: self.samples(profcol), what="the profile")
            self.assertEqual(self.samples(profcol), sorted([(TRACE.format(1), 1), ("", 320), ("", 4000), (TRACE.format(3), 50000)]))
            self.assertEqual(profcol.metric("otelcol_processor_tail_sampling_global_count_traces_sampled", processor="tail_sampling", sampled="true", decision="sampled"), 1)
            self.assertEqual(profcol.metric("profcol_tail_sampling_profile_samples", processor="tail_sampling", decision="folded"), 2)
            self.send(profcol, make.traces([span(1, 9), span(2, 8)]))     # late
            server.wait_until(lambda: self.spans(profcol) == [0, 2, 4, 9], what="the late span")

    def test_the_end_decides(self):
        with server.Profcol(CONFIG.replace("WAIT", "60s"), arguments=["--workers", "2"]) as profcol:
            for number, (trace, status) in enumerate([(1, 0), (2, 0), (1, 2), (3, 2)]):
                self.send(profcol, make.traces([span(trace, number, status)]))
            self.send(profcol, make.profiles([{"values": [1], "link": ("01" * 8, TRACE.format(1))}, {"values": [2], "link": ("02" * 8, TRACE.format(2))}]))
            self.assertEqual(self.spans(profcol), [])
            profcol.stop()
            self.assertEqual(self.spans(profcol), [0, 2, 3])
            self.assertEqual(self.samples(profcol), [("", 2), (TRACE.format(1), 1)])

    def test_a_reload_that_changes_something_else_changes_nothing_here(self):
        config = CONFIG.replace("WAIT", f"{2 * server.PATIENCE}s")    # longer than the reload takes
        with Reloading(config) as profcol:
            self.send(profcol, make.traces([span(1, 0), span(2, 1)]))
            self.send(profcol, make.profiles([{"values": [1], "link": ("01" * 8, TRACE.format(1))}, {"values": [2], "link": ("02" * 8, TRACE.format(2))}]))
            profcol.reload(config.replace("exporters: [file/traces]", "exporters: [file/traces, file/more]").replace("exporters: {", 'exporters: {file/more: {path: "@dir@/more"}, '))
            self.send(profcol, make.traces([span(1, 2, 2), span(2, 3)]))
            server.wait_until(lambda: self.spans(profcol) == [0, 2], what="both spans of the trace")
            server.wait_until(lambda: self.samples(profcol), what="the profile that waited")
            self.assertEqual(self.samples(profcol), [("", 2), (TRACE.format(1), 1)])
            self.assertEqual(profcol.metric("profcol_tail_sampling_decided_early", processor="tail_sampling", cause="drain"), 0)

    def test_a_replaced_processor_keeps_the_decisions(self):
        config = CONFIG.replace("WAIT", "1s")
        with Reloading(config) as profcol:
            self.send(profcol, make.traces([span(1, 0, 2), span(2, 1)]))
            server.wait_until(lambda: self.spans(profcol) == [0], what="the decision")
            self.send(profcol, make.traces([span(3, 2, 2)]))
            profcol.reload(config.replace("batch/one", "batch/two"))     # other processors are before it
            server.wait_until(lambda: self.spans(profcol) == [0, 2], what="what waited")
            profcol.wait_until_drained()
            self.send(profcol, make.traces([span(1, 3), span(2, 4, 2), span(3, 5)]))
            server.wait_until(lambda: self.spans(profcol) == [0, 2, 3, 5], what="the late spans")
            self.send(profcol, make.profiles([{"values": [1], "link": ("01" * 8, TRACE.format(1))}, {"values": [2], "link": ("02" * 8, TRACE.format(2))}]))
            server.wait_until(lambda: self.samples(profcol), what="the late samples")
            self.assertEqual(self.samples(profcol), [("", 2), (TRACE.format(1), 1)])

    def test_other_settings_keep_decisions_and_what_waits(self):
        config = CONFIG.replace("WAIT", "WAIT\n    num_traces: 1000")
        other = config.replace("WAIT", "500ms").replace("1000", "500\n    decision_cache: {sampled_cache_size: 100, non_sampled_cache_size: 100}").replace(
            "[{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]",
            "[{name: seven, type: ottl_condition, ottl_condition: {span: ['name == \"7\"']}}, {name: unlikely, type: probabilistic}]")
        links = [(f"{i:016x}", TRACE.format(i)) for i in range(5)]
        with Reloading(config.replace("WAIT", "100ms"), arguments=["--workers", "2"]) as profcol:
            self.send(profcol, make.traces([span(1, 0, 2), span(2, 1)]))
            server.wait_until(lambda: self.spans(profcol) == [0], what="the decision")
            profcol.reload(config.replace("WAIT", "60s"))
            self.send(profcol, make.traces([span(3, 2, 2), span(4, 7)]))        # wait, and are held by both workers
            self.send(profcol, make.traces([span(3, 3, 2), span(4, 4)]))
            self.send(profcol, make.profiles([{"values": [1], "link": links[3]}, {"values": [20], "link": links[4]}]))
            profcol.reload(other)
            self.send(profcol, make.traces([span(1, 5), span(2, 7), span(2, 6, 2)]))        # late
            server.wait_until(lambda: self.spans(profcol) == [0, 4, 5, 7], what="the late span, and the trace that the new policies sample")
            self.send(profcol, make.profiles([{"values": [300], "link": links[1]}, {"values": [4000], "link": links[2]}]))
            server.wait_until(lambda: len(self.samples(profcol)) == 4, what="both profiles")
            self.assertEqual(self.samples(profcol), sorted([("", 1), (TRACE.format(4), 20), (TRACE.format(1), 300), ("", 4000)]))
            self.assertEqual(self.spans(profcol), [0, 4, 5, 7])
            self.assertEqual(profcol.metric("profcol_tail_sampling_decided_early", processor="tail_sampling", cause="drain"), 0)
            self.assertEqual(profcol.metric("profcol_config_retired_components"), 0)

    def test_a_replaced_processor_with_other_settings_keeps_the_decisions(self):
        config = CONFIG.replace("WAIT", "100ms")
        with Reloading(config) as profcol:
            self.send(profcol, make.traces([span(1, 0, 2), span(2, 1)]))
            server.wait_until(lambda: self.spans(profcol) == [0], what="the decision")
            profcol.reload(config.replace("batch/one", "batch/two").replace("ERROR", "UNSET").replace("100ms", "200ms"))
            profcol.wait_until_drained()
            self.send(profcol, make.traces([span(1, 3), span(2, 4)]))
            server.wait_until(lambda: self.spans(profcol) == [0, 3], what="the late span")

    def test_a_full_queue_loses_nothing(self):
        """What is sampled was acknowledged: it waits here until the exporter's queue has room."""
        config = CONFIG.replace("WAIT", "100ms").replace("exporters: [file/traces]", "exporters: [otlp_grpc]")
        with backend.Backend("grpc", default=backend.Answer(grpc_status=UNAVAILABLE)) as target:
            exporter = f'otlp_grpc: {{endpoint: "{target.address}", tls: {{insecure: true}}, sending_queue: {{queue_size: 1, num_consumers: 1}}, retry_on_failure: {{initial_interval: 10ms, max_interval: 50ms}}}}'
            with server.Profcol(config.replace("exporters: {", f"exporters: {{{exporter}, ")) as profcol:
                for number in range(10):
                    self.send(profcol, make.traces([span(number + 1, number, 2)]))
                    sampled = {"processor": "tail_sampling", "sampled": "true", "decision": "sampled"}
                    server.wait_until(lambda count=number + 1: profcol.metric("otelcol_processor_tail_sampling_global_count_traces_sampled", **sampled) == count, what="the decision")
                target.wait_for(lambda: len(target.of()) >= 2, what="attempts")
                target.default = backend.Answer()
                target.wait_for_items("traces", 10)
                server.wait_until(lambda: profcol.metric("profcol_tail_sampling_held_bytes", processor="tail_sampling") == 0, what="an empty processor")
            names = sorted(s.name for r in target.accepted("traces") for g in r.message().resource_spans for c in g.scope_spans for s in c.spans)
            self.assertEqual(names, sorted(map(str, range(10))))

    def test_validate_warns_of_samples_that_come_too_late(self):
        for profiles, wanted in (("", "no profiles pipeline has this processor"), (", profiles: {receivers: [otlp], processors: [tail_sampling], exporters: [nop]}", "a longer decision_wait")):
            with self.subTest(wanted):
                result = subprocess.run([os.environ["PROFCOL"], "validate", "--config", "yaml:" + JOIN.replace("PROFILES", profiles)], capture_output=True, text=True, timeout=30, check=False)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertIn(wanted, result.stdout + result.stderr)


if __name__ == "__main__":
    testing.main()
