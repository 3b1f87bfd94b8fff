package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"pgregory.net/rapid"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/jsonappend"
	"github.com/palisade/palisade/cmd/protoc-gen-go-json/plugintest"
	_ "github.com/palisade/palisade/cmd/protoc-gen-go-json/plugintest/testpb"
	_ "github.com/palisade/palisade/gen/palisade/ai/v1"
	_ "github.com/palisade/palisade/gen/palisade/deployments/v1"
	_ "github.com/palisade/palisade/gen/palisade/errors/v1"
	_ "github.com/palisade/palisade/gen/palisade/findings/v1"
	_ "github.com/palisade/palisade/gen/palisade/identity/v1"
	_ "github.com/palisade/palisade/gen/palisade/notifications/v1"
	_ "github.com/palisade/palisade/gen/palisade/options/v1"
	_ "github.com/palisade/palisade/gen/palisade/platform/v1"
	_ "github.com/palisade/palisade/gen/palisade/policies/v1"
	_ "github.com/palisade/palisade/gen/palisade/projects/v1"
	_ "github.com/palisade/palisade/gen/palisade/reporting/v1"
	_ "github.com/palisade/palisade/gen/palisade/rules/v1"
	_ "github.com/palisade/palisade/gen/palisade/scans/v1"
	_ "github.com/palisade/palisade/gen/palisade/scm/v1"
	_ "github.com/palisade/palisade/gen/palisade/store/v1"
	_ "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	_ "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	_ "github.com/palisade/palisade/gen/palisade/workflows/v1"
)

// TestEveryProtoIsTested checks that the imports above name the package of each of our protos.
func TestEveryProtoIsTested(t *testing.T) {
	root := os.DirFS(filepath.Join("..", "..", "proto"))
	err := fs.WalkDir(root, "palisade", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".proto" {
			return err
		}
		if _, err := protoregistry.GlobalFiles.FindFileByPath(path); err != nil {
			t.Errorf("%s is not tested: import its package in all_test.go (and run make generate)", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryMessage fills each of our messages with random contents. AppendJSON must write what protojson writes, with
// our options applied, and protojson must read it back to the same message, except for what the options leave out.
func TestEveryMessage(t *testing.T) {
	for _, messageType := range ownMessages() {
		t.Run(string(messageType.Descriptor().FullName()), func(t *testing.T) {
			if _, generated := messageType.New().Interface().(jsonappend.Appender); !generated {
				t.Fatal("has no AppendJSON: run make generate")
			}
			rapid.Check(t, func(t *rapid.T) { checkMessage(t, messageType) })
		})
	}
}

func checkMessage(t *rapid.T, messageType protoreflect.MessageType) {
	message := messageType.New()
	plugintest.Filler{}.Fill(t, message, 3)
	got := message.Interface().(jsonappend.Appender).AppendJSON(nil)
	var compact bytes.Buffer
	if err := json.Compact(&compact, got); err != nil {
		t.Fatalf("%v\ngave what is not JSON: %s\n%v", message, got, err)
	}
	if !bytes.Equal(compact.Bytes(), got) {
		t.Fatalf("has spaces: %s", got)
	}

	canonical, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(message.Interface())
	if err != nil {
		t.Fatal(err)
	}
	want := decodeTree(t, canonical).(map[string]any)
	applyForm(want, message)
	if tree := decodeTree(t, got); !reflect.DeepEqual(tree, any(want)) {
		t.Fatalf("got  %s\nwant %s", got, encodeTree(t, want))
	}

	back := messageType.New().Interface()
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(got, back); err != nil {
		t.Fatalf("cannot be read back: %v\n%s", err, got)
	}
	normalise(message)
	if !proto.Equal(back, message.Interface()) {
		t.Fatalf("JSON %s\nread back as %v\nwant         %v", got, back, message)
	}
}

// ownMessages returns the message types of all palisade packages in the test binary.
func ownMessages() []protoreflect.MessageType {
	var types []protoreflect.MessageType
	protoregistry.GlobalTypes.RangeMessages(func(messageType protoreflect.MessageType) bool {
		if isOwn(messageType.Descriptor()) {
			types = append(types, messageType)
		}
		return true
	})
	return types
}

func isOwn(message protoreflect.MessageDescriptor) bool {
	return strings.HasPrefix(string(message.FullName()), "palisade.")
}

func decodeTree(t *rapid.T, encoded []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		t.Fatalf("%v: %s", err, encoded)
	}
	return tree
}

func encodeTree(t *rapid.T, tree any) []byte {
	encoded, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
