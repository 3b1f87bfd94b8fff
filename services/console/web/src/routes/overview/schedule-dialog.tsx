import { useState } from "react";
import { formatDateTime } from "@/format";
import { Button } from "@/parts/button";
import { Dialog } from "@/parts/dialog";
import { Failure, Loading } from "@/parts/states";
import { useToast } from "@/parts/toast";
import * as texts from "@/texts";
import { filterText } from "./filters";
import type { Filters } from "./period";
import { newDraft, ScheduleForm } from "./schedule-form";
import { type Draft, draftOf, type Rule, useReportRules } from "./schedules";

const words = texts.overview.reports;

/** The reports that go out by e-mail: what there is, a form, and a way to send one now. */
export function ScheduleDialog({ open, onClose, filters }: { open: boolean; onClose: () => void; filters: Filters | undefined }) {
  const { list, save, remove, test } = useReportRules(open);
  const [draft, setDraft] = useState<Draft>();
  const toast = useToast();
  const close = () => {
    setDraft(undefined);
    save.reset();
    onClose();
  };
  const submit = (next: Draft) =>
    save.mutate(next, {
      onSuccess: () => {
        setDraft(undefined);
        toast({ tone: "good", text: words.created });
      },
    });
  const send = (rule: Rule) =>
    test.mutate(rule.id, {
      onSuccess: ({ success, errorDetail: detail }) => toast(success ? { tone: "good", text: words.tested } : { tone: "bad", text: detail }),
    });
  return (
    <Dialog open={open} onClose={close} title={words.title} wide>
      {draft ? (
        <ScheduleForm key={draft.id ?? "new"} first={draft} page={filters} error={save.error?.message} busy={save.isPending} onSave={submit} onCancel={() => setDraft(undefined)} />
      ) : (
        <div className="grid gap-3">
          <p className="text-muted text-pretty">{words.intro}</p>
          {list.isPending && <Loading />}
          {list.isError && <Failure error={list.error} retry={() => void list.refetch()} />}
          {list.data?.length === 0 && <p>{words.none}</p>}
          {list.data && list.data.length > 0 && (
            <ul className="divide-y divide-line rounded-lg border border-line">
              {list.data.map((rule) => (
                <li key={rule.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-2">
                  <ReportLine rule={rule} />
                  <div className="ml-auto flex gap-1">
                    <Button look="quiet" disabled={test.isPending} onClick={() => send(rule)}>{words.test}</Button>
                    <Button look="quiet" onClick={() => setDraft(draftOf(rule))}>{words.edit}</Button>
                    <Button look="danger" onClick={() => remove.mutate(rule.id, { onSuccess: () => toast({ tone: "good", text: words.deleted }) })}>{words.remove}</Button>
                  </div>
                </li>
              ))}
            </ul>
          )}
          <div><Button look="primary" onClick={() => setDraft({ ...newDraft(), filters })}>{words.add}</Button></div>
        </div>
      )}
    </Dialog>
  );
}

function ReportLine({ rule }: { rule: Rule }) {
  const { cadence } = draftOf(rule);
  const often = cadence === "REPORT_CADENCE_DAILY" ? words.daily : cadence === "REPORT_CADENCE_WEEKLY" ? words.weekly : words.monthly;
  return (
    <div className="min-w-0">
      <p className="font-medium wrap-anywhere">{rule.name}</p>
      <p className="text-xs text-muted wrap-anywhere">
        {[
          rule.config.to,
          often,
          filterText(rule.send_report?.filters) || words.filterNone,
          rule.next_report_at ? words.next(formatDateTime(rule.next_report_at)) : words.off,
          rule.last_report_at && words.last(formatDateTime(rule.last_report_at)),
        ].filter(Boolean).join(" · ")}
      </p>
      {rule.config_error && <p className="text-xs text-bad">{rule.config_error}</p>}
    </div>
  );
}
