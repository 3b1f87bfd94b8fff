package notifications

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/chatinstallation"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/webhookreceipt"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/slackapp"
)

// maxInteraction is the maximum length of a body: Slack sends the whole message back.
const maxInteraction = 1 << 20

// errNoInteraction is the error of every request that Slack has not signed.
func errNoInteraction() error { return apierr.NotFound("not found") }

// ReceiveChatAppInteraction verifies a choice and enqueues its effect: Slack waits for three seconds only.
func (s *ChatApps) ReceiveChatAppInteraction(
	stream grpc.ClientStreamingServer[notificationsv1.ReceiveChatAppInteractionRequest, notificationsv1.ReceiveChatAppInteractionResponse],
) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return errNoInteraction()
	}
	if err != nil {
		return err
	}
	body := first.GetChunk()
	for {
		next, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if body = append(body, next.GetChunk()...); len(body) > maxInteraction {
			return apierr.TooLarge("the body of an interaction must have at most %d bytes", maxInteraction)
		}
	}
	if !s.app.Verify(first.GetCall().GetSignature(), first.GetCall().GetTimestamp(), body) {
		return errNoInteraction()
	}
	chosen, ok, err := slackapp.ParseInteraction(body)
	if err != nil {
		return apierr.InvalidArgument("body", "%v", err)
	}
	if ok {
		if err := s.accept(stream.Context(), chosen, sha256.Sum256(body)); err != nil {
			return err
		}
	}
	return stream.SendAndClose(&notificationsv1.ReceiveChatAppInteractionResponse{})
}

// accept enqueues the effect of a choice, once. A choice in a message of a former installation has none.
func (s *ChatApps) accept(ctx context.Context, chosen slackapp.Interaction, digest [sha256.Size]byte) error {
	ctx = tenant.NewContext(ctx, chosen.DeploymentID)
	once := "chat-app " + hex.EncodeToString(digest[:])
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		in, err := tx.ChatInstallation.Query().Where(chatinstallation.TeamID(chosen.TeamID)).Only(ctx)
		if err != nil {
			return ignoreNotFound(err)
		}
		known, err := tx.WebhookReceipt.Query().Where(webhookreceipt.WebhookKey(""), webhookreceipt.DeliveryID(once)).Exist(ctx)
		if err != nil || known {
			return err
		}
		if err := tx.WebhookReceipt.Create().SetDeploymentID(in.DeploymentID).SetWebhookKey("").SetDeliveryID(once).SetReceivedAt(store.Now()).Exec(ctx); err != nil {
			return err
		}
		return s.jobs.Enqueue(ctx, chatTriage{
			DeploymentID: in.DeploymentID, InstallationID: in.ID, UserID: chosen.UserID, Channel: chosen.Channel, Message: chosen.Message,
			FindingID: chosen.FindingID, State: chosen.State, Reason: chosen.Reason,
		}, nil)
	})
}
