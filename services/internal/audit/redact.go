package audit

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

const (
	maxRequest   = 4 << 10 // bytes of JSON in an entry
	maxElements  = 100     // of a list or map
	maxText      = 1 << 10 // bytes of a string
	redactedText = "[redacted]"
	cutMark      = "…"
)

// requestJSON renders the request for an entry: without bytes fields, with secrets redacted, and truncated to 4
// KiB. A truncated request ends in an ellipsis and is not valid JSON.
func requestJSON(request proto.Message) string {
	if request == nil || !request.ProtoReflect().IsValid() {
		return "{}"
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true, AllowPartial: true}.Marshal(shown(request))
	if err != nil {
		return "{}"
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil { // protojson adds whitespace at random
		return "{}"
	}
	return cut(compact.String(), maxRequest)
}

// shown copies the fields of a message that may be shown. It does not clone the message, which may have 200,000
// ids.
func shown(m proto.Message) proto.Message {
	source := m.ProtoReflect()
	out := source.New()
	copyShown(out, source)
	return out.Interface()
}

func copyShown(to, from protoreflect.Message) {
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case isSecret(field):
			if field.Kind() == protoreflect.StringKind && field.Cardinality() != protoreflect.Repeated {
				to.Set(field, protoreflect.ValueOfString(redactedText))
			}
		case field.IsMap():
			copyMap(to.Mutable(field).Map(), value.Map(), field.MapValue())
		case field.IsList():
			copyList(to.Mutable(field).List(), value.List(), field)
		case field.Message() != nil:
			copyShown(to.Mutable(field).Message(), value.Message())
		case field.Kind() != protoreflect.BytesKind:
			to.Set(field, shownScalar(field, value))
		}
		return true
	})
}

func copyList(to, from protoreflect.List, field protoreflect.FieldDescriptor) {
	if field.Kind() == protoreflect.BytesKind {
		return
	}
	for i := range min(from.Len(), maxElements) {
		if field.Message() != nil {
			copyShown(to.AppendMutable().Message(), from.Get(i).Message())
		} else {
			to.Append(shownScalar(field, from.Get(i)))
		}
	}
}

func copyMap(to, from protoreflect.Map, field protoreflect.FieldDescriptor) {
	if field.Kind() == protoreflect.BytesKind {
		return
	}
	n := 0
	from.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		if field.Message() != nil {
			copyShown(to.Mutable(key).Message(), value.Message())
		} else {
			to.Set(key, shownScalar(field, value))
		}
		n++
		return n < maxElements
	})
}

func shownScalar(field protoreflect.FieldDescriptor, value protoreflect.Value) protoreflect.Value {
	if field.Kind() != protoreflect.StringKind {
		return value
	}
	return protoreflect.ValueOfString(cut(withoutUserInfo(clean(value.String())), maxText))
}

// userInfo matches the credentials in a URL, because people paste URLs with passwords.
var userInfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/?#\s"<>]*@`)

func withoutUserInfo(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return userInfo.ReplaceAllString(text, "${1}"+redactedText+"@")
}

// isSecret reads the option palisade.options.v1.secret.
func isSecret(field protoreflect.FieldDescriptor) bool {
	secret, _ := proto.GetExtension(field.Options(), optionsv1.E_Secret).(bool)
	return secret
}

// clean makes text storable: PostgreSQL accepts no NUL, and JSON no invalid UTF-8.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// cut truncates text to at most limit bytes, between characters.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len(cutMark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(text[:end], "") + cutMark
}
