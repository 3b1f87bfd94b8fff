import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { PartyPopper } from "lucide-react";
import { useDeployment, useMay } from "@/api/session";
import { Button } from "@/parts/button";
import { Empty } from "@/parts/states";
import { formatNumber } from "@/format";
import * as texts from "@/texts";
import { countsQuery } from "./calls";
import { clean, isFiltered, onlyPrimary, type Search, statesOf } from "./search";

const t = texts.triage.empty;

/** Why the list is empty: nothing matches, everything is done, or nothing was uploaded yet. */
export function NoFindings({ search, set }: { search: Search; set: (search: Search) => void }) {
  const deployment = useDeployment();
  const mayUpload = useMay("scans:upload");
  const { data } = useQuery(countsQuery(deployment.id ?? "", { everywhere: true }));
  const known = data && [data.open, data.ignored, data.closed, data.reviewing, data.fixing, data.provisionallyIgnored].some((count) => Number(count) > 0);
  const all = (
    <>
      <Button onClick={() => set({ ...search, state: "any" })}>{t.all}</Button>
      {onlyPrimary(search) && <Button onClick={() => set(clean({ ...search, everywhere: true }))}>{t.everywhere}</Button>}
    </>
  );
  if (isFiltered(search)) {
    return <Empty title={t.filteredTitle} actions={<><Button look="primary" onClick={() => set({ state: search.state })}>{t.clear}</Button>{all}</>}>{t.filteredHint}</Empty>;
  }
  if (known === false) {
    return (
      <Empty title={t.none} actions={mayUpload && <Link to="/$org/setup" params={{ org: deployment.slug ?? "" }} className="text-accent underline">{t.setup}</Link>}>
        {mayUpload ? t.noneHint : t.noneReader}
      </Empty>
    );
  }
  // The list may have primary branches only. A project whose pull requests alone are scanned has none.
  const elsewhere = onlyPrimary(search) && statesOf(search).join() === "open" ? Number(data?.open ?? 0) : 0;
  if (elsewhere > 0) {
    return (
      <Empty title={t.onPrimary} actions={<Button look="primary" onClick={() => set(clean({ ...search, everywhere: true }))}>{t.everywhere}</Button>}>
        {t.elsewhere(formatNumber(elsewhere))}
      </Empty>
    );
  }
  return <Empty icon={<PartyPopper size={28} />} title={t.title} actions={all}>{t.hint}</Empty>;
}
