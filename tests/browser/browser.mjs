// Chromium for the tests of the page: $MODULES/node_modules has puppeteer-core, $BASE is explore's address.

import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";

const require = createRequire(`${process.env.MODULES}/`);
const puppeteer = require("puppeteer-core");

export const base = process.env.BASE;
export const resolve = require.resolve;

export async function launch(...args) {
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium", headless: true,
    args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb", "--hide-scrollbars", ...args],
  });
  return browser;
}

// A page that collects in `problems` what it should not do: errors, violations of the policy, requests to elsewhere.
export async function open(browser, { width = 1280, height = 820, theme = "light" } = {}) {
  const page = await browser.newPage();
  page.problems = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warn") page.problems.push(`console: ${message.text()} ${message.location()?.url || ""}`);
  });
  page.on("pageerror", (error) => page.problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(base) && !/^(blob|data|about):/.test(url)) page.problems.push(`request to ${url}`);
  });
  await page.evaluateOnNewDocument(() => addEventListener("securitypolicyviolation", (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`)));
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  return page;
}

export async function visit(page, hash) {
  await page.goto("about:blank");
  await page.goto(base + hash, { waitUntil: "networkidle0" });
  await settled(page);
}

// Waits until nothing loads any more.
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector("main h1, main .message") && !document.querySelector("[aria-busy]"), { timeout: 20000 });
  await new Promise((r) => setTimeout(r, 300));
}

export async function json(path) {
  const response = await fetch(base + path);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

let failures = 0;
export function check(isTrue, text) {
  console.log(`${isTrue ? "ok  " : "FAIL"} ${text}`);
  if (!isTrue) failures++;
}

export function finish() {
  console.log(failures ? `${failures} failed` : "all ok");
  process.exitCode = failures ? 1 : 0;
}

export function folder(path) {
  mkdirSync(path, { recursive: true });
  return path;
}

// The pages, for what this process knows now: [name, hash].
export async function pages() {
  const { spans } = await json("api/spans?entry=true&limit=200");
  const span = spans.find((s) => Object.keys(s.costs || {}).length) || spans[0];
  const { operations } = await json("api/operations");
  const o = operations.find((x) => x.operation && x.spans > 1) || operations[0];
  const query = (map) => new URLSearchParams(Object.entries(map).filter(([, v]) => v !== undefined && v !== "")).toString();
  const of = { service: span.service, operation: span.operation, kind: span.kind };
  const ids = { trace: span.trace_id, span: span.span_id };
  const both = query({ "a.trace": ids.trace, "a.span": ids.span, "b.service": of.service, "b.operation": of.operation, "b.kind": of.kind });
  return [["requests", "#/requests"], ["request", `#/span?${query(ids)}`], ["operations", "#/operations"],
    ["operation", `#/operation?${query({ service: o.service, operation: o.operation, kind: o.kind })}`],
    ["profile", `#/profile?${query({ service: of.service })}`], ["functions", `#/profile?${query({ service: of.service, view: "functions" })}`], ["tree", `#/profile?${query({ service: of.service, view: "tree" })}`],
    ["compare", `#/compare?${both}`], ["grew", `#/compare?${both}&view=functions`], ["compare-any", "#/compare"],
    ["pipelines", "#/pipelines"], ["join", "#/join"], ["explain", `#/explain?id=${ids.span}`], ["config", "#/config"]];
}
