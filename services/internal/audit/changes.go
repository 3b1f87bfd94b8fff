package audit

import (
	"encoding/json"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent/column"
)

const (
	// maxSide bounds one side of a change, in bytes of JSON.
	maxSide = 8 << 10
	// maxSides bounds all sides of one entry together; changes beyond it tell only what was changed.
	maxSides = 256 << 10
	// maxChanges bounds how many changes one entry lists.
	maxChanges = 500
)

// KindOmitted is the kind of a last change that stands for all those that one entry has no room for; its id is their
// number.
const KindOmitted = "omitted"

// changeList is what one transaction changes in one deployment.
type changeList struct {
	changes []column.AuditChange
	size    int
	omitted int
}

func (l *changeList) add(kind string, id any, before, after proto.Message) {
	if len(l.changes) == maxChanges {
		l.omitted++
		return
	}
	change := column.AuditChange{Kind: clean(kind), ID: clean(fmt.Sprint(id))}
	if l.size < maxSides {
		change.Before, change.After = sides(before, after)
		l.size += len(change.Before) + len(change.After)
	}
	l.changes = append(l.changes, change)
}

func (l *changeList) close() []column.AuditChange {
	if l.omitted > 0 {
		return append(l.changes, column.AuditChange{Kind: KindOmitted, ID: strconv.Itoa(l.omitted)})
	}
	return l.changes
}

// sides renders both sides of a change; nil for one that is not there. When one is too long, fields that did not change
// are left out of both, and then the longest are cut.
func sides(before, after proto.Message) (from, to json.RawMessage) {
	old, changed := fieldsOf(before), fieldsOf(after)
	if sizeOf(old) > maxSide || sizeOf(changed) > maxSide {
		for name, value := range old {
			if other, ok := changed[name]; ok && string(other) == string(value) {
				delete(old, name)
				delete(changed, name)
			}
		}
	}
	return old.render(), changed.render()
}

// fields is a JSON object; nil for none.
type fields map[string]json.RawMessage

func fieldsOf(m proto.Message) fields {
	if m == nil || !m.ProtoReflect().IsValid() {
		return nil
	}
	text, err := protojson.MarshalOptions{AllowPartial: true, EmitDefaultValues: true}.Marshal(shown(m))
	if err == nil {
		text, err = json.Marshal(json.RawMessage(text)) // compact, and escaped as it will be stored
	}
	object := fields{}
	if err != nil || json.Unmarshal(text, &object) != nil {
		return fields{} // a time that is out of range; that the object changed is still told
	}
	return object
}

var cutValue = json.RawMessage(strconv.Quote(cutMark))

func (f fields) render() json.RawMessage {
	if f == nil {
		return nil
	}
	for sizeOf(f) > maxSide {
		longest := ""
		for name, value := range f {
			if len(value) > len(f[longest]) || len(value) == len(f[longest]) && name < longest {
				longest = name
			}
		}
		if len(f[longest]) <= len(cutValue) {
			return json.RawMessage("{}") // nothing but names, and too many of them
		}
		f[longest] = cutValue
	}
	text, err := json.Marshal(f)
	if err != nil {
		return json.RawMessage("{}")
	}
	return text
}

// sizeOf is at least how long the object is as JSON.
func sizeOf(f fields) int {
	size := len("{}")
	for name, value := range f {
		size += len(name) + len(value) + len(`"":,`)
	}
	return size
}
