"""The processor stack_limit between a client and a file."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import client, make, outputs, server, testing

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {stack_limit: {max_depth: 8, min_share: 0.1}}
exporters: {file: {path: "@dir@/out"}}
service: {pipelines: {profiles: {receivers: [otlp], processors: [stack_limit], exporters: [file]}}}
"""


def samples(record):
    """[(functions, value)] of a request in JSON."""
    request = json.loads(record)
    tables = request["dictionary"]

    def name(location):
        function = tables["locationTable"][location]["lines"][0]["functionIndex"]
        return tables["stringTable"][tables["functionTable"][function]["nameStrindex"]]

    profile = request["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]
    return [([name(location) for location in tables["stackTable"][sample["stackIndex"]]["locationIndices"]], sum(map(int, sample["values"])))
            for sample in profile["samples"]]


class StackLimit(unittest.TestCase):
    def test_deep_and_small_stacks(self):
        built = make.ProfilesBuilder()
        built.sample(stack=built.stack("work", *["recurse"] * 20, "main"), values=[70])
        built.sample(stack=built.stack("idle", "main"), values=[20])
        for n in range(5):
            built.sample(stack=built.stack(f"small_{n}", "main"), values=[2], link=("00000000000000a1", "0" * 31 + "1"))
        with server.Profcol(CONFIG) as profcol:
            self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), built.request)))
            self.assertEqual(profcol.metric("profcol_stack_limit_truncated_samples", processor="stack_limit"), 1)
            self.assertEqual(profcol.metric("profcol_stack_limit_folded_samples", processor="stack_limit", limit="min_share"), 5)
            (record,) = outputs.records(profcol.directory / "out", "json")
        self.assertEqual(samples(record), [(["work"] + ["recurse"] * 6 + ["[truncated]"], 70), (["idle", "main"], 20), (["[other]"], 10)])
        self.assertNotIn(b"small_", record)


if __name__ == "__main__":
    testing.main()
