import { useQuery } from "@tanstack/react-query";
import { Link, Navigate } from "@tanstack/react-router";
import { ApiError } from "@/api/client";
import { useDeployment } from "@/api/session";
import { Empty, Failure, Loading } from "@/parts/states";
import * as texts from "@/texts";
import { useParsed } from "@/shell/use-parsed";
import { parseSearch } from "./search";
import { pullRequestQuery } from "./calls";
import { pullRequestRoute } from "./routes";
import type { PullRequestSearch } from "./search";
import { PullRequestView } from "./view";

const t = texts.pullRequest;

export default function PullRequest() {
  const search = useParsed(parseSearch, pullRequestRoute.useSearch());
  const { slug = "" } = useDeployment();
  if (!search.project || (search.number === undefined && !search.ref)) {
    return <Navigate to="/$org/scans" params={{ org: slug }} search={{ tab: "pulls", project: search.project }} replace />;
  }
  return <Loaded key={`${search.project} ${search.number ?? search.ref}`} search={search} />;
}

function Loaded({ search }: { search: PullRequestSearch }) {
  const { id = "", slug = "" } = useDeployment();
  const query = useQuery(pullRequestQuery(id, search));
  if (query.isPending) return <Loading />;
  if (query.data === undefined) {
    const missing = query.error instanceof ApiError && query.error.status === 404;
    return missing ? <Empty title={t.notScanned} actions={<Link to="/$org/scans" params={{ org: slug }} search={{ tab: "pulls" }} className="text-accent underline">{t.back}</Link>}>{t.notScannedHint}</Empty> : <Failure error={query.error} retry={() => void query.refetch()} />;
  }
  return <PullRequestView view={query.data} search={search} reload={() => void query.refetch()} />;
}
