import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap } from "@/api/client";
import { useDeployment, useMay } from "@/api/session";
import { Badge } from "@/parts/badge";
import { Button } from "@/parts/button";
import { TextField } from "@/parts/field";
import { nameOf } from "@/parts/finding/decide";
import { Card } from "@/parts/page";
import { useToast } from "@/parts/toast";
import { When } from "@/parts/when";
import * as texts from "@/texts";

const t = texts.finding.exception;

/** Requests to ignore a finding. Administrators approve or reject the open one. */
export function Exceptions({ id, onDone }: { id: string; onDone: () => void }) {
  const deploymentId = useDeployment().id ?? "";
  const mayReview = useMay("settings:manage");
  const toast = useToast();
  const [note, setNote] = useState("");
  const { data } = useQuery({
    queryKey: ["exception-requests", deploymentId, id],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/agent/deployments/{deploymentId}/exception-requests", { params: { path: { deploymentId }, query: { findingId: Number(id), limit: 20 } }, signal })),
  });
  const review = useMutation({
    mutationFn: ({ requestId, decision }: { requestId: string; decision: "EXCEPTION_DECISION_APPROVE" | "EXCEPTION_DECISION_REJECT" }) =>
      unwrap(api.POST("/api/agent/deployments/{deploymentId}/exception-requests/review", { params: { path: { deploymentId } }, body: { requestIds: [requestId], decision, note } })),
    onSuccess: (_, { decision }) => {
      toast({ tone: "good", text: decision === "EXCEPTION_DECISION_APPROVE" ? t.approved : t.rejected });
      setNote("");
      onDone();
    },
  });
  if (!data || data.requests.length === 0) return null;
  return (
    <Card title={t.title}>
      <ul className="flex flex-col gap-3 text-[0.8125rem]">
        {data.requests.map((request) => (
          <li key={request.id} className="flex flex-col gap-1">
            <p className="flex flex-wrap items-center gap-2">
              <Badge tone={request.reviewId ? "info" : "warn"}>{t.states[request.state ?? ""] ?? ""}</Badge>
              {nameOf({ state: "FINDING_TRIAGE_STATE_IGNORED", reason: request.triageReason })}
            </p>
            <p className="text-xs text-muted">{t.requestedBy(request.requesterName || request.requesterLogin)} · <When at={request.createdAt} /></p>
            {request.note && <blockquote className="border-l-2 border-line-strong/50 pl-2 whitespace-pre-wrap wrap-anywhere">{request.note}</blockquote>}
            {request.reviewId ? (
              <p className="text-xs text-muted">{t.decidedBy(request.reviewerName || request.reviewerLogin)} · <When at={request.reviewedAt} />{request.reviewNote && ` · ${request.reviewNote}`}</p>
            ) : (
              mayReview && (
                <div className="mt-1 flex flex-wrap items-end gap-2">
                  <TextField className="grow" label={t.note} value={note} maxLength={3000} onChange={(event) => setNote(event.target.value)} />
                  <Button disabled={review.isPending} onClick={() => review.mutate({ requestId: String(request.id), decision: "EXCEPTION_DECISION_APPROVE" })}>{t.approve}</Button>
                  <Button disabled={review.isPending} onClick={() => review.mutate({ requestId: String(request.id), decision: "EXCEPTION_DECISION_REJECT" })}>{t.reject}</Button>
                </div>
              )
            )}
          </li>
        ))}
      </ul>
    </Card>
  );
}
