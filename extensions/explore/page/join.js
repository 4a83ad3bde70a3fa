// The join: how many samples found their span, why the others did not, and what would help.

import { h, to, button, copy, emptyBox, soft, note, strong, lead } from "./dom.js";
import { duration, count, percent, clean } from "./format.js";
import { get, status } from "./api.js";
import { table, bar } from "./list.js";
import { nothingYet } from "./requests.js";
import { link } from "./route.js";

const REASONS = {
	no_id: "Names no span: nothing was running, or the profiler does not put span ids into samples",
	no_process: "Names no span, and its process is that of no spans that name their threads",
	no_span_on_thread: "Names no span, and none ran on its thread at that time",
	ambiguous_thread: "Names no span, and it is not sure which one ran on its thread",
	not_split: "Names no span, ran in several on its thread, and cannot be split between them",
	not_found: "Its span is not there: not sampled, sent elsewhere, later than samples.wait, or gone long before",
	expired: "Came after its span had left the window",
	overflow: "Left early, because there was no memory to wait in",
};

const reasonText = (reason) => (Object.hasOwn(REASONS, reason) ? REASONS[reason] : clean(reason.replace(/_/g, " "), 60));
const sum = (map) => Object.values(map || {}).reduce((a, b) => a + b, 0);

function reasons(join) {
	const { samples } = join;
	const all = samples.joined + sum(samples.unjoined);
	const list = Object.entries(samples.unjoined || {}).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
	if (!list.length) return note("No sample stayed without its span.");
	return table("Reasons", ["Reason", "Sample records #", "Share #"], list.map(([reason, n]) => [h("span", reasonText(reason), " ", h("small.soft.mono", clean(reason, 40))), count(n), bar(percent(n, all), n / all)]));
}

function byService(all) {
	const list = all.filter((s) => s.samples).map((s) => ({ service: s.service, ...s.samples })).sort((a, b) => sum(b.unjoined) - sum(a.unjoined));
	if (!list.length) return null;
	return [h("h2", "By service"), table("Services", ["Service", "Joined records #", "Share #", "Mostly because"], list.slice(0, 100).map((s) => {
		const all = s.joined + sum(s.unjoined);
		const worst = Object.entries(s.unjoined || {}).sort((a, b) => b[1] - a[1])[0];
		return [clean(s.service, 80) || "(no name)", count(s.joined), bar(percent(s.joined, all), all ? s.joined / all : 0), worst && worst[1] > 0 ? soft(reasonText(worst[0])) : ""];
	}))];
}

// Negative lags: the samples came first and waited for the span.
function lags(join) {
	const { bounds_ns: bounds, counts } = join.lag || { bounds_ns: [], counts: [] };
	const used = counts.map((n, i) => (n ? i : -1)).filter((i) => i >= 0);
	if (!used.length) return note(join.samples.joined && !bounds.length ? "Not measured: service.telemetry.metrics.level is none." : "No sample has been joined yet.");
	const text = (ns) => (ns === 0 ? "0" : `${ns > 0 ? "+" : "−"}${duration(Math.abs(ns))}`);
	const range = (i) => (i === 0 ? `before ${text(bounds[0])}` : i >= bounds.length ? `after ${text(bounds[bounds.length - 1])}` : `${text(bounds[i - 1])} to ${text(bounds[i])}`);
	const most = Math.max(...counts), total = sum(counts);
	// A bucket waits too long if all of it is beyond the settings.
	const beyond = (i) => (i < bounds.length && join.wait_ns !== undefined && bounds[i] <= -join.wait_ns) || (i > 0 && join.window_ns && bounds[i - 1] >= join.window_ns);
	return [note(`When samples arrive, seen from their span; a span counts once for each upload that names it. Before it, they wait ${join.wait_ns ? `up to ${duration(join.wait_ns)} (samples.wait)` : "not at all (samples.wait)"}; after it, it is remembered for ${duration(join.window_ns)} (window).`),
		table("Lags", ["Uploads arrive", "Share #", "Spans #"], counts.map((n, i) => [n, i]).slice(used[0], used[used.length - 1] + 1).map(([n, i]) => {
			return [h("span", { className: beyond(i) ? "bad" : "" }, range(i), beyond(i) ? ", too far" : ""), bar(percent(n, total), n / most, beyond(i) ? "grew" : ""), count(n)];
		}))];
}

function advice(join) {
	const list = join.advice || [];
	if (!list.length) return null;
	return h("ul.advice", list.map((a) => h("li", h("p", clean(a.text, 600)),
		a.setting && h("p", h("code", `${clean(a.setting, 200)}: ${clean(a.value, 80)}`), " ", button("Copy", () => copy(`${a.setting}: ${a.value}`, "Setting"))))));
}

export async function joinPage() {
	const [state, answer, { services }] = await Promise.all([status(), get("join"), get("services")]);
	const joins = answer.spanjoin || [];
	const heading = h("h1", "Join");
	if (!joins.length) return { title: "Join", content: [heading, emptyBox("No pipeline joins samples and spans.", h("p", "Put the processor ", h("code", "spanjoin"), " into a pipeline of traces and one of profiles."))] };
	return {
		title: "Join",
		content: [heading, joins.map((join) => {
			const all = join.samples.joined + sum(join.samples.unjoined);
			if (!all) return [h("h2", clean(join.id, 60)), advice(join), nothingYet(state, services.some((s) => s.spans))];
			return h("section", { "aria-label": clean(join.id, 60) }, joins.length > 1 && h("h2", clean(join.id, 60)),
				lead(strong(percent(join.samples.joined, all)), ` of ${count(all)} Sample records found their span`, join.samples.by_thread ? `, ${count(join.samples.by_thread)} of them by thread and time` : "", ". One request in particular: ", to(link("explain"), "Explain"), "."),
				advice(join), h("h2", "Why not"), reasons(join), h("h2", "When they arrive"), lags(join));
		}), byService(services || [])],
	};
}
