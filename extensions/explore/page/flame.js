// The flame graph: a canvas that draws what is visible of a tree of stacks, and moves by keyboard.

import { h, isShortcut, resize, announce } from "./dom.js";
import { clean, cut } from "./format.js";

const ROW = 20;
const FONT = "12px ui-monospace, Menlo, Consolas, monospace";
const MIN_TEXT = 26; // px
const TINY = 0.7; // px; narrower frames are drawn as one

const themes = {
	light: { back: "#ffffff", text: "#1c1917", dim: "#e7e5e4", dimText: "#57534e", root: "#e7e5e4", tiny: "#d6d3d1", select: "#1c1917", hit: "#f97316", hitText: "#1c1917", l: 0.88, c: 0.06 },
	dark: { back: "#161412", text: "#f5f5f4", dim: "#2c2825", dimText: "#a8a29e", root: "#3a3530", tiny: "#403a35", select: "#fafaf9", hit: "#c2410c", hitText: "#ffffff", l: 0.41, c: 0.065 },
};

// Hues that stay apart in both themes; warm ones first.
const HUES = [60, 80, 40, 100, 22, 120, 150, 265, 310, 70, 50, 285];

export const isDark = () => {
	const chosen = document.documentElement.dataset.theme;
	return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

const theme = () => themes[isDark() ? "dark" : "light"];

const hashOf = (text) => {
	let hash = 7;
	for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
	return Math.abs(hash);
};

// How a function's share changed, -1 (vanished) to 1 (new): orange grew, blue shrank.
export function changeColor(change, t = theme()) {
	const strength = Math.min(1, Math.abs(change) * 1.2);
	if (strength < 0.04) return t.root;
	return `oklch(${t.l} ${(0.02 + 0.13 * strength).toFixed(3)} ${change > 0 ? 50 : 250})`;
}

export class Flame {
	// on: {select(node), zoom(node)}; describe(node) -> text of the tooltip and for screen readers
	constructor(stacks, options) {
		Object.assign(this, { stacks, options, focus: 0, selected: 0, hover: -1, isIcicle: options.isIcicle, coloring: options.coloring, hits: null });
		this.view = { x: 0, width: stacks.total[0] || 1 };
		this.canvas = h("canvas.flame-canvas", { "aria-hidden": "true" });
		this.spacer = h("div.flame-space", this.canvas);
		this.tip = h("div.tip", { hidden: true, "aria-hidden": "true" });
		this.element = h("div.flame", {
			tabIndex: 0, role: "application", "aria-roledescription": "flame graph",
			"aria-label": `${options.label}. Arrow keys move between functions, Enter zooms, Escape zooms out. The tabs Functions and Tree show the same as tables.`,
			onkeydown: (e) => this.onKey(e), onscroll: () => this.schedule(),
		}, this.spacer);
		this.element.addEventListener("pointermove", (e) => this.onMove(e));
		this.element.addEventListener("pointerleave", () => this.setHover(-1));
		this.element.addEventListener("click", (e) => this.onClick(e));
		this.spacer.style.height = `${stacks.levels.length * ROW}px`;
		this.observer = new ResizeObserver(() => this.resize());
		this.observer.observe(this.element);
		document.body.append(this.tip);
	}

	stop() {
		this.observer.disconnect();
		this.tip.remove();
	}

	resize() {
		this.width = this.element.clientWidth;
		this.height = this.element.clientHeight;
		this.context = resize(this.canvas, this.width, this.height, { alpha: false });
		if (!this.isScrolled && !this.isIcicle) this.element.scrollTop = this.element.scrollHeight;
		this.isScrolled = true;
		this.draw();
	}

	schedule() {
		if (!this.isMoving) this.frame ||= requestAnimationFrame(() => { this.frame = 0; this.draw(); });
	}

	set(changes) {
		Object.assign(this, changes);
		if ("isIcicle" in changes) this.showDepth(this.stacks.depth[this.focus]);
		this.schedule();
	}

	// ---- drawing ----

	rowTop(depth) {
		const row = this.isIcicle ? depth : this.stacks.levels.length - 1 - depth;
		return row * ROW - this.element.scrollTop + this.slack();
	}

	// A flame graph that is lower than its box stands on the ground.
	slack() {
		return this.isIcicle ? 0 : Math.max(0, this.height - this.stacks.levels.length * ROW);
	}

	color(i, t) {
		if (i === 0) return t.root;
		const { stacks } = this;
		if (stacks.isDiff) {
			// What changed much in itself, and much of all that changed: so the place of a change stands out.
			const delta = stacks.totalA[i] - stacks.totalB[i];
			const largest = Math.max(stacks.totalA[i], stacks.totalB[i]);
			return changeColor(largest ? (delta / largest) * (Math.abs(delta) / stacks.maxDelta) ** 0.4 : 0, t);
		}
		this.colors ||= {};
		const cache = (this.colors[this.coloring + t.back] ||= []);
		return (cache[stacks.func[i]] ??= this.chooseColor(i, t));
	}

	chooseColor(i, t) {
		const { stacks } = this;
		if (this.coloring === "plain") return `oklch(${t.l} ${t.c} ${48 + (hashOf(stacks.nameOf(i)) % 30)})`;
		const text = this.coloring === "file" ? stacks.fileOf(i) : stacks.packageAt(i);
		if (!text) return t.dim;
		const hash = hashOf(text);
		const hue = HUES[hash % HUES.length];
		return `oklch(${(t.l + ((hash >> 8) % 5) * 0.012).toFixed(3)} ${hue > 130 ? t.c * 0.6 : t.c} ${hue})`;
	}

	draw() {
		if (!this.width || !this.height) return;
		const { context: c, stacks } = this;
		const t = theme();
		c.fillStyle = t.back;
		c.fillRect(0, 0, this.width, this.height);
		c.font = FONT;
		c.textBaseline = "middle";
		this.charWidth ||= c.measureText("0123456789").width / 10;
		this.boxes = new Map(); // by colour, because changing it is what costs
		this.texts = [];
		for (let depth = 0; depth < stacks.levels.length; depth++) {
			const y = this.rowTop(depth);
			if (y > -ROW && y < this.height) this.drawLevel(depth, y, t);
		}
		for (const [color, boxes] of this.boxes) {
			c.fillStyle = color;
			for (let i = 0; i < boxes.length; i += 3) c.fillRect(boxes[i], boxes[i + 1], boxes[i + 2], ROW - 1);
		}
		for (const { i, left, y, room, color } of this.texts) {
			if (c.fillStyle !== color) c.fillStyle = color;
			c.fillText(this.shortName(i, room), left + 4, y + ROW / 2);
		}
		this.outline(this.selected, t.select, 2);
		if (this.hover >= 0) this.outline(this.hover, t.select, 1);
	}

	box(color, left, y, width) {
		const list = this.boxes.get(color);
		if (list) list.push(left, y, width);
		else this.boxes.set(color, [left, y, width]);
	}

	// The first node of a level that ends right of x.
	firstRightOf(level, x) {
		let low = 0, high = level.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.stacks.x[level[middle]] + this.stacks.total[level[middle]] <= x) low = middle + 1;
			else high = middle;
		}
		return low;
	}

	drawLevel(depth, y, t) {
		const { stacks, view } = this;
		const level = stacks.levels[depth];
		const perUnit = this.width / view.width;
		const right = view.x + view.width;
		let tinyFrom = -1, tinyTo = 0;
		const flush = () => {
			if (tinyFrom < 0) return;
			this.box(t.tiny, tinyFrom, y, Math.max(0.5, tinyTo - tinyFrom));
			tinyFrom = -1;
		};
		for (let at = this.firstRightOf(level, view.x); at < level.length; at++) {
			const i = level[at];
			const x = stacks.x[i];
			if (x >= right) break;
			const left = Math.max(0, (x - view.x) * perUnit);
			const end = Math.min(this.width, (x + stacks.total[i] - view.x) * perUnit);
			if (end - left < TINY) {
				if (tinyFrom >= 0 && left - tinyTo > 1) flush();
				if (tinyFrom < 0) tinyFrom = left;
				tinyTo = end;
				continue;
			}
			flush();
			this.drawFrame(i, left, y, end - left, t);
		}
		flush();
	}

	drawFrame(i, left, y, width, t) {
		const { hits } = this;
		const isHit = hits && hits.funcs[this.stacks.func[i]];
		const isDim = hits && !isHit && i !== 0;
		this.box(isHit ? t.hit : isDim ? t.dim : this.color(i, t), left, y, Math.max(TINY, width - (width > 3 ? 1 : 0)));
		if (width < (this.isMoving ? MIN_TEXT * 2 : MIN_TEXT)) return;
		this.texts.push({ i, left, y, room: Math.floor((width - 8) / this.charWidth), color: isHit ? t.hitText : isDim ? t.dimText : t.text });
	}

	shortName(i, room) {
		this.labels ||= [];
		const name = (this.labels[this.stacks.func[i]] ??= clean(this.stacks.nameOf(i), 200));
		if (name.length <= room) return name;
		return room > 3 ? `${cut(name, room - 1)}…` : cut(name, Math.max(0, room));
	}

	outline(i, color, thickness) {
		const { stacks, view, context: c } = this;
		if (i === 0 && thickness > 1) return;
		const perUnit = this.width / view.width;
		const left = Math.max(0, (stacks.x[i] - view.x) * perUnit);
		const end = Math.min(this.width, (stacks.x[i] + stacks.total[i] - view.x) * perUnit);
		if (end < 0 || left > this.width) return;
		c.strokeStyle = color;
		c.lineWidth = thickness;
		c.strokeRect(left + thickness / 2, this.rowTop(stacks.depth[i]) + thickness / 2 - 0.5, Math.max(1, end - left - thickness - 0.5), ROW - thickness);
	}

	// ---- zoom ----

	zoom(i) {
		const { stacks } = this;
		this.focus = i;
		this.animate({ x: stacks.x[i], width: stacks.total[i] || 1 });
		this.showDepth(stacks.depth[i]);
		this.options.onZoom?.(i);
	}

	// Brings a level into view, with some of those above it.
	showDepth(depth) {
		const row = this.isIcicle ? depth : this.stacks.levels.length - 1 - depth;
		const top = row * ROW;
		const { scrollTop } = this.element;
		if (this.isIcicle && (top < scrollTop || top > scrollTop + this.height * 0.6)) this.element.scrollTop = top - ROW * 2;
		else if (!this.isIcicle && (top + ROW > scrollTop + this.height || top < scrollTop + this.height * 0.4)) this.element.scrollTop = top + ROW * 3 - this.height;
	}

	animate(target) {
		const start = { ...this.view };
		const begun = performance.now();
		const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
		this.isMoving = true;
		cancelAnimationFrame(this.frame);
		this.frame = 0;
		const turn = (this.turn = (this.turn || 0) + 1);
		const step = (now) => {
			if (turn !== this.turn) return;
			const t = isStill ? 1 : Math.max(0, Math.min(1, (now - begun) / 50));
			const ease = 1 - (1 - t) ** 3;
			this.view = { x: start.x + (target.x - start.x) * ease, width: start.width + (target.width - start.width) * ease };
			this.isMoving = t < 1;
			this.draw();
			if (t < 1) requestAnimationFrame(step);
		};
		requestAnimationFrame(step);
	}

	// ---- pointer and keyboard ----

	nodeAt(event) {
		const box = this.canvas.getBoundingClientRect();
		const y = event.clientY - box.top + this.element.scrollTop - this.slack();
		const row = Math.floor(y / ROW);
		const depth = this.isIcicle ? row : this.stacks.levels.length - 1 - row;
		const level = this.stacks.levels[depth];
		if (!level) return -1;
		const x = this.view.x + ((event.clientX - box.left) / this.width) * this.view.width;
		const i = level[this.firstRightOf(level, x)];
		return i !== undefined && this.stacks.x[i] <= x ? i : -1;
	}

	onMove(event) {
		const i = this.nodeAt(event);
		this.setHover(i);
		if (i < 0) return;
		const width = this.tip.offsetWidth, height = this.tip.offsetHeight;
		const left = Math.max(4, Math.min(innerWidth - width - 8, event.clientX + 14));
		const top = event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18;
		this.tip.style.transform = `translate(${left}px, ${top}px)`;
	}

	setHover(i) {
		if (i === this.hover) return;
		this.hover = i;
		this.tip.hidden = i < 0;
		if (i >= 0) this.tip.replaceChildren(...this.options.describe(i).map((line, n) => h(n ? "div" : "strong", {}, line)));
		this.schedule();
	}

	select(i, say) {
		this.selected = i;
		this.options.onSelect?.(i);
		if (say) announce(this.options.describe(i).join(", "));
		this.schedule();
	}

	onClick(event) {
		const i = this.nodeAt(event);
		if (i < 0) return;
		this.select(i);
		this.zoom(i);
	}

	// Up and down as the picture shows it.
	neighbour(key) {
		const { stacks, selected } = this;
		const outward = this.isIcicle ? "ArrowUp" : "ArrowDown";
		if (key === outward) return stacks.parent[selected];
		if (key === "ArrowUp" || key === "ArrowDown") return stacks.largestChild(selected);
		const siblings = selected ? stacks.children(stacks.parent[selected]) : [0];
		return siblings[siblings.indexOf(selected) + (key === "ArrowRight" ? 1 : -1)] ?? -1;
	}

	onKey(event) {
		if (isShortcut(event)) return;
		const { key } = event;
		if (key.startsWith("Arrow")) {
			const i = this.neighbour(key);
			if (i >= 0) this.select(i, true);
			this.reveal(this.selected);
		} else if (key === "Enter" || key === " ") this.zoom(this.selected);
		else if (key === "Escape" || key === "Backspace") this.zoom(this.stacks.parent[this.focus]);
		else if (key === "0" || key === "Home") { this.select(0, true); this.zoom(0); }
		else if (key === "c") this.options.onCopy?.(this.selected);
		else return;
		event.preventDefault();
	}

	reveal(i) {
		const { stacks, view } = this;
		if (stacks.x[i] + stacks.total[i] <= view.x || stacks.x[i] >= view.x + view.width || stacks.total[i] < view.width / 200)
			this.zoom(stacks.total[i] < view.width / 200 ? i : stacks.parent[i]);
		const y = this.rowTop(stacks.depth[i]);
		if (y < 0) this.element.scrollTop += y - ROW;
		else if (y + ROW > this.height) this.element.scrollTop += y + 2 * ROW - this.height;
	}
}
