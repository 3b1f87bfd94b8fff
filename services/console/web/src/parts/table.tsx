import type { ComponentProps, ReactNode } from "react";
import { cx } from "./cx";

const card = "max-md:block max-md:[&>tr]:block max-md:[&>tr]:border-t max-md:[&>tr]:border-line max-md:[&>tr]:py-2 max-md:[&>tr:first-child]:border-t-0";

/**
 * A table of at most some hundred rows. Where the screen is narrow it scrolls sideways by itself, or, stacked, each row is
 * a card: its cells stand below each other, with the labels of their columns.
 */
export function Table({ label, head, stacked, children }: { label: string; head: ReactNode; stacked?: boolean; children: ReactNode }) {
  return (
    <div className="overflow-x-auto rounded-lg border border-line bg-surface" tabIndex={0} role="region" aria-label={label}>
      <table className={cx("w-full border-collapse text-left text-[0.8125rem]", stacked && "max-md:block")}>
        <thead className={cx("bg-sunken text-xs text-muted", stacked && "max-md:sr-only")}>
          <tr>{head}</tr>
        </thead>
        <tbody className={stacked ? card : undefined}>{children}</tbody>
      </table>
    </div>
  );
}

export function Th({ className, number, ...rest }: ComponentProps<"th"> & { number?: boolean }) {
  return <th scope="col" className={cx("px-3 py-2 font-medium whitespace-nowrap", number && "text-right", className)} {...rest} />;
}

export function Td({ className, number, ...rest }: ComponentProps<"td"> & { number?: boolean }) {
  return <td className={cx("border-t border-line px-3 py-2 align-top", number && "text-right tabular-nums", className)} {...rest} />;
}

const cell = "max-md:flex max-md:justify-between max-md:gap-4 max-md:border-0 max-md:py-0.5";
const labelled = "max-md:before:shrink-0 max-md:before:text-muted max-md:before:content-[attr(data-label)]";

/** A cell of a stacked table. The first one of a row is its title and has no label. */
export function StackedTd({ label, className, ...rest }: ComponentProps<typeof Td> & { label?: string }) {
  return <Td data-label={label} className={cx(cell, label && labelled, className)} {...rest} />;
}
