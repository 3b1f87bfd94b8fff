package command

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Command{
		"/fp input is a constant":                  {"ignored", "false_positive", "input is a constant"},
		"  /FP\tinput\r\nis a constant\n":          {"ignored", "false_positive", "input\nis a constant"},
		"/ar behind the VPN":                       {"ignored", "acceptable_risk", "behind the VPN"},
		"/other generated code":                    {"ignored", "no_triage_reason", "generated code"},
		"/ignore generated code":                   {"ignored", "no_triage_reason", "generated code"},
		"/open":                                    {"reopened", "", ""},
		"/open it is reachable after all":          {"reopened", "", "it is reachable after all"},
		"/semgrep ignore test fixture":             {"ignored", "no_triage_reason", "test fixture"},
		"/Semgrep  Open was wrong":                 {"reopened", "", "was wrong"},
		"/fp zero \x00 and bell \a and \xff bytes": {"ignored", "false_positive", "zero  and bell  and  bytes"},
	} {
		got, ok, err := Parse(text)
		if !ok || err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %t, %v; want %+v", text, got, ok, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "/", "/fpx no", "looks like a /fp to me", "> /fp quoted", "/ fp no", "/semgrep", "/semgrep ignored x", "/ignored x", "/openx", "`/fp x`",
	} {
		if got, ok, err := Parse(text); ok || err != nil {
			t.Errorf("Parse(%q) = %+v, %t, %v; want no command", text, got, ok, err)
		}
	}
	for text, want := range map[string]string{
		"/fp":                                "say why behind the command: `/fp <comment>`",
		"/semgrep ignore \n":                 "say why behind the command: `/semgrep ignore <comment>`",
		"/open " + strings.Repeat("ü", 3001): "the comment behind `/open` may have at most 3000 characters, it has 3001",
	} {
		if _, ok, err := Parse(text); !ok || err == nil || err.Error() != want {
			t.Errorf("Parse(%.20q) = %t, %v; want the error %q", text, ok, err, want)
		}
	}
	if _, ok, err := Parse("/open " + strings.Repeat("ü", 3000)); !ok || err != nil {
		t.Errorf("a comment of 3000 characters: %t, %v", ok, err)
	}
}

func TestFindings(t *testing.T) {
	got := Findings("SQL from input\n<!-- palisade:finding=42 palisade:finding=7 palisade:finding=99999999999999999999 palisade:finding=x -->")
	if !slices.Equal(got, []int64{42, 7}) {
		t.Errorf("got %v", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"/fp why", "/semgrep ignore\twhy", "/open", "/fp \x00\xff", "\u2028/ar x", "/FP\u00a0x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, ok, err := Parse(text)
		if !ok {
			if c != (Command{}) || err != nil {
				t.Errorf("no command, yet %+v, %v", c, err)
			}
			return
		}
		if c.State != "ignored" && c.State != "reopened" {
			t.Errorf("state %q", c.State)
		}
		if !utf8.ValidString(c.Comment) || strings.ContainsRune(c.Comment, 0) || c.Comment != strings.TrimSpace(c.Comment) {
			t.Errorf("comment %q", c.Comment)
		}
		if n := utf8.RuneCountInString(c.Comment); err == nil && (n > 3000 || n == 0 && c.State == "ignored") {
			t.Errorf("%d characters without an error", n)
		}
	})
}
