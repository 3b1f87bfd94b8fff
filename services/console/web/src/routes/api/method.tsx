import { cx } from "@/parts/cx";

const tones: Record<string, string> = { get: "text-low", post: "text-good", put: "text-medium", patch: "text-medium", delete: "text-bad" };

/** The method of an operation, as wide as the widest. */
export function Method({ method, className }: { method: string; className?: string }) {
  return <span className={cx("w-12 shrink-0 font-mono text-2xs font-semibold uppercase", tones[method] ?? "text-muted", className)}>{method}</span>;
}
