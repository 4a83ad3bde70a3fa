"""Redacted profiles are joined, merged and compared like others: ids and totals stay, and with a key a name is the same in each process."""

import collections
import os
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, make, server, testing  # noqa: E402

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors:
  redaction:
    allow_all_keys: true
    blocked_values: ["4[0-9]{15}"]
    redact_all_texts: true
    secret_words: {hmac_key: 0123456789abcdef0123456789abcdef}
  spanjoin: {samples: {wait: 0s}}
  batch: {timeout: 1h, send_batch_size: 4}
exporters: {nop: {}, otlp_grpc: {endpoint: "BACKEND", tls: {insecure: true}}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [redaction, spanjoin], exporters: [nop]}
    profiles: {receivers: [otlp], processors: [redaction, spanjoin, batch], exporters: [otlp_grpc]}
"""
TRACE, SPAN = "0102030405060708090a0b0c0d0e0f10", "a1a2a3a4a5a6a7a8"
SECRETS = (b"getPassword", b"readToken", b"hunter2", b"4111111111111111")


def spans():
    return make.traces([{"span_id": SPAN, "trace_id": TRACE, "name": "GET /pay/4111111111111111", "attributes": {"http.route": "/pay/{card}"}}])


def profile(weight):
    """Two functions with different secret words, under a span by link and by attribute."""
    built = make.ProfilesBuilder()
    make.set_attributes(built.resource.resource, {"service.name": "tested"})
    built.sample(stack=built.stack("getPassword", "work"), values=[weight], link=(SPAN, TRACE), attributes={"password": "hunter2"})
    built.sample(stack=built.stack("readToken", "work"), values=[2 * weight], attributes={"span_id": SPAN})
    return built.request


def flame_graph(request):
    """Values by stack and route."""
    tables, total = request.dictionary, collections.Counter()
    strings = tables.string_table
    name = [strings[function.name_strindex] for function in tables.function_table]
    samples = [sample for group in request.resource_profiles for scope in group.scope_profiles for each in scope.profiles for sample in each.samples]
    for sample in samples:
        keys = {strings[tables.attribute_table[i].key_strindex]: tables.attribute_table[i].value.string_value for i in sample.attribute_indices}
        stack = tuple(name[line.function_index] for i in tables.stack_table[sample.stack_index].location_indices for line in tables.location_table[i].lines)
        link = tables.link_table[sample.link_index]
        total[stack, keys.get("http.route"), keys.get("span_name"), link.span_id.hex(), link.trace_id.hex()] += sum(sample.values)
    return total


class RedactedProfiles(unittest.TestCase):
    def merged(self, weight):
        """Two uploads through a process of their own, merged."""
        with backend.Backend("grpc") as target, server.Profcol(CONFIG.replace("BACKEND", target.address), arguments=["--workers", "1"]) as profcol:
            for message in (spans(), profile(weight), profile(weight)):
                self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), message)))
            target.wait(1)
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual([text for text in SECRETS if text in b"".join(r.payload for r in target.requests)], [])
            self.assertEqual(len(target.requests), 1)
            return flame_graph(target.requests[0].message())

    def test_they_are_joined_merged_and_compared(self):
        one, three = self.merged(1), self.merged(3)
        self.assertEqual(one.keys(), three.keys())
        self.assertEqual(sorted(one.values()), [2, 4])
        self.assertEqual({key: three[key] - one[key] for key in one}, {key: 2 * value for key, value in one.items()})
        for stack, route, span_name, span_id, trace_id in one:
            self.assertRegex(stack[0], r"^\[REDACTED:[0-9a-f]{16}\]$")
            self.assertEqual((stack[1], route, span_name, span_id, trace_id), ("work", "/pay/{card}", "GET /pay/****", SPAN, TRACE))
        self.assertEqual(len({stack[0] for stack, *_ in one}), 2)


if __name__ == "__main__":
    testing.main()
