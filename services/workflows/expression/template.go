package expression

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	opening = "${{"
	closing = "}}"
)

// part is a piece of a text: a literal, or an expression without its ${{ }}.
type part struct {
	text       string
	expression bool
}

// split splits a text into parts. An expression ends at the first }} outside of its string literals, comments and
// braces, so an object literal needs no extra spaces.
func split(text string) ([]part, error) {
	var parts []part
	for text != "" {
		literal, rest, found := strings.Cut(text, opening)
		if literal != "" {
			parts = append(parts, part{text: literal})
		}
		if !found {
			break
		}
		end := endOf(rest)
		if end < 0 {
			return nil, errors.New("an expression begins with ${{ and does not end with }}: " + short(opening+rest))
		}
		parts = append(parts, part{text: rest[:end], expression: true})
		text = rest[end+len(closing):]
	}
	return parts, nil
}

// endOf returns the index of the }} that ends an expression; -1 if there is none.
func endOf(text string) int {
	depth := 0
	for i := 0; i < len(text); {
		switch {
		case text[i] == '"' || text[i] == '\'':
			length := literal(text[i:], i > 0 && isRaw(text[:i]))
			if length < 0 {
				return -1
			}
			i += length
			continue
		case strings.HasPrefix(text[i:], "//"):
			line := strings.IndexByte(text[i:], '\n')
			if line < 0 {
				return -1
			}
			i += line
		case text[i] == '{':
			depth++
		case text[i] == '}' && depth > 0:
			depth--
		case strings.HasPrefix(text[i:], closing):
			return i
		}
		i++
	}
	return -1
}

// literal returns the length of the string literal at the start of text; -1 if it is unterminated.
func literal(text string, raw bool) int {
	quote := text[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text, triple) {
		quote = triple
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\' && !raw:
			i++
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		}
	}
	return -1
}

// isRaw reports whether a string literal after this prefix is a raw one: r"…", rb"…".
func isRaw(before string) bool {
	start := len(before)
	for start > 0 && (before[start-1] == '_' || before[start-1] >= '0' && before[start-1] <= '9' || before[start-1]|0x20 >= 'a' && before[start-1]|0x20 <= 'z') {
		start--
	}
	switch strings.ToLower(before[start:]) {
	case "r", "rb", "br":
		return true
	}
	return false
}

// single returns the expression if the text is exactly one expression.
func single(text string) (string, bool) {
	if !strings.HasPrefix(text, opening) {
		return "", false
	}
	parts, err := split(text)
	if err != nil || len(parts) != 1 || !parts[0].expression {
		return "", false
	}
	return parts[0].text, true
}

// CheckTexts rejects a JSON-like value if an expression in one of its texts is invalid.
func CheckTexts(value any) error { return eachExpression(value, Check) }

// eachExpression calls fn for the expressions in all texts of a value, in a fixed order.
func eachExpression(value any, fn func(text string) error) error {
	switch v := value.(type) {
	case string:
		parts, err := split(v)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if !p.expression {
				continue
			}
			if err := fn(p.text); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := eachExpression(item, fn); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := eachExpression(v[name], fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// Render evaluates the expressions in all texts of a JSON-like value and returns a new value. A text that is exactly
// one expression (ignoring surrounding blanks) becomes its value, of any type. In other texts values are formatted as
// [Text] does. Results are not evaluated again, so external text cannot inject expressions.
func Render(value any, scope Scope) (any, error) {
	budget := MaxResult
	return render(value, scope, &budget)
}

func render(value any, scope Scope, budget *int) (any, error) {
	switch v := value.(type) {
	case string:
		return renderText(v, scope, budget)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			rendered, err := render(item, scope, budget)
			if err != nil {
				return nil, err
			}
			out[i] = rendered
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			rendered, err := render(v[name], scope, budget)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			out[name] = rendered
		}
		return out, nil
	}
	return value, nil
}

func renderText(source string, scope Scope, budget *int) (any, error) {
	if inner, only := single(strings.TrimSpace(source)); only {
		return eval(inner, scope, budget)
	}
	parts, err := split(source)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, p := range parts {
		if !p.expression {
			b.WriteString(p.text)
			continue
		}
		value, err := eval(p.text, scope, budget)
		if err != nil {
			return nil, err
		}
		written, err := Text(value)
		if err != nil {
			return nil, err
		}
		b.WriteString(written)
	}
	return b.String(), nil
}
