import type { ReactNode } from "react";
import { cx } from "./cx";

/** Links between the parts of a screen, each with an address of its own. The links have the classes of tabClass. */
export function Tabs({ label, children }: { label: string; children: ReactNode }) {
  return (
    <nav aria-label={label} className="border-b border-line print:hidden">
      <ul className="flex flex-wrap md:gap-1">{children}</ul>
    </nav>
  );
}

/** The look of a link to a part. */
export const tabClass = (current: boolean): string =>
  cx(
    "flex items-center gap-1.5 border-b-2 px-1.5 py-2 text-[0.8125rem] whitespace-nowrap outline-offset-[-2px] md:px-3",
    current ? "border-accent font-semibold text-ink" : "border-transparent text-muted hover:text-ink",
  );

/** The number of what waits in a part. */
export function TabCount({ children }: { children: string }) {
  return <span className="rounded bg-warn/15 px-1.5 text-2xs font-semibold text-warn tabular-nums">{children}</span>;
}
