package gateway_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gateway"
	"github.com/palisade/palisade/services/internal/inprocess"
)

// hooks records the first message of the last upload and its metadata.
type hooks struct {
	scmv1.UnimplementedIncomingWebhooksServiceServer
	first *scmv1.ReceiveWebhookRequest
	md    metadata.MD
}

func (h *hooks) ReceiveWebhook(stream grpc.ClientStreamingServer[scmv1.ReceiveWebhookRequest, scmv1.ReceiveWebhookResponse]) error {
	h.md, _ = metadata.FromIncomingContext(stream.Context())
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	h.first = proto.Clone(first).(*scmv1.ReceiveWebhookRequest)
	for err == nil {
		_, err = stream.Recv()
	}
	if first.GetCall().GetGithubEvent() == "bad" {
		return apierr.InvalidArgument("call.githubEvent", "call.githubEvent must be good")
	}
	return stream.SendAndClose(&scmv1.ReceiveWebhookResponse{Status: "accepted"})
}

// TestUploadHeaders fills fields of an upload from headers only.
func TestUploadHeaders(t *testing.T) {
	h := &hooks{}
	log := slog.New(slog.DiscardHandler)
	channel := inprocess.New(inprocess.Config{Logger: log})
	scmv1.RegisterIncomingWebhooksServiceServer(channel, h)
	handler, err := gateway.New(gateway.Config{
		Conn: channel, Logger: log, Services: []gateway.Service{{Name: scmv1.IncomingWebhooksService_ServiceDesc.ServiceName}},
	})
	if err != nil {
		t.Fatal(err)
	}
	send := func(query string, header http.Header) (int, string) {
		t.Helper()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/scm/webhooks/k3y"+query, strings.NewReader("{}"))
		request.Header = header
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		body, _ := io.ReadAll(recorder.Body)
		return recorder.Code, string(body)
	}
	code, body := send("?github_signature=q&githubEvent=q&gitlab_token=q&x=1", http.Header{
		"X-Github-Event": {"push", "second"}, "X-Gitlab-Token": {"t0ken"}, "Webhook-Id": {"msg_1"}, "X-Other": {"x"},
	})
	want := &scmv1.ReceiveWebhookRequest{
		WebhookKey: "k3y", Call: &scmv1.WebhookCall{GithubEvent: "push", GitlabToken: "t0ken", WebhookId: "msg_1"},
	}
	if code != http.StatusOK || body != `{"status":"accepted"}` || !proto.Equal(h.first, want) {
		t.Errorf("%d %s: first message %v", code, body, h.first)
	}
	for name, values := range h.md {
		if strings.Contains(strings.Join(values, " "), "t0ken") {
			t.Errorf("the header became metadata %s", name)
		}
	}
	if code, body = send("", http.Header{"X-Github-Event": {"bad"}}); code != http.StatusBadRequest || !strings.Contains(body, `"X-GitHub-Event must be good"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body = send("", http.Header{"X-Github-Event": {"\xff"}}); code != http.StatusBadRequest || !strings.Contains(body, "X-Github-Event must be UTF-8") {
		t.Errorf("%d %s", code, body)
	}
}
