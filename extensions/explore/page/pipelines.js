// What the process does: its pipelines as a picture, and the same as a table.

import { h, svg, mark, replace, emptyBox, errorBox, small, note, strong, lead } from "./dom.js";
import { short, count, percent, clean, toMs } from "./format.js";
import { get } from "./api.js";
import { table, wide } from "./list.js";

const BOX = { width: 200, height: 62, gapX: 92, gapY: 22 };
const LIVE_MS = 3000;

// ---- where each box is ----

function arrange(nodes, edges) {
	const byId = new Map(nodes.map((n) => [n.id, { node: n, column: 0, row: 0 }]));
	const valid = edges.filter((e) => byId.has(e.from) && byId.has(e.to));
	// The longest way from a receiver; the number of rounds is bounded, should there be a circle.
	for (let round = 0; round < nodes.length; round++) {
		let changed = false;
		for (const e of valid) {
			const from = byId.get(e.from), to = byId.get(e.to);
			if (to.column < from.column + 1 && from.column < nodes.length) { to.column = from.column + 1; changed = true; }
		}
		if (!changed) break;
	}
	const last = Math.max(0, ...[...byId.values()].map((p) => p.column));
	for (const p of byId.values()) if (p.node.kind === "exporter") p.column = last;
	// Each box at the mean height of those before it, as far as there is room.
	const columns = [];
	for (const p of byId.values()) (columns[p.column] ||= []).push(p);
	let height = 0;
	for (const column of columns.filter(Boolean)) {
		for (const p of column) {
			const before = valid.filter((e) => e.to === p.node.id).map((e) => byId.get(e.from).row);
			p.wish = before.length ? before.reduce((a, b) => a + b, 0) / before.length : p.node.signal === "profiles" ? 1e3 : 0;
		}
		column.sort((a, b) => a.wish - b.wish);
		let free = 0;
		for (const p of column) {
			p.row = Math.max(free, p.wish < 1e3 ? p.wish : 0);
			free = p.row + 1;
		}
		height = Math.max(height, free);
	}
	return { places: byId, edges: valid, columns: last + 1, rows: height };
}

const xOf = (p) => 8 + p.column * (BOX.width + BOX.gapX);
const yOf = (p) => 8 + p.row * (BOX.height + BOX.gapY);

// ---- rates ----

function perSecond(now, before, key) {
	const seconds = before ? (toMs(now.now) - toMs(before.now)) / 1000 : 0;
	if (seconds <= 0) return () => undefined;
	const old = new Map(before[key].map((x) => [x.id || `${x.from}>${x.to}`, x]));
	return (item, read) => {
		const was = old.get(item.id || `${item.from}>${item.to}`);
		return was && read(item) !== undefined ? Math.max(0, (read(item) - read(was)) / seconds) : undefined;
	};
}

const rateText = (rate) => (rate === undefined ? "" : `${short(+rate.toFixed(rate < 10 ? 1 : 0))}/s`);
const isGood = (status) => /^Status(OK|Starting)$/.test(status);
const statusWords = (status) => clean(status.replace(/^Status/, "").replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase(), 40);
const lost = (c) => (c.refused || 0) + (c.dropped || 0);

function drawBox(p) {
	const { node } = p;
	const x = xOf(p), y = yOf(p);
	const c = node.counters || {};
	const line = [];
	if (node.joined?.of) line.push(`${percent(node.joined.samples, node.joined.of)} joined`);
	if (lost(c)) line.push(`${short(lost(c))} ${c.refused ? "refused" : "dropped"}`);
	if (c.queue_limit) line.push(`queue ${percent(c.queue, c.queue_limit)}`);
	if (!line.length) line.push(`${short(c.outgoing ?? c.incoming ?? 0)} items`);
	const good = isGood(node.status);
	return svg("g", svg("rect", { x, y, width: BOX.width, height: BOX.height, rx: 6, class: good ? "box" : "box box-bad" }),
		svg("circle", { cx: x + 14, cy: y + 18, r: 4, class: good ? "dot-good" : "dot-bad" }),
		svg("text", { x: x + 25, y: y + 22, class: "box-name" }, clean(node.name, 19)),
		svg("text", { x: x + 14, y: y + 38, class: "box-kind" }, `${clean(node.kind, 12)}, ${clean(node.signal, 10)}`),
		svg("text", { x: x + 14, y: y + 53, class: lost(c) || !good ? "box-kind box-lost" : "box-kind" }, line.join(" · ")),
		c.queue_limit ? svg("rect", { x: x + 6, y: y + BOX.height - 4, width: Math.min(1, c.queue / c.queue_limit) * (BOX.width - 12), height: 3, class: c.queue > c.queue_limit * 0.8 ? "queue queue-full" : "queue" }) : null,
		svg("title", `${clean(node.name)}: ${statusWords(node.status)}`));
}

function drawEdge(e, places, rate, most) {
	const from = places.get(e.from), to = places.get(e.to);
	const x1 = xOf(from) + BOX.width, y1 = yOf(from) + BOX.height / 2, x2 = xOf(to), y2 = yOf(to) + BOX.height / 2;
	const middle = x2 - BOX.gapX / 2;
	const { joined } = from.node;
	return svg("g", svg("path", { d: `M${x1} ${y1}H${middle - 20}C${middle} ${y1} ${middle} ${y2} ${middle + 20} ${y2}H${x2 - 2}`, class: "edge", "stroke-width": 1.5 + 4 * Math.sqrt((rate ?? 0) / most) }),
		svg("text", { x: x2 - 8, y: y2 - 7, class: "edge-text" }, rate === undefined ? short(e.items) : rateText(rate)),
		joined?.of ? svg("text", { x: x2 - 8, y: y2 + 16, class: "edge-text" }, `${percent(joined.samples, joined.of)} joined`) : null);
}

function picture(answer, before) {
	const { places, edges, columns, rows } = arrange(answer.nodes, answer.edges);
	const rate = perSecond(answer, before, "edges");
	const rates = edges.map((e) => rate(e, (x) => x.items));
	const most = Math.max(1, ...rates.map((r) => r || 0));
	const width = 16 + columns * BOX.width + (columns - 1) * BOX.gapX, height = 16 + rows * (BOX.height + BOX.gapY) - BOX.gapY;
	return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Pipelines; the table below says the same" },
		edges.map((e, i) => drawEdge(e, places, rates[i], most)), [...places.values()].map(drawBox));
}

function nodeTable(answer, before) {
	const rate = perSecond(answer, before, "nodes");
	return table("Components", ["Component", "Pipeline", "Status", "In #", "Out #", "Rate #", "Refused #", "Dropped #", "Queue #", "Joined #"], answer.nodes.map((n) => {
		const c = n.counters || {};
		return [h("span", strong(clean(n.name, 80)), small(` ${clean(n.kind, 12)}`)), clean(n.pipeline || n.signal, 60), mark(statusWords(n.status), !isGood(n.status)), count(c.incoming), count(c.outgoing),
			rateText(rate(n, (x) => x.counters?.outgoing ?? x.counters?.incoming)), mark(count(c.refused), c.refused), mark(count(c.dropped), c.dropped),
			c.queue_limit ? `${count(c.queue)} of ${count(c.queue_limit)}` : "–", n.joined?.of ? percent(n.joined.samples, n.joined.of) : "–"];
	}));
}

export async function pipelinesPage() {
	const box = h("div");
	let before, timer;
	const draw = async () => {
		const answer = await get("pipelines");
		if (!answer.nodes.length) { replace(box, emptyBox("There are no pipelines.")); return; }
		const scroll = box.querySelector(".picture")?.scrollLeft || 0;
		const view = wide("Picture of the pipelines", picture(answer, before), "picture");
		const hadFocus = box.contains(document.activeElement);
		const sum = (key) => answer.nodes.reduce((total, n) => total + (n.counters?.[key] || 0), 0);
		const bad = answer.nodes.filter((n) => !isGood(n.status));
		const words = bad.length ? lead(bad.map((n) => [h("strong.bad", `${clean(n.name, 60)} (${clean(n.signal, 10)})`), ` does not work: ${clean(n.error || statusWords(n.status), 300)}. `]))
			: sum("incoming") === 0 ? lead("Nothing has arrived yet.") : lead("Everything works. ", sum("refused") + sum("dropped") ? `Since the start ${count(sum("refused"))} items were refused and ${count(sum("dropped"))} dropped.` : "Nothing was refused or dropped.");
		if (!hadFocus) replace(box, words, view, h("h2", "Components"), nodeTable(answer, before), note("Items are spans and samples, counted since the start; rates are of the last seconds. What waits, is merged or is dropped makes the difference between in and out."));
		view.scrollLeft = scroll;
		before = answer;
	};
	const tick = () => { if (!document.hidden) draw().catch((error) => { if (!before) replace(box, errorBox(error, draw)); }); };
	await draw();
	setTimeout(tick, 1000);
	timer = setInterval(tick, LIVE_MS);
	return { title: "Pipelines", content: [h("h1", "Pipelines"), box], stop: () => clearInterval(timer) };
}
