package channel

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// maxTemplated is the maximum size of what a template gives, in bytes.
	maxTemplated = 28_000
	// maxTemplateText is the maximum size of the text that a template gets, minTemplateText the size to which it is
	// shortened if the result is too large.
	maxTemplateText = 16_000
	minTemplateText = 500
	// maxPlaceholders is the maximum number of placeholders in a template.
	maxPlaceholders = 20
)

// placeholder is the place of a field in a text of a template. Package text/template would keep the linker from
// dropping what nothing calls: 35 MB of the program.
var placeholder = regexp.MustCompile(`\{\{([^{}]*)\}\}`)

// templateFields are the names of placeholders.
var templateFields = []string{"title", "text", "link", "kind", "at"}

// chatTemplate is the JSON that is posted, with placeholders in its texts.
type chatTemplate struct{ document any }

// parseTemplate reads a template. The error is for its author.
func parseTemplate(text string) (*chatTemplate, error) {
	t := &chatTemplate{}
	if err := json.Unmarshal([]byte(text), &t.document); err != nil {
		return nil, fmt.Errorf("it must be JSON: %w%s", err, placeOf(text, err))
	}
	n := 0
	var problem error
	fillIn(t.document, func(value string) string {
		for _, found := range placeholder.FindAllStringSubmatch(value, -1) {
			n++
			if name := strings.TrimSpace(found[1]); !slices.Contains(templateFields, name) {
				problem = fmt.Errorf("it has the placeholder %q; known are {{%s}}", found[0], strings.Join(templateFields, "}}, {{"))
			}
		}
		return value
	})
	if n > maxPlaceholders {
		problem = fmt.Errorf("it has %d placeholders, and at most %d are allowed", n, maxPlaceholders)
	}
	return t, problem
}

// placeOf says where the JSON is broken.
func placeOf(text string, err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return ""
	}
	before := text[:min(int(syntax.Offset), len(text))]
	return fmt.Sprintf(", in line %d, byte %d", strings.Count(before, "\n")+1, len(before)-strings.LastIndexByte(before, '\n')-1)
}

// fillIn returns a document with other texts.
func fillIn(value any, change func(text string) string) any {
	switch value := value.(type) {
	case string:
		return change(value)
	case []any:
		out := make([]any, len(value))
		for i, one := range value {
			out[i] = fillIn(one, change)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, one := range value {
			out[name] = fillIn(one, change)
		}
		return out
	}
	return value
}

// body gives the JSON of a message. A long text is shortened until the result is small enough.
func (t *chatTemplate) body(m Message) ([]byte, error) {
	fields := map[string]string{
		"title": cutBytes(m.Subject, maxSubject), "link": m.Link, "kind": m.Kind, "at": m.At.UTC().Format(time.RFC3339),
	}
	for most := maxTemplateText; most >= minTemplateText; most /= 2 {
		fields["text"] = cutBytes(m.Text, most)
		body := encode(fillIn(t.document, func(text string) string {
			return placeholder.ReplaceAllStringFunc(text, func(found string) string { return fields[strings.TrimSpace(found[2:len(found)-2])] })
		}))
		if len(body) <= maxTemplated {
			return body, nil
		}
	}
	return nil, fmt.Errorf("config.template gives more than %d bytes", maxTemplated)
}
