// Operations: all of them, one of them with its latency over time, and flame graphs of selections.

import { h, to, mark, loader, emptyBox, replace, soft, small, note, strong, lead } from "./dom.js";
import { duration, value, count, plural, percent, clean } from "./format.js";
import { get, basics, findOperation, mainType, typeOf, typeName, OPERATIONS_MAX } from "./api.js";
import { link, setParams, selectionOf } from "./route.js";
import { KEYS, none, describe, form, ofOperation, typeChooser } from "./selection.js";
import { List, bar } from "./list.js";
import { Stacks } from "./stacks.js";
import { ProfileView } from "./profile.js";
import { HeatMap } from "./heatmap.js";
import { compareButtons } from "./compare.js";
import { nothingYet, mergedNote, spanLink, statusMark } from "./requests.js";

// ---- a flame graph of a selection ----

// Returns {element, stop, show(selection)}.
export function profileSection(selection, params, state, label, whenEmpty) {
	let type = params.get("type") || mainType(state.types)?.name;
	let view;
	const title = h("h2", "Flame graph");
	const load = async () => {
		view?.stop();
		view = undefined;
		const answer = await get("flamegraph", { ...selection, type });
		if (!answer.total || answer.nodes.length < 2) return whenEmpty ? whenEmpty() : !state.types.length ? nothingYet(state, true) : emptyBox(`No samples of ${typeName(type || "cpu")} here.`, mergedNote(state), h("p", "Choose a longer time, fewer filters or another profile type."));
		performance.mark("flame-begin");
		view = new ProfileView({ stacks: new Stacks(answer), label, exportParams: { ...selection, type } });
		const facts = [`${typeName(answer.type)} ${value(answer.total, answer.unit)}`];
		if (answer.spans) facts.push(plural(answer.spans, "span"));
		if (answer.truncated) facts.push("the smallest stacks are combined");
		return [note(facts.join(" · ")), view.element];
	};
	const content = loader(load);
	const chooser = typeChooser(state, type, (t) => { type = t; setParams({ type: t, z: null }); content.run(); });
	return {
		element: h("section", { "aria-label": "Profile" }, h("div.heading", title, chooser), content.box),
		stop: () => view?.stop(),
		show: (chosen, text) => { selection = chosen; replace(title, text || "Flame graph"); content.run(); },
	};
}

// ---- all operations ----

export async function operationsPage() {
	const [state, known] = await basics();
	const type = typeOf(state);
	const heading = [h("h1", "Operations"), lead("What the services do, the costliest first. Select an operation for its latency over time, its flame graph and comparisons.")];
	if (!known.length) return { title: "Operations", content: [heading, nothingYet(state)] };
	const cost = (o) => o.costs?.[type.name] || 0;
	const each = (o) => o.cost_per_span?.[type.name] || 0;
	const linkOf = (o) => link("operation", ofOperation(o));
	const time = (ns) => (ns ? duration(ns) : "–");
	const largest = Math.max(1, ...known.map(cost)), slowest = Math.max(1, ...known.map((o) => o.p95_ns));
	const all = type.total ?? 0;
	const list = new List({
		label: "Operations", rows: [...known], sort: "cost", order: "desc", className: "operations",
		template: "minmax(14rem,1fr) 10rem 7rem 6rem 9rem 6rem 5rem 4.5rem",
		columns: [
			{ title: "Operation", cell: (o) => h("span.two", h("a.name", { href: linkOf(o), tabIndex: -1 }, clean(o.operation, 120) || "outside of requests"), small(`${clean(o.service, 60) || "(no service)"}${o.kind && o.kind !== "unspecified" ? `, ${clean(o.kind, 12)}` : ""}`)) },
			{ title: typeName(type.name), sort: "cost", key: cost, cell: (o) => bar(cost(o) ? `${value(cost(o), type.unit)}  ${percent(cost(o), all)}` : "–", cost(o) / largest, "cost") },
			{ title: "Each", sort: "each", key: each, className: "wide-only", help: "For each span", cell: (o) => (each(o) ? value(each(o), type.unit) : "–") },
			{ title: "p50", sort: "p50", key: (o) => o.p50_ns, help: "The median", className: "wide-only", cell: (o) => time(o.p50_ns) },
			{ title: "p95", sort: "p95", key: (o) => o.p95_ns, help: "95 % of the spans take at most this", cell: (o) => bar(time(o.p95_ns), o.p95_ns / slowest) },
			{ title: "p99", sort: "p99", key: (o) => o.p99_ns, className: "wide-only", cell: (o) => time(o.p99_ns) },
			{ title: "Spans", sort: "spans", className: "wide-only", key: (o) => o.spans, cell: (o) => (o.spans ? count(o.spans) : "–") },
			{ title: "Errors", sort: "errors", key: (o) => o.errors / (o.spans || 1), cell: (o) => mark(o.errors ? percent(o.errors, o.spans) : "0", o.errors) },
		],
		onOpen: (o) => { location.hash = linkOf(o); },
	});
	return { title: "Operations", content: [heading, list.element, known.length === OPERATIONS_MAX && note(`The ${count(OPERATIONS_MAX)} costliest.`)], stop: () => list.observer.disconnect() };
}

// ---- one operation ----

function figure(name, text, help) {
	return h("div.figure", { title: help || "" }, h("dt", name), h("dd", text));
}

async function slowest(selection, state) {
	const answer = await get("spans", { ...selection, sort: "duration", limit: 5 });
	if (!answer.spans.length) return note("None of its requests was among the slowest or most expensive that are kept.");
	const type = mainType(state.types);
	return h("ul.plain", answer.spans.map((s) => h("li", to(spanLink(s), duration(s.duration_ns)), " ", statusMark(s.status),
		type && s.costs?.[type.name] ? soft(` ${typeName(type.name)} ${value(s.costs[type.name], type.unit)}`) : null)));
}

export async function operationPage(params) {
	const [state, known] = await basics();
	const selection = selectionOf(params);
	const base = { service: selection.service, operation: selection.operation, kind: selection.kind };
	const operation = await findOperation(known, base).catch(() => null); // the parts of the page say what is wrong
	const type = typeOf(state);
	const title = clean(base.operation, 200) || "Outside of requests";
	const profile = profileSection(selection, params, state, `Flame graph of ${title}`);
	const choose = (cell) => {
		const chosen = cell ? { ...base, bucket: cell.bucket, from: cell.from, to: cell.to } : base;
		setParams({ bucket: null, from: null, to: null, z: null, ...(cell ? { bucket: cell.bucket, from: cell.from, to: cell.to } : {}) });
		profile.show(chosen, cell ? `Flame graph of ${cell.text}` : "Flame graph");
	};
	const heat = new HeatMap(base, choose, selection);
	const o = operation;
	return {
		title,
		stop: () => { profile.stop(); heat.stop(); },
		content: [
			h("p.crumbs", to(link("operations"), "Operations"), " / ", clean(base.service, 80) || "(no service)"),
			h("h1", title),
			o?.spans ? h("dl.figures", figure("median", duration(o.p50_ns), "p50: half of them take at most this"), figure("p95", duration(o.p95_ns), "95 % of them take at most this"), figure("p99", duration(o.p99_ns)), figure("slowest", duration(o.max_ns)),
				figure("spans", count(o.spans)), figure("errors", o.errors ? percent(o.errors, o.spans) : "0"), figure(`${typeName(type.name)} each`, value(o.cost_per_span?.[type.name], type.unit)))
				: !o && [note("Its figures are not kept any more."), mergedNote(state)],
			base.operation && o && h("div.actions", compareButtons(o, state), h("a.button", { href: link("requests", { service: base.service, operation: base.operation, spans: "all" }) }, "All of them")),
			base.operation && heat.element,
			profile.element,
			base.operation && h("section", h("h2", "Its slowest requests"), loader(() => slowest(base, state)).box),
		],
	};
}

// ---- any selection ----

export async function profilePage(params) {
	const [state, known] = await basics();
	let selection = selectionOf(params);
	const intro = lead();
	const profile = profileSection(selection, params, state, "Flame graph of the selection");
	const filters = h("div");
	const say = () => replace(intro, "Where the time goes of ", strong(describe(selection)), ".");
	const draw = () => replace(filters, form(selection, (chosen, key) => {
		selection = chosen;
		setParams({ ...none(KEYS), ...selection, z: null });
		say();
		if (key === "service") draw();
		profile.show(selection);
	}, KEYS, known));
	say();
	draw();
	return { title: "Flame graph", content: [h("h1", "Flame graph"), intro, filters, known.length || state.types?.some((t) => t.total) ? profile.element : nothingYet(state)], stop: () => profile.stop() };
}
