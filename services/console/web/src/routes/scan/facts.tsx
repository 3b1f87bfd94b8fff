import { Link } from "@tanstack/react-router";
import { ExternalLink } from "lucide-react";
import type { ReactNode } from "react";
import { formatDateTime, formatNumber, safeLink } from "@/format";
import { CopyButton } from "@/parts/copy";
import { formatSeconds } from "@/parts/duration";
import { Card } from "@/parts/page";
import { Ref } from "@/parts/ref";
import * as texts from "@/texts";
import type { Details } from "./screen";

const t = texts.scans.scan;

/** Where a scan comes from. Facts that nobody sent are left out. */
export function Facts({ scan, org }: { scan: Details; org: string }) {
  const meta = scan.meta;
  const job = safeLink(meta.ci_job_url);
  const facts: Array<[string, ReactNode]> = [
    [t.project, <Link key="project" to="/$org/projects" params={{ org }} search={{ id: String(scan.project_id) }} className="font-medium text-accent wrap-anywhere hover:underline">{scan.project}</Link>],
    [t.ref, <Ref key="ref" name={scan.ref} />],
    [t.pullRequest, scan.pull_request > 0 && <PullRequestLink key="pull" scan={scan} org={org} />],
    [t.commit, scan.commit && <Commit key="commit" commit={scan.commit} title={meta.commit_title ?? ""} />],
    [t.author, meta.commit_author_name || meta.commit_author_username],
    [t.started, formatDateTime(scan.started_at)],
    [t.duration, scan.completed_at && formatSeconds(scan.total_time)],
    [t.exitCode, !scan.is_upload && formatNumber(scan.exit_code)],
    [t.event, meta.on],
    [t.format, scan.answer?.format],
    [t.ciJob, job && (
      <a key="job" href={job} target="_blank" rel="noopener noreferrer" className="inline-flex items-center gap-1 text-accent hover:underline">
        {t.openCi} <ExternalLink size={13} aria-hidden />
      </a>
    )],
  ];
  return (
    <Card title={t.facts}>
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1.5 lg:grid-cols-[auto_minmax(0,1fr)_auto_minmax(0,1fr)]">
        {facts.filter(([, value]) => value).map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="min-w-0">{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

function PullRequestLink({ scan, org }: { scan: Details; org: string }) {
  return (
    <Link to="/$org/pull-requests" params={{ org }} search={{ project: scan.project, number: scan.pull_request }} className="text-accent hover:underline">
      #{scan.pull_request} {scan.meta.pull_request_title || t.openPull}
    </Link>
  );
}

function Commit({ commit, title }: { commit: string; title: string }) {
  return (
    <span className="flex min-w-0 items-center gap-1">
      <code className="font-mono text-xs" title={commit}>{commit.slice(0, 12)}</code>
      <span className="-my-1.5"><CopyButton text={commit} /></span>
      <span className="truncate text-muted">{title.split("\n", 1)[0]}</span>
    </span>
  );
}
