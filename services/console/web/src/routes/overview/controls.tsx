import { Select, TextField } from "@/parts/field";
import * as texts from "@/texts";
import { FilterButton } from "./filters";
import { compareOf, firstDay, lastDay, ofDays, periodOf, type Range, ranges, rangeOf, type Search } from "./period";

const words = texts.overview;
const today = (): string => new Date().toISOString().slice(0, 10);

/** Period, as of, compare with and filter: all in the address, so that a link shows the same report. */
export function Controls({ search, onChange }: { search: Search; onChange: (search: Search) => void }) {
  const period = periodOf(search);
  const compared = compareOf(search, period);
  const custom = search.since !== undefined;
  const customCompare = search.compareSince !== undefined;
  const withoutPeriod = { ...search, since: undefined, until: undefined, range: undefined, asOf: undefined };
  const withoutCompare = { ...search, compare: undefined, compareSince: undefined, compareUntil: undefined };
  const setDays = (first: string, last: string) => {
    if (!first || !last || first > last) return;
    onChange({ ...withoutPeriod, ...ofDays(first, last) });
  };
  const setCompareDays = (first: string, last: string) => {
    if (!first || !last || first > last) return;
    const { since, until } = ofDays(first, last);
    onChange({ ...withoutCompare, compareSince: since, compareUntil: until });
  };
  const chooseCompare = (value: string) => {
    if (value === "year") return onChange({ ...withoutCompare, compare: "year" });
    if (value !== "custom") return onChange(withoutCompare);
    const length = Date.parse(period.until) - Date.parse(period.since);
    return onChange({ ...withoutCompare, compareSince: new Date(Date.parse(period.since) - length).toISOString(), compareUntil: period.since });
  };
  return (
    <div className="mb-4 flex flex-wrap items-end gap-x-3 gap-y-2 print:hidden">
      <Select
        label={words.period.label}
        className="w-40"
        value={custom ? "custom" : rangeOf(search)}
        onChange={({ target }) => onChange(target.value === "custom" ? { ...withoutPeriod, ...period } : { ...withoutPeriod, asOf: search.asOf, range: target.value as Range })}
      >
        {ranges.map((one) => <option key={one} value={one}>{words.period[one]}</option>)}
        <option value="custom">{words.period.custom}</option>
      </Select>
      {custom ? (
        <>
          <TextField type="date" label={words.period.from} className="w-36" value={firstDay(period)} max={lastDay(period)} onChange={({ target }) => setDays(target.value, lastDay(period))} />
          <TextField type="date" label={words.period.to} className="w-36" value={lastDay(period)} min={firstDay(period)} onChange={({ target }) => setDays(firstDay(period), target.value)} />
        </>
      ) : (
        <TextField
          type="date"
          label={words.period.asOf}
          title={words.period.asOfHint}
          className="w-36"
          max={today()}
          value={search.asOf ?? today()}
          onChange={({ target }) => onChange({ ...search, asOf: target.value && target.value !== today() ? target.value : undefined })}
        />
      )}
      <Select label={words.compare.label} className="w-44" value={customCompare ? "custom" : (search.compare ?? "previous")} onChange={({ target }) => chooseCompare(target.value)}>
        <option value="previous">{words.compare.previous}</option>
        <option value="year">{words.compare.year}</option>
        <option value="custom">{words.compare.custom}</option>
      </Select>
      {customCompare && compared && (
        <>
          <TextField type="date" label={`${words.compare.label}: ${words.period.from}`} className="w-36" value={firstDay(compared)} onChange={({ target }) => setCompareDays(target.value, lastDay(compared))} />
          <TextField type="date" label={words.period.to} className="w-36" value={lastDay(compared)} onChange={({ target }) => setCompareDays(firstDay(compared), target.value)} />
        </>
      )}
      <FilterButton filters={search.filters} onChange={(filters) => onChange({ ...search, filters })} />
    </div>
  );
}
