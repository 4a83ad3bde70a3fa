"""List all messages that profcol can log: `python -m tests.oracle.log_messages [LEVEL...]`, from the root of the sources.

A message is a constant at its call of log_debug, log_info, log_warn, log_error, log_each_warn or log_each_error. Each line has level, place, message and fields.
"""
import dataclasses
import os
import pathlib
import re
import sys

FOLDERS = ("core", "connectors", "exporters", "extensions", "processors", "receivers")
CALL = re.compile(r"\blog_(?:each_)?(debug|info|warn|error)\(")
STRING = r'"(?:[^"\\]|\\.)*"'
MESSAGE = re.compile(rf"\s*((?:{STRING}\s*)+)")
FIELD = re.compile(r'\bLOG_(?:TEXT|SLICE|U64|BOOL|DURATION|DOUBLE)\((?:"([^"]+)"|(\w+))')


@dataclasses.dataclass
class Message:
    """A call."""

    level: str
    place: str
    text: str
    fields: list


def arguments(text, start):
    """Return the arguments of a call, split at commas outside parentheses and strings; `start` is behind its parenthesis."""
    parts, depth, begin, i = [], 0, start, start
    while depth >= 0:
        if text[i] == '"':
            i = re.compile(STRING).match(text, i).end()
            continue
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(text[i], 0)
        if depth < 0 or (depth == 0 and text[i] == ","):
            parts.append(text[begin:i])
            begin = i + 1
        i += 1
    return parts


def read(path, shown):
    """Return the messages of one source file."""
    text = path.read_text()
    found = []
    for call in CALL.finditer(text):
        if text[:call.start()].rstrip().endswith("#define"):
            continue
        parts = arguments(text, call.end())
        message = MESSAGE.fullmatch(parts[1]) if len(parts) > 1 else None
        if not message:
            raise ValueError(f"{shown}: the message is not a constant: {parts[1:2]}")
        literal = "".join(part[1:-1] for part in re.findall(STRING, message[1]))
        fields = [quoted or name for part in parts[2:] for quoted, name in FIELD.findall(part)]
        found.append(Message(call[1], f"{shown}:{text.count(chr(10), 0, call.start()) + 1}", literal, fields))
    return found


def every(source="."):
    """Return all messages of the program."""
    source = pathlib.Path(source)
    return [message for folder in FOLDERS for path in sorted(source.glob(f"{folder}/**/*.c"))
            if path.name not in ("log.c", "log_line.c") for message in read(path, path.relative_to(source))]


def main():
    """Print them, those of the levels that are named."""
    for message in every(os.environ.get("PROFCOL_SOURCE", ".")):
        if not sys.argv[1:] or message.level in sys.argv[1:]:
            print(f"{message.level}\t{message.place}\t{message.text}\t{', '.join(message.fields)}")


if __name__ == "__main__":
    main()
