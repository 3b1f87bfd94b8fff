package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	// maxValues is the maximum number of values in a file. Aliased values count each time they are used.
	maxValues = 1_000_000
	// maxDepth is the maximum nesting of values: scanners recurse into them.
	maxDepth = 60
)

// read parses the file and returns its single value; nil if there is none.
func (p *parser) read(source []byte) *value {
	source = bytes.TrimPrefix(source, []byte("\xef\xbb\xbf")) // some editors add a byte order mark
	switch {
	case len(source) > MaxSource:
		p.problem(1, "the file has %d bytes, at most %d are allowed", len(source), MaxSource)
		return nil
	case !utf8.Valid(source):
		p.problem(1, "the file is not UTF-8")
		return nil
	}
	if strings.HasSuffix(strings.ToLower(p.file), ".json") || looksLikeJSON(source) {
		return p.readJSON(source)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	var first, second yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) || err == nil && len(first.Content) == 0 {
		p.problem(1, "the file is empty")
		return nil
	} else if err != nil {
		p.syntax(err)
		return nil
	}
	if err := decoder.Decode(&second); err == nil {
		p.problem(second.Line, "a second document begins here: a file of rules is one")
		return nil
	} else if !errors.Is(err, io.EOF) {
		p.syntax(err)
		return nil
	}
	return p.convert(first.Content[0], 0)
}

// looksLikeJSON distinguishes JSON from YAML that begins with a brace.
func looksLikeJSON(source []byte) bool {
	trimmed := bytes.TrimSpace(source)
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed)
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

func (p *parser) syntax(err error) {
	line, what := 1, err.Error()
	if m := yamlLine.FindStringSubmatch(what); m != nil {
		what = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	p.problem(line, "this is not YAML: %s", strings.Join(strings.Fields(what), " "))
}

// countValues counts values; false if there are too many or they nest too deep.
func (p *parser) countValues(line, depth, count int) bool {
	switch before := p.expanded; {
	case depth > maxDepth:
		p.problem(line, "values nest deeper than %d levels", maxDepth)
		return false
	default:
		if p.expanded += count; p.expanded > maxValues {
			if before <= maxValues {
				p.problem(line, "the file has more than %d values, aliases counted as often as they are used", maxValues)
			}
			return false
		}
	}
	return true
}

// convert converts a YAML value; nil if JSON has no such value.
func (p *parser) convert(n *yaml.Node, depth int) *value {
	line := n.Line
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if !p.countValues(line, depth, 1) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		return p.convertMapping(n, line, depth)
	case yaml.SequenceNode:
		out := &value{line: line, kind: array}
		for _, item := range n.Content {
			converted := p.convert(item, depth+1)
			if converted == nil {
				return nil
			}
			out.items = append(out.items, converted)
		}
		return out
	}
	return p.convertScalar(n, line)
}

func (p *parser) convertMapping(n *yaml.Node, line, depth int) *value {
	out := &value{line: line, kind: object}
	at := make(map[string]int, len(n.Content)/2)
	var merged []*value
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		for key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		item := p.convert(n.Content[i+1], depth+1)
		if item == nil {
			return nil
		}
		switch _, twice := at[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			p.problem(n.Content[i].Line, "keys must be texts, got a list or an object")
			return nil
		case key.ShortTag() == "!!merge":
			if item.kind == array {
				merged = append(merged, item.items...)
			} else {
				merged = append(merged, item)
			}
		case twice:
			p.problem(n.Content[i].Line, "the key %q is there twice", clip(key.Value))
			return nil
		default:
			at[key.Value] = len(out.keys)
			out.keys, out.items = append(out.keys, key.Value), append(out.items, item)
		}
	}
	for _, from := range merged { // an object's own keys take precedence over merged ones, and earlier merges over later ones
		if from.kind != object {
			p.problem(from.line, "<< merges objects, got %s", from)
			return nil
		}
		for i, key := range from.keys {
			if _, known := at[key]; !known {
				at[key] = len(out.keys)
				out.keys, out.items = append(out.keys, key), append(out.items, from.items[i])
			}
		}
	}
	return out
}

func (p *parser) convertScalar(n *yaml.Node, line int) *value {
	switch n.ShortTag() {
	case "!!null":
		return &value{line: line}
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return &value{line: line, kind: boolean, text: strconv.FormatBool(b)}
		}
	case "!!int", "!!float":
		if digits, ok := jsonNumber(n); ok {
			return &value{line: line, kind: number, text: digits}
		}
		p.problem(line, "%s is not a number that JSON knows", clip(n.Value))
		return nil
	case "!!str", "!!timestamp":
		return &value{line: line, kind: text, text: n.Value}
	}
	p.problem(line, "values of the YAML type %s are not supported", clip(n.ShortTag()))
	return nil
}

var jsonDigits = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// jsonNumber returns a number's digits unchanged if they are valid JSON.
func jsonNumber(n *yaml.Node) (string, bool) {
	if jsonDigits.MatchString(n.Value) {
		return n.Value, true
	}
	if whole, ok := new(big.Int).SetString(n.Value, 0); ok && n.ShortTag() == "!!int" {
		return whole.String(), true
	}
	var f float64
	if n.Decode(&f) != nil {
		return "", false
	}
	out, err := json.Marshal(f)
	return string(out), err == nil // infinity and NaN are errors
}
