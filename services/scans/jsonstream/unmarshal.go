package jsonstream

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Fix is one change that [Unmarshal] made to a value so that it could be decoded.
type Fix struct {
	// Pointer is the JSON pointer of the changed part within the value.
	Pointer string
	// Problem says what was wrong and what happened: "is a number, want a string: converted". It never quotes the value.
	Problem string
}

const (
	// maxFixes bounds the parts of one value that are fixed one by one. Then each fix ignores a whole member of the value.
	maxFixes = 32
	// maxFixBytes bounds the size of a value times the number of its fixes, because each fix decodes the value again.
	maxFixBytes = 64 << 20
	// maxMembers bounds the members that are ignored as a whole. It is more than a decoded type has.
	maxMembers = 64
)

// Unmarshal decodes a value. A part of a wrong type is converted if possible, or else ignored; the rest of the value is
// kept. fixed gets each such part; it may be nil. The error says that the value cannot be used at all.
func Unmarshal(raw []byte, out any, fixed func(Fix)) error {
	err := json.Unmarshal(raw, out, Options)
	seen := map[jsontext.Pointer]bool{}
	for spent := len(raw); err != nil && len(seen) < maxFixes+maxMembers; spent += len(raw) {
		var semantic *json.SemanticError
		if !errors.As(err, &semantic) || semantic.JSONPointer == "" {
			return err
		}
		at := semantic.JSONPointer
		whole := len(seen) >= maxFixes || spent >= maxFixBytes
		if whole {
			at = member(at)
		}
		start, end, found := find(raw, at)
		if !found {
			return err
		}
		with, what := jsontext.Value("null"), "ignored"
		if converted := convert(raw[start:end], semantic.GoType); converted != nil && !seen[at] && !whole {
			with, what = converted, "converted"
		}
		seen[at] = true
		text := problem(err, semantic) + ": " + what
		if whole {
			text = "has many parts of a wrong type: ignored"
		}
		if fixed != nil {
			fixed(Fix{Pointer: Cut(Clean(string(at)), 200), Problem: text})
		}
		raw = bytes.Join([][]byte{raw[:start], with, raw[end:]}, nil)
		reflect.ValueOf(out).Elem().SetZero()
		err = json.Unmarshal(raw, out, Options)
	}
	return err
}

// member returns the pointer of the member or element of the value that has the part.
func member(part jsontext.Pointer) jsontext.Pointer {
	first, _, _ := strings.Cut(string(part[1:]), "/")
	return "/" + jsontext.Pointer(first)
}

// problem describes a part without its name.
func problem(err error, semantic *json.SemanticError) string {
	var wrong mismatch
	var want expectation
	switch {
	case errors.As(err, &wrong):
		return wrong.Error()
	case errors.As(err, &want):
		return "is out of range, " + want.Error()
	}
	return fmt.Sprintf("is %s, want %s", KindName(semantic.JSONKind), typeName(semantic.GoType))
}

// find returns the range of the value at a pointer. Of repeated names it takes the first one that is not null.
func find(raw []byte, at jsontext.Pointer) (start, end int, found bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), Options)
	for token := range at.Tokens() {
		if !enter(dec, token) {
			return 0, 0, false
		}
	}
	value, err := dec.ReadValue()
	end = int(dec.InputOffset())
	return end - len(value), end, err == nil
}

// enter moves the decoder before a member or an element of the next value.
func enter(dec *jsontext.Decoder, token string) bool {
	open, err := dec.ReadToken()
	if err != nil {
		return false
	}
	switch open.Kind() {
	case '[':
		n, err := strconv.Atoi(token)
		for ; err == nil && n > 0; n-- {
			err = dec.SkipValue()
		}
		return err == nil && dec.PeekKind() != ']'
	case '{':
		for dec.PeekKind() == '"' {
			name, err := dec.ReadToken()
			if err != nil {
				return false
			}
			if name.String() == token && dec.PeekKind() != 'n' {
				return true
			}
			if dec.SkipValue() != nil {
				return false
			}
		}
	}
	return false
}

// convert returns the value in the wanted type, or nil.
func convert(value jsontext.Value, want reflect.Type) jsontext.Value {
	if want == nil {
		return nil
	}
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	kind := value.Kind()
	switch want.Kind() {
	case reflect.String:
		if kind == '0' || kind == 't' || kind == 'f' {
			return quote(string(value))
		}
	case reflect.Slice, reflect.Array:
		if kind != 'n' && kind != '[' {
			return bytes.Join([][]byte{[]byte("["), value, []byte("]")}, nil)
		}
	case reflect.Struct:
		if name := textField(want); name != "" && kind == '"' {
			return bytes.Join([][]byte{[]byte(`{"` + name + `":`), value, []byte("}")}, nil)
		}
	case reflect.Bool:
		if b, err := strconv.ParseBool(scalar(value)); err == nil {
			return jsontext.Value(strconv.FormatBool(b))
		}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		f, err := strconv.ParseFloat(scalar(value), 64)
		if err == nil && f >= -maxInt && f <= maxInt {
			if want.Kind() != reflect.Float64 {
				return jsontext.Value(strconv.FormatInt(int64(f), 10))
			}
			return jsontext.Value(strconv.FormatFloat(f, 'g', -1, 64))
		}
	}
	return nil
}

// textField is the field of a SARIF object that tools write as a bare text, such as "message": "text"; or "".
func textField(t reflect.Type) string {
	for _, name := range []string{"text", "uri", "id"} {
		for i := range t.NumField() {
			if t.Field(i).Tag.Get("json") == name {
				return name
			}
		}
	}
	return ""
}

// scalar is the text of a string or number.
func scalar(value jsontext.Value) string {
	switch value.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	case '0':
		return string(value)
	}
	return ""
}

func quote(text string) jsontext.Value {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return nil
	}
	return quoted
}
