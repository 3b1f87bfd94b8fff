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

// schemaURL names the question's schema. Nothing is loaded from it.
const schemaURL = "answer.json"

// CheckSchema returns an error when a schema cannot be used.
func CheckSchema(schema map[string]any) error {
	_, err := compile(schema)
	return err
}

// noLoader rejects references to other documents. The library would read local files.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("other documents are not loaded") }

func compile(schema map[string]any) (*jsonschema.Schema, error) {
	if schema == nil {
		return nil, nil
	}
	// Maps from YAML and from code have ints, which the library does not accept as JSON numbers.
	encoded, err := json.Marshal(schema)
	if err != nil {
		return nil, permanent("the schema of the answer is not JSON")
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		return nil, permanent("the schema of the answer is not JSON")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, document); err != nil {
		return nil, permanent("the schema of the answer is not a JSON Schema")
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, permanent("the schema of the answer is not a JSON Schema, or refers to other documents")
	}
	return compiled, nil
}

// check extracts and validates the JSON of an answer. text is the problem in full, for the model. where is safe to
// show to people: it names parts of the schema and nothing of the answer.
func check(schema *jsonschema.Schema, answer string) (found json.RawMessage, text, where string) {
	raw, ok := extract(answer)
	if !ok {
		return nil, "there is no JSON value in it", "it is not JSON"
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, "it is not JSON", "it is not JSON"
	}
	if err := schema.Validate(value); err != nil {
		return nil, err.Error(), violations(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, "it is not JSON", "it is not JSON"
	}
	return compact.Bytes(), "", ""
}

// maxViolations limits the violations that an error names.
const maxViolations = 3

// violations lists the schema keywords that an answer violates.
func violations(err error) string {
	var violation *jsonschema.ValidationError
	if !errors.As(err, &violation) {
		return "it does not match"
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
	if len(names) > maxViolations {
		names = append(names[:maxViolations], "…")
	}
	return "it violates " + strings.Join(names, ", ")
}

// extract finds the JSON value in a text: the whole text, a code fence, or the part after words and after the
// thoughts that local models print first.
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

// maxTries limits the brackets that are tried as the start of the answer, because each try may read the whole text.
const maxTries = 30

// strictable reports whether the schema qualifies for the API's strict mode: every object must require all its
// properties and allow no others.
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
