// Selections in words and as forms.

import { h, field, select } from "./dom.js";
import { clean, duration, fullTime } from "./format.js";
import { typeName } from "./api.js";

const RANGES = [["", "all the time"], ["-15m", "the last 15 min"], ["-1h", "the last hour"], ["-6h", "the last 6 h"], ["-24h", "the last day"]];

const time = (text) => {
	if (/^\d+$/.test(text)) return fullTime(text);
	const match = /^-(\d+)(s|m|h)$/.exec(text);
	return match ? `${match[1]} ${{ s: "s", m: "min", h: "h" }[match[2]]} ago` : clean(text, 30);
};

const lengthText = (text) => (/^[\d.]+ms$/.test(text) ? duration(parseFloat(text) * 1e6) : clean(text, 20));

// "POST /checkout of checkout, from 800 ms". span: the one that is selected, if its details are known
export function describe(selection, span) {
	const s = selection;
	if (span) return `${clean(span.operation, 80)} of ${clean(span.service, 60)}, the one of ${duration(span.duration_ns)}`;
	if (s.span) return `the request ${clean(s.span, 32)}`;
	const parts = [];
	if (s.operation === "") parts.push("outside of requests");
	parts.push(s.operation ? `${clean(s.operation, 80)}${s.service ? ` of ${clean(s.service, 60)}` : ""}` : s.service ? clean(s.service, 60) : "everything");
	if (s.version) parts.push(`version ${clean(s.version, 40)}`);
	if (s.status) parts.push(`status ${clean(s.status, 20)}`);
	if (s.min_duration) parts.push(`from ${lengthText(s.min_duration)}`);
	if (s.max_duration) parts.push(`up to ${lengthText(s.max_duration)}`);
	if (s.bucket !== undefined) parts.push(`bucket ${clean(s.bucket, 6)} of the latency`);
	for (const a of [s.attribute || []].flat()) parts.push(clean(a, 60));
	if (s.trace) parts.push(`trace ${clean(s.trace, 40)}`);
	const range = RANGES.find(([v]) => v && v === s.from);
	if (range && !s.to) parts.push(range[1]);
	else if (s.from && s.to) parts.push(`${time(s.from)} to ${time(s.to)}`);
	else if (s.from || s.to) parts.push(s.from ? `since ${time(s.from)}` : `until ${time(s.to)}`);
	return parts.join(", ");
}

// Empties the parameters of these keys, for setParams.
export const none = (keys) => Object.fromEntries(keys.map((k) => [k, null]));

export const KEYS = ["service", "operation", "status", "version", "min_duration", "max_duration", "attribute", "from"];

// The controls of a selection. onchange(selection) when one changes; keys: which ones, in order; known: operations
export function form(selection, onchange, keys, known) {
	const values = { ...selection };
	const set = (key) => (value) => {
		if (value === "" || value === undefined) delete values[key];
		else values[key] = value;
		if (key === "service") delete values.operation;
		onchange({ ...values }, key);
	};
	const options = (list, any) => [["", any], ...[...new Set(list)].filter(Boolean).map((v) => [v, clean(v, 60)])];
	const input = (key, placeholder, pattern, title) => {
		const element = h("input", { type: "text", value: [values[key] || ""].flat().join(" "), placeholder, title, spellcheck: false, autocomplete: "off" });
		element.addEventListener("change", () => {
			const isValid = !element.value || !pattern || pattern.test(element.value.trim());
			element.setAttribute("aria-invalid", String(!isValid));
			if (isValid) set(key)(element.value.trim());
		});
		return element;
	};
	const choose = (key, label, list) => field(label, select(list, values[key] || "", set(key)));
	// The values that there are, and the one that is chosen.
	const among = (key, label, list, any) => choose(key, label, options(list.concat(values[key] || []), any));
	const durationPattern = /^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/;
	const length = (label, key, example) => field(label, input(key, example, durationPattern, "A duration, such as 250ms or 1.5s"));
	const inService = known.filter((o) => !values.service || o.service === values.service);
	const controls = {
		service: () => among("service", "Service", known.map((o) => o.service), "all services"),
		operation: () => among("operation", "Operation", inService.map((o) => o.operation), "all operations"),
		status: () => choose("status", "Status", [["", "any"], "error", "ok", "unset"]),
		version: () => among("version", "Version", inService.flatMap((o) => o.versions || []), "any"),
		from: () => choose("from", "Time", RANGES.some(([v]) => v === (values.from || "")) ? RANGES : [...RANGES, [values.from, `since ${time(values.from)}`]]),
		min_duration: () => length("At least", "min_duration", "250ms"),
		max_duration: () => length("At most", "max_duration", "1s"),
		attribute: () => field("Attribute", input("attribute", "key=value", /^[^=]+=/, "An attribute of the span, such as http.route=/cart")),
	};
	return h("form.filters", { onsubmit: (e) => e.preventDefault() }, keys.map((key) => controls[key]()));
}

// ---- what a request or an operation is compared with, by one click ----

export const ofOperation = (o) => ({ service: o.service, operation: o.operation, kind: o.kind });

export const typeChooser = ({ types = [] }, type, onchange) => types.length > 1 && select(types.map((t) => [t.name, typeName(t.name)]), type, onchange, { "aria-label": "Profile type" });
