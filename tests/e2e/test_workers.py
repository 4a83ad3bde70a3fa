"""Two workers, and everything that both use at the same time: fan-out to three exporters, requests held for the join,
changed attributes, and many clients over both protocols. Nothing may be lost, duplicated or mixed up. The test is meant
for the thread sanitizer.
"""

import collections
import os
import sys
import threading
import unittest

import h2.exceptions

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, canonical, client, make, outputs, server, testing

CLIENTS = 6
ROUNDS = 40
SPANS_PER_ROUND = 4

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@"}
      http: {endpoint: "127.0.0.1:@http@"}
processors:
  resource: {attributes: [{key: passed, value: "yes", action: upsert}, {key: host.secret, action: delete}]}
  spanjoin:
    window: 10m
    samples: {wait: 20s}
    spans: {wait: 300ms, profile_types: []}
  batch: {timeout: 100ms, send_batch_size: 40}
exporters:
  otlp_grpc: {endpoint: "GRPC", tls: {insecure: true}, sending_queue: {queue_size: 100000}}
  otlp_http: {endpoint: "HTTP", sending_queue: {queue_size: 100000}}
  file/traces: {path: "@dir@/traces.json"}
  file/profiles: {path: "@dir@/profiles.proto", format: proto}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [resource, spanjoin, batch], exporters: [otlp_grpc, otlp_http, file/traces]}
    profiles: {receivers: [otlp], processors: [spanjoin, resource], exporters: [otlp_grpc, otlp_http, file/profiles]}
"""


def ids(number, round_number, which):
    """Return (span id, trace id) of one span."""
    return f"{number + 1:04x}{round_number:08x}{which:04x}", f"{number + 1:08x}{round_number:024x}"


def place_of(span_id):
    """Return the arguments of ids() for a span id."""
    return int(span_id[:4], 16) - 1, int(span_id[4:12], 16), int(span_id[12:], 16)


def spans_of(number, round_number):
    """Return a request of one client's round. Even clients send spans before samples, odd ones after."""
    spans = []
    for which in range(SPANS_PER_ROUND):
        span_id, trace_id = ids(number, round_number, which)
        spans.append({"span_id": span_id, "trace_id": trace_id, "name": f"client {number} span {which}"})
    return make.traces(spans, resource={"service.name": f"client {number}", "host.secret": "x"})


def samples_of(number, round_number):
    """Return a request with one sample for each of those spans, with distinct values."""
    builder = make.ProfilesBuilder()
    make.set_attributes(builder.resource.resource, {"service.name": f"client {number}", "host.secret": "x"})
    for which in range(SPANS_PER_ROUND):
        builder.sample(stack=builder.stack(f"leaf {which}", "root"), values=[value_of(number, round_number, which)],
                       link=ids(number, round_number, which))
    return builder.request


def value_of(number, round_number, which):
    """Return a value that identifies the sample."""
    return 1 + (number * ROUNDS + round_number) * SPANS_PER_ROUND + which


class Client(threading.Thread):
    """Sends its rounds over its own connections, with one protocol for spans and the other for samples."""

    def __init__(self, number, profcol):
        super().__init__(daemon=True)
        self.number, self.profcol, self.failures = number, profcol, []
        self.acknowledged = {"traces": [], "profiles": []}      # rounds
        self.start()

    def run(self):
        ways, both = ["grpc", "http"], None
        try:
            both = client.Both(self.profcol)
            for round_number in range(ROUNDS):
                messages = [spans_of(self.number, round_number), samples_of(self.number, round_number)]
                if self.number % 2:
                    messages.reverse()
                if round_number % 2:
                    ways.reverse()
                for message, protocol in zip(messages, ways):
                    answer = both.export(protocol, message)
                    if not client.succeeded(answer):
                        self.failures.append(answer)
                        continue
                    self.acknowledged[client.signal_of(message)].append(round_number)
        except (OSError, ValueError, h2.exceptions.ProtocolError) as error:
            self.failures.append(error)
        finally:
            if both:
                both.close()


class WorkersTest(unittest.TestCase):
    """See the module."""

    def check_traces(self, forms, where):
        seen = collections.Counter()
        for group, _, span in (row for form in forms for row in canonical.spans(form)):
            seen[span["span_id"], span["trace_id"]] += 1
            attributes = {row[0]: row[1] for row in group["resource"]["attributes"]}
            number, round_number, which = place_of(span["span_id"])
            self.assertEqual(attributes, {"service.name": {"string_value": f"client {number}"},
                                          "passed": {"string_value": "yes"}}, where)
            own = {row[0]: row[1] for row in span["attributes"]}
            if own:    # its samples came in time
                count = value_of(number, round_number, which)    # samples/count: a value is a number of samples
                own.pop("profile.complete", None)    # no CPU time has been seen of the process, which has just begun
                self.assertEqual(own, {"pyroscope.profile.id": {"string_value": span["span_id"]},
                                       "profile.samples": {"int_value": count}}, where)
        want = collections.Counter(ids(number, round_number, which) for number in range(CLIENTS)
                                   for round_number in range(ROUNDS) for which in range(SPANS_PER_ROUND))
        self.assertEqual(seen, want, where)

    def check_profiles(self, forms, where):
        seen = collections.Counter()
        for group, _, _, sample in (row for form in forms for row in canonical.samples(form)):
            attributes = {row[0]: row[1] for row in group["resource"]["attributes"]}
            span_id = sample["link"]["span_id"]
            number, round_number, which = place_of(span_id)
            self.assertEqual(attributes, {"service.name": {"string_value": f"client {number}"},
                                          "passed": {"string_value": "yes"}}, where)
            self.assertEqual(sample["values"], [value_of(number, round_number, which)], where)
            self.assertEqual(sample["link"]["trace_id"], ids(number, round_number, which)[1], where)
            self.assertEqual(sample["stack"][0]["lines"][0]["function"]["name"], f"leaf {which}", where)
            self.assertEqual({row[0]: row[1] for row in sample["attributes"]},
                             {"span_name": {"string_value": f"client {number} span {which}"},
                              "span_kind": {"string_value": "server"}, "span_status": {"string_value": "unset"}}, where)
            seen[number, round_number, which] += 1
        want = collections.Counter((number, round_number, which) for number in range(CLIENTS)
                                   for round_number in range(ROUNDS) for which in range(SPANS_PER_ROUND))
        self.assertEqual(seen, want, where)

    def test_everything_at_once(self):
        with backend.Backend("grpc") as one, backend.Backend("http") as two:
            # Some attempts fail. Retries must not duplicate anything at a backend that refused.
            one.answers.extend([backend.Answer(), backend.Answer(grpc_status=14, retry_after=0.05)] * 5)
            two.answers.extend([backend.Answer(), backend.Answer(status=503), backend.Answer(drop=True)] * 3)
            text = CONFIG.replace("GRPC", one.address).replace("HTTP", two.url)
            with server.Profcol(text, arguments=["--workers", "2"]) as profcol:
                threads = [Client(number, profcol) for number in range(CLIENTS)]
                metrics = 0
                while any(thread.is_alive() for thread in threads):
                    metrics += profcol.metric("otelcol_process_uptime") is not None
                    threads[0].join(0.05)
                for thread in threads:
                    thread.join()
                    self.assertEqual(thread.failures, [])
                total = CLIENTS * ROUNDS * SPANS_PER_ROUND
                self.assertEqual(profcol.metric("otelcol_receiver_accepted_spans"), total)
                self.assertEqual(profcol.metric("otelcol_receiver_accepted_profile_samples"), total)
                self.assertEqual(profcol.stop(60), 0)
                forms = {"grpc": (one.forms("traces"), one.forms("profiles")),
                         "http": (two.forms("traces"), two.forms("profiles")),
                         "file": (outputs.forms(profcol.directory / "traces.json", "traces"),
                                  outputs.forms(profcol.directory / "profiles.proto", "profiles", "proto"))}
        for where, (traces, profiles) in forms.items():
            with self.subTest(where):
                self.check_traces(traces, where)
                self.check_profiles(profiles, where)

    def test_sigterm_in_the_middle(self):
        """Everything acknowledged is delivered to each backend."""
        with backend.Backend("grpc") as one, backend.Backend("http") as two:
            text = CONFIG.replace("GRPC", one.address).replace("HTTP", two.url)
            with server.Profcol(text, arguments=["--workers", "2"]) as profcol:
                threads = [Client(number, profcol) for number in range(CLIENTS)]
                server.wait_until(lambda: sum(len(thread.acknowledged["traces"]) for thread in threads) > CLIENTS,
                                  what="some answers")
                self.assertEqual(profcol.stop(60), 0)
                for thread in threads:
                    thread.join()
                forms = {"grpc": one.forms("traces") + one.forms("profiles"), "http": two.forms("traces") + two.forms("profiles"),
                         "file": outputs.forms(profcol.directory / "traces.json", "traces")
                                 + outputs.forms(profcol.directory / "profiles.proto", "profiles", "proto")}
                self.assertNotIn("Dropping data", profcol.log())
        for where, found in forms.items():
            with self.subTest(where):
                spans = collections.Counter(row[2]["span_id"] for form in found for row in canonical.spans(form))
                samples = collections.Counter(row[3]["link"]["span_id"] for form in found for row in canonical.samples(form))
                self.assertLessEqual(set((spans + samples).values()), {1, 2})
                for thread in threads:
                    for signal, have in (("traces", spans), ("profiles", samples)):
                        lost = [round_number for round_number in thread.acknowledged[signal] for which in range(SPANS_PER_ROUND)
                                if have[ids(thread.number, round_number, which)[0]] != 1]
                        self.assertEqual(lost, [], f"{signal} of client {thread.number}")


if __name__ == "__main__":
    testing.main()
