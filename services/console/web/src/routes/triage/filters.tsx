import { useQuery } from "@tanstack/react-query";
import { ListFilter, X } from "lucide-react";
import { useState } from "react";
import { useDeployment } from "@/api/session";
import { Button } from "@/parts/button";
import { cx } from "@/parts/cx";
import { Checkbox, TextField } from "@/parts/field";
import { Popover } from "@/parts/popover";
import { formatNumber } from "@/format";
import * as texts from "@/texts";
import { facetsQuery } from "./calls";
import { type Field, fields, type FieldName, type Period, periods } from "./fields";
import { clean, isFiltered, onlyPrimary, type Search, splitList, toggle } from "./search";
import { wordsOf } from "./values";

const t = texts.triage;

type Set = (search: Search) => void;
const flags = ["exploited", "archived"] as const;

/** The conditions of the list as chips. They are in the address. */
export function Filters({ search, set }: { search: Search; set: Set }) {
  return (
    <div className="flex flex-wrap items-center gap-1.5 empty:hidden">
      {onlyPrimary(search) && <Chip name={t.fields.primary} onRemove={() => set(clean({ ...search, everywhere: true }))} />}
      {fields.filter(({ param }) => search[param]).map((field) => <FieldChip key={field.param} field={field} search={search} set={set} />)}
      {search.path && <Chip name={t.fields.path} value={search.path} onRemove={() => set(clean({ ...search, path: undefined }))} />}
      {search.since && <Chip name={t.fields.since} value={t.periods[search.since]} onRemove={() => set(clean({ ...search, since: undefined }))} />}
      {flags.filter((flag) => search[flag]).map((flag) => <Chip key={flag} name={t.fields[flag]} onRemove={() => set(clean({ ...search, [flag]: undefined }))} />)}
      {search.more && <Chip name={t.fields.more} onRemove={() => set(clean({ ...search, more: undefined }))} />}
      {isFiltered(search) && (
        <Button look="quiet" className="min-h-7 px-2" onClick={() => set(clean({ state: search.state, sort: search.sort, oldest: search.oldest, group: search.group }))}>{t.filter.clear}</Button>
      )}
    </div>
  );
}

const chip = "inline-flex h-7 max-w-72 items-center rounded-md border border-line-strong/50 bg-surface text-xs";

function Chip({ name, value, onRemove, trigger }: { name: string; value?: string; onRemove: () => void; trigger?: React.ReactNode }) {
  return (
    <span className={chip}>
      {trigger ?? <span className="truncate pl-2"><span className="text-muted">{name}{value && ": "}</span>{value}</span>}
      <button type="button" aria-label={t.filter.remove(name)} onClick={onRemove} className="ml-0.5 flex size-6 shrink-0 items-center justify-center rounded text-muted hover:text-ink">
        <X size={13} aria-hidden />
      </button>
    </span>
  );
}

function FieldChip({ field, search, set }: { field: Field & { param: FieldName }; search: Search; set: Set }) {
  const [open, setOpen] = useState(false);
  const values = splitList(search[field.param]).map((value) => wordsOf(field.param, value));
  const name = t.fields[field.param];
  return (
    <Chip
      name={name}
      onRemove={() => set(clean({ ...search, [field.param]: undefined }))}
      trigger={
        <Popover
          label={t.filter.values(name)}
          open={open}
          onOpenChange={setOpen}
          trigger={
            <button type="button" className="h-full min-w-0 truncate rounded-l-md pl-2 hover:bg-sunken">
              <span className="text-muted">{name}: </span>
              {values.length > 2 ? `${values.slice(0, 2).join(", ")} +${values.length - 2}` : values.join(", ")}
            </button>
          }
        >
          <Values field={field} search={search} set={set} />
        </Popover>
      }
    />
  );
}

/** Adds a condition. */
export function AddFilter({ search, set }: { search: Search; set: Set }) {
  const [open, setOpen] = useState(false);
  const [field, setField] = useState<(typeof fields)[number]>();
  return (
    <Popover
      label={t.filter.add}
      open={open}
      onOpenChange={(next) => {
        setOpen(next);
        setField(undefined);
      }}
      trigger={<Button look="quiet" className="px-2"><ListFilter size={15} aria-hidden />{t.filter.add}</Button>}
    >
      {field ? (
        <>
          <p className="px-1 pb-1 text-xs font-semibold text-muted">{t.fields[field.param]}</p>
          <Values field={field} search={search} set={set} />
        </>
      ) : (
        <div className="flex flex-col">
          {fields.map((one) => <Choice key={one.param} onClick={() => setField(one)}>{t.fields[one.param]}</Choice>)}
          <hr className="my-1 border-line" />
          {(Object.keys(periods) as Period[]).map((period) => (
            <Choice key={period} pressed={search.since === period} onClick={() => set(clean({ ...search, since: search.since === period ? undefined : period }))}>{t.periods[period]}</Choice>
          ))}
          <hr className="my-1 border-line" />
          <Choice pressed={onlyPrimary(search)} onClick={() => set(clean({ ...search, ref: undefined, everywhere: onlyPrimary(search) || undefined }))}>{t.fields.primary}</Choice>
          {flags.map((flag) => (
            <Choice key={flag} pressed={Boolean(search[flag])} onClick={() => set(clean({ ...search, [flag]: search[flag] ? undefined : true }))}>{t.fields[flag]}</Choice>
          ))}
        </div>
      )}
    </Popover>
  );
}

function Choice({ pressed, onClick, children }: { pressed?: boolean; onClick: () => void; children: React.ReactNode }) {
  return (
    <button type="button" aria-pressed={pressed} onClick={onClick} className={cx("min-h-7 rounded px-2 text-left text-[0.8125rem] hover:bg-sunken", pressed && "font-medium text-accent")}>
      {children}
    </button>
  );
}

const shownValues = 60;
/** The highest first. Other values come in the order of the server: the most frequent first. */
const severities = Object.keys(texts.words.severity);

/** The values of a condition with the numbers of their findings. */
function Values({ field, search, set }: { field: Field & { param: FieldName }; search: Search; set: Set }) {
  const [text, setText] = useState("");
  const deploymentId = useDeployment().id ?? "";
  const { data } = useQuery(facetsQuery(deploymentId, search, field.param));
  const chosen = splitList(search[field.param]);
  const spelled = (value: string): string => (field.prefix ? value.replace(field.prefix, "").toLowerCase() : value);
  const rankOf = ({ value }: { value: string }): number => (field.param === "severity" && severities.includes(value) ? severities.indexOf(value) - severities.length : 0);
  const counted = (data?.facets.find((facet) => facet.field === field.api)?.values ?? []).map(({ value, count }) => ({ value: spelled(value), count: Number(count) }));
  const all = [...chosen.filter((value) => !counted.some((one) => one.value === value)).map((value) => ({ value, count: 0 })), ...counted]
    .sort((a, b) => rankOf(a) - rankOf(b));
  const wanted = text.trim().toLowerCase();
  const shown = all.filter(({ value }) => wordsOf(field.param, value).toLowerCase().includes(wanted)).slice(0, shownValues);
  const free = wanted && !field.prefix && !all.some(({ value }) => value.toLowerCase() === wanted);
  return (
    <div className="flex w-72 flex-col gap-1">
      {(all.length > 8 || !field.prefix) && (
        <TextField label={t.filter.find} hideLabel placeholder={t.filter.find} value={text} autoFocus onChange={(event) => setText(event.target.value)} />
      )}
      <div className="max-h-72 overflow-y-auto">
        {shown.map(({ value, count }) => (
          <div key={value} className="flex min-h-7 items-center gap-2 rounded px-1 hover:bg-sunken">
            <Checkbox
              className="min-w-0 grow py-1 [&>span]:truncate"
              label={<span title={value}>{wordsOf(field.param, value)}</span>}
              checked={chosen.includes(value)}
              onChange={() => set(toggle(search, field.param, value))}
            />
            <span className="shrink-0 text-xs text-muted tabular-nums">{formatNumber(count)}</span>
          </div>
        ))}
        {free && <Choice onClick={() => set(toggle(search, field.param, text.trim()))}>{t.filter.other(text.trim())}</Choice>}
        {data && shown.length === 0 && !free && <p className="px-1 py-2 text-xs text-muted">{t.filter.none}</p>}
      </div>
    </div>
  );
}
