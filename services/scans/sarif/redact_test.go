package sarif_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/scans/sarif"
)

// leaky is a result of a secrets tool.
func leaky(snippet, message, more string) string {
	return fmt.Sprintf(`{"ruleId":"generic","message":{"text":%q}%s,"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.env"},
		"region":{"startLine":1,"snippet":{"text":%q}}}}]}`, message, more, snippet)
}

func TestSecretsAreNeverKept(t *testing.T) {
	for _, c := range []struct{ secret, snippet, message, more string }{
		{"hunter22", "hunter22", "found hunter22", ""},
		{"hunter", `password = "hunter"`, "the password hunter is weak", ""},
		{"hunter", `password: hunter`, "the password hunter is weak", ""},
		{"s3cr3t-t0ken", "curl -H 'X: s3cr3t-t0ken' url", "token s3cr3t-t0ken", ""},
		{"line2secret9", "BEGIN\nline2secret9\nEND", "key has line2secret9", ""},
		{"hunter22", "hunter22", "m", `,"fingerprints":{"matchBasedId/v1":"x-hunter22","raw/v1":"hunter22"}`},
		{"hunter22", "hunter22", "m", `,"suppressions":[{"kind":"inSource","justification":"hunter22 is fake"}]`},
		{"ghp_0123456789abcdefghijABCDEFGHIJ012345", "", "found ghp_0123456789abcdefghijABCDEFGHIJ012345", ""},
		{"pa55word", "", "clone https://kim:pa55word@git.acme.test/x", ""},
	} {
		for _, tool := range []string{"gitleaks", "TruffleHog"} {
			r := only(t, read(t, driver(tool, leaky(c.snippet, c.message, c.more))))
			if all := fmt.Sprintf("%+v", *r); strings.Contains(all, c.secret) {
				t.Errorf("%q is kept: %s", c.secret, all)
			}
		}
	}
}

// The secret may be in the id, the name and the texts of a rule, too.
func TestSecretsInRulesAreNeverKept(t *testing.T) {
	const secret = "Zq88hunter-Kx9v"
	for name, c := range map[string]struct{ id, texts, snippet, message, want string }{
		"an id that is a title": {"Hardcoded credential " + secret, "", "", "Hardcoded credential " + secret, "Hardcoded credential [redacted]"},
		"an id":                 {secret, "", secret, "m", "[redacted]"},
		"a part of an id":       {"leak/" + secret, "", "key=" + secret, "m", "leak/[redacted]"},
		"texts":                 {"hardcoded-password", "found " + secret, "key = '" + secret + "'", "m", "hardcoded-password"},
	} {
		doc := run(`"tool":{"driver":{"name":"t","rules":[{"id":"` + c.id + `","name":"` + c.texts + `","shortDescription":{"text":"` + c.texts + `"},"help":{"text":"` + c.texts + `"},
			"properties":{"cwe":798}}]}},"results":[{"ruleId":"` + c.id + `","message":{"text":"` + c.message + `"},
			"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.env"},"region":{"startLine":1,"snippet":{"text":"` + c.snippet + `"}}}}]}]`)
		r := only(t, read(t, doc))
		if kept := fmt.Sprintf("%+v %+v", *r, *r.Rule); strings.Contains(kept, secret) || r.RuleID != c.want {
			t.Errorf("%s: rule %q: %s", name, r.RuleID, kept)
		}
	}
	// Words of rules in code are no secrets.
	for id, snippet := range map[string]string{
		"hardcoded-password": `password = "password"`, "CKV_SECRET_6": "# checkov:skip=CKV_SECRET_6:reason", "487f4be7-3d13-4506": `id: "487f4be7-3d13-4506"`,
		"a.Jwt2Hardcoded": "x() # nosemgrep: a.Jwt2Hardcoded",
	} {
		if r := only(t, read(t, driver("gitleaks", strings.Replace(leaky(snippet, "m", ""), "generic", id, 1)))); r.RuleID != id || r.Rule.ID != id {
			t.Errorf("%s became %q", id, r.RuleID)
		}
	}
}

// With too many words to compare, the whole message is redacted.
func TestLongSnippetsRedactTheWholeMessage(t *testing.T) {
	r := only(t, read(t, driver("gitleaks", leaky(strings.Repeat("word1234 x=y ", 300)+"hunter22", "found hunter22", ""))))
	if r.Message != sarif.Redacted || r.Snippet != sarif.Redacted {
		t.Errorf("message %q, snippet %q", r.Message, r.Snippet)
	}
}

// Texts are cut after redaction, so that no part of a secret remains.
func TestCutsLeaveNoPartOfASecret(t *testing.T) {
	message := strings.Repeat("m", sarif.DefaultLimits().MaxMessageBytes-10) + " hunter2222222"
	if r := only(t, read(t, driver("gitleaks", leaky("hunter2222222", message, "")))); strings.Contains(r.Message, "hunt") {
		t.Errorf("message ends in %q", r.Message[len(r.Message)-20:])
	}
}

func TestAnySecretIsRedacted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		secret := rapid.StringMatching(`[A-Z][a-z]{2,5}[0-9]{2,5}[A-Za-z]{1,9}`).Draw(rt, "secret")
		frame := rapid.SampledFrom([]string{"%s", "key=%s", `k: "%s"`, "a %s b", "('%s')", "x\n\t%s\ny"}).Draw(rt, "frame")
		r := only(t, read(t, driver("gitleaks", leaky(fmt.Sprintf(frame, secret), "the secret "+secret+" in a.env", ""))))
		if strings.Contains(r.Message+r.Snippet, secret) {
			rt.Fatalf("%q in %q is kept: %q, %q", secret, frame, r.Message, r.Snippet)
		}
	})
}

func TestSecretRulesOfOtherTools(t *testing.T) {
	for _, c := range []struct {
		tool, rule string
		redacted   bool
	}{
		{"Semgrep OSS", `{"id":"generic.secrets.security.detected-key"}`, true},
		{"checkov", `{"id":"CKV_SECRET_6"}`, true},
		{"t", `{"id":"x","properties":{"tags":["Secret"]}}`, true},
		{"t", `{"id":"secretary.sort"}`, false},
	} {
		id, _, _ := strings.Cut(c.rule[len(`{"id":"`):], `"`)
		o := read(t, run(`"tool":{"driver":{"name":"`+c.tool+`","rules":[`+c.rule+`]}},"results":[`+strings.Replace(leaky("key=abc123def", "m", ""), "generic", id, 1)+`]`))
		if r := only(t, o); (r.Snippet == sarif.Redacted) != c.redacted || r.Product != vocabulary.SAST {
			t.Errorf("%s %s: snippet %q of product %s", c.tool, c.rule, r.Snippet, r.Product)
		}
	}
}

func TestRedactionKeyTellsSecretsApart(t *testing.T) {
	snippet := func(secret, key string) string {
		return only(t, read(t, driver("gitleaks", leaky(secret, "m", "")), sarif.WithRedactionKey([]byte(key)))).Snippet
	}
	a := snippet("hunter22", "k1")
	if a == snippet("hunter23", "k1") || a == snippet("hunter22", "k2") || a != snippet("hunter22", "k1") || !strings.HasPrefix(a, "[redacted ") {
		t.Errorf("snippet is %q", a)
	}
}
