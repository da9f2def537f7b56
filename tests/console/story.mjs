// A page on a daemon of its own, and what its tests do all the time.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";

import { Daemon, browser, equip, missing, screenshots, watched } from "./support.mjs";

export const skip = missing || false;

/**
 * Stories of one file; all on daemons with its script and files.
 *
 * @param {{script: string, files: Record<string, string>}} common
 */
export function stories(common) {
  let chromium;
  before(async () => {
    if (missing) console.error(`*** SKIPPED: the console page: ${missing} ***`);
    else chromium = await browser();
  });
  after(async () => {
    await chromium?.close();
    await Daemon.endAll();
  });

  /** A page on a daemon of its own; whatever it complains about fails the test. */
  async function story(run, options = {}) {
    const daemon = await Daemon.start({ ...common, ...options.daemon });
    const context = await chromium.newContext({ viewport: { width: 1200, height: 850 }, ...options.context });
    await equip(context);
    await options.equip?.(context);
    const page = await context.newPage();
    const expected = [/ERR_CONNECTION_(REFUSED|RESET)|WebSocket connection/, options.expected].filter(Boolean);
    const complaints = watched(page, new RegExp(expected.map((it) => it.source).join("|")));
    try {
      await page.goto(daemon.page);
      await page.locator("#link[data-state=open]").waitFor();
      const other = await run(page, daemon);
      assert.deepEqual(complaints, []);
      assert.equal(await page.evaluate("window.hurt"), undefined);
      await other?.end();
    } catch (error) {
      if (complaints.length) error.message += `\nthe page said: ${complaints.join("\n")}`;
      throw error;
    } finally {
      await context.close();
      await daemon.end();
    }
  }
  return { story, launched: () => chromium };
}

export const say = async (page, text) => {
  await page.fill("#input", text);
  await page.press("#input", "Enter");
};

/** Presses a button of the question that is shown, once it takes an answer. */
export const press = async (page, button) => {
  await page.locator("#approval:not([data-new]):not([hidden])").waitFor();
  await page.click(button);
};
export const approve = (page) => press(page, "#approve");

/** The same of what a server asks. */
export const give = async (page, button) => {
  await page.locator("#asked:not([data-new]):not([hidden])").waitFor();
  await page.click(button);
};

export const idle = (page) => page.locator("#stop").waitFor({ state: "hidden" });
export const shot = (page, name) => page.screenshot({ path: join(screenshots, `${name}.png`), animations: "disabled" });
