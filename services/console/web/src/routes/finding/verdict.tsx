import { useMutation } from "@tanstack/react-query";
import { ThumbsDown, ThumbsUp } from "lucide-react";
import { lazy, Suspense } from "react";
import { api, unwrap } from "@/api/client";
import { useDeployment } from "@/api/session";
import { Badge } from "@/parts/badge";
import { IconButton } from "@/parts/button";
import { cx } from "@/parts/cx";
import type { Issue } from "@/parts/finding/issue";
import { Card } from "@/parts/page";
import { Loading } from "@/parts/states";
import { useToast } from "@/parts/toast";
import * as texts from "@/texts";

const Markdown = lazy(() => import("@/parts/markdown"));
const t = texts.finding.verdict;

/** What a model said about a finding, and whether people agree. */
export function Verdict({ issue, may, onDone }: { issue: Issue; may: boolean; onDone: () => void }) {
  const deploymentId = useDeployment().id ?? "";
  const toast = useToast();
  const verdict = issue.autotriage;
  const rate = useMutation({
    mutationFn: (rating: "RATING_GOOD" | "RATING_BAD") =>
      unwrap(api.POST("/api/ai/deployments/{deploymentId}/autotriage_feedback", { params: { path: { deploymentId } }, body: { feedback: { autotriageId: verdict?.id ?? "", rating } } })),
    onSuccess: () => {
      toast({ tone: "good", text: t.thanks });
      onDone();
    },
  });
  if (!verdict && !issue.analysisFailure) return null;
  const button = (rating: "RATING_GOOD" | "RATING_BAD", label: string, Icon: typeof ThumbsUp) => {
    const pressed = verdict?.feedback?.rating === rating;
    return <IconButton label={label} aria-pressed={pressed} className={cx(pressed && "text-accent")} onClick={() => rate.mutate(rating)}><Icon size={15} aria-hidden /></IconButton>;
  };
  return (
    <Card title={t.title} actions={may && verdict?.id && <>{button("RATING_GOOD", t.right, ThumbsUp)}{button("RATING_BAD", t.wrong, ThumbsDown)}</>}>
      {verdict && (
        <>
          <Badge tone={verdict.verdict === "VERDICT_TRUE_POSITIVE" ? "high" : "good"}>{verdict.verdict ? t[verdict.verdict as keyof typeof t] : t.VERDICT_NO_VERDICT}</Badge>
          <div className="mt-2 text-[0.8125rem]"><Suspense fallback={<Loading />}><Markdown text={verdict.reason} /></Suspense></div>
        </>
      )}
      {issue.analysisFailure && <p className="text-[0.8125rem] text-bad">{t.failed}: {issue.analysisFailure.reason}</p>}
    </Card>
  );
}
