// Values and texts as people read them.

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

// Three significant digits, without superfluous zeros.
function digits(value) {
	const size = Math.abs(value);
	if (size >= 100) return number.format(value);
	return String(+value.toFixed(size >= 10 ? 1 : 2));
}

function scaled(value, steps, units) {
	let unit = 0;
	const sign = value < 0 ? "−" : "";
	value = Math.abs(value);
	while (unit < steps.length && value >= steps[unit] * 0.9995) value /= steps[unit++];
	return `${sign}${digits(value)} ${units[unit]}`;
}

export function duration(ns) {
	if (ns == null) return "–";
	if (ns === 0) return "0";
	if (Math.abs(ns) >= 1.2e14) return scaled(ns / 3.6e12, [24], ["h", "d"]);
	return scaled(ns, [1000, 1000, 1000, 60, 60], ["ns", "µs", "ms", "s", "min", "h"]);
}

export const bytes = (n) => (n == null ? "–" : scaled(n, [1024, 1024, 1024, 1024], ["B", "KiB", "MiB", "GiB", "TiB"]));
export const count = (n) => (n == null ? "–" : Math.abs(n) < 10 ? digits(n) : number.format(n));
export const short = (n) => (n < 10000 ? count(n) : scaled(n, [1000, 1000, 1000], ["", "k", "M", "G"]).replace(" ", ""));

// A value of a profile type.
export function value(n, unit) {
	if (n == null) return "–";
	if (unit === "nanoseconds" || unit === "ns") return duration(n);
	if (unit === "bytes") return bytes(n);
	return count(n);
}

export function percent(part, whole) {
	if (!whole) return "–";
	const share = (100 * part) / whole;
	if (share !== 0 && Math.abs(share) < 0.1) return share < 0 ? "> −0.1 %" : "< 0.1 %";
	return `${(Math.abs(share) >= 9.95 ? Math.round(share) : +share.toFixed(1))} %`.replace("-", "−");
}

// "1 request", "2 requests"
export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

export const times = (ratio) => (ratio >= 9.95 ? `${Math.round(ratio)}×` : `${ratio.toFixed(1)}×`);
export const isUsual = (ratio) => ratio > 0.8 && ratio < 1.25;

// Times are nanoseconds since 1970 in decimal texts.
export const toMs = (ns) => Number(BigInt(ns) / 1000000n);

// Clocks differ, so a time may be in the future.
export function ago(ns, nowNs) {
	if (!ns || ns === "0") return "no time";
	const seconds = Math.round((toMs(nowNs) - toMs(ns)) / 1000), size = Math.abs(seconds);
	const text = size < 60 ? `${size} s` : size < 5400 ? `${Math.round(size / 60)} min` : size < 172800 ? `${Math.round(size / 3600)} h` : `${Math.round(size / 86400)} d`;
	return seconds < -1 ? `in ${text}` : `${text} ago`;
}

const clockFormat = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", hour12: false });
const fullFormat = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium", hour12: false });
export const clock = (ns) => clockFormat.format(toMs(ns));
export const fullTime = (ns) => fullFormat.format(toMs(ns));

// The first units of a text, but no half of a surrogate pair.
export const cut = (text, length) => text.slice(0, length).replace(/[\ud800-\udbff]$/, "");

// A text from outside, for one line: what would hide or reorder other text (controls, overrides of
// direction) becomes visible, and a long one is cut in the middle, where names differ least.
const DANGEROUS = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]/gu;
export function clean(text, max = 300) {
	text = String(text ?? "");
	if (text.length > max) text = `${cut(text, Math.floor(max * 0.6))}…${text.slice(-Math.floor(max * 0.3)).replace(/^[\udc00-\udfff]/, "")}`;
	return text.replace(DANGEROUS, "\ufffd");
}

// For the API: 250ms
export const durationParameter = (ns) => `${+(ns / 1e6).toFixed(6)}ms`;
