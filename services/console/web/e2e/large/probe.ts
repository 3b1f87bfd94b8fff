import type { Page } from "@playwright/test";

/** An answer of the API as the browser saw it, from the call to its last byte. */
export interface Answer {
  path: string;
  ms: number;
}

interface Window {
  answers: Answer[];
  painted?: Promise<number>;
}

/** Measures inside a page: when answers have arrived, and when something has been painted. */
export class Probe {
  private waiting = new Set<unknown>();

  private constructor(private readonly page: Page) {}

  static async on(page: Page): Promise<Probe> {
    const probe = new Probe(page);
    await page.addInitScript(() => {
      const answers: Answer[] = ((window as unknown as Window).answers = []);
      new PerformanceObserver((list) => {
        for (const { name, duration, responseStatus } of list.getEntries() as PerformanceResourceTiming[]) {
          const { pathname } = new URL(name);
          if (pathname.startsWith("/api/") && responseStatus === 200) answers.push({ path: pathname.replace(/^.*\/deployments\/[^/]+\//, ""), ms: duration });
        }
      }).observe({ type: "resource", buffered: true });
    });
    // The change feed never ends.
    page.on("request", (request) => request.url().includes("/api/") && !request.url().includes("/findings/changes") && probe.waiting.add(request));
    for (const event of ["requestfinished", "requestfailed"] as const) page.on(event as "requestfinished", (request) => void probe.waiting.delete(request));
    return probe;
  }

  /** Waits until the page has had no request on its way for a moment. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet = this.waiting.size === 0 ? quiet + 1 : 0) await this.page.waitForTimeout(50);
  }

  /** The answers since the last call. */
  async answers(): Promise<Answer[]> {
    await this.settle();
    return this.page.evaluate(() => (window as unknown as Window).answers.splice(0));
  }

  /** Milliseconds from a key until the frame is painted in which `selector` matches. */
  async keyToPaint(key: string, selector: string): Promise<number> {
    await this.page.evaluate((wanted) => {
      (window as unknown as Window).painted = new Promise((resolve) => {
        document.addEventListener("keydown", ({ timeStamp }) => {
          const look = () => {
            if (!document.querySelector(wanted)) return void requestAnimationFrame(look);
            // A message arrives after the frame that this callback belongs to.
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => resolve(performance.now() - timeStamp);
            port2.postMessage(undefined);
          };
          requestAnimationFrame(look);
        }, { once: true, capture: true });
      });
    }, selector);
    await this.page.keyboard.press(key);
    return this.within(this.page.evaluate(() => (window as unknown as Window).painted as Promise<number>), `${key}: ${selector}`);
  }

  /** Opens an address within the page. Milliseconds until the frame is painted in which its answer is shown. */
  show(address: string, selector: string): Promise<number> {
    const painted = this.page.evaluate(([url, wanted]) => new Promise<number>((resolve) => {
      const began = performance.now();
      const { answers } = window as unknown as Window;
      const had = answers.length;
      history.pushState({}, "", url);
      const look = () => {
        const answered = answers.slice(had).some(({ path }) => path === "issues" || path === "issues/search");
        if (!answered || !document.querySelector(wanted)) return void requestAnimationFrame(look);
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => resolve(performance.now() - began);
        port2.postMessage(undefined);
      };
      requestAnimationFrame(look);
    }), [address, selector] as const);
    return this.within(painted, address);
  }

  private async within<T>(waited: Promise<T>, what: string): Promise<T> {
    let late: ReturnType<typeof setTimeout> | undefined;
    const limit = new Promise<never>((_resolve, reject) => (late = setTimeout(() => reject(new Error(`nothing was painted for a minute after ${what}`)), 60_000)));
    return Promise.race([waited, limit]).finally(() => clearTimeout(late));
  }

  /** Scrolls the list through its rows, as far as the given one. It stops until the rows of each step are there. */
  async scroll(from: number, to: number): Promise<void> {
    await this.page.evaluate(async ([first, last]) => {
      const list = document.querySelector<HTMLElement>("[role=listbox][aria-multiselectable]")!; // the suggestions of the search box are one, too
      const rowHeight = 54;
      for (let row = first; row <= last; row += 40) {
        list.scrollTop = row * rowHeight;
        do await new Promise(requestAnimationFrame);
        while (!document.getElementById(`finding-${row + 1}`));
      }
    }, [from, to] as const);
  }

  /** What the tab holds after a garbage collection. */
  async memory(): Promise<{ megabytes: number; nodes: number }> {
    await this.settle();
    const devtools = await this.page.context().newCDPSession(this.page);
    await devtools.send("Performance.enable");
    await devtools.send("HeapProfiler.collectGarbage");
    const { metrics } = await devtools.send("Performance.getMetrics");
    await devtools.detach();
    const of = (name: string) => metrics.find((one) => one.name === name)?.value ?? NaN;
    return { megabytes: of("JSHeapUsedSize") / 1e6, nodes: of("Nodes") };
  }
}
