"""What a processor took away leaves through no exporter, also not in the dictionary of a request that was merged."""

import contextlib
import os
import sys
import time
import unittest
import zlib

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, make, pyroscope, server, testing

KEPT, NOT_KEPT = "4bf92f3577b34da6a3ce929d0e0e4736", "0102030405060708090a0b0c0d0e0f10"    # with seed 0 at 10 %
SPAN = "00000000000000a1"
REQUESTS = 2
DROP = "sampling_percentage: 10, profiles: {otherwise: drop}"
SECRETS = (b"secret_function", b"secret-value", b"secret-key", b"secret-span", b"secret-original", b"secret-format", b"c2VjcmV0LW9yaWdpbmFs")

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors:
  PROCESSOR: {SETTINGS}
  batch: {send_batch_size: SIZE, timeout: 60s}
exporters:
  otlp_grpc: {endpoint: "GRPC", tls: {insecure: true}, compression: none}
  otlp_http: {endpoint: "HTTP", compression: none}
  otlp_http/json: {endpoint: "JSON", encoding: json, compression: none}
  pyroscope: {endpoint: "PYROSCOPE"}
  file/json: {path: "@dir@/json"}
  file/proto: {path: "@dir@/proto", format: proto}
  debug: {verbosity: detailed}
service:
  pipelines:
    profiles:
      receivers: [otlp]
      processors: [PROCESSORS]
      exporters: [otlp_grpc, otlp_http, otlp_http/json, pyroscope, file/json, file/proto, debug]
"""


def request(number):
    """A sample that is kept and one that is not; only the latter has texts with "secret"."""
    built = make.ProfilesBuilder()
    make.set_attributes(built.resource.resource, {"service.name": "shop"})
    profile = built.profile
    profile.sample_type.type_strindex, profile.sample_type.unit_strindex = built.string("cpu"), built.string("nanoseconds")
    profile.period_type.type_strindex, profile.period_type.unit_strindex, profile.period = built.string("cpu"), built.string("nanoseconds"), 10
    profile.time_unix_nano = int(time.time() - 10) * 10**9
    profile.original_payload_format, profile.original_payload = "secret-format", b"secret-original"
    built.sample(stack=built.stack(f"secret_function_{number}", "shared"), values=[3], link=(SPAN, NOT_KEPT),
                 attributes={"secret-key": "x", "route": f"secret-value-{number}", "span_id": "secret-span", "name": "GET"})
    built.sample(stack=built.stack(f"work_{number}", "shared"), values=[5], link=(SPAN, KEPT), attributes={"route": "/a"})
    return built.request


class Deleted(unittest.TestCase):
    def exchange(self, settings, batched, processor="probabilistic_sampler"):
        """Send requests; return what left through each exporter, uncompressed."""
        with contextlib.ExitStack() as stack:
            targets = {name: stack.enter_context(backend.Backend(protocol)) for name, protocol in (("GRPC", "grpc"), ("HTTP", "http"), ("JSON", "http"))}
            fake = stack.enter_context(pyroscope.Pyroscope())
            text = CONFIG.replace("GRPC", targets["GRPC"].address).replace("HTTP", targets["HTTP"].url).replace("JSON", targets["JSON"].url)
            text = text.replace("PYROSCOPE", fake.url).replace("PROCESSORS", f"{processor}, batch" if batched else processor)
            text = text.replace("PROCESSOR", processor).replace("SETTINGS", settings).replace("SIZE", str(REQUESTS if processor != "attributes" else 2 * REQUESTS))
            profcol = stack.enter_context(server.Profcol(text, arguments=["--workers", "1"]))
            for number in range(REQUESTS):
                self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), request(number))))
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual(fake.problems, [])
            left = {name: [r.payload for r in target.requests] for name, target in targets.items()}
            left["PYROSCOPE"] = [decode_push(r) for r in fake.requests]
            left["file, JSON"] = [(profcol.directory / "json").read_bytes()]
            left["file, proto"] = [(profcol.directory / "proto").read_bytes()]
            left["debug"] = [profcol.log().encode()]
            return left

    def check(self, left, requests):
        for name, payloads in left.items():
            with self.subTest(exporter=name):
                data = b"".join(payloads)
                self.assertIn(b"work_0", data)
                self.assertIn(b"work_1", data)
                self.assertEqual([text for text in SECRETS if text in data], [])
        for name in ("GRPC", "HTTP", "JSON"):
            self.assertEqual(len(left[name]), requests)

    def test_dropped_samples(self):
        self.check(self.exchange(DROP, batched=False), 2)

    def test_dropped_samples_after_batch(self):
        self.check(self.exchange(DROP, batched=True), 1)

    def test_what_folding_takes(self):
        """The function, and attributes that do not name a span, stay."""
        left = self.exchange("sampling_percentage: 10, profiles: {otherwise: fold, fold_attributes: [secret-key]}", batched=True)
        for name, payloads in left.items():
            with self.subTest(exporter=name):
                data = b"".join(payloads)
                self.assertIn(b"secret_function_1", data)
                self.assertEqual([text for text in SECRETS[2:] if text in data], [])

    def test_what_attributes_deletes(self):
        actions = 'actions: [{key: secret-key, action: delete}, {key: route, value: "-", action: update}, {key: span_id, action: hash}]'
        for name, payloads in self.exchange(actions, batched=True, processor="attributes").items():
            with self.subTest(exporter=name):
                data = b"".join(payloads)
                self.assertIn(b"secret_function_1", data)
                self.assertEqual([text for text in SECRETS[1:] if text in data], [])

    def test_what_stack_limit_combines(self):
        """Functions of small stacks go, and what names a span; other attributes stay."""
        for name, payloads in self.exchange("min_share: 0.4", batched=True, processor="stack_limit").items():
            with self.subTest(exporter=name):
                data = b"".join(payloads)
                self.assertIn(b"[other]", data)
                self.assertIn(b"secret-value-1", data)
                self.assertEqual([text for text in (SECRETS[0],) + SECRETS[3:] if text in data], [])

    def test_what_redaction_masks(self):
        """Keys of attributes stay."""
        settings = "allow_all_keys: true, secret_words: {}, blocked_values: ['secret-[a-z]+']"
        for batched in (False, True):
            for name, payloads in self.exchange(settings, batched=batched, processor="redaction").items():
                with self.subTest(exporter=name, batched=batched):
                    data = b"".join(payloads)
                    self.assertIn(b"work_1", data)
                    self.assertIn(b"[REDACTED]", data)
                    self.assertEqual([text for text in SECRETS if text in data and text != b"secret-key"], [])

    def test_it_would_be_found(self):
        """What nothing deletes leaves through each exporter, except that Pyroscope has no place for an original."""
        for name, payloads in self.exchange("sampling_percentage: 100", batched=True).items():
            with self.subTest(exporter=name):
                data = b"".join(payloads)
                self.assertIn(b"secret_function_1", data)
                self.assertIn(b"secret-value-1", data)
                if name in ("GRPC", "HTTP", "file, proto"):
                    self.assertEqual([text for text in SECRETS[:6] if text not in data], [])


def decode_push(received):
    """Return the bytes of a push with its profiles uncompressed."""
    data, out = received.payload, received.payload
    at = data.find(b"\x1f\x8b")
    while at >= 0:
        with contextlib.suppress(zlib.error):
            out += zlib.decompressobj(31).decompress(data[at:])
        at = data.find(b"\x1f\x8b", at + 1)
    return out


if __name__ == "__main__":
    testing.main()
