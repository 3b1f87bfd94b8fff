import { lazy, Suspense } from "react";

const Markdown = lazy(() => import("@/parts/markdown"));

/** Descriptions are Markdown. Until the part that shows it is here, they are text. */
export function Text({ text }: { text?: string }) {
  if (!text) return null;
  return (
    <div className="text-[0.8125rem]">
      <Suspense fallback={<p className="whitespace-pre-line">{text}</p>}><Markdown text={text} /></Suspense>
    </div>
  );
}
