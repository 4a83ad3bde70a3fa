// The location holds the state: "#/page?key=value". So every view is a link.

export function current() {
	const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
	return { page: path || "requests", params: new URLSearchParams(query) };
}

// An empty operation is one: samples outside of requests.
const isGiven = (key, value) => value != null && (value !== "" || /(^|\.)(service|operation)$/.test(key));

// "path?key=value"; a list gives its key several times.
export function address(path, params = {}) {
	const query = new URLSearchParams();
	for (const [key, value] of params instanceof URLSearchParams ? params : Object.entries(params))
		for (const one of [value].flat()) if (isGiven(key, one)) query.append(key, one);
	return `${path}${query.size ? `?${query}` : ""}`;
}

export const link = (page, params) => address(`#/${page}`, params);

export function go(page, params) { location.hash = link(page, params); }

// Changes a part of the state in place: no new entry of the history, and the page is not built anew.
export function setParams(changes) {
	const { page, params } = current();
	for (const key in changes) {
		if (changes[key] == null || changes[key] === "") params.delete(key);
		else params.set(key, changes[key]);
	}
	history.replaceState(null, "", link(page, params));
}

// What a selection of the API consists of.
const SELECTION = ["service", "operation", "kind", "status", "version", "from", "to", "min_duration",
	"max_duration", "bucket", "attribute", "trace", "span"];

// Takes the selection out of parameters, whose names may have a prefix ("a.").
export function selectionOf(params, prefix = "") {
	const selection = {};
	for (const key of SELECTION) {
		const values = params.getAll(prefix + key);
		if (values.length) selection[key] = values.length > 1 ? values : values[0];
	}
	return selection;
}

export function prefixed(selection, prefix) {
	return Object.fromEntries(Object.entries(selection).map(([key, value]) => [prefix + key, value]));
}
