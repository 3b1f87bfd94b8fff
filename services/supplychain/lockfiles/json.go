package lockfiles

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A document is JSON that is read member by member, which also tells the lines.
type document struct {
	*jsontext.Decoder
	content []byte // nil if nobody asks for lines
	offset  int
	line    int
}

func newDocument(content []byte) *document {
	in := jsontext.NewDecoder(bytes.NewBuffer(content), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return &document{Decoder: in, content: content, line: 1}
}

// members calls read for each member of an object, with the line of its name. read must read the value. A value that is
// no object has no members: PHP writes [] for an empty object.
func (d *document) members(read func(name string, line int) error) error {
	if d.PeekKind() != '{' {
		return d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		line := d.at()
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := read(token.String(), line); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// at returns the line of the next token.
func (d *document) at() int {
	if d.content == nil {
		return 0
	}
	next := int(d.InputOffset())
	for next < len(d.content) && bytes.IndexByte([]byte(" \t\r\n,:"), d.content[next]) >= 0 {
		next++
	}
	d.line += bytes.Count(d.content[d.offset:next], []byte("\n"))
	d.offset = next
	return d.line
}

// elements calls read for each element of an array, with its line. read must read the value.
func (d *document) elements(read func(line int) error) error {
	if d.PeekKind() != '[' {
		return d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' && d.PeekKind() != 0 {
		if err := read(d.at()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// texts returns the members of an object that are strings.
func (d *document) texts() (map[string]string, error) {
	out := map[string]string{}
	err := d.members(func(name string, _ int) error {
		value, err := d.text()
		out[name] = value
		return err
	})
	return out, err
}

// text reads a string; another value is "".
func (d *document) text() (string, error) {
	if d.PeekKind() != '"' {
		return "", d.SkipValue()
	}
	token, err := d.ReadToken()
	if err != nil {
		return "", err
	}
	return token.String(), nil
}

// A dict is an object of strings; members with other values have the text "", and another value is empty.
type dict map[string]string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *dict) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	read, err := (&document{Decoder: in}).texts()
	*t = read
	return err
}

func decode[T any](content []byte) (out T, err error) {
	err = json.Unmarshal(content, &out, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return out, err
}
