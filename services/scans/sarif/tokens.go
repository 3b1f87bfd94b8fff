package sarif

import (
	"regexp"
	"strings"
)

// tokenForms are well-known credentials that a text shows by their form. Each begins with one of the given prefixes, so
// that a text without any of them needs no expressions.
var tokenForms = []struct {
	prefixes []string
	form     string
}{
	{[]string{"AKIA", "ASIA", "ABIA", "ACCA"}, `\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b`}, // AWS
	{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, `\bgh[pousr]_[0-9A-Za-z]{30,}`},    // GitHub
	{[]string{"github_pat_"}, `\bgithub_pat_[0-9A-Za-z_]{40,}`},
	{[]string{"glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-", "glft-", "glimt-", "glagent-"}, // GitLab
		`\bgl(?:pat|dt|rt|ptt|cbt|soat|ft|imt|agent)-[0-9A-Za-z_.-]{20,}`},
	{[]string{"xoxa-", "xoxb-", "xoxe", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"}, // Slack
		`\b(?:xox[abeoprs](?:\.xox[bp])?|xapp)-[0-9A-Za-z-]{10,}`},
	{[]string{"hooks.slack.com/"}, `\bhooks\.slack\.com/(?:services|workflows|triggers)/[0-9A-Za-z_/-]{20,}`},
	{[]string{"discord.com/api/", "discordapp.com/api/"}, `\bdiscord(?:app)?\.com/api/webhooks/\d+/[0-9A-Za-z_-]{20,}`},
	{[]string{"webhook.office.com/"}, `\bwebhook\.office\.com/webhookb2/[0-9A-Za-z@/_-]{40,}`},           // Teams
	{[]string{"sk_live_", "sk_test_", "rk_live_", "rk_test_"}, `\b[sr]k_(?:live|test)_[0-9A-Za-z]{16,}`}, // Stripe
	{[]string{"whsec_"}, `\bwhsec_[0-9A-Za-z+/=]{20,}`},
	{[]string{"AIza"}, `\bAIza[0-9A-Za-z_-]{30,}`}, // Google
	{[]string{"GOCSPX-"}, `\bGOCSPX-[0-9A-Za-z_-]{20,}`},
	{[]string{"ya29."}, `\bya29\.[0-9A-Za-z_-]{20,}`},
	{[]string{"eyJ"}, `\beyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]*`}, // JSON Web Tokens
	{[]string{"sk-"}, `\bsk-[0-9A-Za-z_-]{20,}`},                                     // OpenAI, Anthropic
	{[]string{"dckr_pat_"}, `\bdckr_pat_[0-9A-Za-z_-]{20,}`},                         // Docker
	{[]string{"npm_"}, `\bnpm_[0-9A-Za-z]{30,}`},
	{[]string{"pypi-"}, `\bpypi-[0-9A-Za-z_-]{50,}`},
	{[]string{"rubygems_"}, `\brubygems_[0-9a-f]{40,}`},
	{[]string{"SG."}, `\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}`},                           // SendGrid
	{[]string{"SK"}, `\bSK[0-9a-f]{32}\b`},                                                      // Twilio
	{[]string{"key-"}, `\bkey-[0-9a-f]{32}\b`},                                                  // Mailgun
	{[]string{"dop_v1_", "doo_v1_", "dor_v1_"}, `\bdo[opr]_v1_[0-9a-f]{40,}`},                   // DigitalOcean
	{[]string{"shpat_", "shpca_", "shppa_", "shpss_"}, `\bshp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32,}`}, // Shopify
	{[]string{"hf_"}, `\bhf_[0-9A-Za-z]{30,}`},                                                  // Hugging Face
	{[]string{"hvs.", "hvb."}, `\bhv[sb]\.[0-9A-Za-z_-]{24,}`},                                  // Vault
	{[]string{"dapi"}, `\bdapi[0-9a-f]{32}(?:-\d)?\b`},                                          // Databricks
	{[]string{"ATATT3", "ATBB"}, `\bAT(?:ATT3|BB)[0-9A-Za-z_=-]{20,}`},                          // Atlassian
	{[]string{"lin_api_"}, `\blin_api_[0-9A-Za-z]{30,}`},                                        // Linear
	{[]string{"PMAK-"}, `\bPMAK-[0-9a-f]{24}-[0-9a-f]{30,}`},                                    // Postman
	{[]string{"NRAK-"}, `\bNRAK-[0-9A-Z]{20,}`},                                                 // New Relic
	{[]string{"dp.pt.", "dp.st."}, `\bdp\.[ps]t\.[0-9A-Za-z.]{40,}`},                            // Doppler
	{[]string{"glsa_", "glc_"}, `\bgl(?:sa|c)_[0-9A-Za-z_+/=]{30,}`},                            // Grafana
	{[]string{"sntrys_"}, `\bsntrys_[0-9A-Za-z_+/=]{30,}`},                                      // Sentry
	{[]string{"pscale_"}, `\bpscale_(?:tkn|pw|oauth)_[0-9A-Za-z_.=-]{30,}`},                     // PlanetScale
	{[]string{"sq0"}, `\bsq0[a-z]{3}-[0-9A-Za-z_-]{20,}`},                                       // Square
	{[]string{"sgp_"}, `\bsgp_[0-9A-Za-z]{20,}`},                                                // Palisade
	{[]string{"AGE-SECRET-KEY-1"}, `\bAGE-SECRET-KEY-1[0-9A-Z]{50,}`},                           // age
	{[]string{"AccountKey="}, `\bAccountKey=[0-9A-Za-z+/=]{60,}`},                               // Azure Storage
	{[]string{"Bearer ", "bearer "}, `\b[Bb]earer [0-9A-Za-z._~+/-]{20,}=*`},                    // HTTP
	{[]string{"Authorization: Basic ", "authorization: basic "}, `\b(?:Authorization: Basic|authorization: basic) [0-9A-Za-z+/]{8,}=*`},
	{[]string{"-----BEGIN "}, `-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY[A-Z ]*-----|$)`},
	{[]string{"://"}, `://[^/\s:@"'<>]*:[^/\s@"'<>]+@`}, // a URL with a password
}

// wellKnown matches all forms. It is slow.
var wellKnown = func() *regexp.Regexp {
	forms := make([]string, len(tokenForms))
	for i, token := range tokenForms {
		forms[i] = token.form
	}
	return regexp.MustCompile(strings.Join(forms, "|"))
}()

// tokenPairs has a bit for each pair of bytes that begins a prefix, and tokenPrefixes has the prefixes by first byte.
var tokenPairs, tokenPrefixes = func() (pairs [1 << 10]uint64, byFirst [256][]string) {
	for _, token := range tokenForms {
		for _, prefix := range token.prefixes {
			pair := uint(prefix[0])<<8 | uint(prefix[1])
			pairs[pair>>6] |= 1 << (pair & 63)
			byFirst[prefix[0]] = append(byFirst[prefix[0]], prefix)
		}
	}
	return pairs, byFirst
}()

// mayHaveToken reports whether a text has the prefix of a token. It is one pass over the bytes.
func mayHaveToken(s string) bool {
	for i := 0; i+1 < len(s); i++ {
		pair := uint(s[i])<<8 | uint(s[i+1])
		if tokenPairs[pair>>6]&(1<<(pair&63)) != 0 && tokenAt(s, i) {
			return true
		}
	}
	return false
}

func tokenAt(s string, at int) bool {
	for _, prefix := range tokenPrefixes[s[at]] {
		if !strings.HasPrefix(s[at:], prefix) {
			continue
		}
		switch {
		case prefix == "://":
			host, _, _ := strings.Cut(s[at+len(prefix):], "/")
			if strings.IndexByte(host, '@') > 0 {
				return true
			}
		case prefix[0] == '-' || at == 0 || !isWordByte(s[at-1]):
			return true
		}
	}
	return false
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// redactTokens replaces well-known tokens. Every text that is kept of any result passes it, whatever the tool is.
func redactTokens(s string) string {
	if !mayHaveToken(s) {
		return s
	}
	return wellKnown.ReplaceAllString(s, Redacted)
}
