package services_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/bounds"
)

// Every list and map of every request has its own limit in the protos, which is enforced while the request is decoded.
func TestListsOfRequestsAreLimited(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	lists := 0
	var walk func(message protoreflect.MessageDescriptor)
	walk = func(message protoreflect.MessageDescriptor) {
		if seen[message.FullName()] {
			return
		}
		seen[message.FullName()] = true
		for i := range message.Fields().Len() {
			field := message.Fields().Get(i)
			if limit := bounds.Of(message).Field(field.Number()); field.IsList() || field.IsMap() {
				if lists++; !limit.Declared || limit.Items < 1 {
					t.Errorf("%s has no limit: give it (buf.validate.field).repeated.max_items or .map.max_pairs", field.FullName())
				}
			}
			inner := field.Message()
			if field.IsMap() {
				inner = field.MapValue().Message()
			}
			if inner != nil {
				walk(inner)
			}
		}
	}
	for _, rpc := range operations() {
		walk(rpc.descriptor.Input())
	}
	if lists < 100 {
		t.Errorf("%d lists were found, want the lists of all requests", lists)
	}
}

// rawMessage sends raw bytes.
type rawMessage struct{}

func (rawMessage) Name() string { return "proto" }

func (rawMessage) Marshal(value any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(value.([]byte))}, nil
}

func (rawMessage) Unmarshal(mem.BufferSlice, any) error { return nil }

// Requests that are cheap to send and expensive to decode are refused before they are decoded.
func TestHostileMessages(t *testing.T) {
	s := apitest.Start(t, nil)
	unknown := bytes.Repeat(protowire.AppendVarint(protowire.AppendTag(nil, protowire.MaxValidNumber, protowire.BytesType), 0), 2<<20)
	field := func(message proto.Message, name protoreflect.Name) protowire.Number {
		return message.ProtoReflect().Descriptor().Fields().ByName(name).Number()
	}
	empties := protowire.AppendTag(nil, field(&policiesv1.RemediationPoliciesBundle{}, "policies"), protowire.BytesType)
	empties = bytes.Repeat(append(empties, 0), 1<<20)
	bundle := protowire.AppendTag(nil, field(&policiesv1.ApplyRemediationPoliciesRequest{}, "bundle"), protowire.BytesType)
	ids := protowire.AppendTag(nil, field(&findingsv1.BulkTriageRequest{}, "issue_ids"), protowire.BytesType)
	slug := protowire.AppendTag(nil, field(&findingsv1.BulkTriageRequest{}, "deployment_slug"), protowire.BytesType)
	deployment := protowire.AppendTag(nil, field(&policiesv1.ApplyRemediationPoliciesRequest{}, "deployment_id"), protowire.VarintType)
	for name, c := range map[string]struct {
		token, method string
		message       []byte
		compressed    bool
		code          codes.Code
		text          string
	}{
		"gzip of an unauthenticated caller":      {"", platformv1.MiscellaneousService_Ping_FullMethodName, unknown, true, codes.Unimplemented, "compressed"},
		"large one of an unauthenticated caller": {"", platformv1.MiscellaneousService_Ping_FullMethodName, unknown, false, codes.ResourceExhausted, "at most 65536 bytes"},
		"too large for every caller":             {s.Token, platformv1.MiscellaneousService_Ping_FullMethodName, bytes.Repeat(unknown, 2), true, codes.Unimplemented, ""},
		"gzip of a known caller":                 {s.Token, findingsv1.TriageService_BulkTriage_FullMethodName, bytes.Repeat(unknown, 2), true, codes.ResourceExhausted, "at most 16777216 bytes"},
		"many empty messages": {s.Token, policiesv1.PoliciesV2Service_ApplyRemediationPolicies_FullMethodName,
			append(protowire.AppendVarint(deployment, uint64(s.DeploymentID)), protowire.AppendBytes(bundle, empties)...), false, codes.InvalidArgument,
			"bundle.policies must have at most 200 items, got 1048576"},
		"many numbers": {s.Token, findingsv1.TriageService_BulkTriage_FullMethodName,
			append(protowire.AppendString(slug, s.Slug), protowire.AppendBytes(ids, bytes.Repeat([]byte{1}, 1<<20))...), false, codes.InvalidArgument,
			"issue_ids must have at most"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if c.token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
			}
			err := invokeRaw(ctx, s.Conn, c.method, c.message, c.compressed)
			if status.Code(err) != c.code || !strings.Contains(status.Convert(err).Message(), c.text) {
				t.Errorf("got %v, want %v %q", err, c.code, c.text)
			}
		})
	}
	body := `{"bundle":{"policies":[` + strings.Repeat("{},", 1<<20) + `{}]}}`
	got := s.Body(t, s.Token, http.MethodPut, fmt.Sprintf("/api/policies/v2/deployments/%d/remediation-policies", s.DeploymentID), body, http.StatusBadRequest)
	if !strings.Contains(got, "bundle.policies must have at most 200 items, got 1048577") {
		t.Errorf("over HTTP: %.300s", got)
	}
}

func invokeRaw(ctx context.Context, conn *grpc.ClientConn, method string, message []byte, compressed bool) error {
	options := []grpc.CallOption{grpc.ForceCodecV2(rawMessage{}), grpc.MaxCallSendMsgSize(64 << 20)}
	if compressed {
		options = append(options, grpc.UseCompressor("gzip"))
	}
	return conn.Invoke(ctx, method, message, nil, options...)
}

// Texts and free-form JSON over HTTP are limited like lists. A request above the caller's limit gets no retry delay.
func TestHostileBodies(t *testing.T) {
	s := apitest.Start(t, nil)
	s.Upload(t, "acme/web", "main", []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec"}},"results":[]}]}`))
	project := fmt.Sprintf("/api/v1/deployments/%s/projects/acme/web", s.Slug)
	jobs := fmt.Sprintf("/api/workflows/v1/deployments/%d/jobs", s.DeploymentID)
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		text               string
	}{
		"a mask of many fields": {http.MethodPatch, project, `{"update_mask":"` + strings.Repeat("a,", 1<<20) + `a"}`, 400, "update_mask must have at most 65536 bytes"},
		"a long text":           {http.MethodPatch, project, `{"tags":["` + strings.Repeat("x", 8<<20) + `"]}`, 400, "must have at most 100 characters, got 8388608"},
		"many free values":      {http.MethodPost, jobs, `{"workflowType":"x","inputs":{"a":[` + strings.Repeat("1,", 1<<20) + `1]}}`, 400, "must have at most 100000 values"},
	} {
		got := s.Body(t, s.Token, c.method, c.path, c.body, c.status)
		if !strings.Contains(got, c.text) {
			t.Errorf("%s: got %.300s, want %q", name, got, c.text)
		}
	}
}
