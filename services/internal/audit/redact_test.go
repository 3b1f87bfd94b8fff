package audit

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

// connection is a message with credentials, like the settings of a code host:
//
//	message Connection {
//	  string name = 1;
//	  string password = 2 [(palisade.options.v1.secret) = true];
//	  bytes key = 3;
//	  repeated string codes = 4 [(palisade.options.v1.secret) = true];
//	  Connection inner = 5;
//	  repeated Connection others = 6;
//	}
func connection(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	secret := &descriptorpb.FieldOptions{}
	proto.SetExtension(secret, optionsv1.E_Secret, true)
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type, repeated bool, options *descriptorpb.FieldOptions) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{
			Name: &name, Number: &number, Type: kind.Enum(), Options: options,
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
		if repeated {
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		}
		if kind == descriptorpb.FieldDescriptorProto_TYPE_MESSAGE {
			f.TypeName = proto.String(".test.Connection")
		}
		return f
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("test.proto"), Package: proto.String("test"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("Connection"),
			Field: []*descriptorpb.FieldDescriptorProto{
				field("name", 1, descriptorpb.FieldDescriptorProto_TYPE_STRING, false, nil),
				field("password", 2, descriptorpb.FieldDescriptorProto_TYPE_STRING, false, secret),
				field("key", 3, descriptorpb.FieldDescriptorProto_TYPE_BYTES, false, nil),
				field("codes", 4, descriptorpb.FieldDescriptorProto_TYPE_STRING, true, secret),
				field("inner", 5, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, false, nil),
				field("others", 6, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, true, nil),
			},
		}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().ByName("Connection")
}

func TestRequestJSONHidesSecretsAndBytes(t *testing.T) {
	md := connection(t)
	fill := func() *dynamicpb.Message {
		m := dynamicpb.NewMessage(md)
		m.Set(md.Fields().ByName("name"), protoreflect.ValueOfString("shown"))
		m.Set(md.Fields().ByName("password"), protoreflect.ValueOfString("hunter2"))
		m.Set(md.Fields().ByName("key"), protoreflect.ValueOfBytes([]byte("hunter2")))
		m.Mutable(md.Fields().ByName("codes")).List().Append(protoreflect.ValueOfString("hunter2"))
		return m
	}
	m := fill()
	m.Set(md.Fields().ByName("inner"), protoreflect.ValueOfMessage(fill()))
	m.Mutable(md.Fields().ByName("others")).List().Append(protoreflect.ValueOfMessage(fill()))
	before := proto.Clone(m)
	got := requestJSON(m)
	if strings.Contains(got, "hunter2") || strings.Contains(got, "aHVudGVy") {
		t.Errorf("a secret is shown: %s", got)
	}
	if strings.Count(got, "shown") != 3 || strings.Count(got, redactedText) != 3 {
		t.Errorf("got %s, want three names and three redacted passwords", got)
	}
	if !proto.Equal(m, before) {
		t.Error("the request itself was changed")
	}
}

func TestRequestJSONIsBounded(t *testing.T) {
	ids := make([]int64, 200_000)
	for i := range ids {
		ids[i] = 1 << 60
	}
	for name, m := range map[string]proto.Message{
		"a long list":       &findingsv1.BulkTriageRequest{DeploymentSlug: "acme", IssueIds: ids},
		"a long text":       &findingsv1.BulkTriageRequest{NewNote: strings.Repeat("ä", 100_000)},
		"many long texts":   &findingsv1.BulkTriageRequest{Repos: repeat(strings.Repeat("ä", 5_000), 500)},
		"a text of invalid": &findingsv1.BulkTriageRequest{NewNote: strings.Repeat("\xff", 5000)},
	} {
		got := requestJSON(m)
		if len(got) > maxRequest || !utf8.ValidString(got) || got == "" {
			t.Errorf("%s: %d bytes, valid UTF-8: %v", name, len(got), utf8.ValidString(got))
		}
	}
	if got := requestJSON(nil); got != "{}" {
		t.Errorf("no request: got %q", got)
	}
	var none *findingsv1.BulkTriageRequest
	if got := requestJSON(none); got != "{}" {
		t.Errorf("a nil request: got %q", got)
	}
	if got := requestJSON(&findingsv1.BulkTriageRequest{DeploymentSlug: "acme"}); !json.Valid([]byte(got)) {
		t.Errorf("a short request is not JSON: %s", got)
	}
}

func repeat(text string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = text
	}
	return list
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[äß日a]{0,30}`), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		limit := rapid.IntRange(3, 66).Draw(t, "limit")
		got := cut(text, limit)
		if len(got) > limit {
			t.Errorf("cut(%q, %d) has %d bytes", text, limit, len(got))
		}
		if len(text) <= limit && got != text {
			t.Errorf("cut(%q, %d) changed it to %q", text, limit, got)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("cut(%q, %d) is not valid: %q", text, limit, got)
		}
	})
}

func TestUserInfoIsNotShown(t *testing.T) {
	for text, want := range map[string]string{
		"https://git.acme.test/acme/web":                    "https://git.acme.test/acme/web",
		"https://ci:hunter2@git.acme.test":                  "https://[redacted]@git.acme.test",
		"see http://ci:p@ss@host:80/x and ssh://git@h.test": "see http://[redacted]@host:80/x and ssh://[redacted]@h.test",
		"https://host/path@version":                         "https://host/path@version",
		"dev@acme.test":                                     "dev@acme.test",
	} {
		if got := withoutUserInfo(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
