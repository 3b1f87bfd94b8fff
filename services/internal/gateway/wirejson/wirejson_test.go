package wirejson_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"pgregory.net/rapid"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/jsonappend"
	"github.com/palisade/palisade/cmd/protoc-gen-go-json/plugintest"
	_ "github.com/palisade/palisade/cmd/protoc-gen-go-json/plugintest/testpb"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	_ "github.com/palisade/palisade/gen/palisade/projects/v1"
	_ "github.com/palisade/palisade/gen/palisade/reporting/v1"
	_ "github.com/palisade/palisade/gen/palisade/scans/v1"
	_ "github.com/palisade/palisade/gen/palisade/store/v1"
	_ "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/gateway/wirejson"
)

// TestEveryMessage fills messages with random contents: what Append makes of their encoding is what AppendJSON writes.
func TestEveryMessage(t *testing.T) {
	tested := 0
	protoregistry.GlobalTypes.RangeMessages(func(messageType protoreflect.MessageType) bool {
		name := messageType.Descriptor().FullName()
		if !strings.HasPrefix(string(name), "palisade.") || messageType.Descriptor().IsMapEntry() {
			return true
		}
		tested++
		t.Run(string(name), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkMessage(t, messageType) })
		})
		return true
	})
	if tested < 100 {
		t.Errorf("only %d messages", tested)
	}
}

func checkMessage(t *rapid.T, messageType protoreflect.MessageType) {
	message := messageType.New()
	plugintest.Filler{}.Fill(t, message, 3)
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(message.Interface())
	if err != nil {
		t.Fatal(err)
	}
	got, err := wirejson.Append([]byte("before"), messageType.Descriptor(), wire)
	if err != nil {
		t.Fatal(err)
	}
	want := message.Interface().(jsonappend.Appender).AppendJSON([]byte("before"))
	if string(got) != string(want) {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// TestSplitMessages: the parts of a message that is encoded in two pieces belong together, and the last value counts.
func TestSplitMessages(t *testing.T) {
	message := (&findingsv1.Finding{}).ProtoReflect().Descriptor()
	part := func(l *findingsv1.FindingLocation) []byte {
		b, err := proto.Marshal(&findingsv1.Finding{IssueType: "sast", Location: l, State: "muted"})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	wire := append(part(&findingsv1.FindingLocation{FilePath: "a.go", Line: 1}), part(&findingsv1.FindingLocation{Line: 7})...)
	want := &findingsv1.Finding{}
	if err := proto.Unmarshal(wire, want); err != nil {
		t.Fatal(err)
	}
	got, err := wirejson.Append(nil, message, wire)
	if err != nil || string(got) != string(want.AppendJSON(nil)) {
		t.Errorf("got %s (%v), want %s", got, err, want.AppendJSON(nil))
	}
}

// FuzzAppend: whatever the bytes, they are refused, or written as AppendJSON writes the message that they are.
func FuzzAppend(f *testing.F) {
	page, err := proto.Marshal(&findingsv1.ListFindingsResponse{Findings: []*findingsv1.Finding{
		{IssueType: "sca", Id: 7, Severity: "high", Rule: &findingsv1.FindingRule{Name: "a"}, Categories: []string{"security"}},
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(page)
	f.Add(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 7))
	descriptor := (&findingsv1.ListFindingsResponse{}).ProtoReflect().Descriptor()
	f.Fuzz(func(t *testing.T, wire []byte) {
		got, err := wirejson.Append(nil, descriptor, wire)
		message := &findingsv1.ListFindingsResponse{}
		if invalid := proto.Unmarshal(wire, message); invalid != nil || err != nil {
			return // text that is no UTF-8 is written all the same
		}
		if want := message.AppendJSON(nil); string(got) != string(want) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}
