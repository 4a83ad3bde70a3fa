// A tree of stacks, as /api/flamegraph and /api/diff send it: what the flame graph and the tables
// of functions are computed from.

// The library, module or package that a function belongs to, by the ways names are written.
function packageOf(name, file) {
	if (file && /\.(so|dylib|dll|ko)(\.|$)/.test(file)) return file.slice(file.lastIndexOf("/") + 1);
	if (name.startsWith("(")) return name;
	const slash = name.lastIndexOf("/");
	if (slash > 0 && !name.includes(" ")) return name.slice(0, slash) + name.slice(slash).split(".")[0]; // Go
	if (name.includes("::")) return name.replace(/^[<&]*/, "").split("::")[0]; // Rust, C++
	if (/^[\w$]+(\.[\w$<>]+){2,}/.test(name)) return name.split(".").slice(0, -2).slice(0, 3).join("."); // Java, .NET
	if (/\.go$/.test(file)) return name.split(".")[0];
	if (file) {
		const modules = /(?:node_modules|site-packages|dist-packages)\/(@[^/]+\/[^/]+|[^/]+)/.exec(file);
		if (modules) return modules[1];
		const parts = file.replace(/:\d+$/, "").split("/");
		return parts.length > 2 ? parts.slice(-2, -1)[0] : parts[parts.length - 1].replace(/\.\w+$/, "");
	}
	return name.includes(".") ? name.split(".")[0] : "";
}

const hashText = (text) => {
	let hash = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	return hash >>> 0;
};

// Sorts a part of an array of nodes by their totals, the largest first. Most parts are short.
function sortRange(order, from, to, total) {
	if (to - from > 30) {
		order.subarray(from, to).sort((a, b) => total[b] - total[a]);
		return;
	}
	for (let i = from + 1; i < to; i++) {
		const node = order[i];
		let k = i;
		for (; k > from && total[order[k - 1]] < total[node]; k--) order[k] = order[k - 1];
		order[k] = node;
	}
}

export class Stacks {
	// weights: of a comparison, what a unit of each side counts, so that both are comparable
	constructor(answer, weights) {
		const { nodes } = answer;
		const count = nodes.length;
		this.unit = answer.unit;
		this.isDiff = count > 0 && nodes[0].length > 5;
		this.count = count;
		this.names = answer.names;
		this.files = answer.files;
		this.parent = new Int32Array(count);
		this.name = new Int32Array(count);
		this.file = new Int32Array(count);
		this.self = new Float64Array(count);
		this.total = new Float64Array(count); // of a comparison: of both sides, weighted
		this.read(nodes);
		if (this.isDiff) this.readBoth(nodes, weights);
		this.link();
		this.place();
	}

	read(nodes) {
		for (let i = 0; i < nodes.length; i++) {
			const node = nodes[i];
			this.parent[i] = node[0];
			this.name[i] = node[1];
			this.file[i] = node[2];
			this.self[i] = node[3];
			this.total[i] = node[4];
		}
	}

	readBoth(nodes, { a, b }) {
		for (const key of ["selfA", "totalA", "selfB", "totalB"]) this[key] = new Float64Array(nodes.length);
		for (let i = 0; i < nodes.length; i++) {
			this.selfA[i] = nodes[i][3] * a;
			this.totalA[i] = nodes[i][4] * a;
			this.selfB[i] = nodes[i][5] * b;
			this.totalB[i] = nodes[i][6] * b;
			this.self[i] = this.selfA[i] + this.selfB[i];
			this.total[i] = this.totalA[i] + this.totalB[i];
		}
		this.maxDelta = this.totalA.reduce((most, a, i) => (i ? Math.max(most, Math.abs(a - this.totalB[i])) : 0), 0) || 1;
	}

	// Children of each node, the largest first: those of i are order[start[i]] to order[start[i + 1] - 1].
	// Functions are numbered, because nodes of one function share name and file.
	link() {
		const { count, parent, total } = this;
		const start = new Int32Array(count + 1);
		for (let i = 1; i < count; i++) start[parent[i] + 1]++;
		for (let i = 0; i < count; i++) start[i + 1] += start[i];
		const order = new Int32Array(count);
		const filled = start.slice();
		for (let i = 1; i < count; i++) order[filled[parent[i]]++] = i;
		for (let i = 0; i < count; i++) sortRange(order, start[i], start[i + 1], total);
		this.start = start;
		this.order = order;
		const numbers = new Map();
		this.func = new Int32Array(count);
		this.functionNode = []; // a node of each function
		for (let i = 0; i < count; i++) {
			const key = this.name[i] * (this.files.length + 1) + this.file[i];
			let number = numbers.get(key);
			if (number === undefined) {
				number = this.functionNode.length;
				numbers.set(key, number);
				this.functionNode.push(i);
			}
			this.func[i] = number;
		}
	}

	// Where each node is, in parts of the whole (x), and the nodes of each depth from left to right.
	place() {
		const { count, parent, total, start, order } = this;
		const x = (this.x = new Float64Array(count));
		const depth = (this.depth = new Int32Array(count));
		const path = (this.path = new Uint32Array(count)); // identifies the stack, for links
		const nameHash = this.names.map(hashText);
		let deepest = 0;
		for (let i = 0; i < count; i++) { // parents come first
			depth[i] = i ? depth[parent[i]] + 1 : 0;
			if (depth[i] > deepest) deepest = depth[i];
			path[i] = Math.imul((i ? path[parent[i]] : 17) ^ nameHash[this.name[i]], 0x9e3779b1);
			let at = x[i];
			for (let k = start[i]; k < start[i + 1]; k++) {
				x[order[k]] = at;
				at += total[order[k]];
			}
		}
		this.levels = [];
		let level = count ? Int32Array.of(0) : new Int32Array(0);
		while (level.length) {
			this.levels.push(level);
			const next = new Int32Array(level.reduce((n, i) => n + start[i + 1] - start[i], 0));
			let at = 0;
			for (const i of level) for (let k = start[i]; k < start[i + 1]; k++) next[at++] = order[k];
			level = next;
		}
	}

	nameOf(i) { return i === 0 ? "all" : this.names[this.name[i]] || "(unknown)"; }
	fileOf(i) { return this.files[this.file[i]] || ""; }
	packageAt(i) {
		this.packages ||= [];
		return (this.packages[this.func[i]] ??= i === 0 ? "" : packageOf(this.nameOf(i), this.fileOf(i)));
	}

	hasChildren(i) { return this.start[i] < this.start[i + 1]; }
	// -1: none
	largestChild(i) { return this.hasChildren(i) ? this.order[this.start[i]] : -1; }
	children(i) { return [...this.order.subarray(this.start[i], this.start[i + 1])]; }

	// From the outermost function to this one.
	stack(i) {
		const names = [];
		for (; i > 0; i = this.parent[i]) names.unshift(this.nameOf(i));
		return names;
	}

	find(path) {
		for (let i = 0; i < this.count; i++) if (this.path[i] === path) return i;
		return 0;
	}

	// Calls visit(node, isOutermost) for each node but the root: whether no caller is the same function.
	eachOutermost(visit) {
		const active = new Int32Array(this.functionNode.length);
		const walk = [];
		for (let k = 0; k < (this.start[1] || 0); k++) walk.push(this.order[k]);
		while (walk.length) {
			const i = walk.pop();
			if (i < 0) { active[this.func[~i]]--; continue; }
			visit(i, active[this.func[i]]++ === 0);
			walk.push(~i);
			for (let k = this.start[i]; k < this.start[i + 1]; k++) walk.push(this.order[k]);
		}
	}

	// [{node, self, total, selfA, ...}] by function; the total of a recursive one counts once
	functions() {
		if (this.functionList) return this.functionList;
		const list = [];
		const of = (i) => (list[this.func[i]] ||= { node: i, self: 0, total: 0, selfA: 0, totalA: 0, selfB: 0, totalB: 0 });
		this.eachOutermost((i, isOutermost) => {
			const f = of(i);
			f.self += this.self[i];
			if (isOutermost) f.total += this.total[i];
			if (!this.isDiff) return;
			f.selfA += this.selfA[i];
			f.selfB += this.selfB[i];
			if (isOutermost) { f.totalA += this.totalA[i]; f.totalB += this.totalB[i]; }
		});
		this.functionList = list.filter(Boolean);
		return this.functionList;
	}

	// Who calls a function, and what it calls, with their values: {total, callers, callees}.
	neighbours(func) {
		const callers = new Map();
		const callees = new Map();
		const add = (map, i, key, value) => {
			const entry = map.get(key) || { node: i, total: 0 };
			entry.total += value;
			map.set(key, entry);
		};
		let total = 0;
		this.eachOutermost((i, isOutermost) => {
			if (this.func[i] === func && isOutermost) {
				total += this.total[i];
				add(callers, this.parent[i], this.func[this.parent[i]], this.total[i]);
			}
			const p = this.parent[i];
			if (p > 0 && this.func[p] === func && this.func[i] !== func) add(callees, i, this.func[i], this.total[i]);
		});
		const sorted = (map) => [...map.values()].sort((a, b) => b.total - a.total);
		return { total, callers: sorted(callers), callees: sorted(callees) };
	}

	// The functions that a text matches: {funcs: Uint8Array, total: of the stacks that have one}
	search(text) {
		const funcs = new Uint8Array(this.functionNode.length);
		const needle = text.toLowerCase();
		let functions = 0;
		this.functionNode.forEach((i, f) => {
			if (i !== 0 && (this.nameOf(i).toLowerCase().includes(needle) || this.fileOf(i).toLowerCase().includes(needle))) {
				funcs[f] = 1;
				functions++;
			}
		});
		let total = 0;
		const inside = new Uint8Array(this.count);
		for (const level of this.levels) {
			for (const i of level) {
				if (i === 0) continue;
				if (inside[this.parent[i]]) inside[i] = 1;
				else if (funcs[this.func[i]]) { inside[i] = 1; total += this.total[i]; }
			}
		}
		return { funcs, total, functions };
	}
}
