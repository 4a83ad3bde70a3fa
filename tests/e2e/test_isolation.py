"""No client affects the join of another one, by floods of ids or by spans with another client's ids.

The tests check which spans a good client's samples are joined to while another client sends as fast as profcol accepts.
The good client's spans are fewer than its share of the index. The flood is several times the size of the index, so
without shares none of these spans would stay.
"""

import base64
import os
import ssl
import sys
import tempfile
import threading
import unittest
import urllib.request

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import certificates, client, connections, layout, make, outputs, server, testing
from tests.oracle.background import Repeating

MAX_SPANS = 20000
GOOD, ROUNDS = 400, 20
FLOOD_SPANS = 500  # in each request
# Other addresses of this machine stand for other clients.
GOOD_ADDRESS, BAD_ADDRESS, PROFILER_ADDRESS = "127.0.0.1", "127.0.0.2", "127.0.0.3"
CONFIG = """
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:@http@", include_metadata: true}}}
processors:
  spanjoin: {max_spans: MAX_SPANS, window: 1h, samples: {wait: 0s}}
exporters:
  file: {path: "@dir@/out.proto", format: proto}
  nop:
service:
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin], exporters: [nop]}
    profiles: {receivers: [otlp], processors: [spanjoin], exporters: [file]}
"""
SERVICE = b"flood-00000000"


def span(number, name, trace=None):
    """Return a span. Its trace id is derived from its number, unless given."""
    return {"span_id": f"{number:016x}", "trace_id": f"{number if trace is None else trace:032x}", "name": name}


class Sender:
    """A client with one connection."""

    def __init__(self, profcol, source, service, tenant=None):
        self.address = profcol.address("http")
        self.connection = connections.Http1(self.address, source=source)
        self.service = service
        self.headers = [("X-Scope-OrgID", tenant)] if tenant else []

    def post(self, path, body):
        """Send a request. Return whether it was accepted."""
        answer = client.post(self.address, path, body, headers=self.headers, connection=self.connection)
        return client.succeeded(answer)

    def spans(self, spans):
        """Send a request with these spans."""
        message = make.traces(spans, resource={"service.name": self.service})
        return self.post(client.TRACES, message.SerializeToString())

    def samples(self, links):
        """Send a profile with a sample for each (span id, trace id)."""
        message = make.profiles([{"values": [1], "link": link} for link in links], resource={"service.name": self.service})
        return self.post(client.PROFILES, message.SerializeToString())


class Flood(Repeating):
    """Sends requests with new ids, one after another, until the block ends. With new_services each names a new service."""

    def __init__(self, profcol, tenant=None, new_services=False, value=""):
        self.sender = Sender(profcol, BAD_ADDRESS, "flood", tenant)
        self.new_services = new_services
        marks = [f"{0xf00d << 48 | number:016x}" for number in range(FLOOD_SPANS)]
        message = make.traces([{"span_id": mark, "trace_id": mark * 2, "name": "flood", "attributes": {"http.route": value}}
                               for mark in marks], resource={"service.name": SERVICE.decode()})
        self.body = bytearray(message.SerializeToString())
        self.ids = [self.body.index(bytes.fromhex(mark * 2)) for mark in marks] + [
            self.body.index(b"\x12\x08" + bytes.fromhex(mark)) + 2 for mark in marks]
        self.taken = self.refused = 0
        self.changed = threading.Condition()
        super().__init__(self.send)

    def send(self):
        """Send the next request."""
        for at in self.ids:
            self.body[at:at + 8] = os.urandom(8)
        if self.new_services:
            at = self.body.index(SERVICE[:6])
            self.body[at:at + len(SERVICE)] = b"flood-%08d" % (self.taken + self.refused)
        taken = self.sender.post(client.TRACES, bytes(self.body))
        with self.changed:
            self.taken += taken
            self.refused += not taken
            self.changed.notify_all()

    def wait_for_spans(self, count):
        """Wait until `count` more were accepted."""
        with self.changed:
            until = self.taken + count // FLOOD_SPANS
            if not self.changed.wait_for(lambda: self.taken >= until, timeout=60 * server.PATIENCE):
                raise TimeoutError(f"the flood was taken {self.taken} and refused {self.refused} times")

    def __exit__(self, *_):
        try:
            self.end()
        finally:
            self.sender.connection.close()


def joined_names(profcol):
    """Return, for each sample in the output, the name that it got from its span, or None."""
    names = []
    for record in outputs.records(profcol.directory / "out.proto", "proto"):
        message = layout.REQUEST["v1.10"].FromString(record)
        tables = message.dictionary
        for sample in message.resource_profiles[0].scope_profiles[0].profiles[0].samples:
            rows = [tables.attribute_table[index] for index in sample.attribute_indices]
            names.append({tables.string_table[row.key_strindex]: row.value.string_value for row in rows}.get("span_name"))
    return names


def linked(profcol):
    """Return, for each request in the output, whether its first sample has a Link."""
    return [layout.REQUEST["v1.10"].FromString(record).resource_profiles[0].scope_profiles[0].profiles[0].samples[0].link_index > 0
            for record in outputs.records(profcol.directory / "out.proto", "proto")]


class IsolationTest(unittest.TestCase):
    """See the module."""

    def start(self):
        return server.Profcol(CONFIG.replace("MAX_SPANS", str(MAX_SPANS)))

    def sender(self, *arguments):
        """Return a Sender that is closed at the end of the test."""
        sender = Sender(*arguments)
        self.addCleanup(sender.connection.close)
        return sender

    def flooded(self, what, tenants=(None, None), **flood_options):
        """Return the fraction of a good client's samples that are joined during a flood."""
        with self.start() as profcol:
            good = self.sender(profcol, GOOD_ADDRESS, "shop", tenants[0])
            before = profcol.rss_bytes()
            with Flood(profcol, tenants[1], **flood_options) as flood:
                for first in range(1, GOOD + 1, GOOD // ROUNDS):
                    self.assertTrue(good.spans([span(number, f"good {number}") for number in range(first, first + GOOD // ROUNDS)]))
                    flood.wait_for_spans(MAX_SPANS // ROUNDS)
                flood.wait_for_spans(3 * MAX_SPANS)
                numbers = range(1, GOOD + 1)
                self.assertTrue(good.samples([(f"{number:016x}", f"{number:032x}") for number in numbers]))
            names = joined_names(profcol)
            evicted = {reason: int(profcol.metric("profcol_spanjoin_evicted", reason=reason) or 0)
                       for reason in ("full", "share", "memory", "same_id")}
            print(f"{what}: {GOOD - names.count(None)} of {GOOD} joined, {flood.taken * FLOOD_SPANS} foreign spans, "
                  f"RSS {before >> 20} -> {profcol.rss_bytes() >> 20} MiB, evicted {evicted}")
        self.assertEqual(len(names), GOOD)
        self.assertTrue(all(name in (None, f"good {number}") for number, name in zip(numbers, names)))
        self.assertGreaterEqual(GOOD - names.count(None), GOOD * 99 / 100)

    def test_flooding_tenant(self):
        self.flooded("another tenant", tenants=("shop", "flood"))

    def test_flood_from_another_address(self):
        self.flooded("another address")

    def test_flood_with_new_services(self):
        self.flooded("another address, new services", new_services=True)

    def test_flood_with_new_services_and_large_values(self):
        self.flooded("another address, new services, large values", new_services=True, value="x" * 2000)

    def attacked(self, attack, first=False):
        """Send a good client's span 42, its samples, and samples of a profiler of the whole node, with an attack after
        the span or before it."""
        with self.start() as profcol:
            good, bad = self.sender(profcol, GOOD_ADDRESS, "shop"), self.sender(profcol, BAD_ADDRESS, "shop")
            if first:
                attack(bad)
            self.assertTrue(good.spans([span(42, "good")]))
            if not first:
                attack(bad)
            both, one = ("000000000000002a", f"{42:032x}"), ("000000000000002a", "")
            self.assertTrue(good.samples([both, one]))
            self.assertTrue(self.sender(profcol, PROFILER_ADDRESS, "profiler").samples([both]))
            return joined_names(profcol)

    def test_eight_spans_with_its_span_id(self):
        def attack(bad):
            for trace in range(100, 120):
                self.assertTrue(bad.spans([span(42, "bad", trace)]))
        self.assertEqual(self.attacked(attack), ["good"] * 3)
        self.assertEqual(self.attacked(attack, first=True), ["good"] * 3)

    def test_the_same_ids_again(self):
        def attack(bad):
            for _ in range(3):
                self.assertTrue(bad.spans([span(42, "bad")]))
        self.assertEqual(self.attacked(attack), ["good"] * 3)
        # Samples of third clients are joined to whichever span came first.
        self.assertEqual(self.attacked(attack, first=True), ["good", "good", "bad"])

    def test_the_same_ids_again_from_the_same_client(self):
        with self.start() as profcol:
            good = self.sender(profcol, GOOD_ADDRESS, "shop")
            self.assertTrue(good.spans([span(42, "good")]) and good.spans([span(42, "other")]))
            self.assertTrue(good.samples([("000000000000002a", f"{42:032x}")]))
            self.assertEqual(joined_names(profcol), ["good"])
            self.assertEqual(profcol.metric("profcol_spanjoin_evicted", reason="conflict"), 1)

    def test_a_newer_span_where_samples_have_no_trace_id(self):
        def attack(bad):
            self.assertTrue(bad.spans([span(42, "bad", 7)]))
        self.assertEqual(self.attacked(attack)[1], "good")

    def test_tenants_never_meet(self):
        with self.start() as profcol:
            mine, other = (self.sender(profcol, GOOD_ADDRESS, "shop", tenant) for tenant in ("mine", "other"))
            self.assertTrue(other.spans([span(42, "bad")]))
            self.assertTrue(mine.samples([("000000000000002a", f"{42:032x}"), ("000000000000002a", "")]))
            self.assertEqual(joined_names(profcol), [None, None])

    def test_tenants_of_one_signal_only_are_told(self):
        with server.Profcol(CONFIG.replace("MAX_SPANS", "1000").replace("window: 1h", "window: 1s")) as profcol:
            self.assertTrue(self.sender(profcol, GOOD_ADDRESS, "shop").spans([span(42, "span")]))
            self.assertTrue(self.sender(profcol, GOOD_ADDRESS, "shop", "mine").samples([("000000000000002a", f"{42:032x}")]))
            profcol.wait_for_record("Nothing is joined: requests of one signal name a tenant, and those of the other one none. Set include_metadata at all receivers, or source::tenant_from",
                                    with_tenant="profiles", without_tenant="traces", otelcol__component__id="spanjoin")

    def test_users_never_meet(self):
        """The tenant is the authenticated user. Headers and attributes of another one do not help."""
        config = CONFIG.replace("samples: {wait: 0s}", "samples: {wait: 0s}, source: {tenant_from: [auth.username]}")
        config = config.replace("include_metadata: true", "include_metadata: true, auth: {authenticator: basicauth}")
        config = config.replace("service:", 'extensions: {basicauth: {htpasswd: {inline: "mine:x\\nother:x"}}}\nservice:\n  extensions: [basicauth]')
        with server.Profcol(config.replace("MAX_SPANS", str(MAX_SPANS))) as profcol:
            mine, other = (self.sender(profcol, GOOD_ADDRESS, "shop", "mine") for _ in range(2))
            for sender, user in ((mine, "mine"), (other, "other")):
                sender.headers += [("Authorization", "Basic " + base64.b64encode(f"{user}:x".encode()).decode()), ("auth.username", "mine")]
            self.assertTrue(other.spans([span(42, "bad")]) and mine.spans([span(43, "good")]))
            links = [(f"{number:016x}", trace) for number in (42, 43) for trace in (f"{number:032x}", "")]
            self.assertTrue(mine.samples(links))
            self.assertEqual(joined_names(profcol), [None, None, "good", "good"])

    def test_users_with_equal_ids_keep_their_own_spans(self):
        """Over TLS, with certificates of clients and users as tenants. Whether a sample keeps its detail depends on the
        span of its own tenant, and on the CPU time of its own tenant's samples."""
        with tempfile.TemporaryDirectory() as directory:
            made = certificates.Certificates(directory)
            config = CONFIG.replace("samples: {wait: 0s}", """samples: {wait: 0s}, source: {tenant_from: [auth.username]},
              keep: {span_detail_when: [{duration_above: 1s}, {cpu_above: 100ms}]}""")
            config = config.replace("include_metadata: true", f"auth: {{authenticator: basicauth}}, tls: {{cert_file: {made.server[0]}, "
                                    f"key_file: {made.server[1]}, client_ca_file: {made.ca}}}")
            config = config.replace("service:", 'extensions: {basicauth: {htpasswd: {inline: "slow:x\\nfast:x\\nbusy:x"}}}\nservice:\n  extensions: [basicauth]')
            context = ssl.create_default_context(cafile=made.ca)
            context.load_cert_chain(*made.client)
            with server.Profcol(config.replace("MAX_SPANS", str(MAX_SPANS))) as profcol:
                def send(user, path, message):
                    headers = {"content-type": client.PROTOBUF, "authorization": "Basic " + base64.b64encode(f"{user}:x".encode()).decode()}
                    request = urllib.request.Request(f"https://{profcol.address('http')}{path}", message.SerializeToString(), headers)
                    with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                        self.assertEqual(answer.status, 200)
                for user, seconds in (("slow", 2), ("fast", 0.01), ("busy", 0.5)):
                    send(user, client.TRACES, make.traces([{**span(42, user), "start": 10 ** 18, "end": 10 ** 18 + int(seconds * 1e9)}]))
                for user, milliseconds in (("slow", 20), ("fast", 20), ("busy", 90), ("fast", 70), ("busy", 91)):
                    builder = make.ProfilesBuilder()
                    builder.profile.sample_type.type_strindex, builder.profile.sample_type.unit_strindex = map(builder.string, ("cpu", "nanoseconds"))
                    builder.sample(values=[milliseconds * 10 ** 6], link=("000000000000002a", f"{42:032x}"))
                    send(user, client.PROFILES, builder.request)
                self.assertEqual({result: profcol.metric("profcol_spanjoin_keep_samples", result=result)
                                  for result in ("kept", "folded", "late")}, {"kept": 2, "folded": 3, "late": 1})
                self.assertEqual(joined_names(profcol), ["slow", "fast", "busy", "fast", "busy"])
                self.assertEqual(linked(profcol), [True, False, False, False, True])


if __name__ == "__main__":
    testing.main()
