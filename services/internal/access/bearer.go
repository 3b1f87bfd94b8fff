package access

import "strings"

// maxCredential is the largest credential in bytes. ID tokens with many groups have some KiB.
const maxCredential = 16 << 10

// credentialKind is how a credential is verified.
type credentialKind int

const (
	malformed credentialKind = iota
	opaqueToken
	webToken // a JSON Web Token
)

// parseBearer returns the credential of an Authorization header. The scheme is case-insensitive (RFC 9110, 11.1). One
// space and a credential of visible ASCII characters follow. Nothing else is accepted, so that a header has only one
// interpretation.
func parseBearer(header string) (credential string, ok bool) {
	const scheme = "bearer "
	if len(header) <= len(scheme) || len(header) > len(scheme)+maxCredential || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", false
	}
	credential = header[len(scheme):]
	return credential, visibleASCII(credential)
}

// kindOf distinguishes a JSON Web Token (three parts of base64url) from an API token by form alone. No API token has
// that form.
func kindOf(credential string) credentialKind {
	if credential == "" || !visibleASCII(credential) {
		return malformed
	}
	if !strings.HasPrefix(credential, tokenPrefix) && hasJWTForm(credential) {
		return webToken
	}
	return opaqueToken
}

func hasJWTForm(credential string) bool {
	parts := strings.Split(credential, ".")
	if len(parts) != 3 {
		return false
	}
	for _, part := range parts[:2] {
		if part == "" || strings.ContainsFunc(part, func(r rune) bool { return !isBase64URL(r) }) {
			return false
		}
	}
	// The signature may be empty, so that an unsigned token is refused as a JSON Web Token and not tried as an API
	// token.
	return !strings.ContainsFunc(parts[2], func(r rune) bool { return !isBase64URL(r) })
}

func isBase64URL(r rune) bool { return isAlphanumeric(r) || r == '-' || r == '_' }

func isAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

func visibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
