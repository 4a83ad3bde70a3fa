// A table of any number of rows, of which only the visible ones are in the document.

import { h, button, isShortcut, newId } from "./dom.js";

const ROW = 34; // px, as in app.css
const SPARE = 8; // rows above and below the visible ones

// What sorts is a number.
const cellClass = ({ sort, className = "" }) => `cell ${sort ? "number " : ""}${className}`;

// columns: {title, className, sort (the name to sort by), key(row) -> number, cell(row) -> node or text, help}
// options: {label, columns, template (grid-template-columns), sort, order, onOpen(row);
//   rows: all of them, which are sorted here by `key`; or
//   onSort(sort, order), need(from, to) (rows that are wanted)}
export class List {
	constructor(options) {
		this.options = options;
		this.rows = [];
		this.count = 0;
		this.selected = -1;
		this.drawn = new Map();
		this.id = newId("list");
		this.body = h("div.list-rows", { role: "rowgroup" });
		this.header = h("div.list-row.list-head", { role: "row" });
		this.element = h("div", {
			className: `list ${options.className || ""}`, role: "grid", tabIndex: 0, "aria-label": options.label,
			vars: { "--columns": options.template }, onkeydown: (event) => this.onKey(event), onscroll: () => this.schedule(),
		}, h("div.list-top", { role: "rowgroup" }, this.header), this.body);
		this.body.addEventListener("click", (event) => this.onClick(event));
		this.drawHeader();
		this.observer = new ResizeObserver(() => this.schedule());
		this.observer.observe(this.element);
		if (options.rows) this.sortRows();
	}

	drawHeader() {
		const { columns, sort, order } = this.options;
		this.header.replaceChildren(...columns.map((column) => {
			const isActive = column.sort === sort, isUp = order === "asc";
			return h("div", { className: cellClass(column), role: "columnheader", title: column.help || "", "aria-sort": column.sort && (!isActive ? "none" : isUp ? "ascending" : "descending") },
				column.sort ? button(column.title + (!isActive ? "" : isUp ? " ↑" : " ↓"), () => this.sortBy(column.sort, isActive && !isUp ? "asc" : "desc"), { className: isActive ? "sort active" : "sort" }) : column.title);
		}));
	}

	sortBy(sort, order) {
		const at = this.options.columns.findIndex((column) => column.sort === sort);
		Object.assign(this.options, { sort, order });
		this.drawHeader();
		this.header.children[at]?.querySelector("button")?.focus();
		if (this.options.rows) this.sortRows();
		else this.options.onSort(sort, order);
	}

	sortRows() {
		const { rows, columns, sort, order } = this.options;
		const { key } = columns.find((column) => column.sort === sort), sign = order === "asc" ? 1 : -1;
		this.setRows(rows.sort((a, b) => sign * (key(a) - key(b))));
	}

	// rows: those that are known, from the first; count: how many there are
	setRows(rows, count = rows.length) {
		this.rows = rows;
		this.count = count;
		this.element.setAttribute("aria-rowcount", String(count + 1));
		this.body.style.height = `${count * ROW}px`;
		if (this.selected >= count) this.selected = count - 1;
		for (const row of this.drawn.values()) row.remove();
		this.drawn.clear();
		this.draw();
	}

	schedule() {
		this.frame ||= requestAnimationFrame(() => { this.frame = 0; this.draw(); });
	}

	visible() {
		const top = Math.max(0, this.element.scrollTop);
		const first = Math.floor(top / ROW);
		return [Math.max(0, first - SPARE), Math.min(this.count, first + Math.ceil(this.element.clientHeight / ROW) + SPARE)];
	}

	draw() {
		const [from, to] = this.visible();
		for (const [index, row] of this.drawn) {
			if (index < from || index >= to) { row.remove(); this.drawn.delete(index); }
		}
		const fragment = document.createDocumentFragment();
		for (let index = from; index < to; index++) {
			if (!this.drawn.has(index) && this.rows[index]) fragment.append(this.drawRow(index));
		}
		this.body.append(fragment);
		this.options.need?.(from, to);
	}

	drawRow(index) {
		const data = this.rows[index];
		const row = h("div.list-row", {
			role: "row", id: `${this.id}-${index}`, "aria-rowindex": index + 2,
			"aria-selected": String(index === this.selected), vars: { "--y": `${index * ROW}px` },
		}, this.options.columns.map((column) => h("div", { className: cellClass(column), role: "gridcell" }, column.cell(data))));
		row.dataset.index = index;
		this.drawn.set(index, row);
		return row;
	}

	select(index) {
		if (!this.count) return;
		this.drawn.get(this.selected)?.setAttribute("aria-selected", "false");
		this.selected = Math.max(0, Math.min(this.count - 1, index));
		const top = this.selected * ROW;
		const head = this.header.offsetHeight;
		const height = this.element.clientHeight - head;
		if (top < this.element.scrollTop) this.element.scrollTop = top;
		else if (top + ROW > this.element.scrollTop + height) this.element.scrollTop = top + ROW - height;
		this.draw();
		const row = this.drawn.get(this.selected);
		row?.setAttribute("aria-selected", "true");
		if (row) this.element.setAttribute("aria-activedescendant", row.id);
	}

	open(index) { if (this.rows[index]) this.options.onOpen?.(this.rows[index]); }

	onClick(event) {
		const row = event.target.closest(".list-row");
		if (!row || event.target.closest("a, button") || event.ctrlKey || event.metaKey) return;
		this.select(+row.dataset.index);
		this.open(this.selected);
	}

	onKey(event) {
		if (event.target !== this.element || isShortcut(event)) return;
		const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 2);
		const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
		if (event.key in steps) this.select(this.selected < 0 ? 0 : this.selected + steps[event.key]);
		else if (event.key === "Enter" && this.selected >= 0) this.open(this.selected);
		else return;
		event.preventDefault();
	}
}

// A number with a bar that shows it as a share of the largest.
export function bar(text, share, className = "") {
	return h("div", { className: `bar ${className}`, vars: { "--share": `${Math.max(0, Math.min(100, 100 * (share || 0))).toFixed(1)}%` } }, h("span", text));
}

// Scrolls if there is no room.
export const wide = (label, content, className = "") => h("div", { className: `wide ${className}`, tabIndex: 0, role: "region", "aria-label": label }, content);

// A plain table. rows: arrays of cells; columns: titles, those of numbers with " #" at the end
export function table(label, columns, rows) {
	const classes = columns.map((title) => (title.endsWith(" #") ? "number" : ""));
	return wide(label, h("table",
		h("thead", h("tr", columns.map((title, i) => h("th", { scope: "col", className: classes[i] }, title.replace(" #", ""))))),
		h("tbody", rows.map((row) => h("tr", row.map((cell, i) => h("td", { className: classes[i] }, cell)))))));
}
