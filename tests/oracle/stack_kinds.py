"""Which kind of span a sample was taken in, by the functions on its stack.

The programs of the interop run `ebpf` run a function of its own for each kind of span. So what samples have on their stacks
is the truth for a join that does not look at them.
"""

import collections

KINDS = ("query", "search", "report", "cart")
SLACK_NS = 2_000_000    # between the clocks of a span and of the kernel

Span = collections.namedtuple("Span", "service kind start end")


def text_of(attributes, key):
    """Return the string value of an attribute; empty if there is none."""
    return next((attribute.value.string_value for attribute in attributes if attribute.key == key), "")


def spans_of(messages):
    """Return {span id: Span} of traces requests."""
    spans = {}
    for resource in (resource for message in messages for resource in message.resource_spans):
        service = text_of(resource.resource.attributes, "service.name").removeprefix("ebpf-")
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            kind = span.name if span.name in KINDS else text_of(span.attributes, "url.path").strip("/")
            spans[span.span_id] = Span(service, kind, span.start_time_unix_nano, span.end_time_unix_nano)
    return spans


def frames_of(sample, dictionary):
    """Return (function without class and package, file) of a sample's stack, its leaf first."""
    for location in dictionary.stack_table[sample.stack_index].location_indices:
        for line in dictionary.location_table[location].lines:
            function = dictionary.function_table[line.function_index]
            name = dictionary.string_table[function.name_strindex]
            yield name.partition("(")[0].rpartition(".")[2].rpartition("/")[2], dictionary.string_table[function.filename_strindex]


def samples_of(messages):
    """Return (files of the stack, kind of the running span, span id of the Link, times) of the samples inside of spans."""
    for message in messages:
        dictionary = message.dictionary
        profiles = (p for r in message.resource_profiles for scope in r.scope_profiles for p in scope.profiles)
        for sample in (sample for profile in profiles for sample in profile.samples):
            frames = list(frames_of(sample, dictionary))
            kind = next((function for function, _ in frames if function in KINDS), None)
            if kind:
                span_id = dictionary.link_table[sample.link_index].span_id
                yield [file for _, file in frames], kind, span_id, sample.timestamps_unix_nano


def is_right(span, kind, times):
    """Return whether a sample of this kind belongs to the span, which all of its times are in."""
    return span.kind == kind and all(span.start - SLACK_NS <= at <= span.end + SLACK_NS for at in times)
