import { Link } from "@tanstack/react-router";
import { ExternalLink } from "lucide-react";
import { safeLink } from "@/format";
import { Badge } from "@/parts/badge";
import { When } from "@/parts/when";
import { StatusBadge } from "@/routes/scans/state";
import * as texts from "@/texts";
import type { View } from "./calls";

const t = texts.pullRequest;

/** The latest scan of each tool, which this page is made from. */
export function ScansBehind({ view, org }: { view: View; org: string }) {
  return (
    <section aria-label={t.scans} className="flex flex-col gap-1 text-xs">
      <h3 className="font-semibold text-muted">{t.scans}</h3>
      {view.scans.length === 0 && <p className="text-muted">{t.noScans}</p>}
      <ul className="flex flex-col gap-1">
        {view.scans.map((one) => {
          const job = safeLink(one.ci_job_url);
          return (
            <li key={`${one.id} ${one.tool} ${one.category}`} className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
              <Link to="/$org/scans/$scanId" params={{ org, scanId: String(one.id) }} className="font-medium text-accent hover:underline">
                {[one.tool, one.tool_version].filter(Boolean).join(" ")}
              </Link>
              {one.category && <span className="text-muted wrap-anywhere">{one.category}</span>}
              {one.status === "SCAN_STATUS_COMPLETED" ? (
                <Badge tone={one.blocked ? "bad" : "good"}>{one.blocked ? t.scanBlocked : t.scanPassed}</Badge>
              ) : (
                <StatusBadge status={one.status} />
              )}
              <span className="text-muted"><When at={one.at} /></span>
              {job && (
                <a href={job} target="_blank" rel="noopener noreferrer" className="text-muted hover:text-accent" aria-label={texts.scans.scan.openCi} title={texts.scans.scan.openCi}>
                  <ExternalLink size={13} aria-hidden />
                </a>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
