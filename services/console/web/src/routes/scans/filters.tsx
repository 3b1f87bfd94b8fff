import { X } from "lucide-react";
import { type FormEvent, useEffect, useState } from "react";
import { IconButton } from "@/parts/button";
import { TextField } from "@/parts/field";
import * as texts from "@/texts";

const t = texts.scans;

/** A text that applies when the person presses Enter or leaves the field. */
export function TextFilter({ label, hint, value, onChange }: { label: string; hint: string; value: string | undefined; onChange: (value: string | undefined) => void }) {
  const [text, setText] = useState(value ?? "");
  useEffect(() => setText(value ?? ""), [value]);
  const apply = () => {
    if (text.trim() !== (value ?? "")) onChange(text.trim() || undefined);
  };
  return (
    <form
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        apply();
      }}
    >
      <TextField label={label} placeholder={hint} value={text} onChange={(event) => setText(event.target.value)} onBlur={apply} className="w-64" />
    </form>
  );
}

export function ProjectFilter({ project, onChange }: { project: string | undefined; onChange: (project: string | undefined) => void }) {
  return <TextFilter label={t.freshness.project} hint={t.freshness.projectHint} value={project} onChange={onChange} />;
}

/** The chosen tool and version, as a chip. */
export function ToolFilter({ tool, version, onClear }: { tool: string; version: string | undefined; onClear: () => void }) {
  const text = version ? `${tool} ${version}` : tool;
  return (
    <span className="inline-flex min-h-8 items-center rounded-md border border-accent/40 bg-accent-soft pl-2.5 text-[0.8125rem]">
      {text}
      <IconButton label={`${t.freshness.clear}: ${text}`} onClick={onClear}><X size={14} aria-hidden /></IconButton>
    </span>
  );
}
