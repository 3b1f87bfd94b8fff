import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { SeverityBadge } from "@/parts/badge";
import { More } from "@/parts/more";
import { Failure, Loading } from "@/parts/states";
import * as texts from "@/texts";
import { heldFindingsQuery } from "./calls";

const t = texts.scans.held;

/** The findings whose closes are held, with the reason of each close. */
export function HeldFindings({ org, id }: { org: string; id: string }) {
  const query = useInfiniteQuery(heldFindingsQuery(org, id));
  if (query.isError) return <Failure error={query.error} retry={() => void query.refetch()} />;
  if (query.isPending) return <Loading />;
  return (
    <div className="border-t border-line">
      <ul aria-label={t.findings} className="max-h-96 divide-y divide-line overflow-y-auto text-[0.8125rem]" tabIndex={0}>
        {query.data.pages.flatMap((page) => page.findings).map((one) => (
          <li key={one.id} className="flex flex-wrap items-baseline gap-x-3 gap-y-0.5 px-3 py-1.5">
            <SeverityBadge severity={one.severity} />
            <Link to="/$org/findings/$issueId" params={{ org, issueId: String(one.id) }} className="font-medium wrap-anywhere hover:text-accent hover:underline">
              {one.rule_name}
            </Link>
            <span className="font-mono text-xs text-muted wrap-anywhere">{one.path}{one.line > 0 && `:${one.line}`}</span>
            <span className="ml-auto text-xs text-muted text-pretty max-md:ml-0">{one.reason}</span>
          </li>
        ))}
      </ul>
      <More query={query} label={t.more} />
    </div>
  );
}
