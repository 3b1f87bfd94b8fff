package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

const (
	// bombBytes is the size of a message that gzip shrinks a thousand times, listBytes the size of a list.
	bombBytes, listBytes = 16<<20 - 1024, 6 << 20
	// listsOfRPC limits the lists per RPC that are tried, listDepth their depth.
	listsOfRPC, listDepth = 4, 4
)

// rawCodec sends bytes unchanged.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(value any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*value.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, value any) error {
	*value.(*[]byte) = data.Materialize()
	return nil
}

// compressed is a compressor with precomputed bytes: compressing each bomb again would put the attacker's load
// on the measured machine. The server runs in another process and has the real compressor.
type compressed struct{ bytes []byte }

func newCompressed(message []byte) (compressed, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, err := zip.Write(message)
	err = errors.Join(err, zip.Close())
	return compressed{out.Bytes()}, err
}

func (compressed) Name() string { return "gzip" }

func (c compressed) Compress(w io.Writer) (io.WriteCloser, error) { return &known{w, c.bytes}, nil }

func (compressed) Decompress(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }

// known ignores its input.
type known struct {
	out   io.Writer
	bytes []byte
}

func (k *known) Write(p []byte) (int, error) { return len(p), nil }

func (k *known) Close() error {
	_, err := k.out.Write(k.bytes)
	return err
}

// operation is one RPC.
type operation struct {
	method     string // gRPC method name
	verb, path string // over HTTP; empty without a body
	lists      []listPath
}

// listPath is the path from a request to a list or map in it.
type listPath []protoreflect.FieldDescriptor

// allOperations returns all RPCs of the server.
func allOperations() []operation {
	var operations []operation
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(string(file.Package()), "palisade.") && file.Package() != "grpc.health.v1" {
			return true
		}
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				operations = append(operations, newOperation(methods.Get(j)))
			}
		}
		return true
	})
	return operations
}

var pathVariable = regexp.MustCompile(`\{[^}]*\}`)

func newOperation(method protoreflect.MethodDescriptor) operation {
	t := operation{method: fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())}
	t.lists = findLists(method.Input(), nil, nil)
	rule, _ := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
	if rule.GetBody() == "" {
		return t
	}
	switch {
	case rule.GetPost() != "":
		t.verb, t.path = "POST", rule.GetPost()
	case rule.GetPut() != "":
		t.verb, t.path = "PUT", rule.GetPut()
	case rule.GetPatch() != "":
		t.verb, t.path = "PATCH", rule.GetPatch()
	}
	t.path = pathVariable.ReplaceAllStringFunc(t.path, func(variable string) string {
		if strings.Contains(variable, "slug") {
			return deployment
		}
		return "1"
	})
	return t
}

// findLists finds lists and maps, breadth first.
func findLists(message protoreflect.MessageDescriptor, above listPath, found []listPath) []listPath {
	fields := message.Fields()
	at := func(i int) listPath { return append(append(listPath{}, above...), fields.Get(i)) }
	for i := range fields.Len() {
		if len(found) < listsOfRPC && (fields.Get(i).IsList() || fields.Get(i).IsMap()) {
			found = append(found, at(i))
		}
	}
	for i := range fields.Len() {
		if f := fields.Get(i); len(above) < listDepth && len(found) < listsOfRPC && f.Message() != nil && !f.IsMap() {
			found = findLists(f.Message(), at(i), found)
		}
	}
	return found
}

// wire returns a message with minimal elements.
func (p listPath) wire() []byte {
	last := p[len(p)-1]
	var data []byte
	switch kind := last.Kind(); {
	case last.Message() != nil, kind == protoreflect.StringKind, kind == protoreflect.BytesKind:
		element := protowire.AppendVarint(protowire.AppendTag(nil, last.Number(), protowire.BytesType), 0)
		data = bytes.Repeat(element, listBytes/len(element))
	default: // numbers, packed
		data = protowire.AppendTag(nil, last.Number(), protowire.BytesType)
		data = protowire.AppendBytes(data, bytes.Repeat([]byte{1}, listBytes))
	}
	for i := len(p) - 2; i >= 0; i-- {
		data = protowire.AppendBytes(protowire.AppendTag(nil, p[i].Number(), protowire.BytesType), data)
	}
	return data
}

// json returns the same in JSON.
func (p listPath) json() []byte {
	last := p[len(p)-1]
	element, open, end := "1,", "[", "1]"
	switch {
	case last.IsMap():
		element, open, end = `"":1,`, "{", `"":1}`
	case last.Message() != nil:
		element, end = "{},", "{}]"
	}
	text := open + strings.Repeat(element, listBytes/len(element)) + end
	for i := len(p) - 1; i >= 0; i-- {
		if i < len(p)-1 && p[i].IsList() {
			text = "[" + text + "]"
		}
		text = fmt.Sprintf("{%q:%s}", p[i].JSONName(), text)
	}
	return []byte(text)
}

// unknownFields returns fields that no message has.
func unknownFields(size int) []byte {
	element := protowire.AppendVarint(protowire.AppendTag(nil, protowire.MaxValidNumber, protowire.BytesType), 0)
	return bytes.Repeat(element, size/len(element))
}
