// Questions to /api/ (docs/explore.md).

import { h, button } from "./dom.js";
import { clean } from "./format.js";
import { address } from "./route.js";

class ApiError extends Error {
	constructor(status, message) {
		super(message);
		this.status = status;
		this.title = status === 0 ? "profcol does not answer." : status === 404 ? "Not found." : undefined;
	}
}

// ---- the token, if one is configured ----

const TOKEN = "profcol-token";
let asking;

function askToken(wasWrong) {
	asking ||= new Promise((resolve) => {
		const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
		const dialog = h("dialog", { "aria-labelledby": "token-title" },
			h("h2", { id: "token-title" }, "Token"), h("p", h("label", { htmlFor: "token" }, wasWrong && "This token is wrong. ", "profcol asks for the token that its configuration has (extensions, explore, token).")),
			input, h("p", button("Use it", () => dialog.close(), { className: "main" })));
		input.addEventListener("keydown", (event) => { if (event.key === "Enter") dialog.close(); });
		dialog.addEventListener("close", () => {
			sessionStorage.setItem(TOKEN, input.value);
			dialog.remove();
			asking = undefined;
			resolve();
		});
		document.body.append(dialog);
		dialog.showModal();
	});
	return asking;
}

// ---- requests ----

async function request(url, tries = 3) {
	const token = sessionStorage.getItem(TOKEN);
	let response;
	try {
		response = await fetch(url, token ? { headers: { authorization: `Bearer ${token}` } } : {});
	} catch {
		throw new ApiError(0, "It may have stopped, or the network is gone. This page tries again by itself.");
	}
	if (response.status === 401 && !/^basic/i.test(response.headers.get("www-authenticate") || "")) {
		await askToken(token);
		return request(url);
	}
	if (response.ok) return response;
	let error = {};
	try { error = (await response.json()).error || {}; } catch { /* not JSON */ }
	if (error.code === "busy" && tries) {
		await new Promise((resolve) => setTimeout(resolve, 1000)); // Retry-After
		return request(url, tries - 1);
	}
	throw new ApiError(response.status, error.message || `The answer was ${response.status}.`);
}

export async function get(path, params) {
	return (await request(address(`api/${path}`, params))).json();
}

// Saves the answer as a file. A link would do without a token, but cannot carry one.
export async function download(path, params) {
	const response = await request(address(`api/${path}`, params));
	const url = URL.createObjectURL(await response.blob());
	const a = h("a", { href: url, download: /filename="(.*)"/.exec(response.headers.get("content-disposition"))?.[1] });
	document.body.append(a);
	a.click();
	a.remove();
	setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// ---- what every page needs ----

// An answer that is at most so old.
function cached(ms, ask) {
	let answer, time;
	return () => {
		if (!answer || Date.now() - time > ms) {
			time = Date.now();
			answer = ask();
			answer.catch(() => { answer = undefined; });
		}
		return answer;
	};
}

export const status = cached(4000, () => get("status"));
export const operations = cached(10000, async () => (await get("operations")).operations);

// What most pages begin with: [status, operations].
export const basics = () => Promise.all([status(), operations()]);

export const OPERATIONS_MAX = 1000; // of `basics`: the costliest

export const operationOf = (list, { service, operation, kind }) => list.find((o) => o.service === service && o.operation === operation && (!kind || o.kind === kind));

// The same of one that may not be among the costliest.
export async function findOperation(list, { service, operation, kind }) {
	const found = operationOf(list, { service, operation, kind });
	return found || list.length < OPERATIONS_MAX ? found : (await get("operations", { service, operation, kind, limit: 1 })).operations[0];
}

// The type that stands for time on the processor; else the first.
export function mainType(types) {
	return types.find((t) => /^(cpu|on_cpu|process_cpu|itimer)/.test(t.name)) || types.find((t) => t.unit === "nanoseconds") || types[0];
}

export const typeOf = (state) => mainType(state.types) || { name: "cpu", unit: "nanoseconds" };

const NAMES = { cpu: "CPU time", wall: "Wall time", off_cpu: "Off-CPU time", alloc_space: "Allocated bytes", alloc_objects: "Allocations", inuse_space: "Live bytes", inuse_objects: "Live objects", samples: "Samples taken", contentions: "Lock contentions", delay: "Lock delay", lock: "Lock time", goroutine: "Goroutines" };
export const typeName = (name) => (Object.hasOwn(NAMES, name) ? NAMES[name] : clean(name, 60).replace(/_/g, " "));
