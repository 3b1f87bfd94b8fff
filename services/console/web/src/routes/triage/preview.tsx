import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ArrowLeft, ExternalLink, Maximize2 } from "lucide-react";
import { lazy, Suspense } from "react";
import { useDeployment } from "@/api/session";
import { Badge, SeverityBadge } from "@/parts/badge";
import { IconButton } from "@/parts/button";
import { Code } from "@/parts/finding/code";
import { DecisionBar, StatusBadge } from "@/parts/finding/decide";
import { History } from "@/parts/finding/history";
import { Identity } from "@/parts/finding/identity";
import type { Issue } from "@/parts/finding/issue";
import { MessageText } from "@/parts/finding/message-text";
import { Part } from "@/parts/finding/part";
import { hasTrace, Trace } from "@/parts/finding/trace";
import { Failure, Loading } from "@/parts/states";
import { safeLink } from "@/format";
import * as texts from "@/texts";
import { issueQuery } from "./calls";
import type { Change } from "./decider";
import type { Row } from "./rows";

const Markdown = lazy(() => import("@/parts/markdown"));
const t = texts.triage;
const f = texts.finding;

/** The finding beside the list. What the list knows shows at once; the rest when it has been read. */
export function Preview({ row, may, selected = 0, by, onDecide, onNote, onBack }: {
  row: Row;
  may: boolean;
  /** How many findings of the list are selected. */
  selected?: number;
  by?: string;
  onDecide: (change: Change) => void;
  onNote: () => void;
  onBack: () => void;
}) {
  const deployment = useDeployment();
  const { data, error, refetch } = useQuery(issueQuery(deployment.id ?? "", row.id));
  const code = safeLink(data?.lineOfCodeUrl);
  return (
    <section aria-label={t.preview} className="flex h-full min-h-0 min-w-0 flex-col bg-surface">
      <header className="flex flex-col gap-2 border-b border-line px-4 py-3">
        <div className="flex items-start gap-2">
          <span className="md:hidden"><IconButton label={t.back} onClick={onBack}><ArrowLeft size={17} aria-hidden /></IconButton></span>
          <div className="min-w-0 grow">
            <div className="flex flex-wrap items-center gap-2">
              <SeverityBadge severity={row.severity} />
              <StatusBadge row={row} />
              {data?.isBlocking && <Badge tone="bad">{f.blocks}</Badge>}
              {by && <span className="text-xs text-accent">{t.decidedBy(by)}</span>}
            </div>
            <h2 title={row.rule} className="mt-1 line-clamp-3 text-[0.9375rem] font-semibold wrap-anywhere">{row.rule}</h2>
            <p className="truncate text-xs text-muted">{[row.project, row.ref.replace(/^refs\/heads\//, "")].filter(Boolean).join(" · ")}</p>
          </div>
          {code && (
            <a href={code} target="_blank" rel="noopener noreferrer" className="inline-flex size-8 shrink-0 items-center justify-center rounded-md text-muted hover:bg-sunken hover:text-ink" aria-label={t.openCode} title={`${t.openCode} (o)`}>
              <ExternalLink size={16} aria-hidden />
            </a>
          )}
          <Link
            to="/$org/findings/$issueId"
            params={{ org: deployment.slug ?? "", issueId: row.id }}
            className="inline-flex size-8 shrink-0 items-center justify-center rounded-md text-muted hover:bg-sunken hover:text-ink"
            aria-label={t.openPage}
            title={`${t.openPage} (Enter)`}
          >
            <Maximize2 size={15} aria-hidden />
          </Link>
        </div>
        <DecisionBar row={row} may={may} selected={selected} onDecide={onDecide} onNote={onNote} />
      </header>
      <div className="min-h-0 grow overflow-y-auto px-4 pb-8" tabIndex={0} role="region" aria-label={f.title}>
        {error ? <Failure error={error} retry={() => void refetch()} /> : data ? <Details issue={data} id={row.id} /> : <><Message text={row.message} /><Loading label={t.loadingFinding} /></>}
      </div>
    </section>
  );
}

const Message = ({ text }: { text: string }) => <MessageText text={text} className="py-3 text-[0.8125rem]" />;

function Details({ issue, id }: { issue: Issue; id: string }) {
  const secret = issue.issueType === "ISSUE_TYPE_SECRETS";
  const help = issue.context?.ruleHelp || issue.ruleExplanation?.explanation || "";
  return (
    <>
      <Message text={issue.message} />
      <p className="mb-1.5 font-mono text-xs wrap-anywhere text-muted">
        {issue.filePath ? `${issue.filePath}${issue.line ? `:${issue.line}` : ""}` : f.noFile}
        {issue.logicalLocation && <span className="font-sans"> · {f.logical} {issue.logicalLocation}</span>}
      </p>
      {issue.codeSnippet ? (
        <Code code={issue.codeSnippet} path={issue.filePath} place={issue} />
      ) : (
        <p className="rounded-md border border-dashed border-line px-3 py-2 text-xs text-muted">{secret ? f.code.secret : f.code.none}</p>
      )}
      {issue.note && <blockquote className="mt-3 border-l-2 border-accent pl-3 text-[0.8125rem] whitespace-pre-wrap wrap-anywhere">{issue.note}</blockquote>}
      {hasTrace(issue) && <Part title={f.trace.title} open><Trace issue={issue} /></Part>}
      {help && <Part title={f.ruleHelp} open={help.length < 1_500}><Suspense fallback={<Loading />}><Markdown text={help} /></Suspense></Part>}
      <Part title={f.history.title} open><History issue={issue} limit={8} /></Part>
      <Part title={f.identity.title}><Identity id={id} short /></Part>
    </>
  );
}
