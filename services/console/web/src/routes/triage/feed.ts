import { useEffect, useRef, useState } from "react";
import { basePath } from "@/api/base";
import type { Schemas } from "@/api/client";

export type Changed = Schemas["findings.v1.FindingChange"];
type Message = Schemas["findings.v1.WatchFindingsResponse"];

const pause = 5_000;

/**
 * Follows the change feed of the deployment. The browser connects again by itself after a cut, with the last event's id;
 * where the server refuses, it starts anew.
 */
export function useFeed(deploymentId: string, onChanges: (changes: Changed[]) => void): { live: boolean } {
  const [live, setLive] = useState(true);
  const receive = useRef(onChanges);
  receive.current = onChanges;
  useEffect(() => {
    let source: EventSource | undefined;
    let again: ReturnType<typeof setTimeout> | undefined;
    const open = () => {
      source = new EventSource(`${basePath}/api/v1/deployments/${encodeURIComponent(deploymentId)}/findings/changes`);
      source.onopen = () => setLive(true);
      source.onmessage = ({ data }: MessageEvent<string>) => {
        if (!data) return; // a sign of life
        const { changes } = JSON.parse(data) as Message;
        if (changes.length) receive.current(changes);
      };
      source.onerror = () => {
        setLive(false);
        if (source?.readyState !== EventSource.CLOSED) return;
        again = setTimeout(open, pause);
      };
    };
    open();
    return () => {
      clearTimeout(again);
      source?.close();
    };
  }, [deploymentId]);
  return { live };
}
