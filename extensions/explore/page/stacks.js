// A tree of stacks, as /api/flamegraph and /api/diff send it: what the flame graph and the tables
// of functions are computed from.

// The library, module or package that a function belongs to, by the ways names are written.
export function packageOf(name, file) {
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

export class Stacks {
  // weights: of a comparison, what a unit of each side counts, so that both are comparable
  constructor(answer, weights) {
    const { nodes } = answer;
    const count = Math.max(1, nodes.length);
    this.answer = answer;
    this.unit = answer.unit;
    this.isDiff = nodes.length > 0 && nodes[0].length > 5;
    this.count = nodes.length;
    this.names = answer.names;
    this.files = answer.files;
    this.parent = new Int32Array(count);
    this.name = new Int32Array(count);
    this.file = new Int32Array(count);
    this.self = new Float64Array(count);
    this.total = new Float64Array(count); // of a comparison: of both sides, weighted
    if (this.isDiff) {
      for (const key of ["selfA", "totalA", "selfB", "totalB"]) this[key] = new Float64Array(count);
    }
    for (let i = 0; i < nodes.length; i++) this.read(i, nodes[i], weights);
    if (this.isDiff) this.maxDelta = this.totalA.reduce((most, a, i) => (i ? Math.max(most, Math.abs(a - this.totalB[i])) : 0), 0) || 1;
    this.link();
    this.place();
  }

  read(i, node, weights) {
    this.parent[i] = i === 0 ? -1 : node[0];
    this.name[i] = node[1];
    this.file[i] = node[2];
    if (!this.isDiff) {
      this.self[i] = node[3];
      this.total[i] = node[4];
      return;
    }
    this.selfA[i] = node[3] * weights.a;
    this.totalA[i] = node[4] * weights.a;
    this.selfB[i] = node[5] * weights.b;
    this.totalB[i] = node[6] * weights.b;
    this.self[i] = this.selfA[i] + this.selfB[i];
    this.total[i] = this.totalA[i] + this.totalB[i];
  }

  // Children of each node, the largest first: firstChild, next. Functions are numbered, because
  // nodes of one function share name and file.
  link() {
    const { count, parent, total } = this;
    const order = new Uint32Array(count).map((_, i) => i).sort((a, b) => total[a] - total[b]);
    this.firstChild = new Int32Array(count).fill(-1);
    this.next = new Int32Array(count).fill(-1);
    for (const i of order) {
      if (parent[i] < 0) continue;
      this.next[i] = this.firstChild[parent[i]];
      this.firstChild[parent[i]] = i;
    }
    const numbers = new Map();
    this.func = new Int32Array(count);
    this.functionNode = []; // a node of each function
    for (let i = 0; i < count; i++) {
      const key = this.name[i] * 4294967296 + this.file[i];
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
    const { count, parent, total, firstChild, next } = this;
    this.x = new Float64Array(count);
    this.depth = new Int32Array(count);
    this.levels = [];
    this.path = new Uint32Array(count); // identifies the stack, for links
    const nameHash = this.names.map(hashText);
    const levels = [];
    if (count) {
      const walk = [0];
      while (walk.length) {
        const i = walk.pop();
        (levels[this.depth[i]] ||= []).push(i);
        this.path[i] = Math.imul((parent[i] < 0 ? 17 : this.path[parent[i]]) ^ nameHash[this.name[i]], 0x9e3779b1) >>> 0;
        let x = this.x[i];
        const at = walk.length;
        for (let child = firstChild[i]; child >= 0; child = next[child]) {
          this.depth[child] = this.depth[i] + 1;
          this.x[child] = x;
          x += total[child];
          walk.push(child);
        }
        for (let a = at, b = walk.length - 1; a < b; a++, b--) [walk[a], walk[b]] = [walk[b], walk[a]];
      }
    }
    this.levels = levels.map((level) => Int32Array.from(level));
  }

  nameOf(i) { return i === 0 ? "all" : this.names[this.name[i]] || "(unknown)"; }
  fileOf(i) { return this.files[this.file[i]] || ""; }
  packageAt(i) {
    this.packages ||= [];
    return (this.packages[this.func[i]] ??= i === 0 ? "" : packageOf(this.nameOf(i), this.fileOf(i)));
  }

  children(i) {
    const list = [];
    for (let child = this.firstChild[i]; child >= 0; child = this.next[child]) list.push(child);
    return list;
  }

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
    for (let child = this.firstChild[0] ?? -1; child >= 0; child = this.next[child]) walk.push(child);
    while (walk.length) {
      const i = walk.pop();
      if (i < 0) { active[this.func[~i]]--; continue; }
      visit(i, active[this.func[i]]++ === 0);
      walk.push(~i);
      for (let child = this.firstChild[i]; child >= 0; child = this.next[child]) walk.push(child);
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
