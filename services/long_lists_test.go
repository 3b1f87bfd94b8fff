package services_test

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// manyValues exceeds the number of parameters of a statement: 32,766 on SQLite, 65,535 on PostgreSQL.
const manyValues = 70_000

// listFormats are formats of texts that need one.
var listFormats = map[protoreflect.Name]string{"repository_ref_ids": "%d:refs/heads/main"}

// TestLongLists sends a list of the maximum length in every list field of every request. The server may refuse it, but
// must not fail.
func TestLongLists(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, on)
		f := newFilling(t, s, "ours", 1, 3)
		answered, lists := 0, 0
		for _, rpc := range inOrder(operations()) {
			if rpc.descriptor.IsStreamingClient() || rpc.descriptor.IsStreamingServer() {
				continue
			}
			bare := f.request(t, rpc)
			if onlyReads(rpc) {
				bare = f.lists(t, rpc)["nothing"]
			}
			for _, path := range listsIn(bare.Descriptor(), 3) {
				lists++
				request := proto.CloneOf(bare)
				n := f.fillList(request, path)
				answer, _ := f.call(t, rpc, request)
				switch answer.Code() {
				case codes.OK:
					answered++
				case codes.Internal, codes.Unknown, codes.Unavailable, codes.DeadlineExceeded:
					t.Errorf("%s with %d values of %s: %v", rpc.name, n, path[len(path)-1].FullName(), answer.Err())
				}
			}
		}
		t.Logf("%d of %d long lists were answered", answered, lists)
		if answered < 60 {
			t.Errorf("only %d of %d long lists were answered", answered, lists)
		}
	})
}

// listsIn are the paths to the lists of words and numbers in a message.
func listsIn(d protoreflect.MessageDescriptor, depth int) (paths [][]protoreflect.FieldDescriptor) {
	for i := range d.Fields().Len() {
		field := d.Fields().Get(i)
		switch {
		case field.IsMap():
		case field.Kind() == protoreflect.MessageKind && !field.IsList() && depth > 1:
			for _, inner := range listsIn(field.Message(), depth-1) {
				paths = append(paths, append([]protoreflect.FieldDescriptor{field}, inner...))
			}
		case field.IsList() && field.Kind() != protoreflect.MessageKind:
			paths = append(paths, []protoreflect.FieldDescriptor{field})
		}
	}
	return paths
}

// fillList fills a list to its maximum length, and returns that length.
func (f *filling) fillList(message *dynamicpb.Message, path []protoreflect.FieldDescriptor) int {
	var of protoreflect.Message = message
	for _, field := range path[:len(path)-1] {
		of = of.Mutable(field).Message()
	}
	field := path[len(path)-1]
	n := manyValues
	if most := rulesOf(field).GetRepeated().GetMaxItems(); most > 0 {
		n = min(n, int(most))
	}
	list := of.Mutable(field).List()
	list.Truncate(0)
	for i := range n {
		switch field.Kind() {
		case protoreflect.StringKind:
			text := f.text(field, int64(i%int(f.rows)))
			if i >= int(f.rows) && len(rulesOf(field).GetRepeated().GetItems().GetString().GetIn()) == 0 {
				text = fmt.Sprintf("v%d", i)
			}
			if format := listFormats[field.Name()]; format != "" {
				text = fmt.Sprintf(format, i)
			}
			list.Append(protoreflect.ValueOfString(text))
		case protoreflect.EnumKind:
			list.Append(protoreflect.ValueOfEnum(field.Enum().Values().Get(i % field.Enum().Values().Len()).Number()))
		default:
			list.Append(f.elementValue(list.NewElement, field, int64(i)))
		}
	}
	return n
}
