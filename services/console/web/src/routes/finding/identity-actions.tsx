import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { useDeployment } from "@/api/session";
import { Badge } from "@/parts/badge";
import { Button } from "@/parts/button";
import { Dialog } from "@/parts/dialog";
import { TextField } from "@/parts/field";
import { useToast } from "@/parts/toast";
import { When } from "@/parts/when";
import { formatNumber } from "@/format";
import * as texts from "@/texts";

const t = texts.finding;

type Kind = "split" | "merge";
type Outcome = { findings: Schemas["findings.v1.IdentityFinding"][]; changedCount?: number };

/** Splits and merges, each with a preview, and the undo of earlier ones. */
export function IdentityActions({ id, may, onDone }: { id: string; may: boolean; onDone: () => void }) {
  const [open, setOpen] = useState<Kind | "changes">();
  const deploymentId = useDeployment().id ?? "";
  const { data } = useQuery({
    queryKey: ["identity-changes", deploymentId, id],
    queryFn: ({ signal }) => unwrap(api.GET("/api/v1/deployments/{deploymentId}/identity-changes", { params: { path: { deploymentId }, query: { findingId: Number(id), limit: 50 } }, signal })),
  });
  const quiet = "min-h-7 px-2 text-xs";
  return (
    <>
      {data && data.changes.length > 0 && <Button look="quiet" className={quiet} onClick={() => setOpen("changes")}>{t.identityChanges.title}</Button>}
      {may && <Button className={quiet} onClick={() => setOpen("split")}>{t.split.open}</Button>}
      {may && <Button className={quiet} onClick={() => setOpen("merge")}>{t.merge.open}</Button>}
      {(open === "split" || open === "merge") && (
        <ChangeIdentity
          kind={open}
          id={id}
          onClose={() => setOpen(undefined)}
          onDone={() => {
            setOpen(undefined);
            onDone();
          }}
        />
      )}
      {open === "changes" && data && <IdentityChanges changes={data.changes} may={may} onClose={() => setOpen(undefined)} onDone={onDone} />}
    </>
  );
}

function ChangeIdentity({ kind, id, onClose, onDone }: { kind: Kind; id: string; onClose: () => void; onDone: () => void }) {
  const deploymentId = useDeployment().id ?? "";
  const toast = useToast();
  const [into, setInto] = useState("");
  const [note, setNote] = useState("");
  const path = { params: { path: { deploymentId, findingId: id } } };
  const call = (validateOnly: boolean): Promise<Outcome> =>
    kind === "split"
      ? unwrap(api.POST("/api/v1/deployments/{deploymentId}/findings/{findingId}/split", { ...path, body: { note, validateOnly } }))
      : unwrap(api.POST("/api/v1/deployments/{deploymentId}/findings/{findingId}/merge", { ...path, body: { into, note, validateOnly } }));
  const ready = kind === "split" || /^[1-9]\d{0,17}$/.test(into);
  const preview = useQuery({
    queryKey: ["identity-preview", kind, deploymentId, id, into],
    enabled: ready,
    retry: false,
    gcTime: 0,
    queryFn: () => call(true),
  });
  const apply = useMutation({
    meta: { handlesErrors: true },
    mutationFn: () => call(false),
    onSuccess: () => {
      toast({ tone: "good", text: t[kind].done });
      onDone();
    },
  });
  const refusal = apply.error ?? (ready ? preview.error : null);
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={t[kind].title}
      footer={
        <>
          <Button onClick={onClose}>{texts.shell.actions.cancel}</Button>
          <Button look="primary" disabled={!preview.data || preview.isFetching || apply.isPending} onClick={() => apply.mutate()}>{t[kind].apply}</Button>
        </>
      }
    >
      <div className="flex flex-col gap-3">
        <p className="text-muted">{t[kind].intro}</p>
        {kind === "merge" && <TextField label={t.merge.into} inputMode="numeric" data-autofocus value={into} onChange={(event) => setInto(event.target.value.trim())} />}
        <TextField label={t[kind].note} value={note} maxLength={2000} onChange={(event) => setNote(event.target.value)} />
        {refusal && <p role="alert" className="text-bad wrap-anywhere">{refusal.message}</p>}
        {ready && preview.data && <PreviewOf outcome={preview.data} />}
      </div>
    </Dialog>
  );
}

function PreviewOf({ outcome }: { outcome: Outcome }) {
  return (
    <section className="rounded-md border border-line p-3" role="status">
      <h3 className="mb-2 text-xs font-semibold text-muted">{t.identityPreview.title}</h3>
      <ul className="flex flex-col gap-2 text-[0.8125rem]">
        {outcome.findings.map((one) => (
          <li key={one.id} className="flex flex-wrap items-center gap-2">
            <span className="font-medium">{String(one.id) === "0" ? t.identityPreview.fresh : t.identityPreview.finding(String(one.id))}</span>
            <Badge>{(texts.words.state as Record<string, string>)[one.status] ?? one.status}</Badge>
            <span className="font-mono text-xs text-muted wrap-anywhere">{one.place?.filePath}{one.place?.line ? `:${one.place.line}` : ""}</span>
            <span className="text-xs text-muted">{one.ref}</span>
          </li>
        ))}
      </ul>
      {outcome.changedCount ? <p className="mt-2 text-xs text-muted">{t.identityPreview.changed(formatNumber(outcome.changedCount))}</p> : null}
    </section>
  );
}

function IdentityChanges({ changes, may, onClose, onDone }: { changes: Schemas["findings.v1.IdentityChange"][]; may: boolean; onClose: () => void; onDone: () => void }) {
  const deploymentId = useDeployment().id ?? "";
  const queryClient = useQueryClient();
  const undo = useMutation({
    mutationFn: (identityChangeId: string) =>
      unwrap(api.POST("/api/v1/deployments/{deploymentId}/identity-changes/{identityChangeId}/undo", { params: { path: { deploymentId, identityChangeId } }, body: {} })),
    onSuccess: () => {
      void queryClient.invalidateQueries({ queryKey: ["identity-changes"] });
      onDone();
    },
  });
  return (
    <Dialog open onClose={onClose} title={t.identityChanges.title}>
      <ul className="flex flex-col gap-2">
        {changes.map((change) => (
          <li key={change.id} className="flex items-center gap-2 text-[0.8125rem]">
            <span>{change.kind === "IDENTITY_CHANGE_KIND_MERGE" ? t.identityChanges.merge : t.identityChanges.split}</span>
            <span className="text-muted">{t.identityPreview.finding(String(change.findingId))}{change.otherId && `, ${change.otherId}`} · <When at={change.at} /></span>
            <span className="ml-auto">
              {change.undoneAt ? <Badge>{t.identityChanges.undone}</Badge> : may && <Button className="min-h-7" disabled={undo.isPending} onClick={() => undo.mutate(String(change.id))}>{t.identityChanges.undo}</Button>}
            </span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
