package sarif_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/scans/sarif"
)

// tokens are made up. They are put together here, so that no scanner takes this file for a leak.
func tokens() []string {
	join := func(parts ...string) string { return strings.Join(parts, "") }
	hex := strings.Repeat("0a1b2c3d", 8)
	mixed := strings.Repeat("Ab3dE6gH", 8)
	return []string{
		join("AK", "IA", "ABCDEFGHIJKLMNOP"), join("gh", "p_", mixed[:36]), join("github", "_pat_", mixed), join("glp", "at-", mixed[:20]),
		join("xox", "b-", "1234567890-abcdef"), join("https://hooks.slack", ".com/services/T00000000/B00000000/", mixed[:24]),
		join("sk_", "live_", mixed[:24]), join("AI", "za", mixed[:35]), join("GOC", "SPX-", mixed[:28]),
		join("ey", "J", mixed[:20], ".ey", "J", mixed[:20], ".", mixed[:20]), join("sk", "-proj-", mixed[:40]), join("np", "m_", mixed[:36]),
		join("py", "pi-", mixed), join("S", "G.", mixed[:22], ".", mixed[:43]), join("S", "K", hex[:32]), join("dop", "_v1_", hex),
		join("shp", "at_", hex[:32]), join("h", "f_", strings.Repeat("AbCdEf", 6)), join("hv", "s.", mixed[:32]), join("dap", "i", hex[:32]),
		join("lin_", "api_", mixed[:40]), join("PM", "AK-", hex[:24], "-", hex[:34]), join("sg", "p_", mixed[:32]),
		join("https://discord", ".com/api/webhooks/123456789/", mixed), join("dckr", "_pat_", mixed[:27]),
		join("https://acme.webhook", ".office.com/webhookb2/", hex[:32], "@", hex[:32], "/IncomingWebhook/", hex[:32]),
		join("Authorization: ", "Basic ", mixed[:24]), join("Bearer ", mixed[:40]), join("https://kim:", "pa55word@git.acme.test/x"),
		join("-----BEGIN OPENSSH PRIVATE", " KEY-----\n", mixed, "\n-----END OPENSSH PRIVATE", " KEY-----"),
	}
}

// Well-known tokens never leave in any text of any result, whatever the tool and the rule are.
func TestTokensOfAnyToolAreRedacted(t *testing.T) {
	for _, token := range tokens() {
		secret := token[max(0, len(token)-12):]
		if strings.Contains(token, "@") {
			secret = "pa55word"
		}
		if strings.Contains(token, "PRIVATE") {
			secret = "Ab3dE6gH"
		}
		text := fmt.Sprintf("%q", "see '"+token+"' here")
		o := read(t, run(`"tool":{"driver":{"name":"t","rules":[{"id":"r","name":`+text+`,"shortDescription":{"text":`+text+`},"help":{"text":`+text+`}}]}},
			"results":[{"ruleId":"r","message":{"text":`+text+`},"fingerprints":{"matchBasedId/v1":`+text+`,"x/v1":`+text+`},
			"suppressions":[{"kind":"external","justification":`+text+`}],
			"relatedLocations":[{"message":{"text":`+text+`},"physicalLocation":{"artifactLocation":{"uri":"b.c"}}}],
			"codeFlows":[{"message":{"text":`+text+`},"threadFlows":[{"locations":[{"location":{"message":{"text":`+text+`},
				"physicalLocation":{"artifactLocation":{"uri":"b.c"},"region":{"startLine":1,"snippet":{"text":`+text+`}}}}}]}]}],
			"fixes":[{"description":{"text":`+text+`},"artifactChanges":[{"artifactLocation":{"uri":"a.c"},"replacements":[{"deletedRegion":{"startLine":1},"insertedContent":{"text":`+text+`}}]}]}],
			"locations":[{"logicalLocations":[{"fullyQualifiedName":`+text+`}],"physicalLocation":{"artifactLocation":{"uri":"a.c"},"region":{"startLine":1,"snippet":{"text":`+text+`}}}}]}]`))
		r := only(t, o)
		if kept := fmt.Sprintf("%+v %+v", *r, *r.Rule); strings.Contains(kept, secret) {
			t.Errorf("%q is kept: %s", token, kept)
		}
		if !strings.Contains(r.Snippet, "here") {
			t.Errorf("the code around %q is lost: %q", token, r.Snippet)
		}
	}
}

// Tokens are also removed from names, versions, categories, properties and paths.
func TestTokensInNamesAreRedacted(t *testing.T) {
	for _, token := range tokens() {
		if strings.ContainsAny(token, "\n") {
			continue
		}
		secret := token[max(0, len(token)-12):]
		if strings.Contains(token, "://kim:") {
			secret = "pa55word"
		}
		text, path := fmt.Sprintf("%q", token), fmt.Sprintf("%q", "x/"+token+"/a.c")
		bag := `"properties":{"tags":[` + text + `],"category":` + text + `,"subcategory":[` + text + `],"cwe":` + text + `,"owasp":[` + text + `],"purl":` + text + `,
			"packageName":` + text + `,"packageVersion":` + text + `,"fixedVersion":` + text + `}`
		at := `{"physicalLocation":{"artifactLocation":{"uri":` + path + `}}}`
		o := read(t, run(`"tool":{"driver":{"name":`+text+`,"version":`+text+`,"rules":[{"id":`+text+`,"deprecatedIds":[`+text+`],`+bag+`}]}},
			"automationDetails":{"id":`+fmt.Sprintf("%q", token+"/x")+`},
			"taxonomies":[{"name":"OWASP","taxa":[{"id":"A1","name":`+text+`}]}],
			"results":[{"ruleId":`+text+`,"message":{"text":"m"},`+bag+`,"relatedLocations":[`+at+`],"locations":[`+at+`],
				"codeFlows":[{"threadFlows":[{"id":`+text+`,"locations":[{"location":`+at+`}]}]}],
				"fixes":[{"artifactChanges":[{"artifactLocation":{"uri":`+path+`},"replacements":[{"deletedRegion":{"startLine":1}}]}]}]}]`), sarif.WithProduct("sca"))
		r, one := only(t, o), o.report.Runs[0]
		kept := fmt.Sprintf("%+v %+v %+v %+v %q %q", *r, *r.Rule, r.Package, one.Tool, one.AutomationCategory, one.Warnings)
		if strings.Contains(kept, secret) {
			t.Errorf("%q is kept: %s", token, kept)
		}
	}
	if name := sarif.ImageName("https://kim:pa55word@registry.acme.test/web:1"); strings.Contains(name, "pa55word") {
		t.Error(name)
	}
}

// Texts that only look similar stay.
func TestTextsWithoutTokensStay(t *testing.T) {
	for _, text := range []string{
		"https://example.test/a@b", "the task-manager uses risk-based keys", "SKIP this key-value store", "sk-short", "npm_install failed",
		"go to https://kim@git.acme.test/x", "AKIA is a prefix", "Bearer token is missing", "Authorization: Basic is not safe", "https://discord.com/api/docs", "glpat-", "",
	} {
		if got := sarif.RedactTokens(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// Results are about a secret by their weakness, and by the name, the description or the tags of their rule.
func TestSensitiveResults(t *testing.T) {
	for _, c := range []struct {
		id, rule, result string
		redacted         bool
	}{
		{"G101", `"relationships":[{"target":{"id":"CWE-798"}}]`, ``, true},
		{"r", bagOf(`"cwe":["CWE-259"]`), ``, true},
		{"r", ``, bagOf(`"cwe":321`), true},
		{"r", ``, `"taxa":[{"id":"CWE-547"}]`, true},
		{"hardcoded-password", ``, ``, true},
		{"js/HardcodedCredentials", ``, ``, true},
		{"B105", `"name":"hardcoded_password_string"`, ``, true},
		{"S2068", `"shortDescription":{"text":"Hard-coded credentials are security-sensitive"}`, ``, true},
		{"r", bagOf(`"tags":["hardcoded-secret"]`), ``, true},
		{"java.detected-api-key", ``, ``, true},
		{"google/private-key", ``, ``, true},
		{"S6437", `"name":"Credentials should not be hard-coded"`, ``, true},
		{"HARD_CODE_KEY", ``, ``, true},
		{"DS173237", `"shortDescription":{"text":"Do not store tokens or keys in source code."}`, ``, true},
		{"no-secrets/no-secrets", ``, ``, true},
		{"487f4be7", `"name":"Passwords And Secrets - Generic Password"`, ``, true},
		{"SecretsUsedInArgOrEnv", ``, ``, true},
		{"general-secrets-no-plaintext-exposure", ``, ``, true},
		{"memory-leak", `"shortDescription":{"text":"Memory leak: key"}`, ``, false},
		{"iam-key-rotation", `"shortDescription":{"text":"Rotate access keys every 90 days"}`, ``, false},
		{"weak-rsa-key-size", `"shortDescription":{"text":"The key is too short"}`, ``, false},
		{"csrf-token-missing", ``, ``, false},
		{"password-hash", `"shortDescription":{"text":"Passwords need a slow hash"}`, ``, false},
		{"CWE-79", ``, ``, false},
	} {
		r := only(t, read(t, withRule("t", c.id, c.rule, strings.TrimPrefix(c.result+`,"message":{"text":"found 'hunter22x'"},
			"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.c"},"region":{"startLine":1,"snippet":{"text":"p = 'hunter22x'"}}}}]`, ","))))
		if strings.Contains(r.Message+r.Snippet, "hunter22x") == c.redacted {
			t.Errorf("%s {%s} {%s}: message %q, snippet %q", c.id, c.rule, c.result, r.Message, r.Snippet)
		}
	}
}

// Without code to compare with, quoted parts of the message may be the secret.
func TestSecretInTheMessageOnly(t *testing.T) {
	r := only(t, read(t, withRule("t", "hardcoded-password", "", `"message":{"text":"'a.c' has the password 'hunter'"},
		"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.c"}}}]`)))
	if r.Message != "'a.c' has the password '[redacted]'" {
		t.Errorf("message is %q", r.Message)
	}
}

func BenchmarkRedactTokens(b *testing.B) {
	text := strings.Repeat("Untrusted input of the request flows into query() at src/app/db.py without a check. ", 6)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if sarif.RedactTokens(text) != text {
			b.Fatal("changed")
		}
	}
}
