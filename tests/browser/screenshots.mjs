// Every page, light, dark and narrow, into the folder of the first argument.

import { launch, open, visit, pages, folder } from "./browser.mjs";

const out = folder(process.argv[2]);
const browser = await launch();
for (const [mode, options] of [["light", {}], ["dark", { theme: "dark" }], ["narrow", { width: 390, height: 800 }]]) {
  const page = await open(browser, { height: 760, ...options });
  for (const [name, hash] of await pages()) {
    await visit(page, hash);
    await page.screenshot({ path: `${out}/${name}-${mode}.png` });
  }
}
await browser.close();
