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
	// maxSide limits one side of a change, in bytes of JSON.
	maxSide = 8 << 10
	// maxSides limits all sides of an entry together. Further changes have only the object's kind and id.
	maxSides = 256 << 10
	// maxChanges limits the number of changes in an entry.
	maxChanges = 500
)

// KindOmitted is the kind of a final change that stands for the omitted ones. Its id is their number.
const KindOmitted = "omitted"

// changeList collects the changes of one transaction in one deployment.
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

// sides renders both sides of a change as JSON; a missing side is nil. If one is too long, it first removes
// unchanged fields from both, and then truncates the longest values.
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

// fields is a JSON object; nil means none.
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
		return fields{} // a time out of range; the entry still records that the object changed
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
			return json.RawMessage("{}") // only names, and too many of them
		}
		f[longest] = cutValue
	}
	text, err := json.Marshal(f)
	if err != nil {
		return json.RawMessage("{}")
	}
	return text
}

// sizeOf returns a lower bound of the object's size as JSON.
func sizeOf(f fields) int {
	size := len("{}")
	for name, value := range f {
		size += len(name) + len(value) + len(`"":,`)
	}
	return size
}
