package document

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	failure "github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// schemaSource says which clauses of a rule go together, as scanners check it before a scan. A description says what is
// allowed.
//
//go:embed schema.json
var schemaSource []byte

const schemaURL = "rule.json"

var english = message.NewPrinter(language.English)

// ruleSchema compiles the schema once.
var ruleSchema = sync.OnceValue(func() *jsonschema.Schema {
	source, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaSource))
	if err != nil {
		panic(err) // it is embedded, and a test reads it
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	if err := compiler.AddResource(schemaURL, source); err != nil {
		panic(err)
	}
	return compiler.MustCompile(schemaURL)
})

// readClauses validates which clauses the rule has. The other checks come first, because their messages are better.
func (p *parser) readClauses(v *value) {
	err := ruleSchema().Validate(v.plain())
	invalid, ok := err.(*jsonschema.ValidationError) //nolint:errorlint // the library returns this type unwrapped
	if !ok {
		return
	}
	for _, leaf := range leavesOf(invalid) {
		at, line := v, v.line
		for _, name := range leaf.InstanceLocation {
			if at = at.member(name); at == nil {
				break
			}
			line = at.line
		}
		p.problem(line, "%s", explain(leaf, v))
	}
}

// leavesOf returns the errors without causes. Of alternatives, none is the wanted one: the error itself says what they
// are.
func leavesOf(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch e.ErrorKind.(type) {
	case *failure.OneOf, *failure.AnyOf, *failure.Not:
		return []*jsonschema.ValidationError{e}
	}
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var leaves []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		leaves = append(leaves, leavesOf(cause)...)
	}
	return leaves
}

// explain says where the error is, and what is allowed.
func explain(e *jsonschema.ValidationError, rule *value) string {
	where := pathOf(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *failure.FalseSchema:
		mode := modeSearch
		if given := rule.get("mode"); given != nil {
			mode = given.text
		}
		return fmt.Sprintf("%s is not allowed in a rule of mode %s", where, mode)
	case *failure.AdditionalProperties:
		return fmt.Sprintf("%s has no key %s%s", where, strings.Join(quoted(k.Properties), ", "), described(e, "; it knows "))
	case *failure.MaxProperties:
		return fmt.Sprintf("%s must have one key, got %d: is a hyphen missing?", where, k.Got)
	case *failure.MinItems:
		return fmt.Sprintf("%s must have at least %d, got %d", where, k.Want, k.Got)
	case *failure.Required:
		return fmt.Sprintf("%s: %s is missing", where, strings.Join(k.Missing, ", "))
	case *failure.Type:
		return fmt.Sprintf("%s must be of type %s, got %s", where, strings.Join(k.Want, " or "), k.Got)
	}
	if text := described(e, " must be "); text != "" {
		return where + text
	}
	return where + ": " + e.ErrorKind.LocalizedString(english)
}

// described returns the description of the schema that an error is about, with a prefix; empty if there is none.
func described(e *jsonschema.ValidationError, prefix string) string {
	_, pointer, _ := strings.Cut(e.SchemaURL, "#")
	var at any
	if json.Unmarshal(schemaSource, &at) != nil {
		return ""
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch node := at.(type) {
		case map[string]any:
			if name != "" {
				at = node[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(node) {
				return ""
			}
			at = node[i]
		}
	}
	node, _ := at.(map[string]any)
	text, _ := node["description"].(string)
	if text == "" {
		return ""
	}
	return prefix + text
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strconv.Quote(clip(name))
	}
	slices.Sort(out)
	return out
}

// pathOf writes a location such as patterns[2].pattern-not.
func pathOf(location []string) string {
	if len(location) == 0 {
		return "the rule"
	}
	var b strings.Builder
	for i, name := range location {
		switch _, err := strconv.Atoi(name); {
		case err == nil:
			fmt.Fprintf(&b, "[%s]", name)
		case i == 0:
			b.WriteString(clip(name))
		default:
			b.WriteString("." + clip(name))
		}
	}
	return b.String()
}

// member returns a member of an object or a list; nil if there is none.
func (v *value) member(name string) *value {
	switch v.kind {
	case object:
		if i := slices.Index(v.keys, name); i >= 0 {
			return v.items[i]
		}
	case array:
		if i, err := strconv.Atoi(name); err == nil && i < len(v.items) {
			return v.items[i]
		}
	}
	return nil
}

// plain converts the value to the types of encoding/json.
func (v *value) plain() any {
	switch v.kind {
	case boolean:
		return v.text == "true"
	case number:
		return json.Number(v.text)
	case text:
		return v.text
	case array:
		list := make([]any, len(v.items))
		for i, item := range v.items {
			list[i] = item.plain()
		}
		return list
	case object:
		members := make(map[string]any, len(v.keys))
		for i, key := range v.keys {
			members[key] = v.items[i].plain()
		}
		return members
	}
	return nil
}
