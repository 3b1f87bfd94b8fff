package access

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
)

const (
	// tokenPrefix lets secret scanners and people recognise our tokens (contract facts, 2.1).
	tokenPrefix = "sgp_"
	// tokenRandom is the number of random characters: 43 characters of 62 kinds hold 256 bits.
	tokenRandom = 43
	alphabet    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

	minGivenToken = 20 // this many random alphanumerics hold 119 bits
	maxGivenToken = 256
	// Random values of that length have many more different characters and no repeated parts.
	minDistinct = 8
	maxRepeated = 8
)

// newTokenValue generates the value of an API token: sgp_ and 43 random alphanumerics.
func newTokenValue() string {
	value := make([]byte, 0, len(tokenPrefix)+tokenRandom)
	value = append(value, tokenPrefix...)
	// Bytes beyond the last whole multiple of 62 are discarded. Otherwise the first characters would be more frequent.
	const limit = 256 - 256%len(alphabet)
	var random [64]byte
	for len(value) < cap(value) {
		_, _ = rand.Read(random[:]) // never fails: the program ends when there is no randomness
		for _, b := range random {
			if int(b) < limit && len(value) < cap(value) {
				value = append(value, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(value)
}

// hashToken returns the hash under which the store keeps a token. The value has 256 bits of entropy, so a salt or a
// slow hash would add nothing, and an index can find it.
func hashToken(value string) []byte {
	sum := sha256.Sum256([]byte(value))
	return sum[:]
}

// tokenHint is the part of a token that is shown: its last four characters.
func tokenHint(value string) string { return value[max(0, len(value)-4):] }

// CheckTokenValue checks a token value that the operator chose (PALISADE_BOOTSTRAP_TOKEN): 20 to 256 visible ASCII
// characters that are not trivial to guess and cannot be mistaken for a JSON Web Token. The error never quotes the
// value.
func CheckTokenValue(value string) error {
	switch {
	case len(value) < minGivenToken || len(value) > maxGivenToken:
		return fmt.Errorf("the bootstrap token must have %d to %d characters, got %d: for example %s and 43 random letters and digits",
			minGivenToken, maxGivenToken, len(value), tokenPrefix)
	case !visibleASCII(value):
		return fmt.Errorf("the bootstrap token may contain only visible ASCII characters (no spaces, no line breaks)")
	case kindOf(value) != opaqueToken:
		return fmt.Errorf("the bootstrap token must not have the form of a JSON Web Token (three parts with dots between them)")
	case isRepetitive(strings.TrimPrefix(value, tokenPrefix)):
		return fmt.Errorf("the bootstrap token is too easy to guess: it must have at least %d different characters after %s, and not repeat one piece of up to %d. "+
			"Take a random one, for example: echo %s$(openssl rand -hex 32). Only the first start reads it: a server that has a deployment already starts without it, "+
			"but its old token is still valid (palisade token list, palisade token revoke)", minDistinct, tokenPrefix, maxRepeated, tokenPrefix)
	default:
		return nil
	}
}

// isRepetitive reports values such as aaaaaaaa and passw0rdpassw0rd. It does not measure entropy; it catches values
// that satisfy only the minimum length.
func isRepetitive(value string) bool {
	distinct := map[byte]bool{}
	for i := range len(value) {
		distinct[value[i]] = true
	}
	if len(distinct) < minDistinct {
		return true
	}
	for period := 1; period <= maxRepeated; period++ {
		if value[period:] == value[:len(value)-period] {
			return true
		}
	}
	return false
}
