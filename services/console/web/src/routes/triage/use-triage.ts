import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useMay, userQuery } from "@/api/session";
import { decisionToast, useToast } from "@/parts/toast";
import { formatNumber } from "@/format";
import * as texts from "@/texts";
import { ignores, nameOf } from "@/parts/finding/decide";
import { decisionCalls, facetsQuery, fetchIssues, fetchPage, issueQuery, peopleQuery } from "./calls";
import { type Change, Decider, type Entry, type Outcome, ruleOf } from "./decider";
import { type Changed, useFeed } from "./feed";
import { Pages } from "./pages";
import { type Decision, decisionOf, type Issue, type Row, rowOf, sameDecision } from "./rows";
import type { Search } from "./search";
import type { Name } from "./use-named";
import { useOpened } from "./use-opened";

const t = texts.triage;
/** The API takes so many ids at once. */
export const largestSelection = 3_000;
const countAgainAfter = 1_500;

export interface Overtaken {
  entry: Entry;
  /** The finding as it is now, if the decision was about one. */
  now?: Issue;
}

/** The list, what is selected and open in it, and the decisions about it. `named` is the finding in the address, `name` changes it. */
export function useTriage(deploymentId: string, search: Search, named: string | undefined, name: Name) {
  const queryClient = useQueryClient();
  const toast = useToast();
  const mayTriage = useMay("findings:triage");
  const { data: me } = useQuery(userQuery);
  const [loads, setLoads] = useState(0);
  const [selected, setSelected] = useState<ReadonlyMap<string, Decision>>(new Map());
  const [overtaken, setOvertaken] = useState<Overtaken>();
  const [others, setOthers] = useState<ReadonlyMap<string, string>>(new Map());
  const [stale, setStale] = useState(false);

  const condition = JSON.stringify({ ...search, view: undefined, group: undefined });
  const pages = useMemo(() => new Pages(fetchPage(deploymentId, JSON.parse(condition) as Search)), [deploymentId, condition, loads]);
  useSyncExternalStore(pages.subscribe, pages.snapshot);
  const opened = useOpened(deploymentId, pages, named, name);
  const { index: active, open: setActive, move } = opened;
  const current = useRef({ pages, row: opened.row });
  current.current = { pages, row: opened.row };
  const find = (id: string): Row | undefined => current.current.pages.find(id) ?? (current.current.row?.id === id ? current.current.row : undefined);
  const patch = (id: string, change: (row: Row) => Row): void => {
    current.current.pages.patch(id, change);
    opened.patch(id, change);
  };
  useEffect(() => {
    setSelected(new Map());
    setStale(false);
    pages.look(0, 50);
    return () => pages.close();
  }, [pages]);

  const { data: facets, isPlaceholderData } = useQuery(facetsQuery(deploymentId, search));
  const counted = facets === undefined || isPlaceholderData ? undefined : Number(facets.total);
  const isNewCount = useRef(false);
  const sized = useRef<Pages>(undefined);
  useEffect(() => {
    if (counted === undefined) return;
    if (sized.current !== pages) pages.expect(counted);
    else if (counted > pages.length) {
      // More findings of others wait for the person. After an own undo, the list was read again before the count.
      if (isNewCount.current) setStale(true);
      else pages.expect(counted);
    }
    sized.current = pages;
    isNewCount.current = false;
  }, [counted, pages]);

  const countAgain = useRef<ReturnType<typeof setTimeout>>(undefined);
  const recount = useCallback(() => {
    countAgain.current ??= setTimeout(() => {
      countAgain.current = undefined;
      for (const key of ["issue-counts", "issue-filters", "issue-groups", "triage-changes"]) void queryClient.invalidateQueries({ queryKey: [key] });
    }, countAgainAfter);
  }, [queryClient]);
  useEffect(() => () => clearTimeout(countAgain.current), []);

  const readAgain = useCallback(
    async (ids: string[]): Promise<Issue[]> => {
      const known = ids.filter(find).slice(0, 500);
      const issues = known.length ? await fetchIssues(deploymentId, known) : [];
      for (const issue of issues) {
        const row = rowOf(issue);
        decider.current?.sees(row.id, row.decision);
        if (!decider.current?.isWaiting(row.id)) patch(row.id, () => row);
        void queryClient.invalidateQueries({ queryKey: issueQuery(deploymentId, row.id).queryKey });
      }
      return issues;
    },
    [deploymentId, queryClient],
  );

  const report = useRef<(outcome: Outcome) => void>(undefined);
  report.current = (outcome) => {
    recount();
    for (const id of outcome.entry?.ids.slice(0, 50) ?? []) void queryClient.invalidateQueries({ queryKey: issueQuery(deploymentId, id).queryKey });
    switch (outcome.kind) {
      case "decided": {
        const { entry } = outcome;
        const what = entry.change.state ? nameOf(entry.change) : t.outcome.noted;
        const text = entry.ids.length > 1 ? t.outcome.decidedMany(what, formatNumber(entry.ids.length)) : t.outcome.decided(what, ruleOf(entry));
        toast({ tone: "good", key: decisionToast, text: outcome.updated > entry.ids.length ? `${text} ${t.outcome.spread(formatNumber(outcome.updated))}` : text, action: { label: texts.shell.actions.undo, run: () => decider.current?.undoEntry(entry) } });
        return;
      }
      case "requested":
        return toast({ tone: "good", key: decisionToast, text: t.outcome.requested(formatNumber(outcome.requested)) });
      case "unchanged":
        return toast({ tone: "good", key: decisionToast, text: t.outcome.unchanged });
      case "undone":
        if (!outcome.entry) setLoads((n) => n + 1); // findings may come back that are not in the list
        else if (outcome.undone.kept > 0) void readAgain(outcome.entry.ids);
        return toast({ tone: "good", key: decisionToast, text: [t.outcome.undone(formatNumber(outcome.undone.restored)), outcome.undone.kept > 0 && t.outcome.kept(formatNumber(outcome.undone.kept))].filter(Boolean).join(" ") });
      case "overtaken":
        return void showOvertaken(outcome.entry);
      case "refused":
        return toast({ tone: "bad", text: t.outcome.refused(outcome.error instanceof Error ? outcome.error.message : "") });
    }
  };

  const showOvertaken = async (entry: Entry) => {
    const one = entry.ids.length === 1 ? entry.ids[0] : undefined;
    await readAgain(entry.ids);
    const now = one ? await queryClient.fetchQuery({ ...issueQuery(deploymentId, one), staleTime: 0 }).catch(() => undefined) : undefined;
    const wanted = { state: entry.change.state ?? "FINDING_TRIAGE_STATE_UNTRIAGED", reason: entry.change.reason, note: "" } as Decision;
    if (now && entry.change.state && sameDecision(decisionOf(now), wanted)) return toast({ tone: "good", text: t.overtaken.same });
    if (one) reopen(one, now && rowOf(now));
    setOvertaken({ entry, now });
  };

  const decider = useRef<Decider>(undefined);
  decider.current ??= new Decider(
    decisionCalls(deploymentId),
    { find, patch },
    (outcome) => report.current?.(outcome),
  );

  const { live } = useFeed(deploymentId, (changes) => {
    const touched = new Set<string>();
    for (const change of changes) {
      const id = String(change.finding?.id ?? "");
      if (change.kind === "created" || change.kind === "reopened") isNewCount.current = true;
      if (!find(id) || decider.current?.isWaiting(id)) continue;
      touched.add(id);
      noteOther(id, change);
    }
    recount();
    if (touched.size) void readAgain([...touched]);
  });
  const noteOther = (id: string, { actor_kind: kind, actor_id: actor, actor_name: name }: Changed) => {
    if (kind === "scan" || (kind === "user" && String(actor ?? "") === String(me?.id ?? ""))) return;
    setOthers((all) => new Map([...all, [id, name || `${kind}:${actor ?? ""}`] as const].slice(-200)));
  };

  const decide = (change: Change): void => {
    const { row } = opened;
    const ids = selected.size ? [...selected.keys()] : row ? [row.id] : [];
    if (!mayTriage || ids.length === 0) return;
    if (ignores(change) && ids.some((id) => find(id)?.mayIgnore === "none")) return toast({ tone: "bad", text: t.decide.mayNotIgnore });
    decider.current?.decide(ids, change, new Map(selected));
    setOthers((all) => (ids.some((id) => all.has(id)) ? new Map([...all].filter(([id]) => !ids.includes(id))) : all));
    if (selected.size) setSelected(new Map());
    else if (change.state) move(1);
  };

  /** Opens a finding of an earlier decision. */
  const reopen = (id: string, row: Row | undefined): void => {
    const index = current.current.pages.index(id);
    if (index !== undefined) setActive(index);
    else if (row) opened.show(row);
  };

  const undo = (): void => {
    const entry = decider.current?.undo();
    if (!entry) return toast({ tone: "good", text: t.outcome.nothingToUndo });
    const [id] = entry.ids;
    if (id !== undefined) reopen(id, entry.before.get(id));
  };

  const { data: people } = useQuery(peopleQuery(deploymentId));
  /** Who else has decided about a finding while it was shown. */
  const nameOther = (id: string): string | undefined => {
    const by = others.get(id);
    return by === undefined ? undefined : by.startsWith("user:") ? people?.get(by.slice(5)) || t.somebody : by.includes(":") ? t.somebody : by;
  };

  return {
    nameOf: nameOther,
    pages, active, row: opened.row, isSought: opened.isSought, setActive, move, nameInAddress: opened.write, selected, setSelected, decide, mayTriage, facets, live, stale, others, overtaken, setOvertaken,
    reload: () => setLoads((n) => n + 1),
    undo,
    undoChange: (id: string) => decider.current?.undoChange(id),
    made: (id: string) => decider.current?.made(id),
    decideAnyway: ({ entry }: Overtaken) => decider.current?.decide(entry.ids, entry.change),
  };
}

export type Triage = ReturnType<typeof useTriage>;
