"""The processor transform: what arrives behind it, in both styles of its settings."""

import os
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, make, server, testing

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}
processors:
  transform:
SETTINGS
exporters:
  otlp_grpc: {endpoint: "BACKEND", tls: {insecure: true}, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
service:
  pipelines:
    traces:   {receivers: [otlp], processors: [transform], exporters: [otlp_grpc]}
    profiles: {receivers: [otlp], processors: [transform], exporters: [otlp_grpc]}
"""

STRINGS = """
    trace_statements:
      - set(span.attributes["route"], span.name) where span.kind == SPAN_KIND_SERVER
      - replace_pattern(span.name, "^(GET) /cart/[0-9]+$", "$${1} /cart/{id}")
      - delete_matching_keys(resource.attributes, "(?i)secret")
      - set(span.attributes["day"], FormatTime(Time("2024-07-29 23:30", "%Y-%m-%d %H:%M", "Europe/Berlin"), "%F %H %Z"))
    profile_statements:
      - set(profilesample.attributes["leaf"], profilesample.leaf.function)
      - delete_key(profilesample.attributes, "secret.key") where StackContains("^handle")
"""

GROUPS = """
    trace_statements:
      - context: resource
        statements: ['delete_matching_keys(attributes, "(?i)secret")']
      - context: span
        conditions: ['kind == SPAN_KIND_SERVER', 'name == "never"']
        statements:
          - set(cache["name"], name)
          - set(attributes["route"], cache["name"])
          - replace_pattern(name, "^(GET) /cart/[0-9]+$", "$${1} /cart/{id}")
      - statements: ['set(span.attributes["day"], Concat([span.attributes["day"], "2024-07-29 23 CEST"], "")) where true', 'replace_pattern(span.attributes["day"], "<nil>", "")']
    profile_statements:
      - context: profilesample
        conditions: ['StackContains("^handle")']
        statements: ['delete_key(attributes, "secret.key")']
      - context: profilesample
        statements: ['set(attributes["leaf"], leaf.function)']
"""


def spans():
    """Return a request with a span of a server and one of a client."""
    request = make.traces([{"span_id": f"{n + 1:016x}", "trace_id": "0" * 31 + "1", "name": name} for n, name in enumerate(["GET /cart/12", "SELECT"])],
                          resource={"service.name": "shop", "My-Secret": "deleted_value"})
    server_span, client_span = request.resource_spans[0].scope_spans[0].spans
    server_span.kind, client_span.kind = 2, 3
    return request


def samples():
    """Return a request with two samples that share an attribute."""
    builder = make.ProfilesBuilder()
    for leaf, root in (("parse", "handle_request"), ("collect", "idle")):
        builder.sample(stack=builder.stack(leaf, root), values=[7], attributes={"secret.key": f"deleted_{leaf}"})
    return builder.request


class TransformTest(unittest.TestCase):
    """One process, and what its backend got."""

    def exchange(self, settings, *messages):
        """Send the messages; return (the answers, what the backend accepted, the log)."""
        with backend.Backend("grpc") as target, \
                server.Profcol(CONFIG.replace("SETTINGS", settings).replace("BACKEND", target.address)) as process:
            answers = [client.export("grpc", process.address("grpc"), message) for message in messages]
            return answers, target.accepted(), process.log()

    def test_both_styles_change_spans_and_samples(self):
        for name, settings in (("strings", STRINGS), ("groups", GROUPS)):
            with self.subTest(name):
                answers, (traces, profiles), _ = self.exchange(settings, spans(), samples())
                self.assertTrue(all(map(client.succeeded, answers)))
                self.check_spans(traces.message().resource_spans[0], name)
                self.check_samples(profiles)

    def check_spans(self, group, style):
        self.assertEqual([a.key for a in group.resource.attributes], ["service.name"])
        server_span, client_span = group.scope_spans[0].spans
        self.assertEqual((server_span.name, client_span.name), ("GET /cart/{id}", "SELECT"))
        attributes = {a.key: a.value.string_value for a in server_span.attributes}
        self.assertEqual(attributes, {"route": "GET /cart/12", "day": "2024-07-29 23 CEST"})
        self.assertEqual([a.key for a in client_span.attributes], ["day"], style)

    def check_samples(self, received):
        self.assertNotIn(b"deleted_parse", received.payload)    # nothing refers to it any more
        (group,) = received.form()["profiles"]
        found = [sample["attributes"] for sample in group["scopes"][0]["profiles"][0]["samples"]]
        text = str(found)
        self.assertEqual(len(found), 2)
        self.assertIn("deleted_collect", text)
        self.assertNotIn("deleted_parse", text)
        self.assertEqual(sorted(sorted(attribute[0] for attribute in attributes) for attributes in found), [["leaf"], ["leaf", "secret.key"]])

    def test_error_modes(self):
        for mode, wanted in (("propagate", False), ("ignore", True), ("silent", True)):
            for style, statements in (("strings", "['set(span.name, span.name + 1)', 'set(span.attributes[\"after\"], true)']"),
                                      ("groups", "[{context: span, statements: ['set(name, name + 1)', 'set(attributes[\"after\"], true)']}]")):
                with self.subTest(mode=mode, style=style):
                    (answer,), received, log = self.exchange(f"    error_mode: {mode}\n    trace_statements: {statements}\n", spans())
                    self.assertEqual(client.succeeded(answer), wanted)
                    self.assertEqual(len(received), wanted)
                    self.assertEqual("failed to execute statement" in log, mode != "silent")
                    if wanted:    # the statement after the one that failed was executed
                        found = received[0].message().resource_spans[0].scope_spans[0].spans
                        self.assertEqual([[a.key for a in span.attributes] for span in found], [["after"]] * 2)
                        self.assertEqual(found[0].name, "GET /cart/12")
                    else:
                        self.assertEqual(answer.grpc_status, 14)
                        self.assertRegex(client.status(answer).message, r"^failed to execute statement: set\(.*name \+ 1\), ")

    def test_a_group_has_an_error_mode_of_its_own(self):
        groups = """
    error_mode: propagate
    trace_statements:
      - {context: span, error_mode: silent, statements: ['set(name, 1 / 0)']}
      - {context: span, conditions: ['1 / 0 == 1', 'kind == SPAN_KIND_CLIENT'], error_mode: ignore, statements: ['set(name, "client")']}
"""
        (answer,), (received,), log = self.exchange(groups, spans())
        self.assertTrue(client.succeeded(answer))
        self.assertEqual([span.name for span in received.message().resource_spans[0].scope_spans[0].spans], ["GET /cart/12", "client"])
        self.assertIn("failed to eval condition", log)
        self.assertNotIn("failed to execute statement", log)

    def test_an_error_of_profiles_refuses_the_request(self):
        settings = "    error_mode: propagate\n    profile_statements: ['set(profilesample.attributes[\"x\"], 1 / 0) where profilesample.stack.depth == 2']\n"
        (answer,), received, _ = self.exchange(settings, samples())
        self.assertEqual((answer.grpc_status, received), (14, []))


if __name__ == "__main__":
    testing.main()
