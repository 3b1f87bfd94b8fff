import { type ReactNode, useEffect } from "react";
import * as texts from "@/texts";
import { cx } from "./cx";

/** The frame of a screen: its title, actions at the right, and the content. Sets the title of the tab. */
export function Page({ title, actions, children, intro, bare }: {
  title: string;
  actions?: ReactNode;
  intro?: ReactNode;
  children: ReactNode;
  /** The content fills the height and scrolls by itself. */
  bare?: boolean;
}) {
  useEffect(() => {
    document.title = `${title} · ${texts.shell.product}`;
  }, [title]);
  return (
    <div className={cx("flex flex-col", bare ? "h-full min-h-0" : "mx-auto w-full max-w-7xl px-4 pb-10 md:px-6")}>
      <header className={cx("flex flex-wrap items-center gap-x-3 gap-y-1", bare ? "px-4 py-2" : "pt-4 pb-3")}>
        <h1 title={bare ? title : undefined} className={cx("min-w-0 text-lg font-semibold tracking-tight wrap-anywhere", bare && "line-clamp-3")}>{title}</h1>
        {actions && <div className="ml-auto flex flex-wrap items-center gap-2 print:hidden">{actions}</div>}
        {intro && <div className="w-full text-muted">{intro}</div>}
      </header>
      {children}
    </div>
  );
}

/** A card with a heading. */
export function Card({ title, actions, children, className }: { title?: string; actions?: ReactNode; children: ReactNode; className?: string }) {
  return (
    <section className={cx("rounded-lg border border-line bg-surface", className)}>
      {title && (
        <header className="flex min-h-10 flex-wrap items-center gap-2 border-b border-line px-4 py-1.5">
          <h2 className="min-w-0 text-[0.8125rem] font-semibold wrap-anywhere">{title}</h2>
          {actions && <div className="ml-auto flex items-center gap-2 print:hidden">{actions}</div>}
        </header>
      )}
      <div className="p-4">{children}</div>
    </section>
  );
}
