// The frame around the pages: navigation, theme, help, keys.

import { h, button, isShortcut, replace, errorBox } from "./dom.js";
import { bytes, plural, percent, clean } from "./format.js";
import { status } from "./api.js";
import { isDark } from "./flame.js";
import { current, link } from "./route.js";
import { requestsPage } from "./requests.js";
import { spanPage } from "./span.js";
import { operationsPage, operationPage, profilePage } from "./operations.js";
import { comparePage } from "./compare.js";
import { pipelinesPage } from "./pipelines.js";
import { joinPage } from "./join.js";
import { configPage, explainPage } from "./misc.js";

const pages = {
	requests: requestsPage, span: spanPage, operations: operationsPage, operation: operationPage, profile: profilePage,
	compare: comparePage, pipelines: pipelinesPage, join: joinPage, config: configPage, explain: explainPage,
};

const navigation = [["requests", "Requests"], ["operations", "Operations"], ["profile", "Flame graph"], ["compare", "Compare"], null,
	["pipelines", "Pipelines"], ["join", "Join"], ["explain", "Explain"], ["config", "Configuration"]];
const parents = { span: "requests", operation: "operations" };

// ---- theme ----

const THEME = "profcol-theme";

const announceTheme = () => dispatchEvent(new Event("themechange"));

function nextTheme() {
	const theme = isDark() ? "light" : "dark";
	document.documentElement.dataset.theme = theme;
	try { localStorage.setItem(THEME, theme); } catch { /* storage may be off */ }
	announceTheme();
}

try { document.documentElement.dataset.theme = localStorage.getItem(THEME) || ""; } catch { /* storage may be off */ }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", announceTheme);

// ---- help ----

const KEYS = [["?", "this help"], ["/", "search, or the first filter"], ["g then r, o, f, c", "requests, operations, flame graph, compare"], ["g then p, j, e", "pipelines, join, explain"],
	["↑ ↓ Enter", "move in a list, open"], ["↑ ↓ ← →", "move in a flame graph, tree or heat map"], ["Enter, Esc", "zoom into a function, back out"], ["0", "whole flame graph"], ["c", "copy the stack of the selected function"]];

const help = h("dialog", { "aria-labelledby": "help-title" }, h("h2", { id: "help-title" }, "Keys"),
	h("dl.facts-list", KEYS.map(([key, text]) => [h("dt", h("kbd", key)), h("dd", text)])),
	h("h2", "What you see"),
	h("p", "profcol joins samples of profiles to the requests (spans) they were taken in. A ", h("em", "flame graph"), " shows functions as boxes, callers below, what they call above; the wider a box, the more of the resource it and what it calls used."),
	h("p", button("Close", () => help.close(), { className: "main" })));

// ---- the frame ----

const links = new Map();
const nav = h("nav", { "aria-label": "Pages" }, navigation.map((entry) => {
	if (!entry) return h("span.divider", { "aria-hidden": "true" });
	const a = h("a", { href: link(entry[0]) }, entry[1]);
	links.set(entry[0], a);
	return a;
}));
const main = h("main", { id: "main", tabIndex: -1 });
const footer = h("footer");
const header = h("header", h("a.skip", { href: "#main", onclick: (e) => { e.preventDefault(); main.focus(); } }, "Skip to the content"),
	h("a.brand", { href: link("requests") }, h("img", { src: "icon.svg", alt: "", width: 18, height: 18 }), "profcol"), nav,
	h("span.tools", button("◐", nextTheme, { title: "Light or dark", "aria-label": "Light or dark" }), button("?", () => help.showModal(), { title: "Help and keys (?)", "aria-label": "Help and keys" })));

replace(document.getElementById("app"), header, main, footer, help);

async function drawFooter() {
	try {
		const s = await status();
		const merged = s.merged || {};
		const notes = [];
		if (merged.minutes) notes.push(`${plural(merged.minutes, "minute")} merged into hours`);
		if (merged.operations) notes.push(`${plural(merged.operations, "rare operation")} combined as “(other)”`);
		if (merged.dropped_stacks) notes.push(`${plural(merged.dropped_stacks, "stack")} left out`);
		if (s.feed?.dropped) notes.push(`${percent(s.feed.dropped, s.feed.offers + s.feed.dropped)} of the data came too fast and is not shown`);
		replace(footer, `profcol ${clean(s.version, 30)}`, s.budget && ` · memory ${bytes(s.budget.used_bytes)} of ${bytes(s.budget.limit_bytes)}`, notes.length ? ` · ${notes.join(", ")}${s.feed?.dropped ? "" : "; totals stay exact"}` : "");
	} catch {
		replace(footer, h("span.bad", "profcol does not answer"));
	}
}

// ---- pages ----

let page;
let turn = 0;

async function show() {
	const mine = ++turn;
	const { page: name, params } = current();
	for (const [key, a] of links) {
		const isCurrent = key === (parents[name] || name);
		if (isCurrent) a.setAttribute("aria-current", "page");
		else a.removeAttribute("aria-current");
		if (isCurrent) nav.scrollLeft = a.offsetLeft - 60; // on a narrow screen
	}
	main.setAttribute("aria-busy", "true");
	let next;
	try {
		if (!Object.hasOwn(pages, name)) throw Object.assign(new Error("There is no such page."), { title: "Not found." });
		next = await pages[name](params);
	} catch (error) {
		next = { title: "Error", content: [h("h1", "profcol"), errorBox(error, show)] };
		if (error.status === 0) setTimeout(() => { if (mine === turn) show(); }, 3000);
	}
	if (mine !== turn) { next.stop?.(); return; }
	page?.stop?.();
	page = next;
	document.title = `${next.title} – profcol`;
	replace(main, next.content);
	main.removeAttribute("aria-busy");
	scrollTo(0, 0);
	if (document.activeElement === document.body && mine > 1) main.focus({ preventScroll: true });
	drawFooter();
}

addEventListener("hashchange", show);
setInterval(() => { if (!document.hidden) drawFooter(); }, 10000);
show();

// ---- keys ----

const jumps = { r: "requests", o: "operations", f: "profile", c: "compare", p: "pipelines", j: "join", e: "explain" };
let jumping = 0;

addEventListener("keydown", (event) => {
	if (isShortcut(event) || help.open) return;
	if (event.target.closest("input, textarea, select")) {
		if (event.key === "Escape") event.target.blur();
		return;
	}
	if (event.key === "?") help.showModal();
	else if (event.key === "/") (main.querySelector("input[type=search]") || main.querySelector("input, select"))?.focus();
	else if (event.key === "g") jumping = Date.now();
	else if (jumps[event.key] && Date.now() - jumping < 1500) { jumping = 0; location.hash = link(jumps[event.key]); } else return;
	event.preventDefault();
});
