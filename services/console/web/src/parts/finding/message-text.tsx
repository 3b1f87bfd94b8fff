import { useState } from "react";
import * as texts from "@/texts";
import { beginningOf } from "./message";

/** The message of a finding. Scanners send whole reports in it: a long one is cut until somebody asks for all of it. */
export function MessageText({ text, className }: { text: string; className?: string }) {
  const [all, setAll] = useState(false);
  const beginning = all ? undefined : beginningOf(text);
  return (
    <div className={className}>
      <p className="text-pretty whitespace-pre-line wrap-anywhere">{beginning ?? text}</p>
      {beginning !== undefined && (
        <button type="button" className="mt-1 rounded text-accent underline" onClick={() => setAll(true)}>{texts.finding.showAll}</button>
      )}
    </div>
  );
}
