import type { ReactNode } from "react";
import * as texts from "@/texts";
import { cx } from "./cx";

export type Tone = "critical" | "high" | "medium" | "low" | "info" | "good" | "warn" | "bad" | "accent";

const tones: Record<Tone, string> = {
  critical: "text-critical bg-critical/10 border-critical/25",
  high: "text-high bg-high/10 border-high/25",
  medium: "text-medium bg-medium/10 border-medium/25",
  low: "text-low bg-low/10 border-low/25",
  info: "text-info bg-info/10 border-info/25",
  good: "text-good bg-good/10 border-good/25",
  warn: "text-warn bg-warn/10 border-warn/25",
  bad: "text-bad bg-bad/10 border-bad/25",
  accent: "text-accent bg-accent/10 border-accent/25",
};

/** A short word with a colour. The colour never carries the meaning alone. */
export function Badge({ tone = "info", children, className }: { tone?: Tone; children: ReactNode; className?: string }) {
  return (
    <span
      className={cx(
        "inline-flex h-5 items-center rounded border px-1.5 text-2xs font-semibold whitespace-nowrap",
        tones[tone],
        className,
      )}
    >
      {children}
    </span>
  );
}

type Severity = keyof typeof texts.words.severity;

const isSeverity = (word: string): word is Severity => Object.hasOwn(texts.words.severity, word);

/** The severity of a finding, from any spelling of the API ("high", "SEVERITY_HIGH"). */
export function SeverityBadge({ severity }: { severity: string }) {
  const word = severity.toLowerCase().replace(/^severity_/, "");
  return isSeverity(word) ? <Badge tone={word}>{texts.words.severity[word]}</Badge> : <Badge>{severity}</Badge>;
}
