// Two selections side by side: a differential flame graph, and a table of what grew and shrank.

import { h, select, button, replace, loader, emptyBox, choice, soft, small, strong, lead } from "./dom.js";
import { value, percent, count, clean, durationParameter, toMs } from "./format.js";
import { get, status, operations, mainType, typeName } from "./api.js";
import { link, go, selectionOf, prefixed, setParams } from "./route.js";
import { describe, form, ofOperation } from "./selection.js";
import { Stacks } from "./stacks.js";
import { ProfileView } from "./profile.js";

const KEYS = ["service", "operation", "status", "version", "min_duration", "max_duration", "attribute", "from"];

// ---- one click from a request or an operation ----

// Returns [text, help, a, b] for each comparison that makes sense.
function comparisons(operation, state, span) {
  const all = ofOperation(operation);
  const list = [];
  const { p50_ns: p50, p95_ns: p95, versions = [] } = operation;
  if (span) list.push(["Compare with the normal ones", "This request against the usual ones of its operation", span, p95 ? { ...all, max_duration: durationParameter(p95) } : all]);
  if (p50 && p95 > p50) list.push(["Slow against normal", "The slowest 5 % against the faster half", { ...all, min_duration: durationParameter(p95) }, { ...all, max_duration: durationParameter(p50) }]);
  if (versions.length > 1) list.push(["This version against the last", `${clean(versions[0], 30)} against ${clean(versions[1], 30)}`, { ...all, version: versions[0] }, { ...all, version: versions[1] }]);
  if (toMs(state.now) - toMs(state.started) > 3600000) list.push(["Now against an hour ago", "The last 15 minutes against the same time an hour before", { ...all, from: "-15m" }, { ...all, from: "-75m", to: "-60m" }]);
  return list;
}

export function compareButtons(operation, state, span) {
  return comparisons(operation, state, span).map(([text, help, a, b], i) =>
    h("a", { className: i === 0 ? "button main" : "button", title: help, href: link("compare", { ...prefixed(a, "a."), ...prefixed(b, "b.") }) }, text));
}

// ---- the page ----

// What a unit of each side counts, so that both sides are comparable: in each request, or in shares.
function weightsOf(answer, per) {
  if (per === "request") return { a: 1 / answer.spans_a, b: 1 / answer.spans_b };
  return { a: 1 / (answer.total_a || 1), b: 1 / (answer.total_b || 1) };
}

const requests = (n) => (n ? `${count(n)} ${n === 1 ? "request" : "requests"}, ` : "");

function summary(answer, stacks, format, per) {
  const changes = stacks.functions().map((f) => ({ node: f.node, delta: f.selfA - f.selfB })).sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta));
  const [a, b] = [stacks.totalA[0], stacks.totalB[0]];
  const text = [];
  if (per === "request") {
    text.push("A request of A uses ", strong(format(a)), `, one of B `, strong(format(b)));
    if (b > 0) text.push(a > b * 1.02 ? `: ${(a / b).toFixed(1)} times as much. ` : a < b * 0.98 ? `: ${percent(b - a, b)} less. ` : ": about the same. ");
    else text.push(". ");
  }
  const grew = changes.filter((c) => c.delta > 0).slice(0, 1);
  const shrank = changes.filter((c) => c.delta < 0).slice(0, 1);
  const name = (c) => h("strong", { className: "mono" }, clean(stacks.nameOf(c.node), 120));
  if (grew.length) text.push("The function that grew most: ", name(grew[0]), ` (+${format(grew[0].delta)} itself). `);
  if (shrank.length && -shrank[0].delta > Math.max(a, b) * 0.02) text.push("The one that shrank most: ", name(shrank[0]), ` (${format(shrank[0].delta)}).`);
  return lead(text);
}

function side(letter, selection, onchange, known) {
  const box = h("details", { className: "side" });
  replace(box, h("summary", h("b", { className: `letter letter-${letter}` }, letter.toUpperCase()), ` ${describe(selection)}`),
    selection.span || selection.bucket ? h("p", button("Choose other requests instead", () => onchange({ service: selection.service, operation: selection.operation })))
      : form(selection, onchange, KEYS, known));
  return box;
}

export async function comparePage(params) {
  const [state, known] = await Promise.all([status(), operations()]);
  const a = selectionOf(params, "a."), b = selectionOf(params, "b.");
  const type = params.get("type") || mainType(state.types)?.name;
  let view;
  const reopen = (left, right) => go("compare", { ...prefixed(left, "a."), ...prefixed(right, "b."), type: params.get("type"), per: params.get("per") });
  const suggestions = known.filter((o) => o.spans > 1 && o.operation).slice(0, 6);
  const isEmpty = !Object.keys(a).length && !Object.keys(b).length;
  const load = async () => {
    if (isEmpty) return null;
    const answer = await get("diff", { ...prefixed(a, "a."), ...prefixed(b, "b."), type });
    if (!answer.total_a || !answer.total_b) {
      const which = !answer.total_a && !answer.total_b ? "Neither side" : !answer.total_a ? "A" : "B";
      return emptyBox(`${which} has no samples of ${typeName(answer.type || type || "cpu")}.`, h("p", "Choose a longer time or fewer filters: open A or B above."));
    }
    const canCount = answer.spans_a > 0 && answer.spans_b > 0;
    const result = h("div");
    const show = (per) => {
      view?.stop();
      const stacks = new Stacks(answer, weightsOf(answer, per));
      const format = (v) => (per === "request" ? value(v, answer.unit) : percent(v, 1));
      view = new ProfileView({ stacks, format, label: "Comparison of A and B", sides: ["A", "B"] });
      replace(result, summary(answer, stacks, format, per), view.element);
    };
    const per = canCount && params.get("per") !== "share" ? "request" : "share";
    show(per);
    return [h("div", { className: "toolbar" },
      canCount ? choice("Compare", [["request", "For each request"], ["share", "Shares of the total"]], per, (p) => { setParams({ per: p === "share" ? p : null }); show(p); }) : null,
      soft(`A: ${requests(answer.spans_a)}${value(answer.total_a, answer.unit)} · B: ${requests(answer.spans_b)}${value(answer.total_b, answer.unit)}`)), result];
  };
  const types = (state.types || []).map((t) => [t.name, typeName(t.name)]);
  return {
    title: "Compare",
    stop: () => view?.stop(),
    content: [
      h("h1", "Compare"),
      isEmpty ? [lead("What is different about slow requests? Choose an operation; or open a request or an operation and compare from there."),
        h("ul", { className: "cards" }, suggestions.map((o) => h("li", strong(clean(o.operation, 80)), small(clean(o.service, 60)), h("div", { className: "actions" }, compareButtons(o, state))))), h("h2", "Or any two")] : null,
      h("div", { className: "sides" }, side("a", a, (s) => reopen(s, b), { operations: known }), side("b", b, (s) => reopen(a, s), { operations: known })),
      !isEmpty && h("div", { className: "toolbar" }, button("Swap A and B", () => reopen(b, a)), types.length > 1 && select(types, type, (t) => go("compare", { ...Object.fromEntries(params), type: t }), { "aria-label": "Profile type" })),
      loader(load).box,
    ],
  };
}
