import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { useDeployment } from "@/api/session";
import { SeverityBadge } from "@/parts/badge";
import { Button } from "@/parts/button";
import { Dialog } from "@/parts/dialog";
import { Select, TextField } from "@/parts/field";
import { type DecisionName, decisionNames, decisions } from "@/parts/finding/decide";
import { Failure, Loading } from "@/parts/states";
import { formatNumber } from "@/format";
import * as texts from "@/texts";
import { applyBulk, previewBulk } from "./calls";
import { type Search, toRequest } from "./search";

const t = texts.triage.bulk;
const words = texts.triage.decide;

/** A decision about everything that the list has. The server counts what would change first, and then changes exactly that. */
export default function Bulk({ search, onClose, onDone }: { search: Search; onClose: () => void; onDone: (changed: number, changeId: string) => void }) {
  const deploymentId = useDeployment().id ?? "";
  const [name, setName] = useState<DecisionName>("false_positive");
  const [note, setNote] = useState("");
  const [stale, setStale] = useState(false);
  const request = toRequest(search);
  const change = { ...decisions[name].change, ...(note.trim() && { note: note.trim() }) };
  const { data: preview, error, isFetching, refetch } = useQuery({
    queryKey: ["bulk-preview", deploymentId, request, change],
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
    queryFn: () => previewBulk(deploymentId, request, change),
  });
  const apply = useMutation({
    meta: { handlesErrors: true },
    mutationFn: (token: string) => applyBulk(deploymentId, request, change, token),
    onSuccess: (answer) => onDone(answer.updatedCount + (answer.numExceptionsRequested ?? 0), String(answer.changeId)),
    onError: (failed) => {
      if (!(failed instanceof ApiError) || failed.status !== 409) return;
      setStale(true);
      void refetch();
    },
  });
  const number = (preview?.updatedCount ?? 0) + (preview?.numExceptionsRequested ?? 0);
  const failed = apply.error instanceof ApiError && apply.error.status !== 409 ? apply.error : undefined;
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={t.title}
      footer={
        <>
          <Button onClick={onClose}>{texts.shell.actions.cancel}</Button>
          <Button
            look="primary"
            disabled={!preview || isFetching || number === 0 || apply.isPending}
            onClick={() => {
              setStale(false);
              if (preview) apply.mutate(preview.previewToken);
            }}
          >
            {t.apply(formatNumber(number))}
          </Button>
        </>
      }
    >
      <p className="mb-3 text-muted">{t.matches}</p>
      <div className="mb-4 grid gap-3 sm:grid-cols-2">
        <Select label={t.decision} value={name} data-autofocus onChange={(event) => setName(event.target.value as DecisionName)}>
          {decisionNames.map((one) => <option key={one} value={one}>{words[one]}</option>)}
        </Select>
        <TextField label={t.note} value={note} maxLength={3000} onChange={(event) => setNote(event.target.value)} />
      </div>
      {stale && <p role="alert" className="mb-2 rounded-md border border-warn/30 bg-warn/10 px-3 py-2 text-[0.8125rem]">{t.stale}</p>}
      {failed && <p role="alert" className="mb-2 text-bad">{failed.message}</p>}
      {error ? <Failure error={error} retry={() => void refetch()} /> : !preview || isFetching ? <Loading label={t.counting} /> : (
        <div className="flex flex-col gap-2">
          <p className="text-base font-semibold tabular-nums" role="status">
            {number === 0 && !preview.numSkipped ? t.nothing : t.would(formatNumber(preview.updatedCount), formatNumber(preview.issueCount))}
          </p>
          {Boolean(preview.numExceptionsRequested) && <p>{t.requests(formatNumber(preview.numExceptionsRequested ?? 0))}</p>}
          {Boolean(preview.numSkipped) && <p>{t.skipped(formatNumber(preview.numSkipped ?? 0))}</p>}
          <p className="text-[0.8125rem]">
            <span className="text-muted">{t.now}: </span>
            {preview.statuses.map(({ status, count }) => `${(texts.words.state as Record<string, string>)[status] ?? status} ${formatNumber(count)}`).join(" · ")}
          </p>
          <h3 className="mt-2 text-xs font-semibold text-muted">{t.examples}</h3>
          <ul className="flex flex-col">
            {preview.examples.map((one) => (
              <li key={one.findingId} className="flex min-h-7 items-center gap-2 border-t border-line text-xs">
                <SeverityBadge severity={one.severity} />
                <span className="truncate font-medium">{one.ruleName}</span>
                <span className="ml-auto truncate text-muted">{one.project} · <span className="font-mono">{one.filePath}{one.line ? `:${one.line}` : ""}</span></span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </Dialog>
  );
}
