import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, type Schemas, unwrap } from "@/api/client";
import { useDeployment, useMay, userQuery } from "@/api/session";
import { Badge } from "@/parts/badge";
import { Button } from "@/parts/button";
import { Dialog } from "@/parts/dialog";
import { nameOf } from "@/parts/finding/decide";
import { Failure, Loading } from "@/parts/states";
import { When } from "@/parts/when";
import { formatNumber, shortRule } from "@/format";
import * as texts from "@/texts";
import { peopleQuery } from "./calls";
import { placeOf } from "./rows";

const t = texts.triage.changes;

type Change = Schemas["findings.v1.TriageChange"];

/** Earlier decisions, of one finding or of all, each with its undo. */
export function Changes({ findingId, onUndo, onClose }: { findingId?: string; onUndo: (changeId: string) => void; onClose: () => void }) {
  return (
    <Dialog open wide onClose={onClose} title={t.title}>
      <p className="mb-3 text-muted">{t.intro}</p>
      <ChangeList findingId={findingId} onUndo={onUndo} />
    </Dialog>
  );
}

export function ChangeList({ findingId, onUndo }: { findingId?: string; onUndo: (changeId: string) => void }) {
  const { id: deploymentId = "", slug = "" } = useDeployment();
  const mayTriage = useMay("findings:triage");
  const isAdministrator = useMay("settings:manage");
  const { data: me } = useQuery(userQuery);
  const { data: people } = useQuery(peopleQuery(deploymentId));
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ["triage-changes", deploymentId, findingId ?? ""],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      unwrap(api.GET("/api/agent/deployments/{deploymentId}/findings/v2/changes", {
        params: { path: { deploymentId }, query: { limit: 50, ...(pageParam && { cursor: pageParam }), ...(findingId && { findingId: Number(findingId) }) } },
        signal,
      })),
    getNextPageParam: (page) => page.cursor || undefined,
  });
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  const changes = data.pages.flatMap((page) => page.changes);
  if (changes.length === 0) return <p className="py-4 text-center text-muted">{t.none}</p>;
  const isMine = (change: Change): boolean => change.actorKind === "user" && String(change.actorId) === String(me?.id ?? "");
  const who = (change: Change): string => {
    if (isMine(change)) return t.you;
    if (change.actorKind === "user") return people?.get(String(change.actorId)) || t.user(String(change.actorId));
    return change.actorKind === "token" ? t.token(String(change.actorId)) : change.actorName || t.host;
  };
  const what = (change: Change): string => (change.undoesId ? t.undoOf(String(change.undoesId)) : change.triageState ? nameOf({ state: change.triageState, reason: change.triageReason }) : t.note);
  return (
    <>
      <ul className="flex flex-col">
        {changes.map((change) => {
          // On the page of a finding all rows are about that one.
          const about = findingId ? undefined : change.finding;
          const place = about && placeOf({ path: about.filePath, line: about.line, project: about.project });
          return (
            <li key={change.id} className="flex min-h-11 items-center gap-3 border-t border-line py-1.5 first:border-t-0">
              <div className="min-w-0 grow">
                <p className="truncate text-[0.8125rem] font-medium">{about ? t.about(what(change), shortRule(about.ruleName)) : t.what(what(change), formatNumber(change.updatedCount))}</p>
                {about && (
                  <p className="truncate text-xs text-muted" title={place}>
                    <Link to="/$org/findings/$issueId" params={{ org: slug, issueId: about.findingId }} className="hover:text-accent hover:underline">{place}</Link>
                  </p>
                )}
                <p className="truncate text-xs text-muted">
                  {who(change)} · <When at={change.at} /> · {t.number(String(change.id))}
                  {change.note && ` · ${change.note}`}
                </p>
              </div>
              {change.undoneBy ? (
                <Badge>{t.undone}</Badge>
              ) : (
                mayTriage && (isMine(change) || isAdministrator) && <Button onClick={() => onUndo(String(change.id))}>{t.undo}</Button>
              )}
            </li>
          );
        })}
      </ul>
      {hasNextPage && <Button className="mt-2 w-full" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t.more}</Button>}
    </>
  );
}
