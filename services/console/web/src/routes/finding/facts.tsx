import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useDeployment } from "@/api/session";
import { Badge } from "@/parts/badge";
import type { Issue } from "@/parts/finding/issue";
import { When } from "@/parts/when";
import { formatPercent, safeLink } from "@/format";
import { word } from "@/routes/triage/rows";
import * as texts from "@/texts";

const t = texts.finding;

const shortRef = (ref: string): string => ref.replace(/^refs\/heads\//, "");
const spoken = (text: string): string => text.replaceAll("_", " ");

function Outside({ url, children }: { url: string | undefined; children: ReactNode }) {
  const safe = safeLink(url);
  return safe ? <a href={safe} target="_blank" rel="noopener noreferrer" className="text-accent underline">{children}</a> : children;
}

/** What is known about a finding, as a list of names and values. What is not known is left out. */
export function Facts({ issue }: { issue: Issue }) {
  const sca = issue.scaAttributes;
  const found = sca?.foundDependency;
  const facts: Array<[string, ReactNode]> = [
    [t.rule, issue.rulePath],
    [t.logical, issue.logicalLocation],
    [t.package, found && `${found.package} ${found.version}`],
    [t.fixedIn, sca?.fixRecommendations.map((fix) => fix.version).join(", ")],
    [t.advisory, sca?.vulnDatabaseIdentifier],
    [t.exploited, sca?.knownExploit && <When at={sca.knownExploit.listedAt} />],
    [t.epss, sca?.epssScore && formatPercent(sca.epssScore.score)],
    [t.reachability, sca?.reachability && spoken(word(sca.reachability, "REACHABILITY_"))],
    [t.validity, issue.secretsAttributes?.validationState && spoken(word(issue.secretsAttributes.validationState, "VALIDATION_STATE_"))],
    [t.cwe, issue.ruleCweNames.join(", ")],
    [t.owasp, issue.ruleOwaspNames.join(", ")],
    [t.confidence, issue.confidence && spoken(word(issue.confidence, "CONFIDENCE_"))],
    [t.policy, issue.policySlug],
    [t.since, <When key="since" at={issue.relevantSince} />],
    [t.firstSeen, <When key="first" at={issue.firstDetectedAt ?? issue.createdAt} />],
    [t.lastSeen, issue.lastSeenScan && t.scan(String(issue.lastSeenScan.id))],
    [t.commit, safeLink(issue.commitUrl) && <Outside url={issue.commitUrl}>{issue.commitUrl.split("/").at(-1)?.slice(0, 12)}</Outside>],
    [t.ticket, issue.externalTicket && <Outside url={issue.externalTicket.url}>{issue.externalTicket.externalSlug}</Outside>],
    [t.fixPr, safeLink(issue.clickToFixPrUrl) && <Outside url={issue.clickToFixPrUrl}>{issue.clickToFixPrId ? t.pullRequest(issue.clickToFixPrId) : issue.clickToFixPrUrl}</Outside>],
  ];
  return (
    <dl className="grid grid-cols-[7.5rem_1fr] gap-x-3 gap-y-1.5 text-[0.8125rem]">
      {facts.filter(([, value]) => value).map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="min-w-0 wrap-anywhere">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The same finding on other branches. */
export function Branches({ issue }: { issue: Issue }) {
  const org = useDeployment().slug ?? "";
  if (issue.relatedIssues.length === 0) return <p className="text-muted">{t.oneBranch}</p>;
  return (
    <ul className="flex flex-col gap-1.5 text-[0.8125rem]">
      {issue.relatedIssues.slice(0, 100).map((one) => {
        const status = word(one.aggregateState, "AGGREGATE_ISSUE_STATE_");
        return (
          <li key={one.id} className="flex items-center gap-2">
            <Link to="/$org/findings/$issueId" params={{ org, issueId: String(one.id) }} className="truncate text-accent underline">
              {one.pullRequestId ? t.pullRequest(one.pullRequestId) : shortRef(one.ref)}
            </Link>
            <span className="ml-auto"><Badge>{(texts.triage.status as Record<string, string>)[status] ?? status}</Badge></span>
          </li>
        );
      })}
    </ul>
  );
}
