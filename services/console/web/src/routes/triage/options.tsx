import { ArrowDownWideNarrow, Layers } from "lucide-react";
import { useState } from "react";
import { Button } from "@/parts/button";
import { TextField } from "@/parts/field";
import { Menu, MenuChoice, MenuLine } from "@/parts/menu";
import { Popover } from "@/parts/popover";
import * as texts from "@/texts";
import { groupings, sorts } from "./fields";
import { clean, type Search } from "./search";

const t = texts.triage;

/** The order and the grouping of the list. */
export function Options({ search, set }: { search: Search; set: (search: Search) => void }) {
  const sort = search.sort ?? "since";
  return (
    <>
      <Menu
        trigger={<Button look="quiet" className="px-2" aria-label={t.group.label}><Layers size={15} aria-hidden /><span className="max-md:hidden">{search.group ? t.group[search.group] : t.group.label}</span></Button>}
      >
        <MenuChoice checked={!search.group} onSelect={() => set(clean({ ...search, group: undefined }))}>{t.group.none}</MenuChoice>
        {groupings.map((group) => <MenuChoice key={group} checked={search.group === group} onSelect={() => set(clean({ ...search, group }))}>{t.group[group]}</MenuChoice>)}
      </Menu>
      <Menu trigger={<Button look="quiet" className="px-2" aria-label={t.sort.label}><ArrowDownWideNarrow size={15} aria-hidden /><span className="max-md:hidden">{t.sort[sort]}</span></Button>}>
        {sorts.map((one) => <MenuChoice key={one} checked={sort === one} onSelect={() => set(clean({ ...search, sort: one === "since" ? undefined : one }))}>{t.sort[one]}</MenuChoice>)}
        <MenuLine />
        <MenuChoice checked={Boolean(search.oldest)} onSelect={() => set(clean({ ...search, oldest: search.oldest ? undefined : true }))}>{t.sort.oldest}</MenuChoice>
      </Menu>
    </>
  );
}

/** Jumps to a finding by its number in the list. */
export function GoTo({ total, onGo, children }: { total: number; onGo: (index: number) => void; children: React.ReactNode }) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  return (
    <Popover label={t.goToRow} open={open} onOpenChange={setOpen} trigger={<button type="button" aria-label={t.goToRow} className="shrink-0 rounded px-1 whitespace-nowrap tabular-nums hover:bg-sunken hover:text-ink">{children}</button>}>
      <form
        className="flex items-end gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          const number = Math.round(Number(text));
          if (number >= 1) onGo(Math.min(number, total) - 1);
          setOpen(false);
          setText("");
        }}
      >
        <TextField label={t.goToRow} inputMode="numeric" pattern="[0-9]*" autoFocus value={text} onChange={(event) => setText(event.target.value)} />
        <Button type="submit">{t.go}</Button>
      </form>
    </Popover>
  );
}
