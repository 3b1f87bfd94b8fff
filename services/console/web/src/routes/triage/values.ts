import * as texts from "@/texts";
import type { FieldName } from "./fields";

const known: Partial<Record<FieldName, Record<string, string>>> = {
  severity: texts.words.severity,
  type: texts.triage.types,
  reason: texts.words.reason,
};

/** The words of a value in a chip or a menu. */
export function wordsOf(field: FieldName, value: string): string {
  const words = known[field]?.[value];
  if (words) return words;
  if (field === "ref") return value === "_default" ? texts.triage.fields.primary : value.replace(/^refs\/heads\//, "");
  if (field === "verdict") return (texts.finding.verdict as Record<string, string>)[`VERDICT_${value.toUpperCase()}`] ?? value;
  if (field === "reachability" || field === "validation") return value.replaceAll("_", " ");
  return value;
}
