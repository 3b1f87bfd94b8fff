import { Link } from "@tanstack/react-router";
import { useDeployment } from "@/api/session";
import { Badge, type Tone } from "@/parts/badge";
import { joinList } from "@/routes/triage/search";
import { formatNumber } from "@/format";
import * as texts from "@/texts";
import type { Repository } from "./data";

const words = texts.projects;

type State = keyof typeof words.freshness;

const tones: Record<State, Tone> = { ok: "good", late: "warn", silent: "bad", shrunk: "bad", failing: "bad", unknown: "info" };

/** Whether the results of a project are up to date, in a word. */
export function Freshness({ state }: { state?: string }) {
  const known = state && Object.hasOwn(words.freshness, state) ? (state as State) : "unknown";
  return <Badge tone={tones[known]}>{words.freshness[known]}</Badge>;
}

const severities = ["critical", "high", "medium", "low"] as const;

/** The conditions of triage that list what a project counts: its primary branch, or all branches while none is known. */
export const openFindings = ({ name, primaryRef, isArchived }: Repository) =>
  ({ project: joinList([name]), ...(!primaryRef?.ref && { everywhere: true as const }), ...(isArchived && { archived: true as const }) });

/** The open findings by severity, each number with a link to its findings; a project without any says so. */
export function Counts({ repository }: { repository: Repository }) {
  const { slug: org = "" } = useDeployment();
  const { findings } = repository;
  const some = severities.filter((one) => Number(findings?.[one] ?? 0) > 0);
  if (some.length === 0) return <span className="text-muted">{words.detail.noFindings}</span>;
  return (
    <span className="inline-flex flex-wrap gap-1 in-[td]:max-md:justify-end">
      {some.map((one) => (
        <Link key={one} to="/$org/triage" params={{ org }} search={{ ...openFindings(repository), severity: one }} title={words.detail.showSeverity(texts.words.severity[one])} className="rounded hover:underline">
          <Badge tone={one}>
            <span className="tabular-nums">{formatNumber(Number(findings?.[one]))}</span>&nbsp;{texts.words.severity[one]}
          </Badge>
        </Link>
      ))}
    </span>
  );
}

/** A branch without the start that all branches have. */
export const shortRef = (ref: string | undefined): string => ref?.replace(/^refs\/heads\//, "") ?? "";

export const hostName = (type: string | undefined): string => words.hosts[type ?? ""] ?? "";
