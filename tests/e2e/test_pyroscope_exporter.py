"""The exporter pyroscope with a fake Pyroscope that is stricter than the real one: its requests, and its handling of
answers."""

import base64
import collections
import os
import random
import sys
import time
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, canonical, client, decode, make, pyroscope, replay, server, testing

SPAN, TRACE = "00000000000000a1", "0" * 30 + "c3"
RETRY = "retry_on_failure: {initial_interval: 50ms, max_interval: 200ms}"
LONG_DRAIN = ["--drain-timeout", f"{20 * server.PATIENCE}s"]
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@"}
      http: {endpoint: "127.0.0.1:@http@", include_metadata: true}
exporters:
  pyroscope: {endpoint: "URL", SETTINGS}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [pyroscope]}
"""


def to(fake, *settings):
    """Return YAML with the exporter for this fake."""
    return CONFIG.replace("URL", fake.url).replace("SETTINGS", ", ".join(settings) or "timeout: 10s")


def request(*samples, types=(("cpu", "nanoseconds"),), period=("cpu", "nanoseconds", 10), resource=None, name=None, age=10):
    """Return a request with a profile of each type; samples are (function or functions, values per type, more)."""
    built = make.ProfilesBuilder()
    make.set_attributes(built.resource.resource, resource or {"service.name": "shop"})
    profiles = [built.profile] + [built.add_profile("", "") for _ in types[1:]]
    names = [built.attribute("__name__", name)] if name else []
    for i, (profile, (kind, unit)) in enumerate(zip(profiles, types)):
        profile.sample_type.type_strindex, profile.sample_type.unit_strindex = built.string(kind), built.string(unit)
        if period:
            profile.period_type.type_strindex, profile.period_type.unit_strindex = map(built.string, period[:2])
            profile.period = period[2]
        profile.time_unix_nano = int((time.time() - age) * 1e9) // 10**9 * 10**9
        profile.attribute_indices.extend(names)
        for function, values, more in samples:
            stack = built.stack(*([function] if isinstance(function, str) else function))
            built.sample(profile=profile, stack=stack, values=[values[i]] if values else (), **more)
    return built.request


def send(profcol, *messages, **options):
    """Send over HTTP; everything must be accepted."""
    for message in messages:
        answer = client.export("http", profcol.address("http"), message, **options)
        if not client.succeeded(answer):
            raise AssertionError(client.status(answer))


def row(kind, function, value, **labels):
    return {(kind, (function,), tuple(sorted(labels.items()))): value}


class PyroscopeExporterTest(unittest.TestCase):
    """One fake, one profcol."""

    def exchange(self, *messages, settings=(), pushes=None):
        """Send these requests. Return what arrives."""
        with pyroscope.Pyroscope() as fake, server.Profcol(to(fake, *settings)) as profcol:
            send(profcol, *messages)
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual(fake.problems, [])
            if pushes is not None:
                self.assertEqual(len(fake.pushes()), pushes)
            return fake.pushes(), fake.rows()

    def test_a_sample_with_its_ids_and_labels(self):
        pushes, rows = self.exchange(request(
            ("work", (50,), {"link": (SPAN, TRACE), "attributes": {"route": "/a", "thread.name": "main", "n": 3}}),
            ("work", (7,), {"link": (SPAN, TRACE), "attributes": {"thread.name": "other", "route": "/a"}}),
            resource={"service.name": "shop", "service.namespace": "eu", "region": "r1", "process.pid": 77}), pushes=1)
        self.assertEqual(rows, row(CPU, "work", 57, span_id=SPAN, trace_id=TRACE, route="/a"))
        self.assertEqual(pushes[0].labels, {"__delta__": "false", "__name__": "process_cpu", "region": "r1",
                                            "service_name": "shop", "service_namespace": "eu"})

    def test_what_a_processor_changed_arrives(self):
        """The exporter follows a processor directly, so nothing encodes the request between them."""
        text = CONFIG.replace("receivers: [otlp],", "receivers: [otlp], processors: [resource],")
        text += "\nprocessors: {resource: {attributes: [{key: service.name, value: named, action: upsert}]}}\n"
        with pyroscope.Pyroscope() as fake, \
                server.Profcol(text.replace("URL", fake.url).replace("SETTINGS", "timeout: 10s")) as profcol:
            send(profcol, request(("work", (50,), {})))
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual([push.labels["service_name"] for push in fake.pushes()], ["named"])

    def test_cpu_of_every_profiler_has_one_type(self):
        """docs/pyroscope.md, Profile types."""
        wall = (("samples", "count"), ("wall", "nanoseconds"), ("cpu", "nanoseconds"))
        cases = (
            (dict(types=(("samples", "count"),)), (4,), {CPU: 40}),                                   # eBPF
            (dict(types=(("itimer", "ns"),), period=("itimer", "ns", 10)), (4,), {CPU: 4}),            # Java over OTLP
            (dict(types=(("itimer", "count"),), period=("itimer", "ns", 10)), (4,), {CPU: 40}),        # async-profiler
            (dict(types=(("cpu", "milliseconds"),), period=None), (4,), {CPU: 4_000_000}),
            (dict(types=(("samples", "count"),), period=("cpu", "us", 10)), (4,), {CPU: 40_000}),
            (dict(types=(("cpu", "ns"), ("itimer", "ns")), period=("cpu", "ns", 10)), (4, 5),          # one of them counts
             {CPU: 4, "process_cpu:itimer:ns:cpu:ns": 5}),
            (dict(types=(("samples", "count"), ("cpu", "nanoseconds")), name="process_cpu"), (4, 40),  # Go
             {"process_cpu:samples:count:cpu:nanoseconds": 4, CPU: 40}),
            (dict(types=wall, period=("wall", "nanoseconds", 10), name="wall"), (4, 40, 30),           # Node
             {"wall:samples:count:wall:nanoseconds": 4, "wall:wall:nanoseconds:wall:nanoseconds": 40, CPU: 30}),
            (dict(types=(("wall", "count"),), period=("wall", "ns", 10)), (4,), {"wall:wall:nanoseconds:wall:nanoseconds": 40}),
            (dict(types=(("allocations", "count"),), period=("allocations", "bytes", 10)), (4,), {"memory:alloc_objects:count:space:bytes": 4}),
            (dict(types=(("inuse_space", "bytes"),), period=("space", "bytes", 10)), (4,), {"memory:inuse_space:bytes:space:bytes": 4}),
            (dict(types=(("off_cpu", "nanoseconds"),), period=None), (4,), {"off_cpu:off_cpu:nanoseconds::": 4}),
            (dict(types=(("contentions", "count"), ("delay", "nanoseconds")), period=("contentions", "count", 1), name="block"), (4, 9),
             {"block:contentions:count:contentions:count": 4, "block:delay:nanoseconds:contentions:count": 9}),
            (dict(types=(("cache-misses", "count"),), period=("cycles", "count", 1)), (4,), {"cache_misses:cache_misses:count:cycles:count": 4}),
        )
        for options, values, want in cases:
            with self.subTest(options):
                _, rows = self.exchange(request(("work", values, {}), **options))
                got = collections.Counter()
                for (kind, _, _), value in rows.items():
                    got[kind] += value
                self.assertEqual(got, want)

    def test_cpu_time_counts_once_whichever_profile_has_a_period_type(self):
        """docs/spanjoin.md, CPU time: what spans say they cost is what Pyroscope has."""
        types = (("samples", "count"), ("cpu", "nanoseconds"))
        for order, values in (types, (4, 40)), (types[::-1], (40, 4)):
            with self.subTest(order):
                message = request(("work", values, {}), types=order)
                cpu = message.resource_profiles[0].scope_profiles[0].profiles[order.index(types[1])]
                cpu.ClearField("period_type")
                cpu.ClearField("period")
                _, rows = self.exchange(message)
                self.assertEqual({kind: value for (kind, _, _), value in rows.items()},
                                 {"process_cpu:samples:count:cpu:nanoseconds": 4, CPU: 40})

    def test_timestamps_are_counted_or_summed(self):
        message = request(("counted", (), {"timestamps": (1, 2, 3)}), types=(("samples", "count"),))
        _, rows = self.exchange(message)
        self.assertEqual(rows, row(CPU, "counted", 30))
        message = request(types=(("off_cpu", "nanoseconds"),), period=None)
        message.resource_profiles[0].scope_profiles[0].profiles[0].samples.add(values=[5, 6], timestamps_unix_nano=[1, 2])
        _, rows = self.exchange(message)
        self.assertEqual(sum(rows.values()), 11)

    def test_equal_series_become_one_pprof(self):
        """Processes of one service that differ only in attributes that are not labels."""
        message = request(("a", (1,), {}), resource={"service.name": "shop", "process.pid": 1})
        other = message.resource_profiles.add()
        other.CopyFrom(message.resource_profiles[0])
        other.resource.attributes[1].value.int_value = 2
        _, rows = self.exchange(message, pushes=1)
        self.assertEqual(rows, row(CPU, "a", 2))

    def test_a_sample_may_name_its_service(self):
        """spanjoin copies the service from the span, because Grafana looks for its profile under that service."""
        message = request(
            ("own", (1, 10), {}),
            ("span", (2, 20), {"attributes": {"service.name": "cart", "service.namespace": "eu"}}),
            ("same", (4, 40), {"attributes": {"service.name": "shop"}}),
            types=(("samples", "count"), ("cpu", "nanoseconds")), resource={"service.name": "shop", "region": "r1"})
        pushes, _ = self.exchange(message, pushes=2)
        samples, base = "process_cpu:samples:count:cpu:nanoseconds", {"__delta__": "false", "__name__": "process_cpu", "region": "r1"}
        self.assertEqual({push.labels["service_name"]: push.rows() for push in pushes}, {
            "shop": {**row(samples, "own", 1), **row(CPU, "own", 10), **row(samples, "same", 4), **row(CPU, "same", 40)},
            "cart": {**row(samples, "span", 2, service_namespace="eu"), **row(CPU, "span", 20, service_namespace="eu")}})
        for push in pushes:
            self.assertEqual(push.labels, {**base, "service_name": push.labels["service_name"]})

    def test_further_services_stay_with_the_resource(self):
        """A profile is read once for each service, so their number is limited."""
        pushes, rows = self.exchange(request(*[("f", (1,), {"attributes": {"service.name": f"s{i}"}}) for i in range(40)]))
        self.assertEqual(sum(rows.values()), 40)
        self.assertEqual({push.labels["service_name"] for push in pushes}, {"shop", *(f"s{i}" for i in range(15))})

    def test_a_label_with_too_many_values_is_folded(self):
        samples = [("f", (1,), {"attributes": {"user": f"u{i}"}}) for i in range(30)]
        with pyroscope.Pyroscope() as fake, server.Profcol(to(fake, "labels: {max_values: 10}")) as profcol:
            send(profcol, request(*samples))
            fake.wait(1)
            send(profcol, request(*samples, age=20))
            fake.wait(2)
            self.assertEqual(profcol.metric("profcol_exporter_folded_label_values", exporter="pyroscope"), 40)
            self.assertEqual(profcol.stop(), 0)
            values = collections.Counter()
            for (_, _, labels), value in fake.rows().items():
                values[dict(labels)["user"]] += value
            self.assertEqual(len(values), 11)
            self.assertEqual(values["other"], 40)
            self.assertEqual(profcol.log().count("A label has more than max_values values"), 1)

    def test_too_many_labels_of_a_service(self):
        """Memory for labels is limited. The log names the service whose new values are then folded."""
        built = make.ProfilesBuilder()
        make.set_attributes(built.resource.resource, {"service.name": "shop"})
        for i in range(140000):
            built.sample(values=(1,), attributes={f"k{i}": "v"})
        with backend.Backend() as sink, server.Profcol(to(sink)) as profcol:
            send(profcol, built.request)
            profcol.wait_for_log('labels and values within an hour: further ones of this service.*shop')
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual(profcol.log().count("labels and values within an hour"), 1)

    def test_services_fold_on_their_own(self):
        """Both services use the same entry of the attribute_table. Only one of them has used up its share of values."""
        built = make.ProfilesBuilder()
        shared, first = built.attribute("user", "u1"), built.attribute("user", "u0")
        for service, attributes in (("a", [shared]), ("b", [first, shared])):
            group = built.request.resource_profiles.add()
            make.set_attributes(group.resource, {"service.name": service})
            profile = group.scope_profiles.add().profiles.add(time_unix_nano=int(time.time() - 10) * 10**9, period=10)
            for value_type in (profile.sample_type, profile.period_type):
                value_type.type_strindex, value_type.unit_strindex = built.string("cpu"), built.string("nanoseconds")
            for attribute in attributes:
                profile.samples.add(stack_index=built.stack("f"), values=[1], attribute_indices=[attribute])
        del built.request.resource_profiles[0]
        pushes, _ = self.exchange(built.request, settings=["labels: {max_values: 1}"], pushes=2)
        users = {push.labels["service_name"]: sorted(dict(labels)["user"] for _, _, labels in push.rows()) for push in pushes}
        self.assertEqual(users, {"a": ["u1"], "b": ["other", "u0"]})

    def test_large_profiles_are_cut(self):
        samples = [(f"f{i}", (i + 1,), {}) for i in range(5000)]
        pushes, rows = self.exchange(request(*samples), settings=["max_samples: 2000", "max_profile_bytes: 131072"])
        self.assertGreaterEqual(len(pushes), 3)
        self.assertEqual(len(rows), 5000)
        self.assertEqual(sum(rows.values()), 5000 * 5001 // 2)
        for push in pushes:
            self.assertLessEqual(len(push.data), 131072)
            self.assertLessEqual(len(push.profile.root.messages(2)), 2000)

    def test_no_two_profiles_of_a_series_have_one_time(self):
        """Pyroscope would keep only one of them when it compacts. The cases are parts of a profile, and uploads of
        replicas whose clocks tick every 10 s."""
        parts = request(*((f"f{i}", (1,), {}) for i in range(900)))
        replica = request(("other", (1,), {}))
        start = parts.resource_profiles[0].scope_profiles[0].profiles[0].time_unix_nano
        replica.resource_profiles[0].scope_profiles[0].profiles[0].time_unix_nano = start
        pushes, rows = self.exchange(parts, replica, parts, settings=["max_samples: 100"], pushes=19)
        self.assertEqual(sum(rows.values()), 1801)
        times = collections.Counter(push.profile.root.unsigned(9) for push in pushes)
        self.assertEqual(collections.Counter(times.values()), {2: 9, 1: 1}, "what is delivered again has the time that it had")
        for time_ns in times:
            self.assertTrue(start <= time_ns < start + 10_000_000)

    def test_statuses(self):
        """Statuses that cause a retry, and those that do not."""
        for answer, again in ((pyroscope.Pyroscope.refusal("bad"), False),
                              (pyroscope.Pyroscope.refusal("who", status=401, code="unauthenticated"), False),
                              (pyroscope.Pyroscope.refusal("large", status=413), False),
                              (pyroscope.Pyroscope.refusal("down", status=500, code="unknown"), True),
                              (pyroscope.Pyroscope.refusal("slow", status=429, code="resource_exhausted", retry_after=0.1), True),
                              (backend.Answer(drop=True), True)):
            with self.subTest(answer), pyroscope.Pyroscope() as fake, server.Profcol(to(fake, RETRY)) as profcol:
                fake.answers.append(answer)
                send(profcol, request(("a", (1,), {})))
                fake.wait_for(lambda: len(fake.of()) >= (2 if again else 1))
                self.assertEqual(profcol.stop(), 0)
                self.assertEqual(len(fake.of()), 2 if again else 1)
                self.assertEqual(len(fake.pushes()), 1 if again else 0)
                self.assertEqual(fake.problems, [])
                if not again:
                    self.assertIn("Pyroscope refused a profile", profcol.log())

    def test_any_number_of_sample_types(self):
        kinds = [(f"kind{i}", "count") for i in range(150)]
        _, rows = self.exchange(request(("work", range(1, 151), {}), types=kinds, name="many"))
        self.assertEqual(sorted(rows.values()), list(range(1, 151)))

    def test_stacks_that_many_services_share(self):
        """Each pprof repeats the stacks. So a pprof is encoded only when it can be sent, because there may be no memory
        for all at once."""
        name = random.Random(1)
        message = request(*((["f" + name.randbytes(8).hex() for _ in range(1000)], (1,), {}) for _ in range(20)))
        for i in range(1, 40):
            other = message.resource_profiles.add()
            other.CopyFrom(message.resource_profiles[0])
            other.resource.attributes[0].value.string_value = f"shop{i}"
        with backend.Backend() as fake, server.Profcol(to(fake, RETRY, "max_requests: 2"), arguments=LONG_DRAIN) as profcol:
            fake.answers.extend([backend.Answer(delay=1)] * 2)
            send(profcol, message)
            fake.wait_for(lambda: len(fake.of()) >= 2)
            self.assertLess(profcol.metric("profcol_budget_used_bytes"), 10e6)
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual(len(fake.accepted()), 40)

    def test_a_retry_sends_only_what_was_not_taken(self):
        message = request(("a", (1,), {}))
        for i in range(1, 5):
            other = message.resource_profiles.add()
            other.CopyFrom(message.resource_profiles[0])
            other.resource.attributes[0].value.string_value = f"shop{i}"
        with pyroscope.Pyroscope() as fake, server.Profcol(to(fake, RETRY, "max_requests: 1")) as profcol:
            fake.answers.extend([backend.Answer(), pyroscope.Pyroscope.refusal("down", status=500), pyroscope.Pyroscope.refusal("bad")])
            send(profcol, message)
            fake.wait(4)
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual(len(fake.of()), 6)
            services = collections.Counter(push.labels["service_name"] for push in fake.pushes())
            self.assertEqual(sorted(services.values()), [1, 1, 1, 1])

    def test_tenant_and_credentials(self):
        credentials = base64.b64encode(b"me:secret").decode()
        for settings, headers, want in (
                (["tenant: a"], (), {"x-scope-orgid": "a"}),
                (["tenant: a"], (("X-Scope-OrgID", "b"),), {"x-scope-orgid": "b"}),
                (["tenant: a", "forward_tenant: false"], (("X-Scope-OrgID", "b"),), {"x-scope-orgid": "a"}),
                (["basic_auth: {username: me, password: secret}"], (), {"authorization": f"Basic {credentials}"}),
                (["bearer_token: t"], (), {"authorization": "Bearer t"}),
                ([], (), {"connect-protocol-version": "1"})):
            with self.subTest(settings), pyroscope.Pyroscope() as fake, server.Profcol(to(fake, *settings)) as profcol:
                send(profcol, request(("a", (1,), {})), headers=headers)
                fake.wait(1)
                for name, value in want.items():
                    self.assertEqual(fake.of()[0].header(name), value)
                self.assertEqual(fake.problems, [])

    def test_small_requests_are_not_compressed(self):
        """The requests of one batch; each arrives as its head says."""
        names = [f"a function of some length {i}" for i in range(200)]
        message = request(*((name, (1,), {}) for name in names))
        message.resource_profiles.add().CopyFrom(message.resource_profiles[0])
        small = message.resource_profiles[1]
        small.resource.attributes[0].value.string_value = "small"
        del small.scope_profiles[0].profiles[0].samples[1:]
        for settings, large in (([], "gzip"), (["compression: none"], None)):
            with self.subTest(settings), pyroscope.Pyroscope() as fake, server.Profcol(to(fake, *settings)) as profcol:
                send(profcol, message)
                fake.wait(2)
                encodings = {push.labels["service_name"]: call.header("content-encoding")
                             for push, call in zip(fake.pushes(), fake.of())}
                self.assertEqual(sorted(encodings.items()), [("shop", large), ("small", None)])
                self.assertEqual(fake.problems, [])

    def test_recordings_arrive_with_all_that_they_weigh(self):
        """The fake accepts all recordings, with their times shifted to now."""
        for name in ("ebpf-profiler", "ebpf-profiler-obi-links", "java-http-otlp-profiles"):
            captures = [c for c in decode.in_directory(decode.CAPTURES / name) if c.signal == "profiles"]
            with self.subTest(name), pyroscope.Pyroscope() as fake, server.Profcol(to(fake)) as profcol:
                results = replay.send(captures, grpc=profcol.address("grpc"), http=profcol.address("http"), shift_to_now=True)
                self.assertEqual([result.problem() for result in results if not result.ok], [])
                self.assertEqual(profcol.stop(), 0)
                self.assertEqual(fake.problems, [])
                want = self.cpu_of(captures)
                got, by_span = collections.Counter(), collections.Counter()
                for (kind, _, labels), value in fake.rows().items():
                    got[kind] += value
                    by_span[dict(labels).get("span_id", "")] += value
                self.assertEqual(got, {CPU: sum(want.values())})
                self.assertEqual(by_span, want)

    @staticmethod
    def cpu_of(captures):
        """Return nanoseconds by the span id of the Link. A count stands for one period."""
        out = collections.Counter()
        for _, _, profile, sample in (row for capture in captures for row in canonical.samples(canonical.of(capture))):
            period = profile["period"] if profile["sample_type"]["type"] == "samples" else 1
            out[(sample["link"] or {}).get("span_id", "")] += canonical.weight(sample) * period
        return out


if __name__ == "__main__":
    testing.main()
