import { useState } from "react";
import { Button } from "@/parts/button";
import { Dialog } from "@/parts/dialog";
import { TextArea } from "@/parts/field";
import { nameOf } from "@/parts/finding/decide";
import { When } from "@/parts/when";
import { formatNumber } from "@/format";
import * as texts from "@/texts";
import { decisionOf, placeOf, rowOf } from "./rows";
import type { Overtaken } from "./use-triage";

/** A note about a finding, or about all that are selected. */
export function NoteDialog({ initial, onSave, onClose }: { initial: string; onSave: (note: string) => void; onClose: () => void }) {
  const t = texts.triage.note;
  const [note, setNote] = useState(initial);
  const save = () => note.trim() && onSave(note.trim());
  return (
    <Dialog
      open
      onClose={onClose}
      title={t.title}
      footer={
        <>
          <Button onClick={onClose}>{texts.shell.actions.cancel}</Button>
          <Button look="primary" disabled={!note.trim()} onClick={save}>{t.save}</Button>
        </>
      }
    >
      <TextArea
        label={t.label}
        hint={t.hint}
        data-autofocus
        rows={5}
        maxLength={3000}
        value={note}
        onChange={(event) => setNote(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
        }}
      />
    </Dialog>
  );
}

/** Shows the decision that somebody else has just made, before the person's own would overwrite it. */
export function OvertakenDialog({ overtaken, onKeep, onOverwrite }: { overtaken: Overtaken; onKeep: () => void; onOverwrite: () => void }) {
  const t = texts.triage.overtaken;
  const { now, entry } = overtaken;
  const row = entry.ids.length === 1 ? (entry.before.get(entry.ids[0] ?? "") ?? (now && rowOf(now))) : undefined;
  const latest = now?.activityHistory.find((event) => event.actor) ?? now?.activityHistory[0];
  const theirs = now && nameOf(decisionOf(now));
  return (
    <Dialog
      open
      onClose={onKeep}
      title={t.title}
      footer={
        <>
          <Button onClick={onOverwrite}>{t.overwrite}</Button>
          <Button look="primary" data-autofocus onClick={onKeep}>{t.keep}</Button>
        </>
      }
    >
      <div className="mb-3 rounded-md bg-sunken px-3 py-2 text-[0.8125rem] wrap-anywhere">
        {row ? <><p className="font-semibold">{row.rule}</p><p className="text-muted">{placeOf(row)}</p></> : <p className="font-semibold">{t.many(formatNumber(entry.ids.length))}</p>}
      </div>
      {now ? (
        <div className="flex flex-col gap-2">
          <p>
            {t.text(latest?.actor || texts.triage.somebody, theirs ?? "")} <span className="text-muted"><When at={latest?.date} /></span>
          </p>
          {now.note && <blockquote className="border-l-2 border-accent pl-3 whitespace-pre-wrap wrap-anywhere">{now.note}</blockquote>}
        </div>
      ) : (
        <p>{t.unknown}</p>
      )}
      <p className="mt-3 text-muted">{t.mine(nameOf(entry.change))}</p>
    </Dialog>
  );
}
