package access

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseBearer(t *testing.T) {
	token := newTokenValue()
	for header, want := range map[string]string{
		"Bearer " + token: token,
		"bearer " + token: token,
		"BEARER " + token: token,
		"Bearer a.b.c":    "a.b.c",
		"Bearer " + strings.Repeat("x", maxCredential): strings.Repeat("x", maxCredential),

		"":                                      "",
		"Bearer":                                "",
		"Bearer ":                               "",
		"Bearer  " + token:                      "",
		"Bearer\t" + token:                      "",
		" Bearer " + token:                      "",
		"Bearer " + token + " ":                 "",
		"Bearer " + token + "\n":                "",
		"Bearer " + token + "\x00":              "",
		"Bearer " + token + ", Bearer " + token: "",
		"Bearer tok\u00e9n":                     "",
		"Basic " + token:                        "",
		"Token " + token:                        "",
		token:                                   "",
		"Bearer " + strings.Repeat("x", maxCredential+1): "",
	} {
		got, ok := parseBearer(header)
		if got != want && ok || ok != (want != "") {
			t.Errorf("%.60q: got %.60q, %v", header, got, ok)
		}
	}
}

func TestKindOf(t *testing.T) {
	for credential, want := range map[string]credentialKind{
		newTokenValue():          opaqueToken,
		strings.Repeat("ab", 32): opaqueToken,
		"sgp_a.b.c":              opaqueToken,
		"eyJh.eyJp.c2ln":         webToken,
		"eyJh.eyJp.":             webToken,
		"eyJh..c2ln":             opaqueToken,
		".eyJp.c2ln":             opaqueToken,
		"a.b":                    opaqueToken,
		"a.b.c.d":                opaqueToken,
		"a.b.c=":                 opaqueToken,
		"":                       malformed,
		"a b":                    malformed,
	} {
		if got := kindOf(credential); got != want {
			t.Errorf("%q: got %d, want %d", credential, got, want)
		}
	}
}

func TestBearerParsingIsUnambiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scheme := rapid.SampledFrom([]string{"Bearer ", "bearer ", "BEARER ", "Bearer", "Basic ", ""}).Draw(t, "scheme")
		header := scheme + rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,20}`), rapid.StringMatching(`[!-~]{1,20}`)).Draw(t, "rest")
		credential, ok := parseBearer(header)
		if !ok {
			return
		}
		if credential == "" || len(credential) > maxCredential || strings.TrimSpace(credential) != credential {
			t.Fatalf("%q gives %q", header, credential)
		}
		if header[len("bearer "):] != credential || !strings.EqualFold(header[:len("bearer ")], "bearer ") {
			t.Fatalf("%q has another reading than %q", header, credential)
		}
		if kindOf(credential) == malformed {
			t.Fatalf("%q passed the parser, but is malformed", credential)
		}
	})
}

func TestTokenValues(t *testing.T) {
	seen := make(map[byte]int)
	const sample = 2000
	for range sample {
		value := newTokenValue()
		if len(value) != len(tokenPrefix)+tokenRandom || !strings.HasPrefix(value, tokenPrefix) || kindOf(value) != opaqueToken {
			t.Fatalf("%q", value)
		}
		if err := CheckTokenValue(value); err != nil {
			t.Fatal(err)
		}
		for i := range tokenRandom {
			seen[value[len(tokenPrefix)+i]]++
		}
	}
	// A biased generator that takes bytes modulo 62 gives the first 8 characters 25 % more. Chance gives 3 % (one
	// sigma).
	expected := float64(sample*tokenRandom) / float64(len(alphabet))
	for i := range len(alphabet) {
		if n := float64(seen[alphabet[i]]); n < 0.82*expected || n > 1.18*expected {
			t.Errorf("character %c came %.0f times, expected about %.0f", alphabet[i], n, expected)
		}
	}
	if len(seen) != len(alphabet) {
		t.Errorf("%d characters came, want %d", len(seen), len(alphabet))
	}
}

func TestCheckTokenValue(t *testing.T) {
	for _, good := range []string{
		"sgp_0123456789abcdef", "sgp_" + strings.Repeat("0123456789abcdef", 3), "correct-horse-battery-staple", strings.Repeat("a1.b2!c3-", 3),
	} {
		if err := CheckTokenValue(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "changeme", "sgp_" + strings.Repeat("a", 15), strings.Repeat("x", minGivenToken-1), strings.Repeat("x", maxGivenToken+1),
		"sgp_" + strings.Repeat("a", 40), strings.Repeat("0f", 32), strings.Repeat("passw0rd", 4), "sgp_" + strings.Repeat("changeme", 5),
		"sgp_testtokentesttokentest", strings.Repeat("!", minGivenToken), strings.Repeat("x", 40) + "\n", strings.Repeat("x ", 20), strings.Repeat("\u00fc", 30), strings.Repeat("x", 20) + "." + strings.Repeat("y", 20) + ".z",
	} {
		err := CheckTokenValue(bad)
		if err == nil || (bad != "" && strings.Contains(err.Error(), bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[!-~]{20,60}`).Draw(t, "value")
		if CheckTokenValue(value) != nil {
			return
		}
		// An accepted value must be able to authenticate.
		credential, ok := parseBearer("Bearer " + value)
		if !ok || kindOf(credential) != opaqueToken {
			t.Fatalf("%q is accepted, but cannot be sent", value)
		}
	})
}
