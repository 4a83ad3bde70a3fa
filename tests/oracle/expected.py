"""Writes expected.json: what every recorded request holds, by this package's own reading.

    python -m tests.oracle.expected            # write the file anew
    python -m tests.oracle.expected --check    # fail where it differs from what is committed
"""

import json
import pathlib
import sys

from . import canonical, decode, join

FILE = pathlib.Path(__file__).with_name("expected.json")

# Profiles whose spans were recorded in the directory of another client.
SPANS_FROM = {"pprof-to-otlp": "go-pprof-endpoint"}


def load():
    """The committed expectations."""
    return json.loads(FILE.read_text())


def compute():
    """The expectations from the recordings."""
    directories = {path.name: decode.in_directory(path) for path in decode.clients()}
    requests, forms = {}, {}
    for captures in directories.values():
        for capture in captures:
            if capture.signal not in canonical.OPENED:
                requests[capture.name] = {"signal": capture.signal, "unknown_service": True}
                continue
            form = forms[capture.name] = canonical.of(capture)
            requests[capture.name] = {"signal": capture.signal, "content": capture.content,
                                      **canonical.counts(form), "sha256": canonical.digest(form)}
    clients = {}
    for name, captures in directories.items():
        spans_name = SPANS_FROM.get(name, name)
        index = join.SpanIndex(forms[c.name] for c in directories[spans_name] if c.signal == "traces")
        clients[name] = summary([forms[c.name] for c in captures if c.name in forms], index)
        for capture in captures:
            if capture.signal == "profiles":
                found = [row[4] for row in join.verdicts(forms[capture.name], index)]
                requests[capture.name]["samples_naming_a_span"] = sum(v.named for v in found)
                requests[capture.name]["samples_joined"] = sum(v.joined for v in found)
        if spans_name != name:
            clients[name]["spans_from"] = spans_name
    return {"clients": clients, "requests": requests}


def summary(forms, index):
    """Figures of one client: its requests, spans, samples, and how the samples join the spans of the index."""
    profiles = [form for form in forms if "profiles" in form]
    found = [row for form in profiles for row in join.verdicts(form, index)]
    out = {
        "trace_requests": sum("traces" in form for form in forms),
        "profile_requests": len(profiles),
        "spans": sum(1 for form in forms for _ in canonical.spans(form)),
        "samples": len(found),
        "weight": {},
        "samples_naming_a_span": sum(row[4].named for row in found),
        "samples_joined": sum(row[4].joined for row in found),
        "samples_ambiguous": sum(row[4].ambiguous for row in found),
        "distinct_span_ids_named": len({row[4].span_id for row in found if row[4].named}),
        "distinct_spans_joined": len({row[4].span_id for row in found if row[4].joined}),
    }
    for _, _, profile, sample, _ in found:
        kind = "{type}/{unit}".format(**profile["sample_type"])
        out["weight"][kind] = out["weight"].get(kind, 0) + canonical.weight(sample)
    return out


def main():
    """Entry point."""
    text = json.dumps(compute(), indent=1, sort_keys=True) + "\n"
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if FILE.read_text() == text else f"{FILE.name} differs from the recordings")
    FILE.write_text(text)


if __name__ == "__main__":
    main()
