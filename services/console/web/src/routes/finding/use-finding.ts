import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useMay } from "@/api/session";
import { ignores, nameOf } from "@/parts/finding/decide";
import type { Issue } from "@/parts/finding/issue";
import { decisionToast, useToast } from "@/parts/toast";
import { formatNumber } from "@/format";
import { decisionCalls, issueQuery } from "@/routes/triage/calls";
import { type Change, Decider, type Outcome, ruleOf } from "@/routes/triage/decider";
import { useFeed } from "@/routes/triage/feed";
import { type Row, rowOf } from "@/routes/triage/rows";
import type { Overtaken } from "@/routes/triage/use-triage";
import * as texts from "@/texts";

const t = texts.triage;

/** One finding, with decisions that show at once. */
export function useFinding(deploymentId: string, id: string) {
  const queryClient = useQueryClient();
  const toast = useToast();
  const mayTriage = useMay("findings:triage");
  const { data: issue, error, refetch } = useQuery(issueQuery(deploymentId, id));
  const [row, setRow] = useState<Row>();
  const [overtaken, setOvertaken] = useState<Overtaken>();
  const shown = useRef<Row>(undefined);
  const show = (next: Row | undefined) => {
    shown.current = next;
    setRow(next);
  };
  const decider = useRef<Decider>(undefined);
  const report = useRef<(outcome: Outcome) => void>(undefined);
  decider.current ??= new Decider(
    decisionCalls(deploymentId),
    { find: (one) => (shown.current?.id === one ? shown.current : undefined), patch: (one, change) => shown.current?.id === one && show(change(shown.current)) },
    (outcome) => report.current?.(outcome),
  );
  useEffect(() => {
    if (issue && !decider.current?.isWaiting(id)) show(rowOf(issue));
  }, [issue, id]);

  const readAgain = async (): Promise<Issue | undefined> => {
    for (const key of ["identity", "triage-changes", "exception-requests", "identity-changes"]) void queryClient.invalidateQueries({ queryKey: [key] });
    return (await refetch()).data;
  };
  report.current = async (outcome) => {
    const now = await readAgain();
    switch (outcome.kind) {
      case "decided":
        return toast({ tone: "good", key: decisionToast, text: t.outcome.decided(outcome.entry.change.state ? nameOf(outcome.entry.change) : t.outcome.noted, ruleOf(outcome.entry)), action: { label: texts.shell.actions.undo, run: () => decider.current?.undoEntry(outcome.entry) } });
      case "requested":
        return toast({ tone: "good", key: decisionToast, text: t.outcome.requested(formatNumber(outcome.requested)) });
      case "unchanged":
        return toast({ tone: "good", key: decisionToast, text: t.outcome.unchanged });
      case "undone":
        return toast({ tone: "good", key: decisionToast, text: t.outcome.undone(formatNumber(outcome.undone.restored)) });
      case "overtaken":
        return setOvertaken({ entry: outcome.entry, now });
      case "refused":
        return toast({ tone: "bad", text: t.outcome.refused(outcome.error instanceof Error ? outcome.error.message : "") });
    }
  };

  useFeed(deploymentId, (changes) => {
    if (changes.some((change) => String(change.finding?.id ?? "") === id)) void readAgain();
  });

  const decide = (change: Change): void => {
    if (!mayTriage || !row) return;
    if (ignores(change) && row.mayIgnore === "none") return toast({ tone: "bad", text: t.decide.mayNotIgnore });
    decider.current?.decide([row.id], change);
  };
  return {
    issue, row, error, refetch, mayTriage, decide, readAgain, overtaken, setOvertaken,
    undo: () => decider.current?.undo() ?? toast({ tone: "good", text: t.outcome.nothingToUndo }),
    undoChange: (changeId: string) => decider.current?.undoChange(changeId),
  };
}
