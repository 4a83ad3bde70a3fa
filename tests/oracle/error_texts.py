"""Lists the texts that the program can answer, from the calls in its sources.

What varies in a text (`%s`) is shown as `…`. tests/oracle/log_messages.py lists what it logs.
"""

import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["config", "core", "receivers", "processors", "exporters", "connectors", "extensions"]
TOKEN = re.compile(r'"((?:[^"\\\n]|\\.)*)"|([(,)])|(PRI[a-z]\d+)|(/\*.*?\*/)|([^\s"(),]+)', re.DOTALL)
CONVERSION = re.compile(r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")


def first_text(source, start):
    """Return the first string literal of the arguments that begin at start, with the literals that it is joined to, or None."""
    text, depth = None, 1
    for match in TOKEN.finditer(source, start):
        literal, mark, macro, _comment, other = match.groups()
        if literal is not None:
            text = (text or "") + literal
        elif macro is not None and text is not None:
            text += "d"   # "%" PRIu64: the conversion is in the macro
        elif mark == "(":
            depth += 1
        elif mark == ")":
            depth -= 1
            if depth == 0:
                return text
        if text is not None and (mark == "," or other is not None):
            return text
    return text


def plain(text):
    """Return a format as people see it: `…` for what varies."""
    text = text.replace(r"\"", '"').replace(r"\\", "\\")
    text = CONVERSION.sub("…", text.replace("%%", "\0")).replace("\0", "%")
    return re.sub("…(?:…)+", "…", text)


def calls(names):
    """Yield (file, line, name, message) for each call of a function whose name matches the regular expression."""
    found = re.compile(rf"\b({names})\s*\(")
    for path in (path for folder in FOLDERS for path in sorted((SOURCE / folder).rglob("*.c"))):
        source = path.read_text()
        for match in found.finditer(source):
            text = first_text(source, match.end())
            if text:
                yield path.relative_to(SOURCE), source.count("\n", 0, match.start()) + 1, match[1], plain(text)
