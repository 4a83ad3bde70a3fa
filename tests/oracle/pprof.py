"""Reads a pprof without profcol: one line per sample and sample type, in OTLP's terms.

    python -m oracle.pprof data/pprof/*.pb.gz > data/pprof/expected.txt

prints per file and sample type how many samples have a value, their sum and the CRC of their lines;
tests/unit/test_pprof_read.c prints the same lines from profcol's result.
"""

import gzip
import os
import sys
import zlib

from . import wire

SPAN_LABELS = ("span_id", "profile_id", "span.id", "otel.span_id")
TRACE_LABELS = ("trace_id", "otel.traceid")
MAPPING_FLAGS = {7: "has_functions", 8: "has_filenames", 9: "has_line_numbers", 10: "has_inline_frames"}


class Message:
    """The fields of a message by number; each is a list."""

    def __init__(self, data):
        self.fields = {}
        for number, kind, value, start, end in wire.fields(data):
            self.fields.setdefault(number, []).append(data[start:end] if kind == wire.BYTES else wire.signed(value))

    def one(self, number):
        return self.fields.get(number, [0])[-1]

    def unsigned(self, number):
        return self.one(number) & 0xFFFFFFFFFFFFFFFF

    def messages(self, number):
        return [Message(data) for data in self.fields.get(number, [])]

    def numbers(self, number):
        out = []
        for value in self.fields.get(number, []):
            out += wire.packed_varints(value, 0, len(value)) if isinstance(value, bytes) else [value]
        return out


class Pprof:
    """One pprof with its tables by id."""

    def __init__(self, data):
        self.root = Message(data)
        self.strings = [text.decode() for text in self.root.fields[6]]
        self.mappings = {m.one(1): m for m in self.root.messages(3)}
        self.locations = {m.one(1): m for m in self.root.messages(4)}
        self.functions = {m.one(1): m for m in self.root.messages(5)}

    def string(self, message, number):
        return self.strings[message.one(number)]

    def mapping(self, number):
        if number == 0:
            return "0 0 0 "
        m = self.mappings[number]
        text = f"{m.unsigned(2)} {m.unsigned(3)} {m.unsigned(4)} {self.string(m, 5)}"
        if self.string(m, 6):
            text += " build=" + self.string(m, 6)
        return text + "".join(f" {name}" for field, name in MAPPING_FLAGS.items() if m.one(field))

    def location(self, number):
        m = self.locations[number]
        text = "{" + self.mapping(m.one(2)) + f" @{m.unsigned(3)}"
        for line in m.messages(4):
            f = self.functions[line.one(1)]
            text += f" [{self.string(f, 2)} {self.string(f, 3)} {self.string(f, 4)} {f.one(5)} {line.one(2)} {line.one(3)}]"
        return text + (" folded" if m.one(5) else "") + "}"

    def labels(self, sample):
        out, span, trace = [], "", ""
        for label in sample.messages(3):
            key, text = self.string(label, 1), self.string(label, 2)
            if key in SPAN_LABELS:
                span = text
            elif key in TRACE_LABELS:
                trace = text
            elif label.one(2):
                out.append(f" {key}={text}")
            else:
                out.append(f" {key}={label.one(3)} {self.string(label, 4)}")
        return "".join(sorted(out)) + f" {trace}/{span}"

    def lines(self, type_number):
        for sample in self.root.messages(2):
            value = sample.numbers(2)[type_number]
            if value:
                yield value, "".join(map(self.location, sample.numbers(1))) + self.labels(sample)

    def report(self):
        """Return a line per sample type."""
        for i, value_type in enumerate(self.root.messages(1)):
            lines = list(self.lines(i))
            text = "".join(f"{value} {rest}\n" for value, rest in sorted(lines, key=lambda line: (line[1], line[0])))
            yield (f"{self.string(value_type, 1)} {self.string(value_type, 2)} {len(lines)} "
                   f"{sum(value for value, _ in lines)} {zlib.crc32(text.encode()):08x}")


def main():
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            data = file.read()
        for line in Pprof(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).report():
            print(os.path.basename(path), line)


if __name__ == "__main__":
    main()
