// A profile as people explore it: flame graph, table of functions, tree, callers and callees.
// Used for one selection, and for the comparison of two.

import { h, select, button, choice, press, copy, replace, notify, emptyBox, soft, small, note } from "./dom.js";
import { value, percent, plural, clean } from "./format.js";
import { setParams, current } from "./route.js";
import { download } from "./api.js";
import { Flame, changeColor } from "./flame.js";
import { List, bar, wide } from "./list.js";

const NARROW = 720; // px

// A word of the location, if it is one that is known.
const known = (word, words) => (words.includes(word) ? word : words[0]);

export class ProfileView {
	// options: {stacks, label, total, exportParams (null: nothing to export), params: state of the location,
	//   format(value) -> text, sides: [nameA, nameB] of a comparison}
	constructor(options) {
		Object.assign(this, options);
		this.state = current().params;
		this.format ||= (v) => value(v, this.stacks.unit);
		this.view = known(this.state.get("view"), ["flame", "functions", "tree"]);
		this.body = h("div");
		this.detail = h("div.detail");
		this.hits = null;
		this.element = h("section", { "aria-label": this.label }, this.toolbar(), this.body);
		this.search(this.state.get("q") || "");
		this.show(this.view);
	}

	stop() {
		this.flame?.stop();
		removeEventListener("themechange", this.onTheme);
	}

	// ---- toolbar ----

	toolbar() {
		const isIcicle = this.state.get("shape") === "icicle" || (innerWidth < NARROW && !this.state.get("shape"));
		this.isIcicle = isIcicle;
		this.coloring = known(this.state.get("color"), ["package", "file", "plain"]);
		this.searchBox = h("input", {
			type: "search", className: "search", placeholder: "Search functions", "aria-label": "Search functions, files",
			value: this.state.get("q") || "", autocomplete: "off", spellcheck: false,
			oninput: () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.search(this.searchBox.value, true), 120); },
		});
		this.found = h("span.soft.found", { role: "status" });
		const views = [["flame", "Flame graph"], ["functions", this.stacks.isDiff ? "What grew and shrank" : "Top functions"], ["tree", "Tree"]];
		this.onTheme = () => this.flame?.schedule();
		addEventListener("themechange", this.onTheme);
		this.shape = choice("Direction", [["flame", "Flame"], ["icicle", "Icicle"]], isIcicle ? "icicle" : "flame", (shape) => {
			this.isIcicle = shape === "icicle";
			setParams({ shape });
			this.flame?.set({ isIcicle: this.isIcicle });
		});
		this.colors = this.stacks.isDiff ? null : select([["package", "Colour by package"], ["file", "Colour by file"], ["plain", "One colour"]], this.coloring, (color) => {
			this.coloring = color;
			setParams({ color });
			this.flame?.set({ coloring: color });
		}, { "aria-label": "Colour" });
		this.reset = button("Reset zoom", () => this.flame?.zoom(0), { hidden: true });
		return h("div.toolbar",
			this.viewChoice = choice("View", views, this.view, (view) => { setParams({ view: view === "flame" ? null : view }); this.show(view); }),
			this.searchBox, this.found, h("span.space"), this.reset, this.shape, this.colors, this.exportMenu());
	}

	exportMenu() {
		if (!this.exportParams) return null;
		const formats = [["pprof", "pprof"], ["collapsed", "Collapsed stacks"], ["speedscope", "speedscope"]];
		const save = (format) => download("export", { ...this.exportParams, format })
			.then(() => notify("Saved"), (error) => notify(`Not saved: ${error.message}`));
		return h("details.menu", h("summary.button", "Export"),
			h("div.menu-items", formats.map(([format, text]) => button(text, (e) => {
				e.target.closest("details").open = false;
				save(format);
			}))));
	}

	search(text, isTyped) {
		if (isTyped) setParams({ q: text });
		this.hits = text.trim() ? this.stacks.search(text.trim()) : null;
		this.found.textContent = !this.hits ? "" : this.hits.functions
			? `${plural(this.hits.functions, "function")}, ${percent(this.hits.total, this.stacks.total[0])}` : "no match";
		this.flame?.set({ hits: this.hits });
		if (isTyped && this.view !== "flame") this.show(this.view);
	}

	show(view) {
		this.view = view;
		const isFlame = view === "flame";
		this.shape.hidden = !isFlame;
		if (this.colors) this.colors.hidden = !isFlame;
		this.reset.hidden = !isFlame || !this.flame || this.flame.focus === 0;
		press(this.viewChoice, view);
		const views = { flame: () => this.flameView(), functions: () => this.functionsView(), tree: () => this.treeView(), callers: () => this.callersView() };
		replace(this.body, views[view]());
	}

	// ---- the flame graph ----

	share(i) { return percent(this.stacks.total[i], this.stacks.total[0]); }

	describe(i) {
		const { stacks } = this;
		const lines = [clean(stacks.nameOf(i), 160)];
		if (stacks.fileOf(i) && i) lines.push(clean(stacks.fileOf(i), 120));
		if (stacks.isDiff) {
			lines.push(`${this.sides[0]}: ${this.format(stacks.totalA[i])}, ${this.sides[1]}: ${this.format(stacks.totalB[i])}`, this.changeText(stacks.totalA[i], stacks.totalB[i]));
		} else {
			lines.push(`${this.format(stacks.total[i])}, ${this.share(i)} of all`);
			if (stacks.self[i] && stacks.self[i] !== stacks.total[i]) lines.push(`itself ${this.format(stacks.self[i])}`);
		}
		return lines;
	}

	changeText(a, b) {
		if (!b && !a) return "no change";
		if (!b) return "only there in the first";
		if (!a) return "only there in the second";
		const change = a / b;
		if (Math.abs(change - 1) < 0.02) return "about the same";
		return change >= 2 ? `${change >= 9.95 ? Math.round(change) : change.toFixed(1)} times as much` : `${a > b ? "+" : "−"}${Math.round(Math.abs(change - 1) * 100)} %`;
	}

	flameView() {
		if (!this.flame) {
			this.flame = new Flame(this.stacks, {
				label: this.label, isIcicle: this.isIcicle, coloring: this.coloring, describe: (i) => this.describe(i),
				onSelect: (i) => this.showDetail(i), onCopy: (i) => this.copyStack(i),
				onZoom: (i) => { this.reset.hidden = i === 0; setParams({ z: i ? this.stacks.path[i].toString(16) : null }); },
			});
			this.flame.set({ hits: this.hits });
			const rows = Math.min(34, Math.max(8, this.stacks.levels.length + 1));
			this.flame.element.style.setProperty("--height", `${rows * 20}px`);
			const zoomed = parseInt(this.state.get("z") || "", 16);
			if (zoomed) {
				const i = this.stacks.find(zoomed);
				requestAnimationFrame(() => { this.flame.select(i); this.flame.zoom(i); });
			}
		}
		this.showDetail(this.flame.selected);
		return [this.flame.element, this.legend(), this.detail];
	}

	legend() {
		if (!this.stacks.isDiff) return null;
		const swatch = (change) => h("i.swatch", { vars: { "--color": changeColor(change) } });
		return h("p.legend.soft", swatch(0.9), swatch(0.4), ` more in ${this.sides[0]}   `, swatch(-0.9), swatch(-0.4), ` more in ${this.sides[1]}   `, swatch(0), " the same");
	}

	copyStack(i) {
		copy(this.stacks.stack(i).join("\n"), "Stack");
	}

	showDetail(i) {
		if (i === 0) {
			replace(this.detail, note("Wide means much. Select a function to zoom into it; ", h("kbd", "Esc"), " goes back out."));
			return;
		}
		const lines = this.describe(i);
		replace(this.detail, h("div.detail-text", h("strong.mono", lines[0]), soft(lines.slice(1).join(" · "))),
			button("Callers and callees", () => this.showCallers(this.stacks.func[i])),
			button("Find everywhere", () => { this.searchBox.value = this.stacks.nameOf(i); this.search(this.searchBox.value, true); }),
			button("Copy stack", () => this.copyStack(i)));
	}

	// ---- functions ----

	functionName(i) {
		const file = this.stacks.fileOf(i);
		return h("span.two", button(clean(this.stacks.nameOf(i), 160), () => this.showCallers(this.stacks.func[i]), { className: "link name mono", title: "Callers and callees" }),
			file && small(clean(file, 80)));
	}

	functionsView() {
		const { stacks } = this;
		const matches = (f) => !this.hits || this.hits.funcs[stacks.func[f.node]];
		let rows = stacks.functions().filter(matches);
		if (stacks.isDiff) rows = rows.map((f) => ({ ...f, deltaSelf: f.selfA - f.selfB, deltaTotal: f.totalA - f.totalB }));
		if (!rows.length) return emptyBox("No function matches.");
		const largest = rows.reduce((most, f) => Math.max(most, Math.abs(f.deltaSelf)), Number.MIN_VALUE);
		const list = new List({
			label: stacks.isDiff ? "Functions, by how much they changed" : "Functions", rows, sort: "self", order: "desc", className: stacks.isDiff ? "functions diff" : "functions",
			template: stacks.isDiff ? "minmax(12rem,1fr) 9rem 8rem 7rem 7rem" : "minmax(12rem,1fr) 10rem 10rem",
			columns: stacks.isDiff ? this.diffColumns(largest) : this.functionColumns(),
			onOpen: (f) => this.showCallers(stacks.func[f.node]),
		});
		return [list.element, note("Self: in the function itself. Total: with all that it calls.")];
	}

	functionColumns() {
		const total = this.stacks.total[0];
		const cell = (key) => (f) => bar(`${this.format(f[key])}  ${percent(f[key], total)}`, f[key] / total);
		return [
			{ title: "Function", cell: (f) => this.functionName(f.node) },
			{ title: "Self", sort: "self", key: (f) => f.self, cell: cell("self") },
			{ title: "Total", sort: "total", key: (f) => f.total, cell: cell("total") },
		];
	}

	diffColumns(largest) {
		const signed = (v) => (v > 0 ? "+" : "") + this.format(v);
		const change = (key) => (f) => bar(signed(f[key]), Math.abs(f[key]) / largest, f[key] > 0 ? "grew" : "shrank");
		return [
			{ title: "Function", cell: (f) => this.functionName(f.node) },
			{ title: "Change, self", sort: "self", key: (f) => Math.abs(f.deltaSelf), cell: change("deltaSelf") },
			{ title: "Change, total", sort: "total", key: (f) => Math.abs(f.deltaTotal), className: "wide-only", cell: (f) => signed(f.deltaTotal) },
			{ title: `Self, ${this.sides[0]}`, sort: "selfA", key: (f) => f.selfA, className: "wide-only", cell: (f) => this.format(f.selfA) },
			{ title: `Self, ${this.sides[1]}`, sort: "selfB", key: (f) => f.selfB, className: "wide-only", cell: (f) => this.format(f.selfB) },
		];
	}

	// ---- callers and callees ----

	showCallers(func) {
		this.func = func;
		this.show("callers");
	}

	callersView() {
		const { stacks } = this;
		const node = stacks.functionNode[this.func];
		const { total, callers, callees } = stacks.neighbours(this.func);
		const self = stacks.functions().find((f) => stacks.func[f.node] === this.func)?.self || 0;
		const rows = (list, none) => list.length ? h("ul.neighbours", list.slice(0, 100).map((n) => h("li", {},
			bar(`${this.format(n.total)}  ${percent(n.total, total)}`, n.total / total),
			n.node === 0 ? soft("none: it is the outermost") : this.functionName(n.node)))) : note(none);
		return h("div",
			h("p", button("← Back", () => this.show(this.state.get("view") === "tree" ? "tree" : current().params.get("view") || "flame"))),
			h("h3.mono", clean(stacks.nameOf(node), 300)), note(clean(stacks.fileOf(node), 200), stacks.fileOf(node) ? " · " : "",
				`total ${this.format(total)} (${percent(total, stacks.total[0])}), itself ${this.format(self)}`),
			h("div.columns", h("div", h("h4", "Called by"), rows(callers, "Nobody.")), h("div", h("h4", "Calls"), rows(callees, "Nothing."))));
	}

	// ---- tree ----

	// The accessible counterpart of the flame graph: a tree grid.
	treeView() {
		const { stacks } = this;
		this.open ||= new Set([0]);
		if (this.open.size === 1) { // opens the hottest path
			for (let i = 0; i >= 0 && stacks.total[i] > stacks.total[0] * 0.3; i = stacks.largestChild(i)) this.open.add(i);
		}
		const rows = h("tbody");
		const grid = h("table.tree", { role: "treegrid", "aria-label": `${this.label}, as a tree` },
			h("thead", h("tr", { role: "row" }, ["Function", ...(stacks.isDiff ? this.sides : ["Total", "Self"])].map((t, i) => h("th", { scope: "col", className: i ? "number" : "" }, t)))), rows);
		const draw = (focused) => {
			replace(rows, this.treeRows(toggle));
			if (focused !== undefined) [...rows.children].find((r) => +r.dataset.node === focused)?.focus();
			else rows.firstChild?.setAttribute("tabindex", "0");
		};
		const toggle = (i) => { if (!this.open.delete(i)) this.open.add(i); draw(i); };
		rows.addEventListener("keydown", (event) => this.onTreeKey(event, toggle));
		rows.addEventListener("focusin", (event) => {
			for (const r of rows.children) r.setAttribute("tabindex", r === event.target.closest("tr") ? "0" : "-1");
		});
		draw();
		return wide("Tree of functions", grid);
	}

	treeRows(toggle) {
		const { stacks } = this;
		const rows = [];
		const walk = (i, depth) => {
			if (rows.length >= 3000) return;
			const hasChildren = stacks.hasChildren(i);
			const isOpen = hasChildren && this.open.has(i);
			const row = h("tr", { role: "row", tabIndex: -1, "aria-level": depth + 1, "aria-expanded": hasChildren ? String(isOpen) : null, className: this.hits?.funcs[stacks.func[i]] && i ? "hit" : "" },
				h("td", { role: "gridcell", className: "mono tree-name", vars: { "--depth": Math.min(depth, 40) }, onclick: () => hasChildren && toggle(i) },
					h("span.twist", { "aria-hidden": "true" }, hasChildren ? (isOpen ? "▾" : "▸") : ""), clean(stacks.nameOf(i), 160)),
				h("td.number", { role: "gridcell" }, stacks.isDiff ? this.format(stacks.totalA[i]) : bar(`${this.format(stacks.total[i])}  ${this.share(i)}`, stacks.total[i] / stacks.total[0])),
				h("td.number", { role: "gridcell" }, this.format(stacks.isDiff ? stacks.totalB[i] : stacks.self[i])));
			row.dataset.node = i;
			rows.push(row);
			if (isOpen) for (const child of stacks.children(i).slice(0, 200)) walk(child, depth + 1);
		};
		walk(0, 0);
		return rows;
	}

	onTreeKey(event, toggle) {
		const row = event.target.closest("tr");
		if (!row) return;
		const i = +row.dataset.node;
		const hasChildren = this.stacks.hasChildren(i);
		const { key } = event;
		if (key === "ArrowDown") row.nextElementSibling?.focus();
		else if (key === "ArrowUp") row.previousElementSibling?.focus();
		else if (key === "ArrowRight" && hasChildren && !this.open.has(i)) toggle(i);
		else if (key === "ArrowRight") row.nextElementSibling?.focus();
		else if (key === "ArrowLeft" && this.open.has(i) && hasChildren) toggle(i);
		else if (key === "ArrowLeft") [...row.parentNode.children].find((r) => +r.dataset.node === this.stacks.parent[i])?.focus();
		else if (key === "Enter") this.showCallers(this.stacks.func[i]);
		else if (key === "c") this.copyStack(i);
		else return;
		event.preventDefault();
	}
}
