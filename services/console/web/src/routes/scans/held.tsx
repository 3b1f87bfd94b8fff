import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Check, ChevronRight, ShieldCheck, Undo2 } from "lucide-react";
import { useState } from "react";
import { useDeployment, useMay } from "@/api/session";
import { formatNumber, formatPercent } from "@/format";
import { Badge } from "@/parts/badge";
import { Button } from "@/parts/button";
import { cx } from "@/parts/cx";
import { More } from "@/parts/more";
import { Ref } from "@/parts/ref";
import { Empty, Failure, Loading } from "@/parts/states";
import { useToast } from "@/parts/toast";
import { When } from "@/parts/when";
import * as texts from "@/texts";
import { useParsed } from "@/shell/use-parsed";
import { decideHeld, type HeldCloses, heldQuery } from "./calls";
import { HeldFindings } from "./held-findings";
import { heldStates, parseSearch } from "./search";

const t = texts.scans.held;

/** Closes that wait for a person, with a button to confirm and one to reject. */
export function HeldClosesList() {
  const { slug = "" } = useDeployment();
  const search = useParsed(parseSearch, useSearch({ from: "/$org/scans" }));
  const navigate = useNavigate({ from: "/$org/scans" });
  const state = search.held ?? "pending";
  const query = useInfiniteQuery(heldQuery(slug, state));
  const rows = query.data?.pages.flatMap((page) => page.held_closes) ?? [];
  return (
    <div className="flex flex-col gap-3">
      <p className="max-w-prose text-muted text-pretty">{t.intro}</p>
      <div role="group" aria-label={t.filter} className="flex flex-wrap gap-1">
        {heldStates.map((one) => (
          <Button
            key={one}
            look="quiet"
            aria-pressed={one === state}
            className={cx(one === state && "bg-accent-soft !text-accent")}
            onClick={() => void navigate({ search: (before) => ({ ...before, held: one === "pending" ? undefined : one }), replace: true })}
          >
            {t.states[one]}
          </Button>
        ))}
      </div>
      {query.isError ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : query.isPending ? (
        <Loading />
      ) : rows.length === 0 ? (
        state === "pending" ? <Empty icon={<ShieldCheck size={28} />} title={t.empty}>{t.emptyHint}</Empty> : <Empty title={t.emptyOther} />
      ) : (
        <ul aria-label={t.table} className="flex flex-col gap-2">
          {rows.map((row) => <Held key={row.id} row={row} org={slug} />)}
        </ul>
      )}
      <More query={query} label={t.more} />
    </div>
  );
}

function Held({ row, org }: { row: HeldCloses; org: string }) {
  const [open, setOpen] = useState(false);
  const pending = row.state === "pending";
  return (
    <li className={cx("rounded-lg border bg-surface", pending ? "border-warn/40" : "border-line")}>
      <div className="flex flex-wrap items-start gap-x-4 gap-y-2 p-3">
        <div className="min-w-0 grow basis-72">
          <p className="font-medium text-pretty">
            {row.findings === row.open ? t.missingAll(formatNumber(row.open)) : t.missing(formatNumber(row.findings), formatNumber(row.open))}
            <span className="ml-1.5 font-normal text-muted tabular-nums">{formatPercent(row.findings / Math.max(1, row.open))}</span>
          </p>
          <p className="flex flex-wrap items-center gap-x-2 text-muted">
            <span className="font-medium text-ink wrap-anywhere">{row.project}</span>
            <Ref name={row.ref} />
            <span>{t.by([row.tool, row.tool_version, row.category].filter(Boolean).join(" "))}</span>
            <When at={row.created_at} />
            <Link to="/$org/scans/$scanId" params={{ org, scanId: String(row.scan_id) }} className="text-accent hover:underline">{t.scan}</Link>
          </p>
          {row.rejected_before && pending && <p className="mt-1 text-xs text-warn">{t.rejectedBefore}</p>}
          {!pending && <Decided row={row} />}
        </div>
        {pending && <Decide row={row} org={org} />}
      </div>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex w-full items-center gap-1 border-t border-line px-3 py-1.5 text-left text-xs text-muted hover:text-ink"
      >
        <ChevronRight size={14} aria-hidden className={cx("transition-transform", open && "rotate-90")} />
        {open ? t.hide : t.show}
        {pending && row.waiting < row.findings && <span className="ml-auto tabular-nums">{t.waiting(formatNumber(row.waiting))}</span>}
      </button>
      {open && <HeldFindings org={org} id={String(row.id)} />}
    </li>
  );
}

type Decider = keyof typeof t.decided;

function Decided({ row }: { row: HeldCloses }) {
  const by = Object.hasOwn(t.decided, row.actor_kind) ? t.decided[row.actor_kind as Decider] : "";
  const state = Object.hasOwn(t.states, row.state) ? t.states[row.state as keyof typeof t.states] : row.state;
  return (
    <p className="mt-1 flex flex-wrap items-center gap-2 text-xs text-muted">
      <Badge tone={row.state === "confirmed" ? "good" : "info"}>{state}</Badge>
      <span>{by}</span>
      <When at={row.decided_at} />
      {row.note && <q className="wrap-anywhere">{row.note}</q>}
    </p>
  );
}

function Decide({ row, org }: { row: HeldCloses; org: string }) {
  const may = useMay("findings:triage");
  const toast = useToast();
  const client = useQueryClient();
  const decision = useMutation({
    mutationFn: (which: "confirm" | "reject") => decideHeld(org, String(row.id), which),
    onSuccess: (count, which) => toast({ tone: "good", text: which === "confirm" ? t.confirmed(formatNumber(count)) : t.rejected(formatNumber(count)) }),
    onSettled: () => client.invalidateQueries({ queryKey: ["held-closes", org] }),
  });
  if (!may) return <p className="text-xs text-muted">{t.mayNot}</p>;
  return (
    <div className="flex gap-2">
      <Button title={t.confirmHint} disabled={decision.isPending} onClick={() => decision.mutate("confirm")}><Check size={15} className="text-good" aria-hidden />{t.confirm}</Button>
      <Button title={t.rejectHint} disabled={decision.isPending} onClick={() => decision.mutate("reject")}><Undo2 size={15} className="text-warn" aria-hidden />{t.reject}</Button>
    </div>
  );
}
