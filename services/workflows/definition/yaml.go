package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agext/levenshtein"
	"go.yaml.in/yaml/v3"
)

type node = yaml.Node

const (
	maxNodes = 50_000
	maxDepth = 50
)

// document parses the source and returns its single document.
func (p *parser) document(source []byte) *node {
	switch {
	case len(source) > MaxSource:
		p.problem(1, "", "the definition has %d bytes, at most %d are allowed", len(source), MaxSource)
		return nil
	case !utf8.Valid(source):
		p.problem(1, "", "the definition is not UTF-8")
		return nil
	case bytes.Count(source, []byte("${{")) > maxExpressions:
		p.problem(1, "", "the definition has more than %d expressions", maxExpressions)
		return nil
	}
	if trimmed := bytes.TrimSpace(source); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		source = yamlOf(source)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	var first, second node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) || err == nil && len(first.Content) == 0 {
		p.problem(1, "", "the definition is empty")
		return nil
	} else if err != nil {
		p.syntax(err)
		return nil
	}
	if err := decoder.Decode(&second); err == nil {
		p.problem(max(second.Line, 1), "", "a second document begins here: a definition is one")
		return nil
	} else if !errors.Is(err, io.EOF) {
		p.syntax(err)
		return nil
	}
	return first.Content[0]
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

func (p *parser) syntax(err error) {
	line, text := 1, err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	p.problem(line, "", "this is not YAML: %s", strings.Join(strings.Fields(text), " "))
}

// yamlOf rewrites valid JSON for the YAML library without changing line numbers: the library rejects tabs between
// values and some escapes.
func yamlOf(source []byte) []byte {
	out, inText := make([]byte, 0, len(source)), false
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case inText && c == '\\':
			escaped, length := unescape(source[i:])
			out = append(out, escaped...)
			i += length - 1
		case c == '\t':
			out = append(out, ' ')
		default:
			inText = inText != (c == '"')
			out = append(out, c)
		}
	}
	return out
}

// unescape returns the first escape of text in a form that YAML accepts, and the escape's length.
func unescape(text []byte) (escaped []byte, length int) {
	switch {
	case text[1] == '/':
		return []byte("/"), 2
	case text[1] != 'u':
		return text[:2], 2
	}
	if len(text) >= 12 && text[6] == '\\' && text[7] == 'u' { // possibly a surrogate pair
		var decoded string
		if json.Unmarshal(slices.Concat([]byte{'"'}, text[:12], []byte{'"'}), &decoded) == nil && utf8.RuneCountInString(decoded) == 1 {
			return []byte(decoded), 12
		}
	}
	var decoded string
	if json.Unmarshal(slices.Concat([]byte{'"'}, text[:6], []byte{'"'}), &decoded) == nil && decoded == "\ufffd" {
		return []byte(decoded), 6 // half of a surrogate pair
	}
	return text[:6], 6
}

// follow resolves an alias.
func follow(n *node) *node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *node) bool { return n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// object reads a mapping and rejects unknown and duplicate keys. Null counts as empty.
func (p *parser) object(n *node, step, what string, known ...string) map[string]*node {
	fields := map[string]*node{}
	p.members(n, step, what, func(key, value *node) {
		if !slices.Contains(known, key.Value) {
			p.problem(key.Line, step, "%s has no key %q%s", what, clip(key.Value), p.nearest(key.Value, known))
			return
		}
		fields[key.Value] = value
	})
	return fields
}

// members calls fn for each member of a mapping.
func (p *parser) members(n *node, step, what string, fn func(key, value *node)) {
	n = follow(n)
	if isNull(n) || !p.countNode(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.problem(n.Line, step, "%s must be an object, got %s", what, kindOf(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := follow(n.Content[i]), follow(n.Content[i+1])
		switch {
		case key.Kind != yaml.ScalarNode:
			p.problem(key.Line, step, "%s has a key that is %s, want a text", what, kindOf(key))
		case key.ShortTag() == "!!merge":
			p.problem(key.Line, step, "merge keys (<<) are not supported: write the keys out")
		case seen[key.Value]:
			p.problem(key.Line, step, "%s has the key %q twice", what, clip(key.Value))
		default:
			seen[key.Value] = true
			fn(key, value)
		}
	}
}

// items returns the items of a list. Null counts as empty.
func (p *parser) items(n *node, step, what string) []*node {
	n = follow(n)
	if isNull(n) || !p.countNode(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		p.problem(n.Line, step, "%s must be a list, got %s", what, kindOf(n))
		return nil
	}
	out := make([]*node, len(n.Content))
	for i, item := range n.Content {
		out[i] = follow(item)
	}
	return out
}

// countNode counts a node and its direct children against the limit; false if the limit is exceeded.
func (p *parser) countNode(n *node) bool {
	before := p.expanded
	if p.expanded += 1 + len(n.Content); p.expanded <= maxNodes {
		return true
	}
	if before <= maxNodes {
		p.problem(n.Line, "", "the definition has more than %d values, aliases counted as often as they are used", maxNodes)
	}
	return false
}

// text reads a string. Numbers and booleans keep their written form.
func (p *parser) text(n *node, step, what string, most int) string {
	if isNull(n) {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		p.problem(n.Line, step, "%s must be a text, got %s", what, kindOf(n))
		return ""
	}
	text := strings.TrimSpace(n.Value)
	if count := utf8.RuneCountInString(text); count > most {
		p.problem(n.Line, step, "%s has %d characters, at most %d are allowed", what, count, most)
		return ""
	}
	return text
}

// word reads an enum word.
func (p *parser) word(n *node, step, what, absent string, allowed ...string) string {
	got := p.text(n, step, what, MaxSource)
	if got == "" {
		return absent
	}
	if !slices.Contains(allowed, got) {
		p.problem(n.Line, step, "%s must be one of %s, got %q", what, strings.Join(allowed, ", "), clip(got))
		return absent
	}
	return got
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

func (p *parser) name(n *node, line int, step, what string) string {
	if isNull(n) {
		p.problem(line, step, "%s is missing", what)
		return ""
	}
	got := p.text(n, step, what, MaxSource)
	if !namePattern.MatchString(got) {
		p.problem(n.Line, step, "%s must match %s, got %q", what, namePattern, clip(got))
		return ""
	}
	return got
}

// number reads a number between two bounds; 0 if absent.
func (p *parser) number(n *node, step, what string, least, most float64) float64 {
	if isNull(n) {
		return 0
	}
	got, isNumber := p.value(n, step).(float64)
	if !isNumber || got < least || got > most {
		p.problem(n.Line, step, "%s must be a number from %v to %v, got %s", what, int64(least), int64(most), clip(n.Value))
		return 0
	}
	return got
}

// integer is number for integers.
func (p *parser) integer(n *node, step, what string, least, most int32) int32 {
	if isNull(n) {
		return 0
	}
	got, isNumber := p.value(n, step).(float64)
	if !isNumber || got != math.Trunc(got) || got < float64(least) || got > float64(most) {
		p.problem(n.Line, step, "%s must be a whole number from %d to %d, got %s", what, least, most, clip(n.Value))
		return 0
	}
	return int32(got)
}

func (p *parser) boolean(n *node, step, what string) bool {
	if isNull(n) {
		return false
	}
	got, isBool := p.value(n, step).(bool)
	if !isBool {
		p.problem(n.Line, step, "%s must be true or false, got %q", what, clip(n.Value))
	}
	return got
}

// value decodes any value to the types that encoding/json uses.
func (p *parser) value(n *node, step string) any { return p.valueAt(n, step, 0) }

func (p *parser) valueAt(n *node, step string, depth int) any {
	n = follow(n)
	if n == nil {
		return nil
	}
	if depth > maxDepth {
		p.problem(n.Line, step, "values are nested deeper than %d levels", maxDepth)
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		p.members(n, step, "an object", func(key, value *node) { out[key.Value] = p.valueAt(value, step, depth+1) })
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range p.items(n, step, "a list") {
			out = append(out, p.valueAt(item, step, depth+1))
		}
		return out
	}
	return p.scalar(n, step)
}

func (p *parser) scalar(n *node, step string) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int", "!!float":
		var f float64
		if n.Decode(&f) == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
		p.problem(n.Line, step, "%s is not a number that JSON knows", clip(n.Value))
		return nil
	case "!!str", "!!timestamp":
		return n.Value
	}
	p.problem(n.Line, step, "values of the YAML type %s are not supported", clip(n.ShortTag()))
	return nil
}

func kindOf(n *node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", clip(n.Value))
}

// maxHints is the maximum number of "did you mean" hints in one definition. A hint is expensive if there are many
// steps.
const maxHints = 30

// nearest returns the candidate with the smallest edit distance to name.
func (p *parser) nearest(name string, candidates []string) string {
	if p.hints++; p.hints > maxHints {
		return ""
	}
	name = clip(name)
	best, least := "", math.MaxInt
	for _, candidate := range candidates {
		if distance := levenshtein.Distance(name, candidate, nil); distance < least {
			best, least = candidate, distance
		}
	}
	return fmt.Sprintf("; the nearest is %q", best)
}

// clip shortens text that a problem quotes.
func clip(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
