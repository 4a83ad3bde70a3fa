"""Read the log as log shippers read the Collector's: the console form with a regular expression, the json form as JSON.

The pattern is the one that people use for the Collector's console encoding in Vector (parse_regex) and Loki (the stage `regex`), only stricter. A record may have
further lines, as the Collector's stack traces and the texts of `debug` do; `parse` accepts those only where it is told to.
"""
import dataclasses
import json
import re

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?:Z|[+-]\d{4})"
CONSOLE = re.compile(rf"(?P<ts>{TIME})\t(?P<level>debug|info|warn|error|dpanic|panic|fatal)\t(?:(?P<caller>[\w./@-]+:\d+)\t)?(?P<msg>[^\t]+)(?:\t(?P<fields>\{{.+\}}))?")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u2028\u2029]")


@dataclasses.dataclass
class Record:
    """One record. `fields` has what is not one of the others."""

    time: str
    level: str
    caller: str | None
    message: str
    fields: dict


def _unique(pairs):
    """Refuse objects with a name twice, of which tools keep one or the other."""
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"a name occurs twice: {names}")
    return dict(pairs)


def _json(text):
    record = json.loads(text, object_pairs_hook=_unique)
    if not isinstance(record, dict):
        raise ValueError(f"not an object: {text!r}")
    return record


def parse_console(line):
    """Read a line of the console encoding."""
    found = CONSOLE.fullmatch(line)
    if not found or CONTROL.search(line):
        raise ValueError(f"not a console line: {line!r}")
    fields = _json(found["fields"]) if found["fields"] else {}
    return Record(found["ts"], found["level"], found["caller"], found["msg"], fields)


def parse_json(line):
    """Read a line of the json encoding."""
    if CONTROL.search(line):
        raise ValueError(f"control characters: {line!r}")
    record = _json(line)
    time, level, message = (record.pop(name) for name in ("ts", "level", "msg"))
    if not re.fullmatch(TIME, time) or level not in ("debug", "info", "warn", "error", "dpanic", "panic", "fatal"):
        raise ValueError(f"not a record: {line!r}")
    return Record(time, level, record.pop("caller", None), message, record)


def parse(text, encoding="console", may_continue=False):
    """Read a log. may_continue: a line that does not begin with a time belongs to the record before it (console)."""
    records = []
    whole = text[:text.rfind("\n") + 1]
    for line in whole.split("\n")[:-1]:
        if may_continue and encoding == "console" and records and not re.match(TIME, line):
            records[-1].message += "\n" + line
        else:
            records.append({"console": parse_console, "json": parse_json}[encoding](line))
    return records
