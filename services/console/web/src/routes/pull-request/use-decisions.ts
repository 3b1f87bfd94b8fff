import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { useMay } from "@/api/session";
import { ignores, nameOf } from "@/parts/finding/decide";
import { decisionToast, useToast } from "@/parts/toast";
import { formatNumber } from "@/format";
import { decisionCalls, fetchIssues, issueQuery } from "@/routes/triage/calls";
import { type Change, Decider, type Outcome, ruleOf } from "@/routes/triage/decider";
import { decisionOf, type Row, rowOf } from "@/routes/triage/rows";
import { type Name, useNamed } from "@/routes/triage/use-named";
import type { Overtaken } from "@/routes/triage/use-triage";
import * as texts from "@/texts";
import type { Finding, View } from "./calls";
import { keepOrder } from "./order";

const t = texts.triage;

/** The findings of a pull request, which one is open, and the decisions about them: as on the triage screen. `named` is the finding in the address. */
export function useDecisions(deploymentId: string, view: View, reload: () => void, named: string | undefined, name: Name) {
  const may = useMay("findings:triage");
  const toast = useToast();
  const queryClient = useQueryClient();
  const [rows, setRows] = useState<ReadonlyMap<string, Row>>(new Map());
  const [overtaken, setOvertaken] = useState<Overtaken>();
  const shown = useRef<Finding[]>([]);
  shown.current = keepOrder(shown.current, view.findings);
  const findings = shown.current;
  const indexOf = (id: string | undefined): number => findings.findIndex((finding) => String(finding.id) === id);
  const [active, setActive] = useState(() => Math.max(0, indexOf(named)));
  const open = findings[active];
  const nameInAddress = useNamed(named, open && String(open.id), name, (id) => indexOf(id) >= 0 && setActive(indexOf(id)));
  const current = useRef(rows);
  current.current = rows;

  const ids = findings.map(({ id }) => String(id));
  const { data: issues } = useQuery({
    queryKey: ["pull-request-issues", deploymentId, ids],
    enabled: ids.length > 0,
    queryFn: () => fetchIssues(deploymentId, ids),
  });
  const decider = useRef<Decider>(undefined);
  useEffect(() => {
    if (!issues) return;
    setRows((before) => new Map(issues.map((issue) => {
      const row = rowOf(issue);
      const mine = decider.current?.isWaiting(row.id) ? before.get(row.id) : undefined;
      return [row.id, mine ?? row];
    })));
  }, [issues]);

  const patch = useCallback((id: string, change: (row: Row) => Row) => {
    const row = current.current.get(id);
    if (!row) return;
    current.current = new Map(current.current).set(id, change(row));
    setRows(current.current);
  }, []);

  const report = useRef<(outcome: Outcome) => void>(undefined);
  report.current = (outcome) => {
    reload(); // what blocks follows from the decisions
    for (const id of outcome.entry?.ids ?? []) void queryClient.invalidateQueries({ queryKey: issueQuery(deploymentId, id).queryKey });
    if (outcome.kind !== "decided") void queryClient.invalidateQueries({ queryKey: ["pull-request-issues", deploymentId] });
    switch (outcome.kind) {
      case "decided": {
        const what = outcome.entry.change.state ? nameOf(outcome.entry.change) : t.outcome.noted;
        return toast({ tone: "good", key: decisionToast, text: t.outcome.decided(what, ruleOf(outcome.entry)), action: { label: texts.shell.actions.undo, run: () => decider.current?.undoEntry(outcome.entry) } });
      }
      case "requested":
        return toast({ tone: "good", key: decisionToast, text: t.outcome.requested(formatNumber(outcome.requested)) });
      case "unchanged":
        return toast({ tone: "good", key: decisionToast, text: t.outcome.unchanged });
      case "undone":
        return toast({ tone: "good", key: decisionToast, text: t.outcome.undone(formatNumber(outcome.undone.restored)) });
      case "overtaken":
        return void showOvertaken(outcome);
      case "refused":
        return toast({ tone: "bad", text: t.outcome.refused(outcome.error instanceof Error ? outcome.error.message : "") });
    }
  };
  const showOvertaken = async ({ entry }: Extract<Outcome, { kind: "overtaken" }>) => {
    const [id = ""] = entry.ids;
    const now = await queryClient.fetchQuery({ ...issueQuery(deploymentId, id), staleTime: 0 }).catch(() => undefined);
    if (now) decider.current?.sees(id, decisionOf(now));
    const at = shown.current.findIndex((finding) => String(finding.id) === id);
    if (at >= 0) setActive(at);
    setOvertaken({ entry, now });
  };
  decider.current ??= new Decider(decisionCalls(deploymentId), { find: (id) => current.current.get(id), patch }, (outcome) => report.current?.(outcome));

  const move = (by: number) => setActive((now) => Math.max(0, Math.min(now + by, findings.length - 1)));
  const decide = (change: Change): void => {
    const row = rows.get(ids[active] ?? "");
    if (!may || !row) return;
    if (ignores(change) && row.mayIgnore === "none") return toast({ tone: "bad", text: t.decide.mayNotIgnore });
    decider.current?.decide([row.id], change);
    if (change.state) move(1);
  };
  /** Takes the latest decision back, and shows the finding again. */
  const undo = (): void => {
    const entry = decider.current?.undo();
    if (!entry) return toast({ tone: "good", text: t.outcome.nothingToUndo });
    const at = ids.indexOf(entry.ids[0] ?? "");
    if (at >= 0) setActive(at);
  };
  return {
    findings, rows, active, setActive, nameInAddress, move, may, decide, overtaken, setOvertaken,
    undo,
    decideAnyway: ({ entry }: Overtaken) => decider.current?.decide(entry.ids, entry.change),
  };
}

export type Decisions = ReturnType<typeof useDecisions>;
