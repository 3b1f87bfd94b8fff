import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useDeployment } from "@/api/session";
import { formatNumber } from "@/format";
import { Page } from "@/parts/page";
import { tabClass, TabCount, Tabs } from "@/parts/tabs";
import * as texts from "@/texts";
import { useParsed } from "@/shell/use-parsed";
import { heldQuery } from "./calls";
import { FreshnessBoard } from "./freshness";
import { HeldClosesList } from "./held";
import { ScanList } from "./list";
import { PullRequestList } from "./pulls";
import { tabs, parseSearch } from "./search";

const t = texts.scans;

const contents = { freshness: FreshnessBoard, held: HeldClosesList, list: ScanList, pulls: PullRequestList };

export default function Scans() {
  const deployment = useDeployment();
  const search = useParsed(parseSearch, useSearch({ from: "/$org/scans" }));
  const tab = search.tab ?? "freshness";
  const waiting = useInfiniteQuery(heldQuery(deployment.slug ?? "", "pending"));
  const count = waiting.data?.pages.reduce((sum, page) => sum + page.held_closes.length, 0) ?? 0;
  const Content = contents[tab];
  return (
    <Page title={t.title} intro={t.intro}>
      <Tabs label={t.tabs.label}>
        {tabs.map((one) => (
          <li key={one}>
            <Link
              to="/$org/scans"
              params={{ org: deployment.slug ?? "" }}
              search={one === "freshness" ? {} : { tab: one }}
              aria-current={one === tab ? "page" : undefined}
              className={tabClass(one === tab)}
            >
              {t.tabs[one]}
              {one === "held" && count > 0 && <TabCount>{`${formatNumber(count)}${waiting.hasNextPage ? "+" : ""}`}</TabCount>}
            </Link>
          </li>
        ))}
      </Tabs>
      <div className="pt-4">
        <Content />
      </div>
    </Page>
  );
}
