import { Link, useNavigate } from "@tanstack/react-router";
import { ExternalLink } from "lucide-react";
import { useDeferredValue, useEffect, useMemo, useRef } from "react";
import { formatNumber } from "@/format";
import { cx } from "@/parts/cx";
import { TextField } from "@/parts/field";
import { Page } from "@/parts/page";
import { Empty, Failure, Loading } from "@/parts/states";
import * as texts from "@/texts";
import { documentPath, useReference } from "./data";
import { type Document, type Entry, groupOf, search as searchEntries } from "./document";
import { Method } from "./method";
import { OperationView } from "./operation";
import { apiRoute, type ReferenceSearch } from "./routes";

const words = texts.reference;

export default function Reference() {
  const reference = useReference();
  return (
    <Page
      title={words.title}
      bare
      actions={<a href={documentPath} target="_blank" rel="noopener noreferrer" className="inline-flex items-center gap-1 text-accent hover:underline">{words.document}<ExternalLink size={13} aria-hidden /></a>}
    >
      {reference.isPending && <Loading />}
      {reference.isError && <Failure error={reference.error} retry={() => void reference.refetch()} />}
      {reference.data && <Browser {...reference.data} />}
    </Page>
  );
}

/** The list of operations beside the one that is chosen. A narrow screen has one of the two. */
function Browser({ document, entries }: { document: Document; entries: Entry[] }) {
  const search = apiRoute.useSearch();
  const navigate = useNavigate({ from: apiRoute.fullPath });
  const found = useMemo(() => searchEntries(entries, search.q ?? ""), [entries, search.q]);
  const chosen = entries.find((entry) => entry.operation.operationId === search.op);
  const set = (change: ReferenceSearch) => void navigate({ search: { ...search, ...change }, replace: true });
  return (
    <div className="grid min-h-0 grow grid-cols-[minmax(0,1fr)] border-t border-line md:grid-cols-[22rem_minmax(0,1fr)]">
      <div className={cx("flex min-h-0 flex-col border-line bg-surface md:border-r", chosen && "max-md:hidden")}>
        <div className="grid gap-1 border-b border-line p-3" role="search">
          <TextField hideLabel type="search" label={words.search} placeholder={words.search} value={search.q ?? ""} onChange={({ target }) => set({ q: target.value || undefined })} />
          <p className="text-xs text-muted tabular-nums" role="status">{words.operations(formatNumber(found.length))}</p>
        </div>
        <List entries={found} search={search} />
      </div>
      <div className={cx("min-h-0 overflow-y-auto", !chosen && "max-md:hidden")} tabIndex={-1}>
        {chosen ? (
          <OperationView key={chosen.operation.operationId} document={document} entry={chosen} onBack={() => set({ op: undefined })} />
        ) : (
          <Empty title={words.choose}>{words.intro}</Empty>
        )}
      </div>
    </div>
  );
}

function List({ entries, search }: { entries: Entry[]; search: ReferenceSearch }) {
  const shown = useDeferredValue(entries);
  const groups = useMemo(() => {
    const byName = new Map<string, Entry[]>();
    for (const entry of shown) byName.set(groupOf(entry), [...(byName.get(groupOf(entry)) ?? []), entry]);
    return byName;
  }, [shown]);
  const current = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    current.current?.scrollIntoView({ block: "nearest" });
  }, []);
  if (shown.length === 0) return <Empty title={words.none}>{words.noneHint}</Empty>;
  return (
    <nav aria-label={words.title} className="min-h-0 grow overflow-y-auto px-2 pb-4">
      {[...groups].map(([group, list]) => (
        <details key={group} open={Boolean(search.q) || list.some(({ operation }) => operation.operationId === search.op)}>
          <summary className="sticky top-0 cursor-pointer bg-surface px-2 py-1.5 text-xs font-semibold text-muted">
            {group} <span className="font-normal tabular-nums">{formatNumber(list.length)}</span>
          </summary>
          <ul>
            {list.map((entry) => {
              const id = entry.operation.operationId;
              return (
                <li key={id}>
                  <Link
                    ref={id === search.op ? current : undefined}
                    from={apiRoute.fullPath}
                    search={{ ...search, op: id }}
                    replace
                    aria-current={id === search.op ? "page" : undefined}
                    className={cx("flex items-baseline gap-2 rounded px-2 py-1", id === search.op ? "bg-accent-soft" : "hover:bg-sunken")}
                  >
                    <Method method={entry.method} />
                    <span className="min-w-0">
                      <span className="block text-[0.8125rem]">{entry.operation.summary ?? id}</span>
                      <span className="block truncate font-mono text-2xs text-muted" title={entry.path}>{entry.path}</span>
                    </span>
                  </Link>
                </li>
              );
            })}
          </ul>
        </details>
      ))}
    </nav>
  );
}
