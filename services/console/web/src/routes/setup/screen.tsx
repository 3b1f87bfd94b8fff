import { Tabs } from "radix-ui";
import { useState } from "react";
import { useMay } from "@/api/session";
import { Page } from "@/parts/page";
import * as texts from "@/texts";
import { Checklist } from "./checklist";
import { useToken } from "./data";
import { Doctor } from "./doctor";
import { SnippetPanel } from "./snippet-panel";
import { ways } from "./snippets";
import { UploadPanel } from "./upload-panel";
import { Watch } from "./watch";

const words = texts.setup;
const tabs = ["upload", ...ways] as const;

export default function Setup() {
  const token = useToken();
  const mayManage = useMay("settings:manage");
  const [tab, setTab] = useState<string>("upload");
  return (
    <Page title={words.title} intro={words.intro}>
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
        <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
          <Tabs.Root value={tab} onValueChange={setTab} className="min-w-0 rounded-lg border border-line bg-surface">
            <Tabs.List aria-label={words.first.ways} className="flex flex-wrap border-b border-line px-2">
              {tabs.map((one) => (
                <Tabs.Trigger
                  key={one}
                  value={one}
                  className="min-h-10 border-b-2 border-transparent px-2 outline-offset-[-2px] md:px-3 text-[0.8125rem] whitespace-nowrap text-muted hover:text-ink data-[state=active]:border-accent data-[state=active]:font-medium data-[state=active]:text-ink"
                >
                  {words.first[one]}
                </Tabs.Trigger>
              ))}
            </Tabs.List>
            <Tabs.Content value="upload" className="p-4"><UploadPanel /></Tabs.Content>
            {ways.map((way) => (
              <Tabs.Content key={way} value={way} className="p-4"><SnippetPanel way={way} token={token} mayMake={mayManage} /></Tabs.Content>
            ))}
          </Tabs.Root>
          {token.data && <Watch since={token.data.madeAt} />}
          {mayManage && <Doctor />}
        </div>
        <Checklist />
      </div>
    </Page>
  );
}
