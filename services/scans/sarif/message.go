package sarif

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

var (
	placeholder = regexp.MustCompile(`\{\{|\}\}|\{(\d{1,4})\}`)
	// link is an embedded link (SARIF 3.11.6): to a location of the result by number, or to a URI.
	link       = regexp.MustCompile(`\[((?:\\.|[^\[\]\\])*)\]\(((?:\\.|[^()\\\s])+)\)`)
	linkScheme = regexp.MustCompile(`(?i)^[a-z][a-z0-9+.-]*:`)
	escaped    = regexp.MustCompile(`\\([\\\[\]])`)
)

// message renders the text of a result: its own text, else a text of the message tables by id, else a text of the rule,
// so that it is never empty. Its length is not limited yet.
func (run *Run) message(w *wireResult, rule *Rule) string {
	var m wireMessage
	if w.Message != nil {
		m = *w.Message
	}
	text := m.Text
	if text == "" && m.ID != "" {
		text = run.messageString(m.ID, w, rule)
	}
	if text == "" {
		text = m.Markdown
	}
	text = links(arguments(text, m.Arguments), w)
	text = strings.TrimSpace(jsonstream.Clean(text))
	for _, fallback := range []string{rule.Message, rule.Name, rule.ID} {
		if text == "" {
			text = fallback
		}
	}
	return text
}

// messageString looks up an id according to SARIF 3.11.7: in the rule, then in its component.
func (run *Run) messageString(id string, w *wireResult, rule *Rule) string {
	if text := rule.messages[id]; text != "" {
		return text
	}
	if w.Rule != nil {
		if c := run.component(w.Rule.ToolComponent); c != nil && c.strings[id] != "" {
			return c.strings[id]
		}
	}
	return run.driver.strings[id]
}

// arguments fills placeholders. Without arguments the text is unchanged, because few tools double the braces of quoted
// code.
func arguments(text string, args []string) string {
	if len(args) == 0 {
		return text
	}
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		switch found {
		case "{{":
			return "{"
		case "}}":
			return "}"
		}
		n, err := strconv.Atoi(found[1 : len(found)-1])
		if err != nil || n >= len(args) {
			return found
		}
		return args[n]
	})
}

// links replaces embedded links by their text. A number is a link only if the result has that location, so that code
// such as "table[i](0)" is unchanged. Only a text with links has escaped brackets.
func links(text string, w *wireResult) string {
	if !strings.Contains(text, "](") {
		return text
	}
	replaced := false
	text = link.ReplaceAllStringFunc(text, func(found string) string {
		parts := link.FindStringSubmatch(found)
		if n, err := strconv.Atoi(parts[2]); err == nil {
			if !w.hasLocation(n) {
				return found
			}
		} else if !linkScheme.MatchString(parts[2]) {
			return found
		}
		replaced = true
		return parts[1]
	})
	if replaced {
		text = escaped.ReplaceAllString(text, "$1")
	}
	return text
}

func (w *wireResult) hasLocation(id int) bool {
	for _, location := range w.RelatedLocations {
		if location.ID != nil && int(*location.ID) == id {
			return true
		}
	}
	for _, location := range w.Locations {
		if location.ID != nil && int(*location.ID) == id {
			return true
		}
	}
	return false
}
