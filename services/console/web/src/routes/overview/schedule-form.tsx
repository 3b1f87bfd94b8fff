import { useState } from "react";
import { Button } from "@/parts/button";
import { Select, TextField } from "@/parts/field";
import * as texts from "@/texts";
import { filterText } from "./filters";
import { type Filters, howMany } from "./period";
import type { Cadence, Draft } from "./schedules";

const words = texts.overview.reports;

const cadences: Array<[Cadence, string]> = [
  ["REPORT_CADENCE_DAILY", words.daily],
  ["REPORT_CADENCE_WEEKLY", words.weekly],
  ["REPORT_CADENCE_MONTHLY", words.monthly],
];

const weekdayName = new Intl.DateTimeFormat(undefined, { weekday: "long", timeZone: "UTC" });
/** 5 January 1970 was a Monday. */
const weekdays = [1, 2, 3, 4, 5, 6, 7].map((day) => [day, weekdayName.format(new Date(Date.UTC(1970, 0, 4 + day)))] as const);
const hourName = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit", timeZone: "UTC" });
const hours = Array.from({ length: 24 }, (_, hour) => [hour, hourName.format(new Date(Date.UTC(1970, 0, 1, hour)))] as const);

export const ownZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export const newDraft = (): Draft => ({ name: words.nameDefault, to: "", cadence: "REPORT_CADENCE_MONTHLY", weekday: 1, hour: 8, zone: ownZone() });

/** The form of a report by e-mail. `page` is the filter of the page, which a report can take over. */
export function ScheduleForm({ first, page, error, busy, onSave, onCancel }: {
  first: Draft;
  page: Filters | undefined;
  error?: string;
  busy: boolean;
  onSave: (draft: Draft) => void;
  onCancel: () => void;
}) {
  const [draft, setDraft] = useState(first);
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change });
  const zones = [...new Set([draft.zone, ownZone(), "UTC", ...Intl.supportedValuesOf("timeZone")])];
  const chosen = draft.filters === first.filters && first.id !== undefined && howMany(first.filters) > 0 ? "kept" : howMany(draft.filters) > 0 ? "page" : "none";
  return (
    <form
      className="grid gap-3 sm:grid-cols-2"
      onSubmit={(event) => {
        event.preventDefault();
        onSave(draft);
      }}
    >
      <TextField label={words.name} required maxLength={255} value={draft.name} onChange={({ target }) => set({ name: target.value })} />
      <TextField label={words.to} hint={words.toHint} required value={draft.to} autoComplete="email" onChange={({ target }) => set({ to: target.value })} />
      <Select label={words.cadence} value={draft.cadence} onChange={({ target }) => set({ cadence: target.value as Cadence })}>
        {cadences.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </Select>
      {draft.cadence === "REPORT_CADENCE_WEEKLY" && (
        <Select label={words.weekday} value={draft.weekday} onChange={({ target }) => set({ weekday: Number(target.value) })}>
          {weekdays.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </Select>
      )}
      <Select label={words.hour} value={draft.hour} onChange={({ target }) => set({ hour: Number(target.value) })}>
        {hours.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </Select>
      <Select label={words.zone} value={draft.zone} onChange={({ target }) => set({ zone: target.value })}>
        {zones.map((one) => <option key={one} value={one}>{one}</option>)}
      </Select>
      <Select
        label={words.filter}
        value={chosen}
        hint={filterText(draft.filters) || undefined}
        onChange={({ target }) => set({ filters: target.value === "kept" ? first.filters : target.value === "page" ? page : undefined })}
      >
        <option value="none">{words.filterNone}</option>
        {howMany(page) > 0 && <option value="page">{words.filterSame}</option>}
        {first.id !== undefined && howMany(first.filters) > 0 && <option value="kept">{words.kept}</option>}
      </Select>
      {error && <p role="alert" className="text-bad sm:col-span-2">{error}</p>}
      <div className="flex justify-end gap-2 sm:col-span-2">
        <Button onClick={onCancel}>{texts.shell.actions.cancel}</Button>
        <Button type="submit" look="primary" disabled={busy}>{words.save}</Button>
      </div>
    </form>
  );
}
