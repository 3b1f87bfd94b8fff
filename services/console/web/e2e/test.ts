import { type BrowserContext, test as base } from "@playwright/test";
import { expectNoFaults, type Faults, watch } from "./checks";
import { shared } from "./global";
import { signInFlags } from "./provider";
import { Server } from "./server";
import { signIn, type Who } from "./sign-in";

interface Options {
  /** "filled": a copy of the store of real reports. "empty": a first start. */
  store: "filled" | "empty";
  /** More flags of `palisade serve`. */
  flags: string[];
  /** Who is signed in at the beginning of the test, or nobody. */
  who: Who;
}

interface Fixtures {
  /** A server of this test alone. */
  server: Server;
  /** What must stay empty. A test that provokes faults empties it. */
  faults: Faults;
  /** Opens another browser in which somebody is signed in, watched like the first one. */
  another: (who: Who) => Promise<BrowserContext>;
}

/** A test with a real server, a signed-in browser, and checks that hold after every test. */
export const test = base.extend<Options & Fixtures>({
  store: ["filled", { option: true }],
  flags: [[], { option: true }],
  who: ["operator", { option: true }],

  server: async ({ store, flags }, use, info) => {
    const filled = store === "filled";
    const server = await Server.start({
      store: filled ? shared.store() : undefined,
      flags: filled ? [...signInFlags(shared.issuer()), ...flags] : flags,
    });
    await use(server);
    if (info.status !== info.expectedStatus) await info.attach("server.log", { body: server.printed });
    await server.stop();
  },

  baseURL: async ({ server }, use) => use(server.url),

  faults: async ({ server, context, who, store }, use) => {
    const faults = await watch(context, server.url, shared.issuer());
    await signIn(context, server, who, store);
    await use(faults);
    expectNoFaults(faults);
  },

  // Every page is of a watched, signed-in context.
  page: async ({ page, faults: _watched }, use) => use(page),

  another: async ({ browser, server, contextOptions, store }, use) => {
    const opened: Array<{ context: BrowserContext; faults: Faults }> = [];
    await use(async (who) => {
      const context = await browser.newContext({ ...contextOptions, baseURL: server.url });
      opened.push({ context, faults: await watch(context, server.url, shared.issuer()) });
      await signIn(context, server, who, store);
      return context;
    });
    for (const { context, faults } of opened) {
      expectNoFaults(faults);
      await context.close();
    }
  },
});

export { expect } from "@playwright/test";
