import { Page } from "@/parts/page";
import * as texts from "@/texts";
import { SlackCard } from "./slack-card";

/** What Palisade is connected with. */
export default function Integrations() {
  const words = texts.integrations;
  return (
    <Page title={words.title} intro={words.intro}>
      <SlackCard />
    </Page>
  );
}
