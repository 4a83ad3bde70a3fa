// Latency or CPU time over time: a column for each minute, a row for each bucket.

import { h, isShortcut, resize, choice, loader, emptyBox, announce } from "./dom.js";
import { duration, count, percent, plural, clock } from "./format.js";
import { get } from "./api.js";
import { current, setParams } from "./route.js";
import { isDark } from "./flame.js";
import { table } from "./list.js";

const HEIGHT = 190; // px of the map
const AXIS = 64; // px for the labels at the left
const FOOT = 20;

export class HeatMap {
	// choose({bucket, from, to, text}) is called for a cell, choose(null) if none is chosen any more
	constructor(selection, choose, chosen) {
		this.selection = selection;
		this.choose = choose;
		this.chosen = chosen;
		this.measure = current().params.get("measure") || "duration";
		this.content = loader(() => this.load());
		this.observer = new ResizeObserver(() => this.draw());
		this.onTheme = () => this.draw();
		addEventListener("themechange", this.onTheme);
		this.element = h("section", { "aria-label": "Over time" }, h("div.heading", h("h2", "Over time"),
			choice("Measure", [["duration", "Latency"], ["cpu", "CPU time"]], this.measure, (measure) => {
				this.measure = measure;
				setParams({ measure: measure === "duration" ? null : measure });
				this.content.run();
			})), this.content.box);
	}

	stop() {
		this.observer.disconnect();
		removeEventListener("themechange", this.onTheme);
	}

	async load() {
		const answer = await get("histogram", { ...this.selection, measure: this.measure });
		this.answer = answer;
		const used = answer.counts.map((n, i) => (n > 0 ? i : -1)).filter((i) => i >= 0);
		if (!used.length) return emptyBox("Nothing to show yet.");
		if (!answer.rows.length) return [emptyBox("When they were is not kept; only the sum is."), this.asTable()];
		this.low = Math.max(0, used[0] - 1);
		this.high = Math.min(answer.counts.length - 1, used[used.length - 1] + 1);
		this.arrange();
		this.canvas = h("canvas", { "aria-hidden": "true" });
		this.box = h("div.heat", {
			tabIndex: 0, role: "application", "aria-roledescription": "heat map",
			"aria-label": "Requests over time, by duration. Arrow keys move, Enter shows the flame graph of a cell, Escape that of all.",
			onkeydown: (e) => this.onKey(e),
		}, this.canvas);
		this.box.addEventListener("pointermove", (e) => this.point(this.cellAt(e)));
		this.box.addEventListener("pointerleave", () => this.point(this.marked || null));
		this.box.addEventListener("click", (e) => { const cell = this.cellAt(e); if (cell) this.pick(cell); });
		this.says = h("p.soft.heat-says");
		this.observer.disconnect();
		this.observer.observe(this.box);
		this.restore();
		return [this.box, this.says, this.asTable()];
	}

	// One column for each step of time, also for those without requests; at most 240.
	arrange() {
		const rows = this.answer.rows.map((r) => ({ ...r, at: BigInt(r.time), width: BigInt(Math.round(r.width_ns || 6e10)) }));
		const first = rows[0].at;
		const end = rows.reduce((e, r) => (r.at + r.width > e ? r.at + r.width : e), first);
		let step = rows.reduce((s, r) => (r.width < s ? r.width : s), rows[0].width);
		while ((end - first) / step > 240n) step *= 2n;
		const columns = Number((end - first + step - 1n) / step);
		this.step = step;
		this.columns = Array.from({ length: columns }, (_, i) => ({ from: first + step * BigInt(i), counts: null }));
		for (const row of rows) {
			const begin = Number((row.at - first) / step), span = Math.max(1, Number(row.width / step));
			for (let i = begin; i < Math.min(columns, begin + span); i++) {
				const column = this.columns[i];
				column.counts ||= new Array(row.counts.length).fill(0);
				row.counts.forEach((n, b) => { column.counts[b] += n / span; });
				column.wide = span > 1 ? row : null;
			}
		}
		this.most = Math.max(...this.columns.flatMap((c) => c.counts || [0]));
	}

	range(bucket) {
		const { bounds } = this.answer;
		if (bucket === 0) return `up to ${duration(bounds[0])}`;
		if (bucket >= bounds.length) return `above ${duration(bounds[bounds.length - 1])}`;
		return `${duration(bounds[bucket - 1])} to ${duration(bounds[bucket])}`;
	}

	// ---- drawing ----

	draw() {
		const { box, canvas } = this;
		if (!box || !box.clientWidth) return;
		const width = box.clientWidth;
		const c = resize(canvas, width, HEIGHT + FOOT);
		this.cellWidth = Math.min(48, (width - AXIS) / this.columns.length);
		this.cellHeight = HEIGHT / (this.high - this.low + 1);
		const dark = isDark();
		this.columns.forEach((column, i) => {
			if (!column.counts) return;
			for (let b = this.low; b <= this.high; b++) {
				if (!column.counts[b]) continue;
				const t = Math.log1p(column.counts[b]) / Math.log1p(this.most);
				c.fillStyle = dark ? `oklch(${0.3 + 0.5 * t} ${0.05 + 0.12 * t} 55)` : `oklch(${0.94 - 0.42 * t} ${0.03 + 0.14 * t} 50)`;
				c.fillRect(AXIS + i * this.cellWidth, this.top(b), Math.max(1, this.cellWidth - 1), Math.max(1, this.cellHeight - 1));
			}
		});
		this.labels(c, dark ? "#a8a29e" : "#57534e", width);
		const mark = this.pointed || this.marked;
		if (mark) {
			c.strokeStyle = dark ? "#fafaf9" : "#1c1917";
			c.lineWidth = 2;
			c.strokeRect(AXIS + mark.column * this.cellWidth, this.top(mark.bucket), this.cellWidth, this.cellHeight);
		}
	}

	top(bucket) { return (this.high - bucket) * this.cellHeight; }

	labels(c, color, width) {
		c.fillStyle = color;
		c.font = "11px system-ui, sans-serif";
		c.textBaseline = "middle";
		c.textAlign = "right";
		const every = Math.ceil(18 / this.cellHeight);
		for (let b = this.low; b < this.high; b += every) c.fillText(duration(this.answer.bounds[b]), AXIS - 8, this.top(b));
		c.textAlign = "left";
		const step = Math.max(1, Math.ceil(70 / this.cellWidth));
		for (let i = 0; i < this.columns.length; i += step) {
			const x = AXIS + i * this.cellWidth;
			if (x + 34 < width) c.fillText(clock(this.columns[i].from), x, HEIGHT + FOOT / 2 + 2);
		}
	}

	// ---- cells ----

	cellAt(event) {
		const box = this.canvas.getBoundingClientRect();
		const column = Math.floor((event.clientX - box.left - AXIS) / this.cellWidth);
		const bucket = this.high - Math.floor((event.clientY - box.top) / this.cellHeight);
		return column >= 0 && column < this.columns.length && bucket >= this.low && bucket <= this.high ? { column, bucket } : null;
	}

	countAt(cell) { return this.columns[cell.column].counts?.[cell.bucket] || 0; }

	textOf(cell) { return `${clock(this.columns[cell.column].from)}, ${this.range(cell.bucket)}`; }

	point(cell) {
		this.pointed = cell;
		this.says.textContent = cell ? `${this.textOf(cell)}: ${plural(Math.round(this.countAt(cell)), "request")}${this.measure === "duration" ? "" : " by CPU time"}` : "The stronger the colour, the more requests. Select a cell for the flame graph of its requests.";
		this.draw();
	}

	pick(cell) {
		if (!this.countAt(cell)) return;
		this.marked = cell;
		const { from, wide } = this.columns[cell.column];
		const begin = wide ? wide.at : from, end = wide ? wide.at + wide.width : from + this.step;
		// Stacks are kept by latency; a cell of CPU time shows its time.
		this.choose({ bucket: this.measure === "duration" ? String(cell.bucket) : undefined, from: String(begin), to: String(end), text: this.textOf(cell) });
		this.point(cell);
	}

	restore() {
		const { bucket, from } = this.chosen;
		const column = from && /^\d+$/.test(from) ? this.columns.findIndex((c) => c.from <= BigInt(from) && BigInt(from) < c.from + this.step) : -1;
		this.marked = column >= 0 && bucket ? { column, bucket: +bucket } : undefined;
		this.point(this.marked || null);
	}

	onKey(event) {
		if (isShortcut(event)) return;
		const at = this.pointed || this.marked || { column: this.columns.length - 1, bucket: this.low + 1 };
		const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
		if (event.key in steps) {
			const [dx, dy] = steps[event.key];
			this.point({ column: Math.max(0, Math.min(this.columns.length - 1, at.column + dx)), bucket: Math.max(this.low, Math.min(this.high, at.bucket + dy)) });
			announce(this.says.textContent);
		} else if (event.key === "Enter") this.pick(at);
		else if (event.key === "Escape") { this.marked = undefined; this.choose(null); this.point(null); } else return;
		event.preventDefault();
	}

	asTable() {
		const { counts } = this.answer;
		const total = counts.reduce((a, b) => a + b, 0);
		const rows = counts.map((n, b) => [b, n]).filter(([, n]) => n > 0).map(([b, n]) => [this.range(b), count(n), percent(n, total)]);
		return h("details.more", h("summary", "As a table, over all the time"), table("Buckets", ["Duration", "Requests #", "Share #"], rows));
	}
}
