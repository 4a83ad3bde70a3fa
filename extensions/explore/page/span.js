// One request: where its time went, and what is different about it.

import { h, to, button, copy, emptyBox, soft, small, note, strong, lead } from "./dom.js";
import { duration, value, percent, times, isUsual, count, plural, clean, fullTime, ago, bytes } from "./format.js";
import { get, basics, findOperation, typeOf, typeName } from "./api.js";
import { wide } from "./list.js";
import { link } from "./route.js";
import { ofOperation } from "./selection.js";
import { statusMark, spanLink } from "./requests.js";
import { compareButtons } from "./compare.js";
import { profileSection } from "./operations.js";

// ---- links to other programs ----

export function outside(links) {
	const names = { grafana: "Grafana", tempo: "Tempo", pyroscope: "Pyroscope" };
	return Object.keys(names).filter((key) => /^https?:/.test(links?.[key] || "")).map((key) =>
		h("a.button", { href: links[key], target: "_blank", rel: "noopener noreferrer" }, `${names[key]} ↗`));
}

// ---- the split of its time ----

const PARTS = [
	["on_cpu_ns", "on CPU", "The processor worked for it"],
	["off_cpu_ns", "off CPU", "Its threads slept: input and output, timers"],
	["lock_ns", "in locks", "It waited for a lock"],
	["wait_ns", "waiting", "It waited for others, such as the calls below"],
	["other_ns", "the rest", "No profile says what happened: it waited, or no sample was taken"],
];

function timeSplit(span) {
	const time = span.time || {};
	const parts = PARTS.filter(([key]) => time[key] > 0);
	const sum = parts.reduce((total, [key]) => total + time[key], 0);
	if (!sum) return null;
	const unknown = PARTS.slice(1, 4).filter(([key]) => time[key] == null).map(([, name]) => name);
	return h("section", { "aria-label": "Time" }, h("h2", "Where its time went"),
		h("div.split", { role: "img", "aria-label": parts.map(([key, name]) => `${name} ${percent(time[key], span.duration_ns)}`).join(", ") },
			parts.map(([key, name]) => h("div", { className: `part ${key}`, title: `${name}: ${duration(time[key])}`, vars: { "--share": String(time[key] / sum) } }))),
		h("ul.split-legend", parts.map(([key, name, help]) => h("li", { title: help }, h("i", { className: `swatch ${key}` }), `${name} `, strong(duration(time[key])), span.duration_ns > 0 && ` ${percent(time[key], span.duration_ns)}`))),
		time.on_cpu_ns > span.duration_ns * 1.02 && note("That is more than its duration: several threads worked for it at the same time, or a sample stands for more time than it took."),
		unknown.length > 0 && note(`No profile tells how much of the rest was ${unknown.join(", ")}.`));
}

// ---- a sentence that says what matters ----

const costliestOf = (trace = [], type) => trace.filter((s) => s.costs?.[type.name] > 0).sort((a, b) => b.costs[type.name] - a.costs[type.name])[0];
const linkIn = (span, other) => spanLink({ trace_id: span.trace_id, span_id: other.span_id });

function withoutSamples(span, trace, type) {
	const why = to(link("explain", { id: span.span_id }), "Why?");
	const costliest = costliestOf(trace, type);
	if (!costliest) return [`No sample names it, so its ${typeName(type.name)} is not known. `, why];
	return [`No sample names it itself. `, why, ` In its trace, `, to(linkIn(span, costliest), clean(costliest.operation, 80)),
		` used the most: ${typeName(type.name)} `, strong(value(costliest.costs[type.name], type.unit)), "."];
}

// What it called, and how long that took.
function longestInside(span, trace) {
	const inside = trace.filter((s) => s.parent_id === span.span_id && s.duration_ns > span.duration_ns / 10).sort((a, b) => b.duration_ns - a.duration_ns).slice(0, 3);
	return inside.length ? ["Longest inside of it: ", inside.map((s, i) => [i ? ", " : "", to(linkIn(span, s), clean(s.operation, 60)), ` ${duration(s.duration_ns)}`]), ". "] : null;
}

function sentence({ span, trace = [] }, operation, type) {
	const parts = [`It took `, strong(duration(span.duration_ns))];
	if (operation?.p50_ns && operation.spans > 3) {
		const ratio = span.duration_ns / operation.p50_ns;
		if (isUsual(ratio)) parts.push(", about as long as usual");
		else if (ratio > 1) parts.push(", ", strong(times(ratio)), ` the median of ${duration(operation.p50_ns)}`);
		else parts.push(`, less than the median of ${duration(operation.p50_ns)}`);
	}
	parts.push(". ", longestInside(span, trace));
	const cost = span.costs?.[type.name];
	if (!cost) parts.push(...withoutSamples(span, trace, type));
	else {
		parts.push(`${typeName(type.name)}: `, strong(value(cost, type.unit)));
		if (type.unit === "nanoseconds" && span.duration_ns) parts.push(`, ${percent(cost, span.duration_ns)} of its duration`);
		const usual = operation?.cost_per_span?.[type.name];
		if (usual > 0) parts.push(`; the average request of this operation uses ${value(usual, type.unit)}`);
		parts.push(".");
	}
	return lead(parts);
}

// ---- the trace ----

// Depth-first, children by start; spans whose parent is not there, or is below them, come as roots.
function inOrder(spans) {
	const byId = new Map(spans.map((s) => [s.span_id, s]));
	const children = new Map();
	for (const s of spans) {
		const parent = byId.has(s.parent_id) && s.parent_id !== s.span_id ? s.parent_id : "";
		(children.get(parent) || children.set(parent, []).get(parent)).push(s);
	}
	const start = (s) => BigInt(s.start || 0);
	for (const list of children.values()) list.sort((a, b) => (start(a) < start(b) ? -1 : 1));
	const rows = [];
	const seen = new Set();
	const walk = [...spans, ...(children.get("") || []).reverse()].map((s) => [s, 0]); // what is left at its front is in circles
	while (walk.length) {
		const [s, depth] = walk.pop();
		if (seen.has(s.span_id)) continue;
		seen.add(s.span_id);
		rows.push([s, depth]);
		for (const child of [...(children.get(s.span_id) || [])].reverse()) walk.push([child, depth + 1]);
	}
	return rows;
}

// Whether a call begins or lies outside of its caller, by more than that took. What is queued may come later.
function isOutside(span, at, caller) {
	const late = at - caller.raw - caller.shift, { duration_ns: took } = caller.span, slack = Math.max(took, 1e6);
	return late < -slack || (span.kind !== "consumer" && late > took + slack);
}

// Where spans begin: {span, raw: by its own clock, shift}. Clocks of services differ; a call that cannot have been when it
// says is put into the middle of its caller, with all below it. ahead: how much its clock differs.
function places(rows) {
	const base = BigInt(rows[0][0].start || 0), known = new Map();
	for (const [span] of rows) {
		const caller = known.get(span.parent_id), place = { span, raw: Number(BigInt(span.start || 0) - base), shift: caller?.shift || 0 };
		if (caller && span.service !== caller.span.service && isOutside(span, place.raw + place.shift, caller)) {
			place.shift = 0;
			if (isOutside(span, place.raw, caller)) {
				place.shift = caller.raw + caller.shift + Math.max(0, caller.span.duration_ns - span.duration_ns) / 2 - place.raw;
				place.ahead = caller.shift - place.shift;
			}
		}
		known.set(span.span_id, place);
	}
	return known;
}

const WATERFALL_MAX = 500;

function waterfall(answer, type) {
	const { span } = answer;
	const spans = answer.trace?.length ? answer.trace : [span];
	const all = inOrder(spans), at = all.findIndex(([s]) => s.span_id === span.span_id);
	const skipped = at < WATERFALL_MAX ? 0 : at - WATERFALL_MAX / 2;
	const rows = all.slice(skipped, skipped + WATERFALL_MAX);
	const total = answer.trace_total || spans.length;
	const placed = places(all), start = (s) => placed.get(s.span_id).raw + placed.get(s.span_id).shift;
	const first = Math.min(...rows.map(([s]) => start(s)));
	const end = Math.max(1, ...rows.map(([s]) => start(s) - first + s.duration_ns));
	const ahead = (s) => placed.get(s.span_id).ahead;
	const row = ([s, depth]) => {
		const offset = start(s) - first;
		const cost = type.unit === "nanoseconds" ? s.costs?.[type.name] : undefined;
		const isThis = s.span_id === span.span_id;
		return h("tr", { className: isThis ? "this" : "", "aria-current": isThis ? "true" : null },
			h("td.tree-name", { vars: { "--depth": Math.min(depth, 12) } }, to(linkIn(span, s), clean(s.operation, 100) || "(no name)"), small(` ${clean(s.service, 50)} `, ahead(s) && h("span.bad", `clock about ${duration(Math.abs(ahead(s)))} ${ahead(s) > 0 ? "ahead" : "behind"} `)), s.status === "error" && statusMark("error")),
			h("td.lane", h("div.lane-bar", { title: `${duration(s.duration_ns)}${cost ? `, CPU ${duration(cost)}` : ""}`, vars: { "--from": `${(100 * offset) / end}%`, "--width": `${(100 * s.duration_ns) / end}%`, "--cpu": `${Math.min(100, (100 * (cost || 0)) / (s.duration_ns || 1))}%` } }, h("div.lane-cpu"))),
			h("td.number", duration(s.duration_ns)), h("td.number", cost === undefined ? "–" : value(cost, type.unit)));
	};
	return h("section", { "aria-label": "Trace" }, h("h2", `Its trace, ${plural(total, "span")}`),
		wide("Spans of the trace", h("table.waterfall",
			h("thead", h("tr", [["Span"], [`0 to ${duration(end)}; the strong part of a bar is CPU time`, "lane"], ["Duration", "number"], [typeName(type.name), "number"]].map(([text, className]) => h("th", { scope: "col", className }, text)))),
			h("tbody", rows.map(row)))),
		rows.some(([s]) => ahead(s)) && note("The clocks of services differ, so these calls would begin before their callers or after their ends. They are drawn in the middle of these."),
		total > rows.length && note(`${rows.length} of ${count(total)} spans${skipped ? ", around this one" : ""}.`));
}

// ---- attributes ----

function attributes(title, map) {
	const keys = Object.keys(map || {}).sort();
	if (!keys.length) return null;
	return h("details.more", h("summary", `${title} (${keys.length})`),
		h("dl", keys.map((key) => [h("dt", clean(key, 120)), h("dd", clean(typeof map[key] === "object" ? JSON.stringify(map[key]) : map[key], 1000))])));
}

export async function spanPage(params) {
	const [state, known] = await basics();
	const id = params.get("span");
	const answer = await get("span", { span: id, trace: params.get("trace") }).catch((error) => {
		if (error.status === 404) error.message = ["This request is not kept, or not any more. ", to(link("explain", { id }), "Explain"), " says what is known of it."];
		throw error;
	});
	const { span } = answer;
	const type = typeOf(state);
	const operation = await findOperation(known, span);
	const other = span.samples ? null : costliestOf(answer.trace, type); // whose graph there is instead
	const selection = { trace: span.trace_id, span: span.span_id };
	const types = state.types.filter((t) => span.costs?.[t.name] != null);
	const profile = profileSection(selection, params, types.length ? { ...state, types } : state, `Flame graph of ${clean(span.operation, 80)}`, () =>
		emptyBox("No sample names this request.", h("p", span.duration_ns < 1e8 ? "A profiler takes samples, 100 in a second or fewer, so short requests often have none. " : "Samples of CPU time are taken while threads work, not while they wait. ", to(link("explain", { id: span.span_id }), "Explain"), " says what profcol knows. Meanwhile: ",
			other && [to(linkIn(span, other), `the flame graph of ${clean(other.operation, 80)}`), " in its trace, or "], to(link("operation", ofOperation(span)), "the flame graph of all requests of this operation"), ".")));
	return {
		title: clean(span.operation, 60),
		stop: () => profile.stop(),
		content: [
			h("p.crumbs", to(link("requests"), "Requests"), " / ", to(link("operation", ofOperation(span)), `${clean(span.service, 60)} ${clean(span.operation, 80)}`)),
			h("h1", clean(span.operation, 200) || "(no name)"),
			h("p.facts", h("span", clean(span.service, 100), span.version && ` ${clean(span.version, 60)}`), statusMark(span.status), span.status_message && h("span.bad", clean(span.status_message, 300)),
				h("span.soft", { title: fullTime(span.start) }, `${fullTime(span.start)}, ${ago(span.start, state.now)}`),
				soft("span ", h("code", clean(span.span_id, 32)), " ", button("Copy", () => copy(span.span_id, "Span id"), { className: "link" }), " · ", button("Copy trace id", () => copy(span.trace_id, "Trace id"), { className: "link" }))),
			sentence(answer, operation, type),
			h("div.actions", other && h("a.button.main", { href: linkIn(span, other) }, `Flame graph of ${clean(other.operation, 60) || "(no name)"}`), compareButtons(operation || span, state, span, !other), h("a.button", { href: link("explain", { id: span.span_id }) }, "Explain"), outside(answer.links)),
			timeSplit(span),
			span.allocated_bytes > 0 && h("p", "It allocated ", strong(bytes(span.allocated_bytes)), "."),
			profile.element,
			waterfall(answer, type),
			attributes("Attributes", span.attributes), attributes("Resource", span.resource),
		],
	};
}
