import type { ComponentProps } from "react";
import { cx } from "./cx";

type Look = "primary" | "plain" | "quiet" | "danger";

const looks: Record<Look, string> = {
  primary: "bg-accent text-accent-ink hover:opacity-90 border-transparent",
  plain: "bg-raised text-ink border-line-strong/50 hover:bg-sunken",
  quiet: "bg-transparent text-muted border-transparent hover:bg-sunken hover:text-ink",
  danger: "bg-raised text-bad border-bad/50 hover:bg-bad/10",
};

/** A button with a text. For an icon alone, see IconButton. */
export function Button({ look = "plain", className, type = "button", ...rest }: ComponentProps<"button"> & { look?: Look }) {
  return (
    <button
      type={type}
      className={cx(
        "inline-flex min-h-8 items-center justify-center gap-1.5 rounded-md border px-3 text-[0.8125rem] font-medium whitespace-nowrap transition-colors",
        "disabled:cursor-not-allowed disabled:opacity-50",
        looks[look],
        className,
      )}
      {...rest}
    />
  );
}

/** A button that shows an icon. The label is its accessible name and its tooltip. */
export function IconButton({ label, className, type = "button", ...rest }: ComponentProps<"button"> & { label: string }) {
  return (
    <button
      type={type}
      aria-label={label}
      title={label}
      className={cx(
        "inline-flex size-8 shrink-0 items-center justify-center rounded-md text-muted transition-colors hover:bg-sunken hover:text-ink",
        "disabled:cursor-not-allowed disabled:opacity-50",
        className,
      )}
      {...rest}
    />
  );
}
