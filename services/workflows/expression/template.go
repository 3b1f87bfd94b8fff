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

// part is a piece of a text: literal, or an expression with its ${{ }} taken off.
type part struct {
	text       string
	expression bool
}

// split cuts a text into its parts. An expression ends at the first }} that is outside of its string literals, comments
// and braces, so that an object in it needs no blanks.
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

// endOf finds the }} that ends an expression; -1 when there is none.
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

// literal gives the length of the string literal that text begins with; -1 when it does not end.
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

// isRaw reports whether a string literal after this text is a raw one: r"…", rb"…".
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

// single returns the expression of a text that is one expression and nothing else.
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

// CheckTexts refuses a JSON-like value in whose texts an expression is wrong.
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

// Render evaluates the expressions in all texts of a JSON-like value and returns a new one. A text that is one
// expression (blanks around it do not count) becomes its value, whatever the type; in any other text the values are
// written as [Text] does. What an expression gave is not looked at again: text from outside cannot bring expressions
// in.
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
