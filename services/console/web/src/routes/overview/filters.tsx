import { ListFilter, X } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { Button, IconButton } from "@/parts/button";
import { Checkbox, TextField } from "@/parts/field";
import { Popover } from "@/parts/popover";
import * as texts from "@/texts";
import { useNames } from "./names";
import { type Filters, howMany } from "./period";

const words = texts.overview.filters;

type Severity = Schemas["reporting.v1.FindingSeverity"];
type Product = Schemas["reporting.v1.FindingType"];

const severities: Array<[Severity, string]> = [
  ["FINDING_SEVERITY_CRITICAL", texts.words.severity.critical],
  ["FINDING_SEVERITY_HIGH", texts.words.severity.high],
  ["FINDING_SEVERITY_MEDIUM", texts.words.severity.medium],
  ["FINDING_SEVERITY_LOW", texts.words.severity.low],
];
const products: Array<[Product, string]> = [
  ["FINDING_TYPE_CODE", texts.words.product.sast],
  ["FINDING_TYPE_SCA", texts.words.product.sca],
  ["FINDING_TYPE_SECRETS", texts.words.product.secrets],
];

const toggled = <T,>(list: T[] | undefined, value: T): T[] | undefined => {
  const next = list?.includes(value) ? list.filter((one) => one !== value) : [...(list ?? []), value];
  return next.length > 0 ? next : undefined;
};

/** The findings that the report counts. Every choice applies at once, and is part of the address. */
export function FilterButton({ filters = {}, onChange }: { filters?: Filters; onChange: (filters: Filters | undefined) => void }) {
  const [open, setOpen] = useState(false);
  const names = useNames(open);
  const count = howMany(filters);
  const set = (change: Partial<Filters>) => {
    const next = { ...filters, ...change };
    for (const key of Object.keys(next) as Array<keyof Filters>) if (next[key] === undefined) delete next[key];
    onChange(Object.keys(next).length > 0 ? next : undefined);
  };
  return (
    <Popover
      open={open}
      onOpenChange={setOpen}
      label={words.label}
      trigger={<Button><ListFilter size={15} aria-hidden />{words.label}{count > 0 && <span className="tabular-nums">({count})</span>}</Button>}
    >
      <div className="grid w-80 max-w-full gap-4 p-2">
        <div className="grid grid-cols-2 gap-4">
          <Choices legend={words.severity} all={severities} chosen={filters.findingSeverities} onToggle={(one) => set({ findingSeverities: toggled(filters.findingSeverities, one) })} />
          <Choices legend={words.product} all={products} chosen={filters.findingTypes} onToggle={(one) => set({ findingTypes: toggled(filters.findingTypes, one) })} />
        </div>
        <NameList label={words.projects} known={names.projects} chosen={filters.projects} onToggle={(one) => set({ projects: toggled(filters.projects, one) })} />
        <NameList label={words.tags} known={names.tags} chosen={filters.tags} onToggle={(one) => set({ tags: toggled(filters.tags, one) })} />
        <NameList label={words.teams} known={names.teams} chosen={filters.teams} onToggle={(one) => set({ teams: toggled(filters.teams, one) })} />
        {count > 0 && <Button look="quiet" className="justify-self-start" onClick={() => onChange(undefined)}>{words.clear}</Button>}
      </div>
    </Popover>
  );
}

function Choices<T extends string>({ legend, all, chosen, onToggle }: { legend: string; all: Array<[T, string]>; chosen?: T[]; onToggle: (value: T) => void }) {
  return (
    <fieldset className="flex flex-col gap-1.5">
      <legend className="mb-1 text-xs font-medium">{legend}</legend>
      {all.map(([value, text]) => <Checkbox key={value} label={text} checked={chosen?.includes(value) ?? false} onChange={() => onToggle(value)} />)}
    </fieldset>
  );
}

/** A field that adds names to a list. The browser proposes the known ones. */
export function NameList({ label, known, chosen = [], onToggle }: { label: string; known: string[]; chosen?: string[]; onToggle: (name: string) => void }) {
  const [text, setText] = useState("");
  const id = `names-${label.replaceAll(/\W/g, "-")}`;
  const add = (name: string) => {
    const trimmed = name.trim();
    if (trimmed && !chosen.includes(trimmed)) onToggle(trimmed);
    setText("");
  };
  return (
    <div className="grid gap-1.5">
      <TextField
        label={label}
        list={id}
        value={text}
        autoComplete="off"
        onChange={(event) => (known.includes(event.target.value) ? add(event.target.value) : setText(event.target.value))}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          add(text);
        }}
      />
      <datalist id={id}>{known.filter((one) => !chosen.includes(one)).map((one) => <option key={one} value={one} />)}</datalist>
      {chosen.length > 0 && (
        <ul className="flex flex-wrap gap-1" aria-label={label}>
          {chosen.map((one) => (
            <li key={one} className="inline-flex max-w-full items-center rounded border border-line bg-sunken pl-2 text-xs">
              <span className="truncate">{one}</span>
              <IconButton label={words.remove(one)} className="!size-6" onClick={() => onToggle(one)}><X size={12} aria-hidden /></IconButton>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The filter in words, for the printed page. */
export function filterText(filters: Filters | undefined): string {
  if (!filters) return "";
  const labels = new Map<string, string>([...severities, ...products]);
  return Object.values(filters)
    .flatMap((value) => (Array.isArray(value) ? value : []))
    .map((value) => labels.get(String(value)) ?? String(value))
    .join(", ");
}
