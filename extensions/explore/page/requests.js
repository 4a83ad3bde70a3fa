// The first page: which requests are slow, which are expensive.

import { h, to, button, toggle, choice, press, replace, errorBox, emptyBox, copy, small, note, lead } from "./dom.js";
import { duration, value, plural, times, isUsual, bytes, ago, clean, fullTime } from "./format.js";
import { get, basics, operationOf, OPERATIONS_MAX, typeOf, typeName } from "./api.js";
import { link, go, setParams, selectionOf } from "./route.js";
import { form, none } from "./selection.js";
import { List, bar } from "./list.js";

const PAGE = 500;
const LIVE_MS = 5000;
const KEYS = ["service", "operation", "status", "min_duration", "attribute", "from"];

export const spanLink = (span) => link("span", { trace: span.trace_id, span: span.span_id });

export function statusMark(text) {
	return h("span", { className: text === "error" ? "status bad" : "status" }, ["ok", "error"].includes(text) && text);
}

// Why there may be less than arrived.
export function mergedNote({ merged, budget }) {
	if (!merged?.minutes && !merged?.operations && !merged?.dropped_stacks) return null;
	return h("p", `Older or rare requests were merged into “(other)”, because there is little memory for them: ${bytes(budget?.limit_bytes)}. More: `, h("code", "max_memory_mib"), " of explore.");
}

// What to do if there is nothing yet, or if only spans are there.
export function nothingYet(state, hasSpans) {
	const merged = mergedNote(state);
	if (merged) return emptyBox("No request is kept.", merged, h("p", to(link("operations"), "Operations"), " has them all."));
	const hears = state.feed?.offers > 0;
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318";
	const box = emptyBox(!hears ? "Nothing has arrived yet." : hasSpans ? "No profiles yet." : "No requests yet.",
		h("p", !hears ? "Send traces and profiles to profcol: OTLP over gRPC to localhost:4317, or over HTTP to localhost:4318, unless its configuration has other addresses. For an application with OpenTelemetry that is:"
			: hasSpans ? "Spans arrive, but no profile so far. Send profiles to the same address as the traces; docs/clients says how for each language."
				: "Data arrives, but no span of a request so far. Send traces to the same address as the profiles."),
		!(hears && hasSpans) && h("p", h("code", endpoint), " ", button("Copy", () => copy(endpoint, "Setting"))),
		note("If it sends already: ", to(link("pipelines"), "Pipelines"), " shows whether anything arrives, ", to(link("join"), "Join"), " whether samples find their spans. This page refreshes itself."));
	setTimeout(() => box.isConnected && dispatchEvent(new Event("hashchange")), LIVE_MS);
	return box;
}

class Requests {
	constructor(params, known, state) {
		this.known = known;
		this.state = state;
		this.type = typeOf(state);
		this.selection = selectionOf(params);
		this.sort = params.get("sort") || "duration";
		this.order = params.get("order") === "asc" ? "asc" : "desc";
		this.isLive = params.get("live") !== "off";
		this.hasAll = params.get("spans") === "all"; // not only those that begin a request
		this.box = h("div");
		this.summary = h("p.soft", { role: "status" });
		this.filters = h("div");
		this.drawFilters();
		this.list = new List(this.listOptions());
		this.list.element.addEventListener("scrollend", () => history.replaceState({ top: this.list.element.scrollTop }, ""));
		this.tools = this.bar();
		this.element = [this.intro(), this.filters, this.tools, this.box];
		this.spans = [];
		this.load();
		this.timer = setInterval(() => this.tick(), LIVE_MS);
	}

	stop() {
		this.stopped = true;
		clearInterval(this.timer);
		this.list.observer.disconnect();
	}

	intro() {
		return [h("h1", "Slow and expensive requests"),
			lead("Select a request to see where its time went and what is different from the others.")];
	}

	bar() {
		const options = [["duration", "Slowest"], [this.type.name, `Most ${typeName(this.type.name)}`], ["start", "Newest"]];
		this.sorts = choice("Show first", options, this.sort, (sort) => this.list.sortBy(sort, "desc"));
		const all = toggle("All spans", this.hasAll, (isOn) => {
			this.hasAll = isOn;
			setParams({ spans: isOn ? "all" : null });
			this.load();
		}, { title: "Also the calls and steps inside of requests" });
		const live = toggle("Live", this.isLive, (isOn) => {
			this.isLive = isOn;
			setParams({ live: isOn ? null : "off" });
			this.tick();
		}, { className: "live", title: "Refresh every 5 s" });
		return h("div.toolbar", this.sorts, all, this.summary, h("span.space"), live);
	}

	drawFilters() {
		replace(this.filters, form(this.selection, (selection, key) => {
			this.selection = selection;
			setParams({ ...none(KEYS), ...selection });
			if (key === "service") this.drawFilters();
			this.load();
		}, KEYS, this.known));
	}

	listOptions() {
		return {
			label: "Requests", sort: this.sort, order: this.order, className: "requests",
			template: "minmax(14rem,1fr) 4.5rem 9rem 5.5rem 9rem 6.5rem",
			columns: [
				{ title: "Request", cell: (s) => h("span.two", h("a.name", { href: spanLink(s), tabIndex: -1 }, clean(s.operation, 120) || "(no name)"), small(clean(s.service, 60))) },
				{ title: "Status", cell: (s) => statusMark(s.status) },
				{ title: "Duration", sort: "duration", cell: (s) => bar(duration(s.duration_ns), s.duration_ns / this.largest.duration) },
				{ title: "vs. usual", className: "number wide-only", help: "How many times the median of the operation", cell: (s) => this.usual(s) },
				{ title: typeName(this.type.name), sort: this.type.name, cell: (s) => (this.cost(s) === undefined ? h("span.soft", { title: "No sample of a profile names this request" }, "–") : bar(value(this.cost(s), this.type.unit), this.cost(s) / this.largest.cost, "cost")) },
				{ title: "Started", sort: "start", className: "wide-only", cell: (s) => h("span.soft", { title: fullTime(s.start) }, ago(s.start, this.state.now)) },
			],
			onSort: (sort, order) => {
				Object.assign(this, { sort, order });
				press(this.sorts, order === "desc" && sort);
				setParams({ sort: sort === "duration" ? null : sort, order: order === "asc" ? order : null });
				this.load();
			},
			onOpen: (s) => go("span", { trace: s.trace_id, span: s.span_id }),
			need: (from, to) => this.need(to),
		};
	}

	cost(span) { return span.costs?.[this.type.name]; }

	// Operations of which no median is known here.
	hasRare() { return this.known.length >= OPERATIONS_MAX; }

	usual(span) {
		const operation = operationOf(this.known, span);
		if (!operation && this.hasRare()) return h("span.soft", { title: "Its operation is not among the costliest; its own page has the median" }, "–");
		if (!operation?.p50_ns) return "";
		const ratio = span.duration_ns / operation.p50_ns;
		return h("span", { className: ratio >= 2 ? "strong" : "soft", title: `Usually about ${duration(operation.p50_ns)}` }, isUsual(ratio) ? "≈ 1×" : times(ratio));
	}

	ask(cursor, limit = PAGE) {
		return get("spans", { ...this.selection, entry: !this.hasAll, sort: this.sort, order: this.order, limit, cursor });
	}

	// From the first page on. quiet: a refresh, which must not disturb
	async load(quiet) {
		const turn = (this.turn = (this.turn || 0) + 1);
		try {
			const answer = await this.ask(null, quiet ? Math.min(1000, Math.max(PAGE, this.spans.length)) : PAGE);
			if (turn !== this.turn || this.stopped) return;
			this.next = answer.next;
			this.spans = answer.spans;
			this.total = answer.total ?? answer.spans.length;
			await this.show();
			if (!quiet) this.list.element.scrollTop = (turn === 1 && history.state?.top) || 0; // after "back"
		} catch (error) {
			if (turn === this.turn && !this.stopped) replace(this.box, errorBox(error, () => this.load()));
		}
	}

	// More rows, when the list is scrolled to them.
	async need(to) {
		if (to < this.spans.length || !this.next || this.loading || !this.spans.length) return;
		this.loading = true;
		const turn = this.turn;
		try {
			const answer = await this.ask(this.next);
			if (turn === this.turn && !this.stopped) {
				this.next = answer.next;
				this.spans = this.spans.concat(answer.spans);
				this.showRows();
			}
		} catch { /* the next scroll or refresh asks again */ } finally {
			this.loading = false;
		}
		this.list.schedule();
	}

	async show() {
		const { spans } = this;
		this.largest = { duration: Math.max(1, ...spans.map((s) => s.duration_ns)), cost: Math.max(1, ...spans.map((s) => this.cost(s) || 0)) };
		const isFiltered = Object.keys(this.selection).length > 0;
		this.summary.textContent = spans.length ? `${plural(this.total, this.hasAll ? "span" : "request")} kept${isFiltered ? " that match" : ""}` : "";
		if (!spans.length) {
			const others = this.hasAll ? 0 : (await get("spans", { ...this.selection, limit: 1 })).total;
			this.filters.hidden = this.tools.hidden = !others && !isFiltered;
			replace(this.box, others || isFiltered ? this.noMatch(others) : nothingYet(this.state));
			return;
		}
		this.filters.hidden = this.tools.hidden = false;
		const selected = this.list.rows[this.list.selected];
		if (selected) this.list.selected = spans.findIndex((s) => s.span_id === selected.span_id);
		this.showRows();
		if (!this.list.element.isConnected) replace(this.box, this.list.element, this.foot());
	}

	showRows() {
		const { length } = this.spans;
		this.list.setRows(this.spans, this.next ? Math.max(this.total, length) : length);
	}

	noMatch(others) {
		if (others) return emptyBox(`No request begins with a span that matches, but ${plural(others, "span")} inside of requests ${others === 1 ? "does" : "do"}.`, note("“All spans” shows them."));
		return emptyBox("No request matches.", mergedNote(this.state), h("p", button("Show all requests", () => { this.selection = {}; setParams(none(KEYS)); this.drawFilters(); this.load(); })));
	}

	foot() {
		return h("p.soft.foot", `A request counts once in each service, with the span that begins it there. ${typeName(this.type.name)} is known where samples name the span. `, to(link("operations"), "Operations"), " count all requests, not only the kept ones.",
			this.hasRare() && ` “vs. usual” is known of the ${plural(OPERATIONS_MAX, "costliest operation")}.`);
	}

	async tick() {
		if (!this.isLive || document.hidden || this.loading || this.spans.length > 1000) return;
		try {
			[this.state, this.known] = await basics();
		} catch { /* load shows it */ }
		if (!this.stopped) this.load(true);
	}
}

export async function requestsPage(params) {
	const [state, known] = await basics();
	const page = new Requests(params, known, state);
	return { title: "Requests", content: page.element, stop: () => page.stop() };
}
