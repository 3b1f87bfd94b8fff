package audit

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	_ "github.com/palisade/palisade/gen/palisade/notifications/v1" // registers messages with secrets
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	_ "github.com/palisade/palisade/gen/palisade/scm/v1"
	_ "github.com/palisade/palisade/gen/palisade/supplychain/v1"
)

func parse(t *testing.T, side json.RawMessage) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(side, &object); err != nil {
		t.Fatalf("%s: %v", side, err)
	}
	return object
}

func TestSidesAreCompleteWhenTheyFit(t *testing.T) {
	before, after := sides(&projectsv1.Project{Id: 7, Name: "acme/web"}, &projectsv1.Project{Id: 7, Name: "acme/web", Url: "https://x.test/?a=1&b=<2>"})
	if old, changed := parse(t, before), parse(t, after); old["name"] != "acme/web" || old["url"] != "" || changed["url"] != "https://x.test/?a=1&b=<2>" || changed["id"] != "7" {
		t.Errorf("got %s and %s", before, after)
	}
	if before, after := sides(nil, (*projectsv1.Project)(nil)); before != nil || after != nil {
		t.Errorf("got %s and %s, want neither", before, after)
	}
	// The stored text must be read back unchanged, because the hash covers it.
	stored, err := json.Marshal([]json.RawMessage{before, after})
	if err != nil || string(stored) != "["+string(before)+","+string(after)+"]" {
		t.Errorf("stored as %s (%v), not as %s and %s", stored, err, before, after)
	}
}

func TestSidesKeepWhatChanged(t *testing.T) {
	long := func(tag string, n int) *projectsv1.Project {
		p := &projectsv1.Project{Name: "acme/web", Url: tag}
		for i := range n {
			p.Tags = append(p.Tags, fmt.Sprintf("%s %d", strings.Repeat("ä<", 300), i))
		}
		return p
	}
	before, after := sides(long("old", 60), long("new", 60))
	if old, changed := parse(t, before), parse(t, after); len(old) != 1 || old["url"] != "old" || changed["url"] != "new" {
		t.Errorf("got %s and %s, want the field that changed", before, after)
	}
	before, after = sides(long("old", 60), long("new", 61))
	for _, side := range []json.RawMessage{before, after} {
		object := parse(t, side)
		if len(side) > maxSide || object["url"] == nil || object["tags"] != cutMark {
			t.Errorf("%d bytes: %s", len(side), side)
		}
	}
	if before, after = sides(nil, long("new", 60)); before != nil || len(after) > maxSide || parse(t, after)["name"] != "acme/web" {
		t.Errorf("got %s and %s", before, after)
	}
}

func TestSidesOfBadMessages(t *testing.T) {
	for name, m := range map[string]proto.Message{
		"a time out of range": &projectsv1.Project{CreatedAt: &timestamppb.Timestamp{Seconds: 1 << 60}},
		"invalid UTF-8":       &projectsv1.Project{Name: "a\xffb\x00c"},
	} {
		_, after := sides(nil, m)
		if !json.Valid(after) || strings.Contains(string(after), `\u0000`) {
			t.Errorf("%s: %q", name, after)
		}
	}
}

func TestChangesOfOneEntryAreBounded(t *testing.T) {
	var list changeList
	for i := range maxChanges + 20 {
		list.add("finding", i, nil, &findingsv1.BulkTriageRequest{NewNote: strings.Repeat("x", 5000)})
	}
	changes := list.close()
	text, err := json.Marshal(changes)
	if err != nil || len(changes) != maxChanges+1 || len(text) > maxSides+maxSide+maxChanges*100 {
		t.Fatalf("%d changes of %d bytes (%v)", len(changes), len(text), err)
	}
	if last := changes[maxChanges]; last.Kind != KindOmitted || last.ID != "20" || changes[maxChanges-1].ID != strconv.Itoa(maxChanges-1) {
		t.Errorf("got %+v", last)
	}
}

const canary = "canary-5d1f0c"

// TestNoSecretOfTheAPIIsShown fills every secret field of every message and searches for the values.
func TestNoSecretOfTheAPIIsShown(t *testing.T) {
	filled := 0
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(string(file.Package()), "palisade.") {
			return true
		}
		for i := range file.Messages().Len() {
			m := dynamicpb.NewMessage(file.Messages().Get(i))
			filled += fill(m, 5)
			request := requestJSON(m)
			before, after := sides(m, m)
			if text := request + string(before) + string(after); strings.Contains(text, canary) {
				t.Errorf("%s: a secret is shown: %s", m.Descriptor().FullName(), text)
			}
			_, after = sides(&projectsv1.Project{}, m)
			if strings.Contains(string(after), canary) {
				t.Errorf("%s: a secret is shown: %s", m.Descriptor().FullName(), after)
			}
		}
		return true
	})
	if filled < 10 {
		t.Errorf("only %d secrets were found in the API", filled)
	}
}

// fill sets the secrets of a message and its nested messages, and returns their number.
func fill(m protoreflect.Message, depth int) (filled int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case isSecret(field) && field.Kind() == protoreflect.StringKind:
			filled++
			if field.IsList() {
				m.Mutable(field).List().Append(protoreflect.ValueOfString(canary))
			} else {
				m.Set(field, protoreflect.ValueOfString(canary))
			}
		case field.Message() == nil || field.IsMap() || depth == 0 || strings.HasPrefix(string(field.Message().FullName()), "google."):
		case field.IsList():
			filled += fill(m.Mutable(field).List().AppendMutable().Message(), depth-1)
		default:
			filled += fill(m.Mutable(field).Message(), depth-1)
		}
	}
	return filled
}
