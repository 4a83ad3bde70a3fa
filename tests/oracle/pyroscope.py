"""A fake Pyroscope that is stricter than the real one: it refuses every push that Pyroscope 2 would refuse or drop.

    with Pyroscope() as fake:                     # a Backend: `answers`, `wait`, ...
        ...
        fake.pushes()                             # the accepted pushes, decoded
        fake.problems                             # the refused ones, and why

The rules are those of its push API: labels, names, limits, times, ids.
"""

import collections
import json
import re
import time

from . import backend, pprof, wire

PATH = "/push.v1.PusherService/Push"
LABEL_LIMIT, NAME_LIMIT, VALUE_LIMIT = 30, 1024, 2048
PROFILE_LIMIT, SAMPLE_LIMIT, SAMPLE_LABEL_LIMIT, DEPTH_LIMIT = 4 << 20, 16000, 100, 1000
HOUR, MINUTE = 3600, 60


class Refused(Exception):
    """Raised for data that Pyroscope would refuse."""


def need(condition, text):
    if not condition:
        raise Refused(text)


class Push:
    """One pprof with the labels of its series."""

    def __init__(self, labels, data):
        self.labels = dict(labels)
        self.data = data
        self.profile = pprof.Pprof(data)

    @property
    def types(self):
        """name:sample type:sample unit:period type:period unit of each sample type."""
        root = self.profile.root
        period = root.messages(11)[0] if root.messages(11) else None
        period_type = (f"{self.profile.string(period, 1)}:{self.profile.string(period, 2)}" if period else ":")
        return [f"{self.labels['__name__']}:{self.profile.string(t, 1)}:{self.profile.string(t, 2)}:{period_type}"
                for t in root.messages(1)]

    def frames(self, sample):
        """Return function names, leaf first; an address if a name is missing."""
        for number in sample.numbers(1):
            location = self.profile.locations[number]
            lines = location.messages(4)
            if not lines:
                yield f"0x{location.unsigned(3):x}"
            for line in lines:
                yield self.profile.string(self.profile.functions[line.one(1)], 2)

    def sample_labels(self, sample):
        """Return the text labels by name."""
        return {self.profile.string(label, 1): self.profile.string(label, 2) for label in sample.messages(3)}

    def rows(self):
        """Return {(profile type, stack, labels): value}."""
        out = collections.Counter()
        for sample in self.profile.root.messages(2):
            stack, labels = tuple(self.frames(sample)), tuple(sorted(self.sample_labels(sample).items()))
            for kind, value in zip(self.types, sample.numbers(2)):
                if value:
                    out[kind, stack, labels] += value
        return out


def check_labels(labels):
    """Check labels like Pyroscope's validation."""
    names = [name for name, _ in labels]
    need(len(names) == len(set(names)), f"duplicate label names {names}")
    need(len(names) <= LABEL_LIMIT, f"{len(names)} label names")
    for name, value in labels:
        need(0 < len(name.encode()) <= NAME_LIMIT, f"label name {name!r}")
        need(0 < len(value.encode()) <= VALUE_LIMIT, f"label value of {name!r}")
    have = dict(labels)
    need(re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", have.get("__name__", "")), f"invalid metric name {have.get('__name__')!r}")
    need(have.get("service_name"), "no service_name")
    need(have.get("__delta__") == "false", "__delta__ is not false: values would be taken as cumulative")
    need("span_id" not in have and "trace_id" not in have, "an id as a label of the series")


def check_profile(push, now):
    """Check a profile like Pyroscope's validation, and that all ids exist."""
    root = push.profile.root
    need(len(push.data) <= PROFILE_LIMIT, f"{len(push.data)} bytes")
    samples, types = root.messages(2), root.messages(1)
    need(0 < len(samples) <= SAMPLE_LIMIT, f"{len(samples)} samples")
    need(types, "no sample type")
    need(push.profile.strings[0] == "", "string_table[0] is not empty")
    for kind in types:
        need(push.profile.string(kind, 1) and "-" not in push.profile.string(kind, 1), f"sample type {push.types}")
    start = root.unsigned(9) / 1e9
    need(start == 0 or -HOUR <= start - now <= 10 * MINUTE, f"time {start} is outside of the ingestion window")
    need(0 not in push.profile.locations and 0 not in push.profile.functions and 0 not in push.profile.mappings, "an id is 0")
    for sample in samples:
        values, labels = sample.numbers(2), sample.messages(3)
        need(len(values) == len(types), f"{len(values)} values for {len(types)} types")
        need(any(values) and min(values) >= 0, f"a sample without a positive value: {values}")
        need(len(labels) <= SAMPLE_LABEL_LIMIT, f"{len(labels)} labels on a sample")
        need(len(sample.numbers(1)) <= DEPTH_LIMIT, "a stack that would be cut")
        for label in labels:
            need(label.one(2) > 0, "a numeric label, which would be dropped")
            name, text = push.profile.string(label, 1), push.profile.string(label, 2)
            digits = {"span_id": 16, "trace_id": 32}.get(name)
            need(name != "profile_id", "profile_id, which is span_id's old name")
            need(not digits or re.fullmatch(f"[0-9a-f]{{{digits}}}", text), f"{name}={text}")
        list(push.frames(sample))  # raises if an id does not exist


def texts(message, *numbers):
    return [message.one(number).decode() for number in numbers]


def decode(payload, now):
    """Return the pushes of a PushRequest that arrives at the time `now`; raise Refused."""
    out = []
    for series in pprof.Message(payload).messages(1):
        labels = [tuple(texts(label, 1, 2)) for label in series.messages(1)]
        check_labels(labels)
        need(series.messages(2), "a series without a profile")
        for sample in series.messages(2):
            out.append(Push(labels, sample.one(1)))
            check_profile(out[-1], now)
    need(out, "an empty request")
    return out


class Pyroscope(backend.Backend):
    """The fake. `now` is its clock, which may be that of a recording."""

    def __init__(self, now=time.time, **options):
        super().__init__("http", **options)
        self.now = now
        self.problems = []

    def on_request(self, received):
        """Refuse in the form of Connect; otherwise answer as a test chooses."""
        try:
            need(received.path == PATH, f"path {received.path}")
            need(received.header("content-type") == "application/proto", f"content type {received.header('content-type')}")
            received.pushes = decode(received.payload, self.now())
        except (Refused, KeyError, IndexError, UnicodeDecodeError, wire.WireError) as error:
            self.problems.append(f"{type(error).__name__}: {error}")
            received.pushes = []
            self.answers.appendleft(self.refusal(str(error)))
        return super().on_request(received)

    @staticmethod
    def refusal(text, status=400, code="invalid_argument", **options):
        """Return a Connect error."""
        return backend.Answer(status=status, body=json.dumps({"code": code, "message": text}).encode(),
                              headers=(("X-Connect", "error"),), **options)

    def pushes(self):
        """Return all accepted pushes."""
        return [push for received in self.accepted() for push in received.pushes]

    def rows(self):
        """Return the rows of all pushes: {(profile type, stack, labels): value}."""
        return sum((push.rows() for push in self.pushes()), collections.Counter())
