"""Takes out of profiles what names a span, and compares what is joined without it with what they named.

Used where samples are joined by thread and time: the names are the truth.
"""

import collections
import gzip
import http.client

from . import uploads

# Fields of a JFR event that name a span; other names of the same length are unknown.
SPAN_FIELDS = {b"spanId": b"x-anId", b"spanName": b"x-anName", b"contextId": b"x-ntextId", b"traceIdHi": b"x-aceIdHi",
               b"traceIdLo": b"x-aceIdLo"}
BOUNDARY = "a-boundary"


def without_spans(files):
    """Return the files of a recording's upload; their events name no span any more, and labels are gone."""
    jfr = uploads.plain(files["jfr"])
    for name, other in SPAN_FIELDS.items():
        jfr = jfr.replace(name, other)
    return {"jfr": gzip.compress(jfr)}


def post_recording(address, capture, files):
    """Send the files of a recorded upload of a recording; return the HTTP status."""
    body = b"".join(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'.encode()
                    + content + b"\r\n" for name, content in files.items()) + f"--{BOUNDARY}--\r\n".encode()
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request("POST", capture.meta["path"], body,
                       {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})
    status = connection.getresponse().status
    connection.close()
    return status


def roots_of(messages):
    """Return {span id: local root's id} of the spans in traces requests."""
    parents = {}
    for message in messages:
        for span in (s for r in message.resource_spans for scope in r.scope_spans for s in scope.spans):
            parents[span.span_id.hex()] = span.parent_span_id.hex()
    roots = {}
    for span in parents:
        root = span
        while parents.get(root) in parents:
            root = parents[root]
        roots[span] = root
    return roots


def totals(messages, roots):
    """Return {(metric, type, stack): {local root's id or "": value}} of profiles requests."""
    found = collections.defaultdict(collections.Counter)
    for message in messages:
        for (_, metric, kind, _, stack, _, _, span), value in uploads.totals_of_otlp(message).items():
            found[metric, kind, stack][roots.get(span, span)] += value
    return found


def sums(found):
    """Return {(metric, type, stack): value}, whatever span the samples name."""
    return {key: sum(spans.values()) for key, spans in found.items()}


def compare(truth, joined):
    """Return (value of samples whose span is known, of these joined to it, at most joined to another span)."""
    known = right = wrong = 0
    for key, spans in truth.items():
        have = joined.get(key, {})
        missing = sum(max(0, value - have.get(span, 0)) for span, value in spans.items() if span)
        excess = sum(max(0, value - spans.get(span, 0)) for span, value in have.items() if span)
        value = sum(value for span, value in spans.items() if span)
        known, right, wrong = known + value, right + value - missing, wrong + min(missing, excess)
    return known, right, wrong
