#include "config/diff.h"
#include "core/pipeline/component.h"
#include "processors/spanjoin/spanjoin_settings.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type spanjoin_processor_type;

static const struct field no_fields[] = {FIELD_END};
static const struct config_type source = {.name = "source",
                                          .section = CONFIG_RECEIVERS,
                                          .fields = no_fields,
                                          .config_size = 1,
                                          .stability = {STABILITY_STABLE, STABILITY_STABLE}};
static const struct config_type sink = {.name = "sink",
                                        .section = CONFIG_EXPORTERS,
                                        .fields = no_fields,
                                        .config_size = 1,
                                        .stability = {STABILITY_STABLE, STABILITY_STABLE}};

enum { IN_TRACES = 1 << CONFIG_TRACES, IN_PROFILES = 1 << CONFIG_PROFILES };

/* Loads settings, which are in line 1 from column 24, of a spanjoin in pipelines of these signals.
 */
static struct config *load_in(unsigned signals, const char *settings, struct text *report)
{
    const struct config_type *types[] = {&source, &sink, &spanjoin_processor_type.config, NULL};
    struct text yaml = {0};
    text_printf(&yaml,
                "processors: {spanjoin: {%s}}\nreceivers: {source: }\nexporters: {sink: }\n"
                "service:\n  pipelines:\n",
                settings);
    for (int signal = CONFIG_TRACES; signal <= CONFIG_PROFILES; signal++)
        text_printf(&yaml, "    %s: {receivers: [source], %sexporters: [sink]}\n",
                    config_signal_names[signal],
                    signals & 1U << signal ? "processors: [spanjoin], " : "");
    struct config *config =
        config_load_text(types, "t", slice_of_string(text_string(&yaml)), report);
    text_deinit(&yaml);
    return config;
}

static struct config *load(const char *settings, struct text *report)
{
    return load_in(IN_TRACES | IN_PROFILES, settings, report);
}

static const struct {
    const char *settings;
    const char *report; /* "": no error */
} cases[] = {
    {"", ""},
    {"window: 1m, max_spans: 3, max_held_mib: 64", ""},
    {"samples: {attributes: []}, spans: {attributes: []}", ""},
    {"samples: {attributes: [{key: a, from: 'span.attributes[\"x.y\"]'}]}", ""},
    {"spans: {attributes: [{key: a, from: 'samples.count[\"wall\"]'}]}", ""},
    {"source: {tenant_from: [auth.username, 'resource.attributes[\"tenant\"]']}",
     "t:1:48: warning: processors::spanjoin::source::tenant_from::0: no request has an "
     "authenticated client here, so it names no tenant: set auth: {authenticator: ...} at the "
     "listeners of \"source\""},
    {"source: {tenant_from: ['resource.attributes[\"tenant\"]']}", ""},
    {"source: {tenant_from: [metadata.X-Tenant]}",
     "t:1:48: warning: processors::spanjoin::source::tenant_from::0: no request has this header "
     "here, so it names no tenant: set include_metadata: true at the listeners of \"source\""},
    {"source: {tenant_from: [auth.]}",
     "\"auth.\" is neither metadata.NAME, auth.NAME nor resource.attributes[\"NAME\"]"},
    {"source: {tenant_from: [tenant]}",
     "source::tenant_from::0: \"tenant\" is neither metadata.NAME, auth.NAME nor "
     "resource.attributes[\"NAME\"]"},
    {"windw: 10s",
     "t:1:25: error: processors::spanjoin: unknown key \"windw\", did you mean \"window\"?"},
    {"window: 0s",
     "t:1:33: error: processors::spanjoin::window: 0s is out of range; it must be from 1s to 24h"},
    {"window: 5s", "t:1:14: warning: processors::spanjoin::samples::wait: is longer than window; "
                   "window is used instead"},
    {"samples: {attributes: [{key: a, from: span.nam}]}",
     "t:1:63: error: processors::spanjoin::samples::attributes::0::from: \"span.nam\" is not a "
     "path, did you mean \"span.name\"?"},
    {"samples: {attributes: [{key: a, from: name}]}",
     "\"name\" is not a path, did you mean span.name?"},
    {"samples: {attributes: [{key: a, from: span.attributes.http.route}]}",
     "\"span.attributes.http.route\" is not a path, did you mean "
     "span.attributes[\"http.route\"]?"},
    {"samples: {attributes: [{key: a, from: 'attributes[\"http.route\"]'}]}",
     "is not a path, did you mean span.attributes[\"http.route\"]?"},
    {"samples: {attributes: [{key: a, from: http.route}]}",
     "\"http.route\" is not a path, did you mean span.attributes[\"http.route\"]?"},
    {"samples: {attributes: [{key: a, from: span.http.route}]}",
     "did you mean span.attributes[\"http.route\"]?"},
    {"samples: {attributes: [{key: a, from: resource.service.name}]}",
     "did you mean resource.attributes[\"service.name\"]?"},
    {"samples: {attributes: [{key: a, from: span.service.name}]}",
     "did you mean resource.attributes[\"service.name\"]?"},
    {"samples: {attributes: [{key: a, from: root.http.route}]}",
     "did you mean root.attributes[\"http.route\"]?"},
    {"spans: {attributes: [{key: a, from: profile.cpu_ns}]}", "\"profile.cpu_ns\" is not a path ("},
    {"samples: {attributes: [{key: a, from: root.span.name}]}",
     "\"root.span.name\" is not a path ("},
    {"samples: {attributes: [{key: a, from: root.kind}]}", "\"root.kind\" is not a path ("},
    {"samples: {attributes: [{key: a, from: span.attributes}]}",
     "\"span.attributes\" is not a path: write span.attributes[\"...\"]"},
    {"samples: {attributes: [{key: a, from: 'span.attributes[x]'}]}",
     "\"span.attributes[x]\" is not a path: write span.attributes[\"...\"]"},
    {"samples: {attributes: [{key: a, from: samples.count}]}",
     "\"samples.count\" can only be used for spans: a sample has no totals"},
    {"spans: {attributes: [{key: a, from: samples.sum}]}",
     "\"samples.sum\" is not a path: write samples.sum[\"...\"]"},
    {"samples: {attributes: [{key: a, from: span.id}, {key: a, from: span.name}]}",
     "\"a\" is added twice"},
    {"samples: {attributes: [{key: a}]}", "from: is required"},
    {"samples: {attributes: [{key: a, form: b}]}", "did you mean \"from\"?"},
    {"samples: {attributes: span.name}", "expected a list of {key: ..., from: ...}"},
    {"samples: {attributes: [{key: a, from: 'ConvertCase(span.name, \"lower\")'}]}", ""},
    {"samples: {attributes: [{key: a, from: 'span.attributes[\"a\"][\"b\"]'}]}", ""},
    {"spans: {attributes: [{key: a, from: 'span.trace_state[\"k\"]'}]}", ""},
    {"samples: {attributes: [{key: a, from: 'ConvertCas(span.name, \"lower\")'}]}",
     "t:1:63: error: processors::spanjoin::samples::attributes::0::from: unable to parse OTTL "
     "value "
     "\"ConvertCas(span.name, \"lower\")\": "},
    {"samples: {attributes: [{key: a, from: 'ConvertCase(name, \"lower\")'}]}",
     "unable to parse OTTL value"},
    {"samples: {attributes: [{key: a, from: 'span.name == \"x\"'}]}", "unable to parse OTTL value"},
    {"samples: {attributes: [{key: a, from: root.name}]}", ""},
    {"spans: {attributes: [{key: a, from: 'root.attributes[\"k\"]'}]}", ""},
    {"samples: {attributes: [{key: a, from: root.nam}]}",
     "\"root.nam\" is not a path, did you mean \"root.name\"?"},
    {"samples: {attributes: [{key: a, from: root.attributes}]}",
     "\"root.attributes\" is not a path: write root.attributes[\"...\"]"},
    {"samples: {attributes: [{key: a, from: 'span.duration_bucket[100ms, 1s,10s]'}]}", ""},
    {"samples: {attributes: [{key: a, from: 'span.duration_bucket[1s,100ms]'}]}",
     "t:1:63: error: processors::spanjoin::samples::attributes::0::from: expected "
     "span.duration_bucket[100ms,1s,10s]: up to 16 durations, the shortest first"},
    {"samples: {attributes: [{key: a, from: 'span.duration_bucket[fast]'}]}", "expected span.dur"},
    {"samples: {attributes: [{key: a, from: 'span.duration_bucket[]'}]}", "expected span.dur"},
    {"samples: {attributes: [{key: a, from: 'span.duration_bucket'}]}", "expected span.dur"},
    {"spans: {attributes: [{key: a, from: 'samples.top_functions[5]'}]}", ""},
    {"spans: {attributes: [{key: a, from: 'samples.top_functions[0]'}]}",
     "expected samples.top_functions[5]: from 1 to 16"},
    {"spans: {attributes: [{key: a, from: 'samples.top_functions[17]'}]}", "from 1 to 16"},
    {"spans: {attributes: [{key: a, from: 'samples.top_functions[5] '}]}", "from 1 to 16"},
    {"spans: {attributes: [{key: a, from: samples.top_functions}]}", "from 1 to 16"},
    {"samples: {attributes: [{key: a, from: 'samples.top_functions[5]'}]}",
     "can only be used for spans"},
    {"sources: [span_id, '']", "t:1:44: error: processors::spanjoin::sources::1: is an empty key"},
    {"sources: []",
     "t:1:25: warning: processors::spanjoin::sources: is empty, so no attribute names a span: only "
     "samples with a Link, or with a thread and times, are joined; remove it for the usual "
     "attributes"},
    {"sources: [], samples: {by_thread: false}", "only samples with a Link are joined"},
    {"sources: [span_id, trace_id]",
     "t:1:44: warning: processors::spanjoin::sources::1: \"trace_id\" is also one of "
     "trace_sources, but it names either a span or a trace; remove it from one of them"},
    {"samples: {wait: 0s}", ""},
    {"samples: {wait: 0s, by_thread: false}", ""},
    {"samples: {wait: 0s, by_thread: true}",
     "t:1:41: warning: processors::spanjoin::samples::wait: is 0, so samples are joined by thread "
     "only if their spans arrive before them, but most arrive later; write 10s, or by_thread: "
     "false"},
    {"attribute_children: true", ""},
    {"attribute_children: true, samples: {wait: 0s}",
     "t:1:67: warning: processors::spanjoin::samples::wait: is 0, so with attribute_children "
     "samples whose root has not arrived leave at once, and do not go on to its children; write "
     "10s"},
    {"samples: {by_thread: true}, spans: {wait: 9s}",
     "t:1:67: warning: processors::spanjoin::spans::wait: is shorter than samples::wait, for which "
     "samples that are joined by thread wait themselves, so most of their spans leave incomplete; "
     "write the time between uploads + samples::wait + 5s"},
    {"samples: {by_thread: true}, spans: {wait: 10s}", ""},
    {"samples: {by_thread: true}, spans: {wait: 0s}", ""},
    {"samples: {wait: 20s}, spans: {wait: 10s}", ""},
    {"ack: delivered", "processors::spanjoin::ack: is not supported yet"},
    {"storage: file_storage", "processors::spanjoin::storage: is not supported yet"},
    {"spans: {profile_types: [cup]}",
     "t:1:49: warning: processors::spanjoin::spans::profile_types::0: profilers send no samples of "
     "the type \"cup\" as far as is known; did you mean \"cpu\"?"},
    {"spans: {attributes: [{key: a, from: 'samples.sum[\"cpu:nanoseconds\"]'}]}",
     "the type \"cpu:nanoseconds\" as far as is known; did you mean \"cpu\"?"},
    {"spans: {profile_types: [cpu, process_cpu]}",
     "t:1:54: warning: processors::spanjoin::spans::profile_types::1: profilers send no samples of "
     "the type \"process_cpu\" as far as is known; did you mean \"cpu\"?"},
    {"spans: {profile_types: ['process_cpu:cpu:nanoseconds:cpu:nanoseconds']}",
     "the type \"process_cpu:cpu:nanoseconds:cpu:nanoseconds\" as far as is known; did you mean "
     "\"cpu\"?"},
    {"spans: {profile_types: ['app:requests:count::']}", "did you mean \"requests\"?"},
    {"spans: {attributes: [{key: a, from: 'samples.count[\"requests:count\"]'}]}",
     "the type \"requests:count\" as far as is known; did you mean \"requests\"?"},
    {"spans: {attributes: [{key: a, from: 'samples.count[\"requests:\"]'}]}",
     "did you mean \"requests\"?"},
    {"spans: {attributes: [{key: a, from: 'samples.count[\"memory:alloc_space\"]'}]}",
     "did you mean \"alloc_space\"?"},
    {"spans: {attributes: [{key: a, from: 'samples.sum[\"requests\"]'}]}", ""},
    {"spans: {attributes: [{key: a, from: span.name + 1}]}",
     "t:1:61: warning: processors::spanjoin::spans::attributes::0::from: OTTL value \"span.name + "
     "1\": 1:1: fails each time it is evaluated: + takes numbers and times, and span.name is a "
     "text; write Concat([...], \"\")"},
    {"samples: {attributes: [{key: a, from: span.span_id}]}",
     "t:1:63: warning: processors::spanjoin::samples::attributes::0::from: OTTL value "
     "\"span.span_id\": 1:1: an attribute cannot be a span id; use span.span_id.string"},
    {"samples: {attributes: [{key: a, from: 'SHA256(span.kind)'}]}",
     "argument 1 of SHA256 takes a text, and span.kind is an integer"},
    {"spans: {profile_types: [mutex]}", "did you mean \"contentions\"?"},
    {"spans: {profile_types: [cpu, wall, itimer, alloc_space, requests]}", ""},
    {"spans: {attributes: [{key: a, from: 'samples.sum[\"wal\"]'}]}",
     "t:1:61: warning: processors::spanjoin::spans::attributes::0::from: profilers send no samples "
     "of the type \"wal\" as far as is known; did you mean \"wall\"?"},
    {"spans: {attributes: [{key: a, from: samples.count}], profile_types: [wall]}",
     "t:1:78: warning: processors::spanjoin::spans::profile_types: has no effect, because "
     "spans::attributes does not add pyroscope.profile.id"},
    {"keep: {otherwise: fold}",
     "keep::span_detail_when: at least one condition is required, such as {duration_above: 1s}"},
    {"keep: {span_detail_when: [{duration_above: 1s}, {status: error}, {cpu_above: 200ms}, "
     "{cpu_share_above: 0.8}, {attribute: {key: http.route, matches: '^/checkout'}}, "
     "{attribute: {key: size, above: 5, below: 1e3}}, {ratio: 0.01}, "
     "{condition: 'resource.attributes[\"env\"] == \"prod\" and span.name != \"x\"'}], "
     "otherwise: drop, unjoined: pass, dry_run: true}",
     ""},
    {"keep: {span_detail_when: [{duration_above: 1s, status: error}]}",
     "t:1:51: error: processors::spanjoin::keep::span_detail_when::0: has 2 conditions; if one of "
     "them is enough, write each one as an item of its own; if all are needed, write condition: "
     "'span.end_time_unix_nano - span.start_time_unix_nano > 1000000000 and span.status.code == "
     "STATUS_CODE_ERROR'"},
    {"keep: {span_detail_when: [{attribute: {key: k, matches: \"it's\", below: 5}, condition: "
     "'span.name == \"a\"'}]}",
     "write condition: 'IsMatch(span.attributes[\"k\"], \"it''s\") and span.attributes[\"k\"] < "
     "5 and (span.name == \"a\")'"},
    /* numbers are exact */
    {"keep: {span_detail_when: [{attribute: {key: k, above: 1e-10, below: 0.12345678949}, status: "
     "ok}]}",
     "span.attributes[\"k\"] > 1.0e-10 and span.attributes[\"k\"] < 0.12345678949"},
    {"keep: {span_detail_when: [{attribute: {key: k, above: -9007199254740993, below: 1e+300}, "
     "status: ok}]}",
     "span.attributes[\"k\"] > -9007199254740993 and span.attributes[\"k\"] < 1.0"},
    {"keep: {span_detail_when: [{attribute: {key: k, above: -1e-12, below: 10}, status: ok}]}",
     "span.attributes[\"k\"] > -1.0e-12 and span.attributes[\"k\"] < 10"},
    {"keep: {span_detail_when: [{attribute: {key: k, above: -1e-12, below: 9223372036854775808}}]}",
     ""},
    {"keep: {span_detail_when: [{status: ok, cpu_above: 1s}]}",
     "has 2 conditions; one of the items is enough, so write each one as an item of its own "
     "(cpu_above cannot be combined with others)"},
    {"keep: {span_detail_when: [{ratio: 0.1, status: ok, cpu_above: 1s}]}",
     "has 3 conditions; one of the items is enough, so write each one as an item of its own "
     "(cpu_above cannot be combined with others)"},
    {"keep: {span_detail_when: [{}]}",
     "t:1:51: error: processors::spanjoin::keep::span_detail_when::0: has no condition; write one "
     "of duration_above, status, cpu_above, cpu_share_above, attribute, ratio, condition"},
    {"keep: {span_detail_when: [{duration_above: }]}", "has no condition"},
    {"keep: {span_detail_when: [{attribute: {key: a}, status: ok}]}",
     "write condition: 'span.status.code == STATUS_CODE_OK and true'"},
    {"keep: {span_detail_when: [{status: error}], otherwise: pass}",
     "t:1:80: warning: processors::spanjoin::keep::otherwise: keep changes nothing: otherwise and "
     "unjoined are both pass; write otherwise: fold to combine the samples of other spans"},
    {"keep: {span_detail_when: [{status: error}], otherwise: pass, dry_run: true}",
     "keep changes nothing"},
    {"keep: {span_detail_when: [{status: error}], otherwise: fold, unjoined: pass}", ""},
    {"keep: {span_detail_when: [{duration_abov: 1s}]}", "did you mean \"duration_above\"?"},
    {"keep: {span_detail_when: [{status: failed}]}",
     "keep::span_detail_when::0::status: \"failed\" is not one of unset, ok, error"},
    {"keep: {span_detail_when: [{ratio: 2}]}", "ratio: 2 is out of range"},
    {"keep: {span_detail_when: [{ratio: 0}]}",
     "t:1:59: warning: processors::spanjoin::keep::span_detail_when::0::ratio: is no trace, so "
     "this "
     "condition has no effect"},
    {"samples: {attributes: [{key: a, from: 'span.duration_ns / 1000000'}]}",
     "no path \"duration_ns\"; write (span.end_time_unix_nano - span.start_time_unix_nano)"},
    {"samples: {attributes: [{key: a, from: 'Concat([span.id, span.name], \"\")'}]}",
     "no path \"id\"; write span.span_id.string"},
    {"spans: {attributes: [{key: a, from: 'samples.count / 2'}]}",
     "spans::attributes::0::from: samples.count stands alone: OTTL expressions read only the span, "
     "its scope and its resource"},
    /* Quoted, it is not a path. */
    {"spans: {attributes: [{key: a, from: 'span.attributes[\"root.name\"] + '}]}",
     "spans::attributes::0::from: unable to parse OTTL value "},
    {"spans: {attributes: [{key: a, from: 'Concat([\"a \\\" root.name\", samples.count], \"\")'}]}",
     "spans::attributes::0::from: samples.count stands alone"},
    {"spans: {wait: 20s, attributes: []}",
     "t:1:39: warning: processors::spanjoin::spans::wait: delays spans for nothing, because "
     "spans::attributes adds nothing"},
    {"keep: {span_detail_when: [{ratio: 1}]}",
     "t:1:59: warning: processors::spanjoin::keep::span_detail_when::0::ratio: is all traces, so "
     "otherwise and other conditions have no effect; for 1 % write 0.01"},
    {"keep: {span_detail_when: [{condition: 'true'}]}",
     "t:1:63: warning: processors::spanjoin::keep::span_detail_when::0::condition: is true of all "
     "spans, so otherwise and other conditions have no effect"},
    {"keep: {span_detail_when: [{condition: 'span.name == \"a\"'}, {condition: '1 == 2'}]}",
     "keep::span_detail_when::1::condition: is true of no span, so this condition has no effect"},
    {"keep: {span_detail_when: [{duration_above: 0s}]}",
     "keep::span_detail_when::0::duration_above: is all spans that take any time, so otherwise"},
    {"keep: {span_detail_when: [{cpu_above: 0s}, {cpu_share_above: 0}]}", ""},
    {"keep: {span_detail_when: [{condition: 'span.status.code == 3'}]}",
     "always false: span.status.code cannot be this: a status is STATUS_CODE_UNSET (0), "},
    {"keep: {span_detail_when: [{attribute: {key: a}}]}",
     "keep::span_detail_when::0::attribute: needs `matches`, `above` or `below`"},
    {"keep: {span_detail_when: [{attribute: {enabled: false}}]}",
     "t:1:52: error: processors::spanjoin::keep::span_detail_when::0::attribute: a condition "
     "cannot be turned off; remove it"},
    {"keep: {span_detail_when: [{status: ok, attribute: {key: a, matches: b, enabled: false}}]}",
     "cannot be turned off"},
    {"keep: {enabled: false, span_detail_when: [{attribute: {enabled: false}}]}", ""},
    {"keep: {span_detail_when: [{attribute: {key: a, matches: ''}}]}",
     "warning: processors::spanjoin::keep::span_detail_when::0::attribute::matches: is empty, so "
     "it "
     "matches every text"},
    {"keep: {span_detail_when: [{attribute: {key: service.name, matches: shop}}]}",
     "t:1:69: warning: processors::spanjoin::keep::span_detail_when::0::attribute::key: is an "
     "attribute of the resource, but that of the span is read; write condition: "
     "'resource.attributes[\"service.name\"] == \"...\"'"},
    {"keep: {span_detail_when: [{attribute: {key: resource.service.name, matches: shop}}]}",
     "write condition: 'resource.attributes[\"service.name\"] == \"...\"'"},
    {"keep: {span_detail_when: [{attribute: {key: resource.name, matches: shop}}]}", ""},
    {"keep: {span_detail_when: [{attribute: {key: service.namespace, matches: shop}}]}",
     "write condition: 'resource.attributes[\"service.namespace\"] == \"...\"'"},
    {"keep: {span_detail_when: [{attribute: {key: 'span.attributes[\"x\"]', matches: a}}]}",
     "attribute::key: is the name of the attribute alone; write it without "
     "span.attributes[\"...\"]"},
    {"keep: {span_detail_when: [{attribute: {key: 'resource.attributes[\"x\"]', matches: a}}]}",
     "for the resource's write condition: 'resource.attributes[\"x\"] == \"...\"'"},
    {"keep: {span_detail_when: [{attribute: {key: 'k', matches: 'a'}}]}", ""},
    {"keep: {span_detail_when: [{attribute: {key: a, matches: '('}}]}",
     "keep::span_detail_when::0::attribute::matches: error parsing regexp: missing closing ): `(`"},
    {"keep: {span_detail_when: [{attribute: {key: a, above: 5, below: 3}}]}",
     "warning: processors::spanjoin::keep::span_detail_when::0::attribute::below: no number is "
     "above 5 and below 3"},
    {"keep: {span_detail_when: [{condition: 'spn.kind == 1'}]}",
     "has no path \"spn.kind\"; did you mean \"span.kind\"?"},
    {"keep: {span_detail_when: [{condition: 'samples.sum[\"cpu\"] > 200000000'}]}",
     "t:1:63: error: processors::spanjoin::keep::span_detail_when::0::condition: conditions read "
     "only the span, its scope and its resource, and not samples.sum; of CPU time there are "
     "cpu_above and cpu_share_above"},
    {"keep: {span_detail_when: [{condition: 'root.name == \"a\"'}]}",
     "conditions read only the span, its scope and its resource, and not root.name\n"},
    {"keep: {span_detail_when: [{condition: 'span.name == \"root.name\" or'}]}",
     "unexpected end (expected a value)"},
    {"keep: {span_detail_when: [{condition: 'span.nam == \"x\"'}]}",
     "keep::span_detail_when::0::condition: "},
    {"keep: {span_detail_when: [{cpu_share_above: 80}]}",
     "t:1:69: warning: processors::spanjoin::keep::span_detail_when::0::cpu_share_above: 80 is the "
     "time of 80 processors; for 80 % write 0.8"},
    {"keep: {span_detail_when: [{cpu_share_above: 8}]}", ""},
    {"keep: {span_detail_when: [{ratio: 0.1}], unjoined: fold}",
     "warning: processors::spanjoin::keep::unjoined: samples of a span that takes longer than "
     "samples::wait (10s) leave before it arrives"},
    {"keep: {span_detail_when: [{ratio: 0.1}], unjoined: drop}, samples: {wait: 250ms}",
     "samples::wait (250ms) leave before it arrives"},
    {"keep: {span_detail_when: [{ratio: 0.1}], unjoined: drop}, samples: {wait: 1.5s}",
     "samples::wait (1.5s) leave before it arrives"},
};

/* Appends `count` items, each with its number in the place of "#", separated by commas. */
static void append_items(struct text *out, const char *item, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        for (const char *c = item; *c; c++) {
            if (*c == '#')
                text_printf(out, "%u", i);
            else
                text_append_char(out, *c);
            if (c[1] == '\0' && i + 1 < count)
                text_append(out, ", ");
        }
}

static const struct {
    const char *begin, *item, *end;
    unsigned most;
    const char *report; /* of one more */
} limits[] = {
    {"samples: {attributes: [", "{key: a#, from: span.name}", "]}", 32, "more than 32 attributes"},
    {"spans: {attributes: [", "{key: a#, from: span.name}", "]}", 32, "more than 32 attributes"},
    {"spans: {attributes: [", "{key: a#, from: 'samples.sum[\"t#\"]'}", "]}", 16,
     "more than 16 sample types are named"},
    {"spans: {attributes: [{key: pyroscope.profile.id, from: span.id}], profile_types: [", "t#",
     "]}", 16, "more than 16 sample types are named"},
    {"spans: {attributes: [", "{key: a#, from: 'samples.sum[\"t#\"]'}",
     "]}, keep: {span_detail_when: [{cpu_above: 1s}]}", 15,
     "keep: conditions on CPU need a sample type of their own"},
    {"sources: [", "s#", "]", 32, "sources: has more than 32 keys"},
    {"trace_sources: [", "s#", "]", 32, "trace_sources: has more than 32 keys"},
};

static void test_limits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (unsigned more = 0; more < 2; more++) {
            struct text settings = {0}, report = {0};
            text_append(&settings, limits[i].begin);
            append_items(&settings, limits[i].item, limits[i].most + more);
            text_append(&settings, limits[i].end);
            struct config *config = load(text_string(&settings), &report);
            if ((config != NULL) == (more == 1) ||
                (more && !strstr(text_string(&report), limits[i].report)))
                fail_msg("%s: %s", text_string(&settings), text_string(&report));
            if (config)
                config_free(config);
            text_deinit(&settings);
            text_deinit(&report);
        }
}

/* Returns whether the settings give another report than expected. */
static bool is_wrong(unsigned signals, const char *settings, const char *expected)
{
    struct text report = {0};
    struct config *config = load_in(signals, settings, &report);
    bool fits = *expected ? strstr(text_string(&report), expected) != NULL : report.size == 0;
    bool is_error = strstr(text_string(&report), "error:") != NULL;
    bool wrong = !fits || is_error == (config != NULL);
    if (wrong)
        fprintf(stderr, "{%s}\ngave:     %sexpected: %s\n", settings, text_string(&report),
                expected);
    if (config)
        config_free(config);
    text_deinit(&report);
    return wrong;
}

static void test_cases(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        wrong += is_wrong(IN_TRACES | IN_PROFILES, cases[i].settings, cases[i].report);
    assert_int_equal(wrong, 0);
}

static const struct {
    unsigned signals;
    const char *settings;
    const char *report; /* "": nothing */
} sides[] = {
    {IN_TRACES, "", ""},
    {IN_PROFILES, "", ""},
    {IN_TRACES, "spans: {wait: 0s}", ""},
    {IN_TRACES, "spans: {wait: 20s}",
     "t:1:39: warning: processors::spanjoin::spans::wait: has no effect: nothing is joined, "
     "because no profiles pipeline has this processor: name the same id there"},
    {IN_PROFILES, "samples: {wait: 20s}",
     "t:1:41: warning: processors::spanjoin::samples::wait: has no effect: nothing is joined, "
     "because no traces pipeline has this processor: name the same id there"},
    {IN_PROFILES, "spans: {wait: 20s}", "spans::wait: has no effect: nothing is joined"},
    {IN_PROFILES, "keep: {span_detail_when: [{status: error}]}",
     "t:1:25: warning: processors::spanjoin::keep: has no effect: nothing is joined, because "
     "no traces pipeline has this processor: name the same id there"},
    {IN_TRACES, "keep: {span_detail_when: [{status: error}]}",
     "because no profiles pipeline has this processor"},
    {IN_PROFILES, "keep: {span_detail_when: [{status: error}], unjoined: fold}",
     "keep: unjoined applies to all samples: nothing is joined, because no traces pipeline has "
     "this processor: name the same id there"},
    {0, "keep: {span_detail_when: [{status: error}]}, spans: {wait: 20s}", ""},
};

/* A processor that is in pipelines of one signal only joins nothing. */
static void test_one_side(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        wrong += is_wrong(sides[i].signals, sides[i].settings, sides[i].report);
    assert_int_equal(wrong, 0);
}

/* ---- what is before it ---- */

extern const struct component_type batch_processor_type, otlp_receiver_type,
    pyroscope_receiver_type, probabilistic_sampler_processor_type, forward_connector_type;

#define OTLP "otlp: {protocols: {grpc: , http: }}"
#define OTLP_WITH_METADATA "otlp: {protocols: {grpc: , http: {include_metadata: true}}}"
#define TENANTS ", source: {tenant_from: ['resource.attributes[\"t\"]', metadata.X-Scope-OrgID]}"
#define TENANT "t:1:88: warning: processors::spanjoin::source::tenant_from::1: "

static const struct {
    const char *receivers;
    const char *settings; /* of spanjoin */
    const char *traces;   /* receivers and processors of the pipeline */
    const char *profiles;
    const char *report; /* "": nothing */
} pipelines[] = {
    {OTLP, "", "[otlp], processors: [spanjoin, batch]", "[otlp], processors: [spanjoin, batch]",
     ""},
    {OTLP, "", "[otlp], processors: [batch, spanjoin]", "[otlp], processors: [spanjoin]",
     "t:1:14: warning: processors::spanjoin: \"batch\" is before it in the pipeline \"traces\": "
     "all clients look like one there, and uploads are no longer as they came; put it behind\n"},
    {OTLP, "", "[otlp], processors: [spanjoin]", "[otlp], processors: [batch, spanjoin]",
     "\"batch\" is before it in the pipeline \"profiles\""},
    {OTLP, "", "[otlp], processors: [probabilistic_sampler, spanjoin]",
     "[otlp], processors: [spanjoin]",
     "t:1:14: warning: processors::spanjoin: \"probabilistic_sampler\" is before it in the "
     "pipeline \"traces\": samples of the spans that it takes away find none, and by thread some "
     "are joined to wrong spans; put it behind\n"},
    {OTLP, "", "[otlp], processors: [probabilistic_sampler, spanjoin]",
     "[otlp], processors: [probabilistic_sampler, spanjoin]", ""},
    {OTLP, "", "[otlp], processors: [spanjoin, probabilistic_sampler]",
     "[otlp], processors: [probabilistic_sampler, spanjoin]", ""},
    {OTLP, "", "[otlp], processors: [probabilistic_sampler, spanjoin]",
     "[otlp], processors: [spanjoin, probabilistic_sampler]",
     "\"probabilistic_sampler\" is before it in the pipeline \"traces\""},
    /* tenants */
    {OTLP, TENANTS, "[otlp], processors: [spanjoin]", "[otlp], processors: [spanjoin]",
     TENANT "no request has this header here, so it names no tenant: set include_metadata: true "
            "at the listeners of \"otlp\"\n"},
    {OTLP_WITH_METADATA, TENANTS, "[otlp], processors: [spanjoin]",
     "[otlp], processors: [spanjoin]", ""},
    {OTLP ", pyroscope: ", TENANTS, "[otlp], processors: [spanjoin]",
     "[otlp, pyroscope], processors: [spanjoin]",
     TENANT "requests of profiles have this header here and those of traces do not, so that what "
            "a tenant sends is not joined: set include_metadata: true at the listeners of "
            "\"otlp\"\n"},
    {OTLP_WITH_METADATA ", pyroscope: ", TENANTS, "[otlp], processors: [spanjoin]",
     "[pyroscope], processors: [spanjoin]", ""},
    {OTLP ", pyroscope: ", "", "[otlp], processors: [spanjoin]",
     "[pyroscope], processors: [spanjoin]", ""},
    {OTLP, ", source: {tenant_from: [metadata.x-scope-orgid]}", "[otlp], processors: [spanjoin]",
     "[otlp], processors: [spanjoin]",
     "t:1:60: warning: processors::spanjoin::source::tenant_from::0: no request has this header "
     "here, so it names no tenant: set include_metadata: true at the listeners of \"otlp\"\n"},
    {OTLP ", pyroscope: ", ", source: {tenant_from: [metadata.X-Scope-OrgID]}",
     "[otlp], processors: [spanjoin]", "[pyroscope], processors: [spanjoin]",
     "t:1:60: warning: processors::spanjoin::source::tenant_from::0: requests of profiles have "
     "this header here and those of traces do not"},
    {OTLP_WITH_METADATA, ", source: {tenant_from: [metadata.x-scope-orgid]}",
     "[otlp], processors: [spanjoin]", "[otlp], processors: [spanjoin]", ""},
    {OTLP, ", source: {tenant_from: }", "[otlp], processors: [spanjoin]",
     "[otlp], processors: [spanjoin]", ""},
    {OTLP_WITH_METADATA ", pyroscope: ", ", source: {tenant_from: [metadata.x-tenant]}",
     "[otlp], processors: [spanjoin]", "[pyroscope], processors: [spanjoin]",
     "requests of traces have this header here and those of profiles do not, so that what a "
     "tenant sends is not joined: set include_metadata: true at the listeners of \"pyroscope\"\n"},
    {OTLP_WITH_METADATA, TENANTS, "[otlp], processors: [batch, spanjoin]",
     "[otlp], processors: [spanjoin]",
     "requests of profiles have this header here and those of traces do not, so that what a "
     "tenant sends is not joined: add x-scope-orgid to metadata_keys of \"batch\"\n"},
    {OTLP_WITH_METADATA, TENANTS, "[otlp], processors: [batch/kept, spanjoin]",
     "[otlp], processors: [spanjoin]",
     "processors::spanjoin: \"batch/kept\" is before it in the pipeline \"traces\": all clients "
     "look like one there, and uploads are no longer as they came; put it behind\n"},
    /* behind a connector */
    {OTLP, TENANTS, "[forward], processors: [spanjoin]", "[otlp], processors: [spanjoin]",
     "no request has this header here"},
    {OTLP_WITH_METADATA, TENANTS, "[forward], processors: [spanjoin]",
     "[otlp], processors: [spanjoin]", ""},
};

static struct config *load_pipelines(size_t i, struct text *report)
{
    const struct config_type *types[] = {&sink,
                                         &spanjoin_processor_type.config,
                                         &batch_processor_type.config,
                                         &probabilistic_sampler_processor_type.config,
                                         &otlp_receiver_type.config,
                                         &pyroscope_receiver_type.config,
                                         &forward_connector_type.config,
                                         NULL};
    struct text yaml = {0};
    text_printf(&yaml,
                "processors: {spanjoin: {window: 2m%s}, batch: , batch/kept: {metadata_keys: "
                "[X-Scope-OrgID]}, probabilistic_sampler: {sampling_percentage: 10}}\n"
                "receivers: {%s}\nexporters: {sink: }\n%sservice:\n  pipelines:\n"
                "    traces: {receivers: %s, exporters: [sink]}\n"
                "    profiles: {receivers: %s, exporters: [sink]}\n",
                pipelines[i].settings, pipelines[i].receivers,
                strstr(pipelines[i].traces, "forward") ? "connectors: {forward: }\n" : "",
                pipelines[i].traces, pipelines[i].profiles);
    if (strstr(pipelines[i].traces, "forward"))
        text_append(&yaml, "    traces/in: {receivers: [otlp], exporters: [forward]}\n");
    struct config *config =
        config_load_text(types, "t", slice_of_string(text_string(&yaml)), report);
    text_deinit(&yaml);
    return config;
}

static void test_what_is_before(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++) {
        struct text report = {0};
        struct config *config = load_pipelines(i, &report);
        const char *expected = pipelines[i].report;
        bool fits = *expected ? strstr(text_string(&report), expected) != NULL : report.size == 0;
        if (!config || !fits) {
            fprintf(stderr, "%zu gave: %sexpected: %s\n", i, text_string(&report), expected);
            wrong++;
        }
        config_free(config);
        text_deinit(&report);
    }
    assert_int_equal(wrong, 0);
}

static const struct spanjoin_settings *settings_of(const struct config *config)
{
    return config->components[CONFIG_PROCESSORS][0].settings;
}

static void test_defaults(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config = load("", &report);
    assert_non_null(config);
    const struct spanjoin_settings *settings = settings_of(config);
    assert_int_equal(settings->window, 120000000000);
    assert_int_equal(settings->samples.wait, 10000000000);
    assert_int_equal(settings->spans.wait, 0);
    assert_int_equal(settings->clock_skew, 5000000000);
    assert_int_equal(settings->sources.count, 7);
    assert_true(slice_is(settings->span_ids[5].key, "span id"));
    assert_true(settings->span_ids[5].is_decimal && settings->span_ids[6].is_decimal);
    assert_false(settings->span_ids[0].is_decimal);
    assert_int_equal(settings->trace_sources.count, 3);
    assert_int_equal(settings->samples.joined_count, 4);
    assert_true(slice_is(settings->samples.joined[3].key, "http.route"));
    assert_int_equal(settings->spans.joined_count, 3);
    assert_int_equal(settings->type_count, 1);
    assert_int_equal(settings->cpu_type, 0);
    config_free(config);
    text_deinit(&report);
}

/* What print-config prints has only the keys that were written: each of a condition means something
 * by being there. */
static void test_printed_conditions_load(void **state)
{
    static const char keep[] =
        "keep: {span_detail_when: [{duration_above: 0s}, {status: unset}, {cpu_above: 0s}, "
        "{cpu_share_above: 0}, {attribute: {key: a, matches: b}}, {attribute: {key: a, below: 0}}, "
        "{ratio: 0}, {condition: 'span.name == \"a\"'}]}";
    (void)state;
    struct text report = {0}, printed = {0}, again = {0};
    struct config *config = load(keep, &report);
    assert_non_null(config);
    config_print(config, &printed);
    const struct config_type *types[] = {&source, &sink, &spanjoin_processor_type.config, NULL};
    struct config *second =
        config_load_text(types, "t", slice_of_string(text_string(&printed)), &report);
    if (!second)
        fail_msg("%s\n%s", text_string(&printed), text_string(&report));
    config_print(second, &again);
    assert_string_equal(text_string(&again), text_string(&printed));
    config_free(config);
    config_free(second);
    text_deinit(&report);
    text_deinit(&printed);
    text_deinit(&again);
}

/* print-config writes the defaults, too: nobody has asked for them, so that they are no mistakes.
 */
static void test_printed_defaults_make_no_warnings(void **state)
{
    static const char *const settings[] = {"", "samples: {wait: 0s}", "spans: {attributes: []}"};
    (void)state;
    const struct config_type *types[] = {&source, &sink, &spanjoin_processor_type.config, NULL};
    for (unsigned signals = IN_TRACES; signals <= (IN_TRACES | IN_PROFILES); signals++)
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
            struct text report = {0}, printed = {0};
            struct config *config = load_in(signals, settings[i], &report);
            config_print(config, &printed);
            config_free(config);
            config = config_load_text(types, "t", slice_of_string(text_string(&printed)), &report);
            if (!config || report.size > 0)
                fail_msg("%u %zu: %s", signals, i, text_string(&report));
            config_free(config);
            text_deinit(&report);
            text_deinit(&printed);
        }
}

/* Names are labels of metrics: conditions that differ have different ones. */
static void test_conditions_are_named_as_written(void **state)
{
    static const char *const names[] = {"attribute: {key: a, above: 9007199254740993}",
                                        "attribute: {key: a, above: 9007199254740992}",
                                        "attribute: {key: a, above: 1e3, below: 2000.50}",
                                        "attribute: {key: a, matches: ^b}",
                                        "duration_above: 1500ms"};
    (void)state;
    struct text report = {0}, keep = {0};
    text_append(&keep, "keep: {span_detail_when: [");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        text_printf(&keep, "%s{%s}", i ? ", " : "", names[i]);
    text_append(&keep, "]}");
    struct config *config = load(text_string(&keep), &report);
    assert_non_null(config);
    const struct keep_condition *conditions = settings_of(config)->keep.span_detail_when.items;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(conditions[i].name, names[i]);
    config_free(config);
    text_deinit(&report);
    text_deinit(&keep);
}

/* A reload sees another condition, although all values are 0. */
static void test_other_conditions_differ(void **state)
{
    (void)state;
    struct text report = {0};
    struct arena arena = {0};
    struct config *one = load("keep: {span_detail_when: [{status: unset}]}", &report);
    struct config *other = load("keep: {span_detail_when: [{ratio: 0}]}", &report);
    assert_non_null(
        config_fields_differ(&arena, spanjoin_fields, false, settings_of(one), settings_of(other)));
    assert_null(
        config_fields_differ(&arena, spanjoin_fields, false, settings_of(one), settings_of(one)));
    config_free(one);
    config_free(other);
    arena_deinit(&arena);
    text_deinit(&report);
}

/* Only a check of the whole configuration can detect two of them in one signal. */
static void test_one_pipeline_of_each_signal(void **state)
{
    (void)state;
    struct text report = {0};
    struct error err = {0};
    struct config *config = load("", &report);
    struct process process = {.metrics = metrics_new(1), .memory_limit_bytes = 1 << 30};
    struct component *component = calloc(1, spanjoin_processor_type.component_size);
    component->type = &spanjoin_processor_type;
    component->id = "spanjoin";
    component->settings = settings_of(config);
    component->process = &process;
    component->pipeline_count[SIGNAL_PROFILES] = 2;
    assert_false(spanjoin_processor_type.init(component, &err));
    assert_non_null(strstr(err.text, "is in 2 profiles pipelines"));
    component->pipeline_count[SIGNAL_PROFILES] = 1;
    assert_true(spanjoin_processor_type.init(component, &err));
    spanjoin_processor_type.deinit(component);
    free(component);
    metrics_free(process.metrics);
    config_free(config);
    text_deinit(&report);
}

#define WALL_OF_SPANS "spans: {profile_types: [wall], attributes: [{key: pyroscope.profile.id, "

/* A mistake in a list of attributes is no reason to say that nothing is added. */
static void test_mistakes_make_no_warnings(void **state)
{
    static const char *const settings[] = {
        "spans: {wait: 20s, attributes: [{key: a, from: span.nme}]}",
        "spans: {wait: 20s, attributes: [{key: a}]}", "spans: {wait: 20s, attributes: {a: b}}",
        WALL_OF_SPANS "from: span.ident}]}", WALL_OF_SPANS "form: span.id}]}"};
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct text report = {0};
        assert_null(load(settings[i], &report));
        if (strstr(text_string(&report), "warning"))
            fail_msg("%zu: %s", i, text_string(&report));
        text_deinit(&report);
    }
}

#define GOES_ON "; the index goes on\n"
#define EMPTY "; its index is empty: samples of spans that came before are not joined\n"
#define SLOW "keep: {span_detail_when: [{duration_above: 1s}]}"

/* What `validate --diff` says of the index. */
static void test_index_after_a_reload(void **state)
{
    static const struct {
        const char *before, *after, *text;
    } reloads[] = {
        {"", "window: 1m", "spanjoin: changed, goes on with the new settings (window differs)\n"},
        {SLOW, "keep: {span_detail_when: [{duration_above: 2s}]}", GOES_ON},
        {SLOW, "keep: {span_detail_when: [{duration_above: 1s}], otherwise: drop}", GOES_ON},
        {SLOW, "", GOES_ON},
        {"", SLOW, EMPTY},
        {SLOW, "keep: {span_detail_when: [{cpu_above: 1s}]}", EMPTY},
        {"keep: {span_detail_when: [{cpu_above: 1s}]}",
         "keep: {span_detail_when: [{cpu_above: 2s}]}", GOES_ON},
        {"", "samples: {wait: 5s}", EMPTY},
        {"", "samples: {attributes: []}", EMPTY},
        {"", "spans: {wait: 5s}", EMPTY},
        {"", "service_from: profile", EMPTY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof reloads / sizeof *reloads; i++) {
        struct text report = {0}, printed = {0};
        struct arena arena;
        struct config *before = load(reloads[i].before, &report);
        struct config *after = load(reloads[i].after, &report);
        arena_init(&arena, NULL);
        config_diff_print(config_diff_new(&arena, before, after), &printed);
        if (!strstr(text_string(&printed), reloads[i].text))
            fail_msg("%zu: %s", i, text_string(&printed));
        arena_deinit(&arena);
        config_free(before);
        config_free(after);
        text_deinit(&printed);
        text_deinit(&report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_one_side),
        cmocka_unit_test(test_what_is_before),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_printed_conditions_load),
        cmocka_unit_test(test_printed_defaults_make_no_warnings),
        cmocka_unit_test(test_conditions_are_named_as_written),
        cmocka_unit_test(test_other_conditions_differ),
        cmocka_unit_test(test_index_after_a_reload),
        cmocka_unit_test(test_mistakes_make_no_warnings),
        cmocka_unit_test(test_one_pipeline_of_each_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
