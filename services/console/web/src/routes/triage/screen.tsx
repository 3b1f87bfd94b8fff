import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { CheckCheck, History, RefreshCw, X } from "lucide-react";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { safeLink, formatNumber } from "@/format";
import { useDeployment } from "@/api/session";
import { Button, IconButton } from "@/parts/button";
import { cx } from "@/parts/cx";
import { Page } from "@/parts/page";
import { Failure, Loading } from "@/parts/states";
import { useToast } from "@/parts/toast";
import * as texts from "@/texts";
import { useParsed } from "@/shell/use-parsed";
import { issueQuery, viewsQuery } from "./calls";
import { Changes } from "./changes";
import { NoteDialog, OvertakenDialog } from "./dialogs";
import { NoFindings } from "./empty";
import { AddFilter, Filters } from "./filters";
import { List } from "./list";
import { GoTo, Options } from "./options";
import { Preview } from "./preview";
import { triageRoute } from "./routes";
import { SearchBox } from "./search-box";
import { clean, fromView, lastSearches, type Search, parseSearch } from "./search";
import { StateTabs } from "./tabs";
import { useTriageKeys } from "./use-keys";
import { isWide } from "./use-named";
import { useSelection } from "./use-selection";
import { useTriage } from "./use-triage";
import { defaultView, Views } from "./views";

// What few visits need loads when it is opened.
const Bulk = lazy(() => import("./bulk"));
const Groups = lazy(() => import("./groups"));
const t = texts.triage;

type Open = "bulk" | "changes" | "note" | undefined;

export default function TriageScreen() {
  const deployment = useDeployment();
  const { finding: named, ...search } = useParsed(parseSearch, triageRoute.useSearch());
  const navigate = useNavigate();
  const queryClient = useQueryClient();
  const toast = useToast();
  const [open, setOpen] = useState<Open>();
  const searchInput = useRef<HTMLInputElement>(null);
  const goTo = (next: Search, replace = false) => navigate({ to: "/$org/triage", params: { org: deployment.slug ?? "" }, search: next, replace });
  const set = (next: Search) => void goTo(next);
  const name = (finding: string | undefined, push = false) => (search.group ? undefined : goTo({ ...search, finding }, !push));
  useDefaultView(search, named, (next) => void goTo(next, true));

  const id = deployment.id ?? "";
  const triage = useTriage(id, search, named, (finding, push) => void name(finding, push));
  const { pages, active, selected, row } = triage;
  const selection = useSelection(triage);
  useEffect(() => void lastSearches.set(id, clean({ ...search, finding: named })));
  // On narrow screens the finding of the address covers the list.
  const shown = named !== undefined;
  const close = () => triage.nameInAddress(undefined, true);

  useEffect(() => {
    for (const index of [active + 1, active + 2]) {
      const next = pages.row(index);
      if (next) void queryClient.prefetchQuery(issueQuery(id, next.id));
    }
  }, [active, pages, id, queryClient]);

  const openCode = async () => {
    if (!row) return;
    const url = safeLink((await queryClient.ensureQueryData(issueQuery(id, row.id))).lineOfCodeUrl);
    if (url) window.open(url, "_blank", "noopener,noreferrer");
    else toast({ tone: "bad", text: t.noCodeLink });
  };
  const openPage = async () => {
    if (!row) return;
    if (named !== row.id) await name(row.id); // the way back leads to it
    void navigate({ to: "/$org/findings/$issueId", params: { org: deployment.slug ?? "", issueId: row.id } });
  };
  useTriageKeys({
    triage,
    openCode: () => void openCode(),
    openPage: () => void openPage(),
    search: () => searchInput.current?.focus(),
    note: () => triage.mayTriage && (row || selected.size > 0) && setOpen("note"),
    bulk: () => triage.mayTriage && pages.length > 0 && setOpen("bulk"),
    changes: () => setOpen("changes"),
    toggle: () => selection.toggle(active, false),
    range: (by) => selection.extend(by),
    escape: () => (selected.size ? triage.setSelected(new Map()) : !isWide() && close()),
  });

  return (
    <Page
      title={t.title}
      bare
      actions={
        <>
          <SearchBox search={search} set={set} inputRef={searchInput} />
          <Button look="quiet" className="px-2" aria-label={t.changes.title} onClick={() => setOpen("changes")}><History size={15} aria-hidden /><span className="max-md:hidden">{t.changes.title}</span></Button>
        </>
      }
    >
      <div className={cx("flex flex-col gap-2 border-b border-line px-4 pb-2", shown && "max-md:hidden")}>
        <div className="flex flex-wrap items-center gap-2 max-md:gap-1">
          <Views search={search} set={set} />
          <div className="min-w-0 max-md:order-last max-md:w-full"><StateTabs search={search} set={set} /></div>
          <div className="ml-auto flex items-center gap-1"><AddFilter search={search} set={set} /><Options search={search} set={set} /></div>
        </div>
        <Filters search={search} set={set} />
      </div>
      {search.group ? (
        <Suspense fallback={<Loading />}><Groups search={search} by={search.group} set={set} /></Suspense>
      ) : pages.isEmpty && !row && !triage.isSought ? (
        <NoFindings search={search} set={set} />
      ) : (
        <div className="flex min-h-0 min-w-0 grow">
          <div className={cx("flex min-h-0 min-w-0 flex-col border-line md:w-[41%] md:min-w-80 md:shrink-0 md:border-r", shown ? "max-md:hidden" : "max-md:w-full")}>
            <ListBar triage={triage} onAll={() => setOpen("bulk")} />
            {pages.error ? <Failure error={pages.error} retry={() => pages.retry()} /> : null}
            {pages.isEmpty ? (
              <NoFindings search={search} set={set} />
            ) : (
              <List
                triage={triage}
                onOpen={(index) => {
                  triage.setActive(index);
                  triage.nameInAddress(pages.row(index)?.id ?? named, true);
                }}
                toggle={selection.toggle}
                extend={selection.extend}
              />
            )}
          </div>
          <div className={cx("min-h-0 min-w-0 flex-1", !shown && "max-md:hidden")}>
            {triage.isSought && <Loading label={t.loadingFinding} />}
            {row && <Preview key={row.id} row={row} may={triage.mayTriage} selected={selected.size} by={triage.nameOf(row.id)} onDecide={triage.decide} onNote={() => setOpen("note")} onBack={close} />}
          </div>
        </div>
      )}
      {open === "bulk" && (
        <Suspense><Bulk
          search={search}
          onClose={() => setOpen(undefined)}
          onDone={(changed, changeId) => {
            setOpen(undefined);
            if (changeId !== "0") triage.made(changeId);
            toast({ tone: "good", text: t.bulk.done(formatNumber(changed)), ...(changeId !== "0" && { action: { label: texts.shell.actions.undo, run: () => triage.undoChange(changeId) } }) });
            triage.reload();
          }}
        /></Suspense>
      )}
      {open === "changes" && <Changes onUndo={triage.undoChange} onClose={() => setOpen(undefined)} />}
      {open === "note" && (
        <NoteDialog
          initial={selected.size === 0 ? (row?.decision.note ?? "") : ""}
          onClose={() => setOpen(undefined)}
          onSave={(note) => {
            setOpen(undefined);
            triage.decide({ note });
          }}
        />
      )}
      {triage.overtaken && (
        <OvertakenDialog
          overtaken={triage.overtaken}
          onKeep={() => triage.setOvertaken(undefined)}
          onOverwrite={() => {
            if (triage.overtaken) triage.decideAnyway(triage.overtaken);
            triage.setOvertaken(undefined);
          }}
        />
      )}
    </Page>
  );
}

/** Opens the default view if the address says nothing, once. */
function useDefaultView(search: Search, named: string | undefined, set: (search: Search) => void) {
  const deploymentId = useDeployment().id ?? "";
  const { data: views } = useQuery(viewsQuery(deploymentId));
  const done = useRef(named !== undefined);
  useEffect(() => {
    if (!views || done.current) return;
    done.current = true;
    const view = defaultView(views);
    if (view && Object.keys(search).length === 0) set(fromView(String(view.id), view.view));
  }, [views]); // eslint-disable-line react-hooks/exhaustive-deps -- only when the screen is opened
}

/** The number of findings, what is selected, and what has changed meanwhile. */
function ListBar({ triage, onAll }: { triage: ReturnType<typeof useTriage>; onAll: () => void }) {
  const { pages, selected, live, stale, mayTriage, active } = triage;
  return (
    <div className="flex min-h-9 items-center gap-2 border-b border-line bg-surface px-3 text-xs text-muted">
      {selected.size > 0 ? (
        <>
          <span className="font-medium text-ink tabular-nums" role="status">{t.selection.count(formatNumber(selected.size))}</span>
          <IconButton label={t.selection.clear} className="size-6" onClick={() => triage.setSelected(new Map())}><X size={13} aria-hidden /></IconButton>
        </>
      ) : (
        <GoTo total={pages.length} onGo={triage.setActive}><span className="text-ink">{active < 0 ? "–" : formatNumber(Math.min(active + 1, pages.length))}</span> / {t.count(formatNumber(pages.length))}</GoTo>
      )}
      {!live && <span className="truncate text-warn">{t.paused}</span>}
      <span className="ml-auto flex min-w-0 items-center gap-1">
        {stale && <span className="min-w-0 truncate text-accent" role="status">{t.newFindings(formatNumber(Number(triage.facets?.total ?? 0)))}</span>}
        {mayTriage && <Button look="quiet" className="min-h-7 shrink-0 px-2 text-xs whitespace-nowrap" onClick={onAll}><CheckCheck size={14} aria-hidden />{t.keys.allShort}</Button>}
        <IconButton label={`${t.reload} (.)`} className="size-7" onClick={triage.reload}><RefreshCw size={14} aria-hidden /></IconButton>
      </span>
    </div>
  );
}
