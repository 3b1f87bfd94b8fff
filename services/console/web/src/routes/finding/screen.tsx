import { Link, useParams } from "@tanstack/react-router";
import { ArrowLeft, ExternalLink } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { useDeployment } from "@/api/session";
import { Badge, SeverityBadge } from "@/parts/badge";
import { Button } from "@/parts/button";
import { CopyButton } from "@/parts/copy";
import { Code } from "@/parts/finding/code";
import { DecisionBar, type DecisionName, decisionNames, decisions, StatusBadge } from "@/parts/finding/decide";
import { History } from "@/parts/finding/history";
import { Identity } from "@/parts/finding/identity";
import type { Issue } from "@/parts/finding/issue";
import { MessageText } from "@/parts/finding/message-text";
import { hasTrace, Trace } from "@/parts/finding/trace";
import { useKeys } from "@/parts/keys";
import { Card, Page } from "@/parts/page";
import { Failure, Loading } from "@/parts/states";
import { safeLink } from "@/format";
import { ChangeList } from "@/routes/triage/changes";
import { NoteDialog, OvertakenDialog } from "@/routes/triage/dialogs";
import { lastSearches } from "@/routes/triage/search";
import * as texts from "@/texts";
import { Exceptions } from "./exceptions";
import { Branches, Facts } from "./facts";
import { Fixes } from "./fixes";
import { IdentityActions } from "./identity-actions";
import { useFinding } from "./use-finding";
import { Verdict } from "./verdict";

const Markdown = lazy(() => import("@/parts/markdown"));
const t = texts.finding;

export default function FindingScreen() {
  const deployment = useDeployment();
  const { issueId = "" } = useParams({ strict: false });
  const finding = useFinding(deployment.id ?? "", issueId);
  const { issue, row, error } = finding;
  const [noting, setNoting] = useState(false);
  const code = safeLink(issue?.lineOfCodeUrl);
  useKeys(t.title, [
    ...(finding.mayTriage
      ? [
          ...decisionNames.flatMap((name: DecisionName) => {
            const { key } = decisions[name] as { key?: string };
            return key ? [{ key, text: texts.triage.decide[name], run: () => finding.decide(decisions[name].change) }] : [];
          }),
          { key: "n", text: texts.triage.decide.note, run: () => setNoting(true) },
          { key: "z", text: texts.triage.keys.undo, run: finding.undo },
        ]
      : []),
    { key: "o", text: texts.triage.openCode, run: () => code && window.open(code, "_blank", "noopener,noreferrer") },
  ]);
  if (error) return <Failure error={error} retry={() => void finding.refetch()} />;
  if (!issue || !row) return <Loading label={texts.triage.loadingFinding} />;
  return (
    <Page
      title={row.rule}
      actions={
        <>
          <Link to="/$org/triage" params={{ org: deployment.slug ?? "" }} search={lastSearches.get(deployment.id ?? "") ?? {}} className="inline-flex min-h-8 items-center gap-1.5 rounded-md px-2 text-[0.8125rem] text-muted hover:bg-sunken hover:text-ink">
            <ArrowLeft size={15} aria-hidden />{texts.triage.title}
          </Link>
          <CopyButton text={window.location.href} label={t.permalink} />
          {code && (
            <a href={code} target="_blank" rel="noopener noreferrer" className="inline-flex min-h-8 items-center gap-1.5 rounded-md border border-line-strong/50 bg-raised px-3 text-[0.8125rem] font-medium hover:bg-sunken">
              <ExternalLink size={14} aria-hidden />{texts.triage.openCode}
            </a>
          )}
        </>
      }
      intro={
        <div className="flex flex-wrap items-center gap-2">
          <SeverityBadge severity={row.severity} />
          <StatusBadge row={row} />
          {issue.isBlocking && <Badge tone="bad">{t.blocks}</Badge>}
          <span className="text-[0.8125rem]">{row.project} · {row.ref.replace(/^refs\/heads\//, "")} · #{row.id}</span>
        </div>
      }
    >
      <div className="mb-4"><DecisionBar row={row} may={finding.mayTriage} onDecide={finding.decide} onNote={() => setNoting(true)} /></div>
      <div className="grid gap-4 lg:grid-cols-[minmax(0,1fr)_22rem]">
        <div className="flex min-w-0 flex-col gap-4">
          <Where issue={issue} />
          {hasTrace(issue) && <Card title={t.trace.title}><Trace issue={issue} /></Card>}
          <Related issue={issue} />
          <Fixes issue={issue} />
          <RuleHelp issue={issue} />
          <Card title={t.identity.title} actions={<IdentityActions id={row.id} may={finding.mayTriage} onDone={() => void finding.readAgain()} />}><Identity id={row.id} /></Card>
        </div>
        <div className="flex min-w-0 flex-col gap-4">
          <Card title={t.comments.title} actions={finding.mayTriage && <Button look="quiet" className="min-h-7" onClick={() => setNoting(true)}>{t.comments.add}</Button>}><Notes issue={issue} /></Card>
          <Exceptions id={row.id} onDone={() => void finding.readAgain()} />
          <Verdict issue={issue} may={finding.mayTriage} onDone={() => void finding.readAgain()} />
          <Card title={t.facts}><Facts issue={issue} /></Card>
          <Card title={t.branches}><Branches issue={issue} /></Card>
          <Card title={t.history.title}><History issue={issue} /></Card>
          <Card title={texts.triage.changes.title}><ChangeList findingId={row.id} onUndo={finding.undoChange} /></Card>
        </div>
      </div>
      {noting && (
        <NoteDialog
          initial={row.decision.note}
          onClose={() => setNoting(false)}
          onSave={(note) => {
            setNoting(false);
            finding.decide({ note });
          }}
        />
      )}
      {finding.overtaken && (
        <OvertakenDialog
          overtaken={finding.overtaken}
          onKeep={() => finding.setOvertaken(undefined)}
          onOverwrite={() => {
            const change = finding.overtaken?.entry.change;
            finding.setOvertaken(undefined);
            if (change) finding.decide(change);
          }}
        />
      )}
    </Page>
  );
}

function Where({ issue }: { issue: Issue }) {
  const secret = issue.issueType === "ISSUE_TYPE_SECRETS";
  return (
    <Card title={issue.filePath ? `${issue.filePath}${issue.line ? `:${issue.line}` : ""}` : t.location}>
      <MessageText key={issue.id} text={issue.message} className="mb-3" />
      {issue.codeSnippet ? <Code code={issue.codeSnippet} path={issue.filePath} place={issue} /> : <p className="text-muted">{secret ? t.code.secret : t.code.none}</p>}
      {issue.context?.suppression && (
        <p className="mt-3 text-[0.8125rem] text-muted">
          {t.suppression}{issue.context.suppression.author && ` ${t.suppressedBy(issue.context.suppression.author)}`}: {issue.context.suppression.justification || issue.context.suppression.kind}
        </p>
      )}
    </Card>
  );
}

function Related({ issue }: { issue: Issue }) {
  const places = issue.context?.relatedLocations ?? [];
  if (places.length === 0) return null;
  return (
    <Card title={t.related}>
      <ul className="flex flex-col gap-1 text-[0.8125rem]">
        {places.slice(0, 100).map((place, i) => (
          <li key={i} className="flex flex-wrap gap-x-3">
            <span className="font-mono text-xs wrap-anywhere">{place.path ? `${place.path}:${place.line}` : place.logicalLocation}</span>
            <span className="text-muted wrap-anywhere">{place.message}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function RuleHelp({ issue }: { issue: Issue }) {
  const help = issue.context?.ruleHelp || issue.ruleExplanation?.explanation || "";
  const links = [issue.ruleUrl, ...issue.ruleReferences].flatMap((url) => safeLink(url) ?? []);
  if (!help && links.length === 0) return null;
  return (
    <Card title={t.ruleHelp}>
      <Suspense fallback={<Loading />}><Markdown text={help} /></Suspense>
      {links.length > 0 && (
        <ul className="mt-2 flex flex-col gap-0.5 text-xs" aria-label={t.ruleLinks}>
          {[...new Set(links)].slice(0, 20).map((url) => (
            <li key={url}><a href={url} target="_blank" rel="noopener noreferrer" className="text-accent underline wrap-anywhere">{url}</a></li>
          ))}
        </ul>
      )}
    </Card>
  );
}

/** Notes of people, from the history: newest first. */
function Notes({ issue }: { issue: Issue }) {
  const notes = issue.activityHistory.filter((event) => event.note && event.actor);
  if (notes.length === 0) return <p className="text-muted">{t.history.noNotes}</p>;
  return <History issue={{ ...issue, activityHistory: notes }} />;
}
