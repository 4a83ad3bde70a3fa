// Elements. Texts from outside reach the document as text nodes only, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function setProperty(element, key, value) {
	if (value == null || value === false) return;
	if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
	else if (key === "vars") for (const name in value) element.style.setProperty(name, value[name]);
	else if (key in element && !(element instanceof SVGElement) && key !== "list") element[key] = value;
	else element.setAttribute(key, value === true ? "" : value);
}

// Without properties, the second argument is the first child.
function build(element, properties, children) {
	if (properties?.constructor === Object) for (const key in properties) setProperty(element, key, properties[key]);
	else children.unshift(properties);
	append(element, children);
	return element;
}

function append(element, children) {
	for (const child of children.flat(Infinity)) {
		if (child == null || child === false) continue;
		element.append(child instanceof Node ? child : String(child));
	}
}

// h("p.soft", {vars: {"--w": "10%"}}, "text", node, [more]): a <p class="soft">; "on..." are listeners.
export function h(tag, properties, ...children) {
	const [name, ...classes] = tag.split(".");
	const element = document.createElement(name);
	if (classes.length) element.className = classes.join(" ");
	return build(element, properties, children);
}
export const soft = (...children) => h("span.soft", children);
export const small = (...children) => h("small.soft", children);
export const note = (...children) => h("p.soft", children);
export const lead = (...children) => h("p.lead", children);
export const mark = (text, isBad) => h("span", { className: isBad ? "bad" : "soft" }, text);
export const strong = (...children) => h("strong", children);

export const to = (href, ...children) => h("a", { href }, children);

export const svg = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

export function replace(element, ...children) {
	element.replaceChildren();
	append(element, children);
	return element;
}

let lastId = 0;
export const newId = (prefix) => `${prefix}${++lastId}`;

// A labelled control: the label is visible.
export function field(label, control) {
	control.id ||= newId("f");
	return h("div.field", h("label", { htmlFor: control.id }, label), control);
}

// options: [value, text] or values
export function select(options, value, onchange, properties) {
	const element = h("select", { ...properties, onchange: () => onchange(element.value) },
		options.map((o) => (Array.isArray(o) ? o : [o, o])).map(([v, text]) => h("option", { value: v, selected: v === value }, text)));
	return element;
}

export function button(text, onclick, properties) {
	return h("button", { type: "button", onclick, ...properties }, text);
}

// A button that is on or off. onchange(isOn)
export function toggle(text, isOn, onchange, properties) {
	const b = button(text, () => {
		isOn = !isOn;
		b.setAttribute("aria-pressed", isOn);
		onchange(isOn);
	}, { ...properties, "aria-pressed": String(isOn) });
	return b;
}

export function press(group, chosen) {
	for (const b of group.children) b.setAttribute("aria-pressed", b.value === chosen);
}

// Buttons of which one is pressed.
export function choice(label, options, value, onchange) {
	const group = h("div.choice", { role: "group", "aria-label": label }, options.map(([v, text]) => button(text, () => { press(group, v); onchange(v); }, { value: v })));
	press(group, value);
	return group;
}

const live = h("div.hidden", { role: "status", "aria-live": "polite" });
document.body.append(live);
// Says it to a screen reader.
export function announce(text) { live.textContent = text; }

const toast = h("div.toast", { hidden: true });
document.body.append(toast);
let toastTimer;
export function notify(text) {
	toast.textContent = text;
	toast.hidden = false;
	announce(text);
	clearTimeout(toastTimer);
	toastTimer = setTimeout(() => { toast.hidden = true; }, 2500);
}

export async function copy(text, what) {
	try {
		await navigator.clipboard.writeText(text);
	} catch { // without a secure context there is no clipboard
		const area = h("textarea.hidden", { value: text });
		document.body.append(area);
		area.select();
		document.execCommand("copy");
		area.remove();
	}
	notify(`${what} copied`);
}

// A key for the browser or the system, not for the page.
export const isShortcut = (event) => event.ctrlKey || event.metaKey || event.altKey;

// Returns the context of a canvas of this size, in CSS pixels.
export function resize(canvas, width, height, options) {
	const scale = Math.min(3, devicePixelRatio || 1);
	Object.assign(canvas, { width: width * scale, height: height * scale });
	Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
	const context = canvas.getContext("2d", options);
	context.scale(scale, scale);
	return context;
}

export function errorBox(error, retry) {
	return h("div.message.error", { role: "alert" }, strong(error.title || "This could not be loaded."), h("p", error.message), retry && button("Try again", retry));
}

export const emptyBox = (title, ...children) => h("div.message", strong(title), children);

// Fills a box with what `load` resolves to; shows that it loads, and errors with a way to try again.
// load may throw; a later call replaces an earlier one that has not ended.
export function loader(load) {
	const box = h("div");
	let turn = 0;
	async function run() {
		const mine = ++turn;
		box.setAttribute("aria-busy", "true");
		const slow = setTimeout(() => { if (mine === turn && !box.firstChild) replace(box, note("Loading…")); }, 250);
		try {
			const content = await load();
			if (mine === turn) replace(box, content);
		} catch (error) {
			if (mine === turn) replace(box, errorBox(error, run));
		} finally {
			clearTimeout(slow);
			if (mine === turn) box.removeAttribute("aria-busy");
		}
	}
	run();
	return { box, run };
}
