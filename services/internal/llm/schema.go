package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaURL names the question's schema; nothing is loaded from it.
const schemaURL = "answer.json"

// CheckSchema says why a schema cannot be used, nil when it can.
func CheckSchema(schema map[string]any) error {
	_, err := compile(schema)
	return err
}

// sealed refuses references to other documents: the library would read files of this machine.
type sealed struct{}

func (sealed) Load(string) (any, error) { return nil, errors.New("other documents are not loaded") }

func compile(schema map[string]any) (*jsonschema.Schema, error) {
	if schema == nil {
		return nil, nil
	}
	// Go maps from YAML and from code hold ints, which the library does not know as JSON numbers.
	encoded, err := json.Marshal(schema)
	if err != nil {
		return nil, permanent("the schema of the answer is no JSON")
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		return nil, permanent("the schema of the answer is no JSON")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(sealed{})
	if err := c.AddResource(schemaURL, document); err != nil {
		return nil, permanent("the schema of the answer is no JSON Schema")
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, permanent("the schema of the answer is no JSON Schema without references to other documents")
	}
	return compiled, nil
}

// check reads the answer from a model's text. text is what the model is told when the answer is wrong; where is what
// people may read of it: places in the schema, nothing of the answer.
func check(schema *jsonschema.Schema, answer string) (found json.RawMessage, text, where string) {
	raw, ok := extract(answer)
	if !ok {
		return nil, "there is no JSON value in it", "it is no JSON"
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, "it is no JSON", "it is no JSON"
	}
	if err := schema.Validate(value); err != nil {
		return nil, err.Error(), places(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, "it is no JSON", "it is no JSON"
	}
	return compact.Bytes(), "", ""
}

// maxPlaces is how many violations an error names.
const maxPlaces = 3

// places lists the keywords of the schema that an answer violates.
func places(err error) string {
	var violation *jsonschema.ValidationError
	if !errors.As(err, &violation) {
		return "it does not fit"
	}
	found := map[string]bool{}
	var walk func(v *jsonschema.ValidationError)
	walk = func(v *jsonschema.ValidationError) {
		for _, cause := range v.Causes {
			walk(cause)
		}
		if len(v.Causes) == 0 {
			_, fragment, _ := strings.Cut(v.SchemaURL, "#")
			if plain, err := url.PathUnescape(fragment); err == nil {
				fragment = plain
			}
			found[fmt.Sprintf("%s/%s", fragment, strings.Join(v.ErrorKind.KeywordPath(), "/"))] = true
		}
	}
	walk(violation)
	names := slices.Sorted(maps.Keys(found))
	if len(names) > maxPlaces {
		names = append(names[:maxPlaces], "…")
	}
	return "it violates " + strings.Join(names, ", ")
}

// extract finds the JSON value in a text: all of it, inside of a code fence, or after words and the thoughts that local
// models print first.
func extract(text string) (json.RawMessage, bool) {
	if _, after, thinks := strings.Cut(text, "</think>"); thinks {
		text = after
	}
	text = strings.TrimSpace(text)
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), true
	}
	if _, after, fenced := strings.Cut(text, "```"); fenced {
		inside, _, _ := strings.Cut(after, "```")
		inside = strings.TrimSpace(strings.TrimPrefix(inside, "json"))
		if json.Valid([]byte(inside)) {
			return json.RawMessage(inside), true
		}
	}
	start := 0
	for range maxTries {
		at := strings.IndexAny(text[start:], "{[")
		if at < 0 {
			break
		}
		start += at
		var raw json.RawMessage
		if err := json.NewDecoder(strings.NewReader(text[start:])).Decode(&raw); err == nil && (raw[0] == '{' || start == 0) {
			return raw, true
		}
		start++
	}
	return nil, false
}

// maxTries is how many brackets of a text are looked at as the beginning of the answer: each look may read all of it.
const maxTries = 30

// strictable reports whether the API can be asked to hold the model to the schema: every object must name all of its
// properties as required and allow no others.
func strictable(node any) bool {
	switch n := node.(type) {
	case map[string]any:
		if properties, is := n["properties"].(map[string]any); is || n["type"] == "object" {
			if n["additionalProperties"] != false || len(texts(n["required"])) != len(properties) {
				return false
			}
		}
		for _, child := range n {
			if !strictable(child) {
				return false
			}
		}
	case []any:
		for _, child := range n {
			if !strictable(child) {
				return false
			}
		}
	}
	return true
}

func texts(list any) []string {
	switch l := list.(type) {
	case []string:
		return l
	case []any:
		out := make([]string, 0, len(l))
		for _, v := range l {
			if s, ok := v.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}
