// The configuration, and the explanation of one request.

import { h, to, button, copy, emptyBox, loader, replace, note, strong, lead } from "./dom.js";
import { clean, fullTime, duration, count } from "./format.js";
import { get } from "./api.js";
import { link, setParams } from "./route.js";
import { table } from "./list.js";

export async function configPage() {
	const { text } = await get("config");
	return {
		title: "Configuration",
		content: [h("h1", "Configuration"), lead("What this process runs with, all defaults included, secrets masked."),
			h("p", button("Copy", () => copy(text, "Configuration"))), h("pre", { tabIndex: 0 }, text.split("\n").map((line) => clean(line, 2000)).join("\n"))],
	};
}

// ---- explain ----

const words = (text) => clean(String(text).replace(/_ns$/, "").replace("names_", "names its ").replace(/_/g, " "), 80);

function factValue({ name, value }) {
	if (/_ns$/.test(name) && /^-?\d+$/.test(value)) return duration(+value);
	return /^\d{19}$/.test(value) ? fullTime(value) : clean(value, 400);
}

function explained(answer) {
	const noun = answer.kind === "trace" ? "trace" : "span";
	const facts = answer.facts || [], samples = answer.samples || [];
	return [
		h("div", { className: answer.found ? "message" : "message error" }, strong(answer.found ? `The ${noun} is known.` : `The ${noun} is not known.`), answer.reason && h("p", clean(answer.reason.text, 1000))),
		facts.length > 0 && h("dl.facts-list", facts.map((f) => [h("dt", words(f.name)), h("dd", factValue(f))])),
		h("h2", "Samples that name it"),
		samples.length ? table("Samples", ["Arrived", "Profile", "Service", "Sample records #", "Lag #", "What became of them"], samples.map((s) => [
			fullTime(s.arrived), clean(s.profile_type, 60), clean(s.service, 60), count(s.samples), duration(s.lag_ns),
			h("span", strong(words(s.outcome)), words(s.outcome) === s.text ? "" : ` ${clean(s.text, 300)}`)])) : note("No sample named it as far as this process remembers."),
	];
}

export async function explainPage(params) {
	let id = (params.get("id") || "").trim();
	const input = h("input", { type: "text", id: "explain-id", className: "mono id-box", value: id, maxLength: 64, spellcheck: false, autocomplete: "off", placeholder: "00f067aa0ba902b7" });
	const box = h("div");
	const ask = () => {
		id = input.value.trim(); // base64 has both cases
		setParams({ id });
		if (!id) replace(box, emptyBox("Paste the id of a span (16 hexadecimal digits) or of a trace (32).", h("p", "For example from ", to(link("requests"), "a request"), ", from your trace view or a log.")));
		else replace(box, loader(async () => explained(await get("explain", { id }))).box);
	};
	const form = h("form.toolbar", { onsubmit: (e) => { e.preventDefault(); ask(); } },
		h("label", { htmlFor: "explain-id" }, "Span or trace id"), input, h("button.main", { type: "submit" }, "Explain"));
	ask();
	return { title: "Explain", content: [h("h1", "Explain"), lead("What is known of a request: its samples, what they cost, when they came, and why they were or were not joined."), form, box] };
}
