package tracker_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/palisade/palisade/services/scm/host/hosttest"
	"github.com/palisade/palisade/services/ticketing/tracker"
	"github.com/palisade/palisade/services/ticketing/tracker/trackertest"
)

// hostile are texts that would be mentions, links, markup or the end of our own markup.
var hostile = []string{
	"@octavia @acme/security", "[click](https://evil.test)", "https://evil.test/x", "<img src=x onerror=alert(1)>",
	"`code` ``` fence", "closes acme/web#1 !2", "--> <!-- x -->", "![](https://evil.test/x.png)", "[~admin]",
	"[click|https://evil.test]", "!https://evil.test/x.png!", "{noformat}{html}<b>{html}", "{color:red}x{color}", "|| a || b ||",
	"h1. Title", "bq. quote", `\\server\share \{x}`, "# Heading", "- item", "/close", "a\n\n# b", "a\r\n- b", "a\n \n@b",
	"\u202egnp.exe", "x\x00y\x1b[31m", `"}],"type":"mention"`, "\xff\xfe",
}

// created creates a ticket with hostile texts and returns it as the tracker has it.
func created(t *testing.T, s server, text string) seen {
	t.Helper()
	tr := open(t, s.config)
	ticket, err := tr.Create(t.Context(), s.project, tracker.Draft{
		Title: text, Text: text, Items: []tracker.Item{{text, "https://palisade.acme.test/f/1"}, {text, "javascript:alert(1)"}},
		Marker: "m", Labels: []string{text},
	})
	check(t, fmt.Sprintf("create with %q", text), err)
	check(t, "comment", tr.Comment(t.Context(), ticket.Key, text))
	list := s.list()
	return list[len(list)-1]
}

// TestMarkdownIsHarmless: what is left of a body without our own markup has no sign of the hostile text.
func TestMarkdownIsHarmless(t *testing.T) {
	span := regexp.MustCompile("`[^`\n]+`")
	for _, s := range servers(t)[:2] {
		for _, text := range hostile {
			got := created(t, s, text)
			rest := strings.TrimPrefix(got.body, "<!-- palisade:ticket=m -->\n")
			rest = span.ReplaceAllString(rest, "S")
			lines := strings.Fields(strings.ReplaceAll(rest, "- [S](https://palisade.acme.test/f/1)", "I"))
			if rest == got.body || strings.Trim(strings.Join(lines, ""), "SI-") != "" {
				t.Errorf("%s: %q became %q", s.config.Kind, text, got.body)
			}
			if comment := span.ReplaceAllString(got.comments[0], "S"); strings.Trim(comment, "S\n") != "" {
				t.Errorf("%s: comment %q became %q", s.config.Kind, text, got.comments[0])
			}
			if regexp.MustCompile(`[@#!&][\pL\pN_]|://|[\n\x00\x1b\x{202e}]`).MatchString(got.title) {
				t.Errorf("%s: title %q became %q", s.config.Kind, text, got.title)
			}
		}
	}
}

func TestWikiTextIsHarmless(t *testing.T) {
	s := jiraServer(tracker.JiraDataCenter, trackertest.NewDataCenter(t))
	plain := regexp.MustCompile(`\\[{}()\[\]*_?~^+\-#!|@%]|&#92;`)
	for _, text := range hostile {
		got := created(t, s, text)
		for line := range strings.SplitSeq(got.body+"\n"+got.comments[0], "\n") {
			line = strings.TrimSuffix(strings.TrimPrefix(line, "* "), " ([open|https://palisade.acme.test/f/1])")
			if line = plain.ReplaceAllString(line, ""); strings.ContainsAny(line, `\{}[]*_?~^+-#!|@%`) || strings.Contains(line, "://") ||
				strings.HasPrefix(line, "h1.") || strings.HasPrefix(line, "bq.") {
				t.Errorf("%q became %q, of which is left %q", text, got.body, line)
			}
		}
	}
}

// TestDocumentIsHarmless: a document has paragraphs, lists, texts, and only our links.
func TestDocumentIsHarmless(t *testing.T) {
	s := jiraServer(tracker.Jira, trackertest.NewCloud(t))
	for _, text := range hostile {
		got := created(t, s, text)
		for _, document := range []string{got.body, got.comments[0]} {
			var root any
			if err := json.Unmarshal([]byte(document), &root); err != nil {
				t.Errorf("%q became %q: %v", text, document, err)
			}
			walk(root, func(node map[string]any) {
				switch kind := node["type"]; kind {
				case "doc", "paragraph", "bulletList", "listItem":
				case "text":
					if node["text"] == "" {
						t.Errorf("%q: an empty text, which Jira refuses: %s", text, document)
					}
				case "link":
					if attributes, _ := node["attrs"].(map[string]any); attributes["href"] != "https://palisade.acme.test/f/1" {
						t.Errorf("%q: a link to %v", text, attributes)
					}
				case nil: // attributes
				default:
					t.Errorf("%q: a node of the type %v", text, kind)
				}
			})
		}
	}
}

// walk visits all objects of a JSON value.
func walk(value any, visit func(map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(value)
		for _, one := range value {
			walk(one, visit)
		}
	case []any:
		for _, one := range value {
			walk(one, visit)
		}
	}
}

// TestLongTexts: trackers accept what is left, and it says that something is missing.
func TestLongTexts(t *testing.T) {
	each(t, func(t *testing.T, tr tracker.Tracker, s server) {
		for name, letter := range map[string]string{"ASCII": "x", "escaped": `\`, "quoted": `"`, "markup": "*", "wide": "漢", "two units": "🔥"} {
			long := tracker.Draft{Title: strings.Repeat(letter, 400), Text: strings.Repeat(strings.Repeat(letter, 5000)+"\n\n", 20), Marker: "m"}
			for range 500 {
				url := "https://palisade.acme.test/f/" + strings.Repeat("1", 100)
				long.Items = append(long.Items, tracker.Item{Text: strings.Repeat(letter, 1000), URL: url})
			}
			ticket, err := tr.Create(t.Context(), s.project, long)
			check(t, "create: "+name, err)
			check(t, "comment: "+name, tr.Comment(t.Context(), ticket.Key, long.Text))
			list := s.list()
			got := list[len(list)-1]
			if n := utf8.RuneCountInString(got.title); n > 255 || n < 100 {
				t.Errorf("%s: a title of %d runes", name, n)
			}
			if n := len(utf16.Encode([]rune(got.body))); n > 32_767 || n < 15_000 {
				t.Errorf("%s: a body of %d units", name, n)
			}
			if !strings.Contains(got.body, " more") || !strings.Contains(got.comments[0], "…") {
				t.Errorf("%s: the text does not say that something is missing", name)
			}
		}
	})
}

// TestManyShortParts: what joins the parts counts, too.
func TestManyShortParts(t *testing.T) {
	each(t, func(t *testing.T, tr tracker.Tracker, s server) {
		short := tracker.Draft{Title: "x", Text: strings.Repeat("a\n\n", 30_000), Marker: "m", Items: make([]tracker.Item, 30_000)}
		_, err := tr.Create(t.Context(), s.project, short)
		check(t, "create", err)
		if n := len(utf16.Encode([]rune(s.list()[0].body))); n > 32_767 {
			t.Errorf("a body of %d units", n)
		}
	})
}

// TestEmptyTexts: an item without a text has its link, and a ticket may have no text.
func TestEmptyTexts(t *testing.T) {
	each(t, func(t *testing.T, tr tracker.Tracker, s server) {
		url := "https://palisade.acme.test/f/1"
		for _, one := range []tracker.Draft{
			{Title: "x", Marker: "m"}, {Title: " \x00 x\x00\n", Text: " \n\n\x00\n", Marker: "m", Items: []tracker.Item{{Text: "\x00", URL: url}}},
		} {
			_, err := tr.Create(t.Context(), s.project, one)
			check(t, "create", err)
		}
		if got := s.list()[1]; !strings.Contains(got.body, url) || !strings.Contains(got.body, "finding") || got.title != "x" {
			t.Errorf("%+v", got)
		}
	})
}

// TestURLsEndNoLink: a URL of ours may have any characters.
func TestURLsEndNoLink(t *testing.T) {
	gitHub, j := hosttest.NewGitHub(t), trackertest.NewDataCenter(t)
	gitHub.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/web"}}
	for _, s := range []server{hostServer(tracker.GitHub, "acme/web", &gitHub.Server), jiraServer(tracker.JiraDataCenter, j)} {
		_, err := open(t, s.config).Create(t.Context(), s.project, tracker.Draft{Title: "x", Marker: "m", Items: []tracker.Item{
			{Text: "x", URL: "https://palisade.acme.test/a)b]|c d?q=<e>{f}"},
		}})
		check(t, "create", err)
		if body := s.list()[0].body; !strings.Contains(body, "https://palisade.acme.test/a%29b%5D%7Cc%20d?q=%3Ce%3E%7Bf%7D") {
			t.Errorf("%s: %s", s.config.Kind, body)
		}
	}
}
