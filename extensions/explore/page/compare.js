// Two selections side by side: a differential flame graph, and a table of what grew and shrank.

import { h, to, button, replace, loader, emptyBox, choice, soft, small, strong, lead } from "./dom.js";
import { duration, value, percent, plural, clean, durationParameter, toMs } from "./format.js";
import { get, basics, mainType, typeName } from "./api.js";
import { link, go, selectionOf, prefixed, setParams } from "./route.js";
import { KEYS, describe, form, ofOperation, typeChooser } from "./selection.js";
import { Stacks } from "./stacks.js";
import { ProfileView } from "./profile.js";
import { mergedNote, nothingYet, spanLink } from "./requests.js";

// ---- one click from a request or an operation ----

// Where the bucket of a duration begins and ends, as in store_cells.c: four to each power of two.
function bucketOf(ns) {
	const step = 2 ** Math.max(10, Math.floor(Math.log2(ns)) - 2);
	const start = Math.floor(ns / step) * step;
	return [start, start + step];
}

// Returns [text, help, a, b] for each comparison that makes sense. Both sides are whole buckets, and none is in both.
function comparisons(operation, state, span) {
	const all = ofOperation(operation);
	const list = [];
	if (!Object.values(operation.costs || {}).some(Boolean)) return list; // no samples
	const { p50_ns: p50, p95_ns: p95, versions = [] } = operation;
	const half = bucketOf(p50)[1], slow = bucketOf(p95)[0];
	const normal = { ...all, max_duration: durationParameter(half) };
	if (span?.samples) {
		const one = { trace: span.trace_id, span: span.span_id };
		if (p50 && span.duration_ns > half) list.push(["Compare with the normal ones", `This request against those up to ${duration(half)}, about the faster half`, one, normal]);
		else if (operation.spans !== 1) list.push(["Compare with all", "This request against all of its operation", one, all]);
	}
	if (p50 && slow >= half) list.push([span ? "All slow against normal" : "Slow against normal", `Requests from ${duration(slow)} (the slowest 5 % or more) against those up to ${duration(half)} (about the faster half)`, { ...all, min_duration: durationParameter(slow) }, normal]);
	if (versions.length > 1) list.push(["This version against the last", `${clean(versions[0], 30)} against ${clean(versions[1], 30)}`, { ...all, version: versions[0] }, { ...all, version: versions[1] }]);
	if (toMs(state.now) - toMs(state.started) > 3600000) list.push(["Now against an hour ago", "The last 15 minutes against the same time an hour before", { ...all, from: "-15m" }, { ...all, from: "-75m", to: "-60m" }]);
	return list;
}

export function compareButtons(operation, state, span, isMain = true) {
	return comparisons(operation, state, span).map(([text, help, a, b], i) =>
		h("a", { className: i === 0 && isMain ? "button main" : "button", title: help, href: link("compare", { ...prefixed(a, "a."), ...prefixed(b, "b.") }) }, text));
}

// ---- the page ----

// What a unit of each side counts, so that both sides are comparable: in each request, or in shares.
function weightsOf(answer, per) {
	if (per === "request") return { a: 1 / answer.spans_a, b: 1 / answer.spans_b };
	return { a: 1 / (answer.total_a || 1), b: 1 / (answer.total_b || 1) };
}

const requests = (n) => (n ? `${plural(n, "request")}, ` : "");

// What one sample weighs on a side, as far as values tell.
const grain = (answer, self, weight) => weight * answer.nodes.reduce((least, node) => (node[self] > 0 && node[self] < least ? node[self] : least), Infinity);

// Counts of samples vary by their square root: twice that is chance in one of 20 comparisons.
function isChance({ selfA, selfB, delta }, [grainA, grainB]) {
	return delta * delta < 4 * (selfA * grainA + selfB * grainB);
}

function summary(answer, stacks, format, per) {
	const changes = stacks.functions().map((f) => ({ ...f, delta: f.selfA - f.selfB })).sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta));
	const [a, b] = [stacks.totalA[0], stacks.totalB[0]];
	const text = [];
	if (per === "request") {
		text.push("A request of A uses ", strong(format(a)), `, one of B `, strong(format(b)));
		if (b > 0) text.push(a > b * 1.02 ? `: ${(a / b).toFixed(1)} times as much. ` : a < b * 0.98 ? `: ${percent(b - a, b)} less. ` : ": about the same. ");
		else text.push(". ");
	}
	const grew = changes.find((c) => c.delta > 0), shrank = changes.find((c) => c.delta < 0);
	const name = (c) => h("strong.mono", clean(stacks.nameOf(c.node), 120));
	if (grew) text.push("The function that grew most: ", name(grew), ` (+${format(grew.delta)} itself). `);
	if (shrank && -shrank.delta > Math.max(a, b) * 0.02) text.push("The one that shrank most: ", name(shrank), ` (${format(shrank.delta)}).`);
	const weights = weightsOf(answer, per), grains = [grain(answer, 3, weights.a), grain(answer, 5, weights.b)];
	if (changes[0]?.delta && isChance(changes[0], grains)) text.push(" With so few samples, this may be chance.");
	return lead(text);
}

function side(letter, selection, onchange, known, span) {
	const title = h("summary", h("b", { className: `letter letter-${letter}` }, letter.toUpperCase()), ` ${describe(selection, span)}`);
	if (!selection.span && !selection.bucket) return h("details.side", title, form(selection, onchange, KEYS, known));
	return h("details.side", title, span && h("p", to(spanLink(span), "This request")),
		h("p", button("Choose other requests instead", () => onchange(span ? ofOperation(span) : { service: selection.service, operation: selection.operation }))));
}

// The one span of a selection, as far as it is known.
const spanOf = ({ span, trace }) => span && get("span", { span, trace }).then((answer) => answer.span, () => null);

export async function comparePage(params) {
	const [state, known] = await basics();
	const a = selectionOf(params, "a."), b = selectionOf(params, "b.");
	const [spanA, spanB] = await Promise.all([spanOf(a), spanOf(b)]);
	const type = params.get("type") || mainType(state.types)?.name;
	let view;
	const reopen = (left, right) => go("compare", { ...prefixed(left, "a."), ...prefixed(right, "b."), type: params.get("type"), per: params.get("per") });
	const suggestions = known.filter((o) => o.operation).map((o) => [o, compareButtons(o, state, null, false)]).filter(([, buttons]) => buttons.length).slice(0, 6);
	const isEmpty = !Object.keys(a).length && !Object.keys(b).length;
	if (isEmpty && !known.length) return { title: "Compare", content: [h("h1", "Compare"), nothingYet(state)] };
	const load = async () => {
		if (isEmpty) return null;
		const answer = await get("diff", { ...prefixed(a, "a."), ...prefixed(b, "b."), type });
		if (!answer.total_a || !answer.total_b) {
			const which = !answer.total_a && !answer.total_b ? "Neither side has" : `${answer.total_a ? "B" : "A"} has no`;
			return emptyBox(`${which} samples of ${typeName(answer.type || type || "cpu")}.`, mergedNote(state), h("p", "Choose a longer time or fewer filters: open A or B above."));
		}
		const canCount = answer.spans_a > 0 && answer.spans_b > 0;
		const result = h("div");
		const show = (per) => {
			view?.stop();
			const stacks = new Stacks(answer, weightsOf(answer, per));
			const format = (v) => (per === "request" ? value(v, answer.unit) : percent(v, 1));
			view = new ProfileView({ stacks, format, label: "Comparison of A and B", sides: ["A", "B"] });
			replace(result, summary(answer, stacks, format, per), view.element);
		};
		const per = canCount && params.get("per") !== "share" ? "request" : "share";
		show(per);
		return [h("div.toolbar",
			canCount ? choice("Compare", [["request", "For each request"], ["share", "Shares of the total"]], per, (p) => { setParams({ per: p === "share" ? p : null }); show(p); }) : null,
			soft(`A: ${requests(answer.spans_a)}${value(answer.total_a, answer.unit)} · B: ${requests(answer.spans_b)}${value(answer.total_b, answer.unit)}`)), result];
	};
	return {
		title: "Compare",
		stop: () => view?.stop(),
		content: [
			h("h1", "Compare"),
			isEmpty ? [lead("What is different about slow requests? Choose an operation; or open a request or an operation and compare from there."),
				h("ul.cards", suggestions.map(([o, buttons]) => h("li", strong(clean(o.operation, 80)), small(clean(o.service, 60)), h("div.actions", buttons)))), h("h2", "Or any two")] : null,
			h("div.sides", side("a", a, (s) => reopen(s, b), known, spanA), side("b", b, (s) => reopen(a, s), known, spanB)),
			!isEmpty && h("div.toolbar", button("Swap A and B", () => reopen(b, a)), typeChooser(state, type, (t) => go("compare", { ...Object.fromEntries(params), type: t }))),
			loader(load).box,
		],
	};
}
