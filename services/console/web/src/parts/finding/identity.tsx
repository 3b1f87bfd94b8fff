import { useQuery } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";
import { useDeployment } from "@/api/session";
import { Failure, Loading } from "@/parts/states";
import { When } from "@/parts/when";
import * as texts from "@/texts";

const t = texts.finding.identity;

type Sight = Schemas["findings.v1.IdentitySight"];

/** The evidence of a finding's identity. */
export function useIdentity(id: string) {
  const deploymentId = useDeployment().id ?? "";
  return useQuery({
    queryKey: ["identity", deploymentId, id],
    staleTime: 30_000,
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/deployments/{deploymentId}/findings/{findingId}/identity", { params: { path: { deploymentId, findingId: id } }, signal })),
  });
}

/** Why scans take their results for this finding. */
export function Identity({ id, short }: { id: string; short?: boolean }) {
  const { data, error, refetch } = useIdentity(id);
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  const evidence = short ? data.evidence.slice(0, 3) : data.evidence;
  return (
    <div className="flex flex-col gap-3 text-[0.8125rem]">
      {data.latest && <SightText sight={data.latest} />}
      {data.identity?.since && <p className="text-muted">{t.since} <When at={data.identity.since} /></p>}
      {evidence.length > 0 && (
        <div>
          <h3 className="mb-1 text-xs font-medium text-muted">{t.evidence}</h3>
          <ol className="flex flex-col gap-1">
            {evidence.map((one, i) => (
              <li key={i} className="grid grid-cols-[9rem_1fr] gap-2">
                <span className="truncate" title={one.rung}>{t.rungs[one.rung] ?? one.rung}</span>
                <span className="min-w-0 text-muted wrap-anywhere">{one.madeOf}</span>
              </li>
            ))}
          </ol>
        </div>
      )}
      {!short && data.earlier.length > 0 && (
        <div>
          <h3 className="mb-1 text-xs font-medium text-muted">{t.earlier}</h3>
          <ol className="flex flex-col gap-2">{data.earlier.map((sight, i) => <li key={i}><SightText sight={sight} /></li>)}</ol>
        </div>
      )}
    </div>
  );
}

function SightText({ sight }: { sight: Sight }) {
  return (
    <div>
      <p className="text-pretty wrap-anywhere">{sight.text}</p>
      <p className="text-xs text-muted">{texts.finding.scan(String(sight.scanId))} · {sight.ref} · <When at={sight.at} /></p>
      {sight.considered.length > 1 && (
        <ul className="mt-1 text-xs text-muted">
          {sight.considered.map((one) => (
            <li key={one.findingId}>{one.refused ? t.refused(String(one.findingId), one.refused) : t.chosen(String(one.findingId))}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
