package bounds_test

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/bounds"
)

func encode(t testing.TB, message proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func number(message proto.Message, name protoreflect.Name) protowire.Number {
	return message.ProtoReflect().Descriptor().Fields().ByName(name).Number()
}

func TestWire(t *testing.T) {
	triage := &findingsv1.BulkTriageRequest{}
	ids := number(triage, "issue_ids")
	limit := bounds.Of(triage.ProtoReflect().Descriptor()).Field(ids).Items
	packed := func(n int) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, ids, protowire.BytesType), bytes.Repeat([]byte{1}, n))
	}
	single := bytes.Repeat(protowire.AppendVarint(protowire.AppendTag(nil, ids, protowire.VarintType), 1), 3)
	bundle := func(n int) []byte {
		request := &policiesv1.ApplyRemediationPoliciesRequest{Bundle: &policiesv1.RemediationPoliciesBundle{}}
		for range n {
			request.Bundle.Policies = append(request.Bundle.Policies, &policiesv1.RemediationPolicy{})
		}
		return encode(t, request)
	}
	deep, err := structpb.NewValue("x")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		deep = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{deep}})
	}
	for name, c := range map[string]struct {
		data []byte
		of   proto.Message
		want string // of the error; empty for none
	}{
		"nothing":                    {nil, triage, ""},
		"as many numbers as may be":  {packed(limit), triage, ""},
		"one more":                   {packed(limit + 1), triage, "issue_ids must have at most"},
		"in several parts":           {append(packed(limit-2), single...), triage, "issue_ids must have at most"},
		"as many messages as may be": {bundle(200), &policiesv1.ApplyRemediationPoliciesRequest{}, ""},
		"one message more":           {bundle(201), &policiesv1.ApplyRemediationPoliciesRequest{}, "bundle.policies must have at most 200 items, got 201"},
		"a message in two parts":     {append(bundle(1), bundle(1)...), &policiesv1.ApplyRemediationPoliciesRequest{}, "bundle must be given once"},
		"a long text": {encode(t, &projectsv1.UpdateProjectRequest{Tags: []string{"a", strings.Repeat("x", 5000)}}), &projectsv1.UpdateProjectRequest{},
			"tags must have at most 100 characters, got 5000"},
		"a text that the validator refuses": {encode(t, &projectsv1.UpdateProjectRequest{Tags: []string{strings.Repeat("x", 101)}}), &projectsv1.UpdateProjectRequest{}, ""},
		"unknown fields":                    {bytes.Repeat(protowire.AppendVarint(protowire.AppendTag(nil, 5000, protowire.VarintType), 1), 1000), triage, ""},
		"too deep":                          {encode(t, deep), &structpb.Value{}, "must nest at most 64 deep"},
		"cut off":                           {packed(10)[:5], triage, "is not a message of this RPC"},
	} {
		_, err := bounds.Wire(c.data, c.of.ProtoReflect().Descriptor())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// The decoded message takes about as much memory as calculated, never much more.
func TestWireCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		request := &policiesv1.ApplyRemediationPoliciesRequest{Bundle: &policiesv1.RemediationPoliciesBundle{}}
		for range rapid.IntRange(0, 200).Draw(t, "policies") {
			request.Bundle.Policies = append(request.Bundle.Policies, &policiesv1.RemediationPolicy{Name: rapid.StringN(0, 50, 200).Draw(t, "name")})
		}
		data, err := proto.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		cost, err := bounds.Wire(data, request.ProtoReflect().Descriptor())
		least := int64(len(request.GetBundle().GetPolicies())) * bounds.Of((&policiesv1.RemediationPolicy{}).ProtoReflect().Descriptor()).Size
		if err != nil || cost < least || cost < int64(len(data))/2 {
			t.Fatalf("%d bytes of %d policies cost %d, %v", len(data), len(request.GetBundle().GetPolicies()), cost, err)
		}
	})
}

// When a list is too long, the fields that authorization needs are still decoded.
func TestScalars(t *testing.T) {
	request := &findingsv1.BulkTriageRequest{DeploymentSlug: "acme", IssueIds: make([]int64, 1000), NewNote: strings.Repeat("x", 2<<20)}
	left := &findingsv1.BulkTriageRequest{}
	if err := proto.Unmarshal(bounds.Scalars(encode(t, request), request.ProtoReflect().Descriptor()), left); err != nil {
		t.Fatal(err)
	}
	if left.GetDeploymentSlug() != "acme" || len(left.GetIssueIds()) > 0 || left.GetNewNote() != "" {
		t.Errorf("got %v", left)
	}
}

// FuzzWire: no accepted message has a list that is too long.
func FuzzWire(f *testing.F) {
	f.Add(encode(f, &findingsv1.BulkTriageRequest{DeploymentSlug: "acme", IssueIds: []int64{1, 300}, Severities: []string{"high"}}))
	f.Add([]byte{0x0b, 0x0c})
	f.Fuzz(func(t *testing.T, data []byte) {
		request := &findingsv1.BulkTriageRequest{}
		descriptor := request.ProtoReflect().Descriptor()
		_, err := bounds.Wire(data, descriptor)
		if proto.Unmarshal(data, request) != nil || err != nil {
			return
		}
		request.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			if limit := bounds.Of(descriptor).Field(field.Number()); field.IsList() && value.List().Len() > limit.Items {
				t.Errorf("%s has %d items", field.Name(), value.List().Len())
			}
			return true
		})
		_ = proto.Unmarshal(bounds.Scalars(data, descriptor), &findingsv1.BulkTriageRequest{})
	})
}
