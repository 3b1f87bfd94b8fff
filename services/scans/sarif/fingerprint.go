package sarif

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const matchBasedKey = "matchBasedId/v1"

// maxFingerprint is the length above which a fingerprint is replaced by its hash. Some tools put whole messages there.
const maxFingerprint = 512

// fingerprints selects the fingerprints of a result: the match-based id, and the best other fingerprint as
// "name:value". It uses only the line hash of the partial fingerprints, because gitleaks puts names, mail addresses and
// dates there.
func fingerprints(w *wireResult) (matchBased, tool string) {
	if value := usable(w.Fingerprints[matchBasedKey]); value != "" {
		matchBased = value
	}
	best, bestVersion := "", -1
	for _, name := range slices.Sorted(maps.Keys(w.Fingerprints)) {
		if name == matchBasedKey || usable(w.Fingerprints[name]) == "" {
			continue
		}
		if version := fingerprintVersion(name); version > bestVersion {
			best, bestVersion = name, version
		}
	}
	if best != "" {
		return matchBased, clean(cut(best, 100)) + ":" + usable(w.Fingerprints[best])
	}
	const lineHash = "primaryLocationLineHash"
	for _, name := range []string{lineHash, lineHash + "/v1"} {
		if value := usable(w.PartialFingerprints[name]); value != "" {
			return matchBased, lineHash + ":" + value
		}
	}
	return matchBased, ""
}

// usable drops values that identify nothing: empty ones, and the constant that Semgrep writes without a login.
func usable(value string) string {
	value = strings.TrimSpace(clean(value))
	if strings.EqualFold(value, "requires login") {
		return ""
	}
	if len(value) > maxFingerprint {
		sum := sha256.Sum256([]byte(value))
		return hex.EncodeToString(sum[:])
	}
	return value
}

// fingerprintVersion is n of "name/vn". A name without a version is the oldest (SARIF 3.27.16).
func fingerprintVersion(name string) int {
	slash := strings.LastIndexByte(name, '/')
	version, ok := strings.CutPrefix(name[slash+1:], "v")
	n, err := strconv.Atoi(version)
	if slash < 0 || !ok || err != nil || n < 0 {
		return 0
	}
	return n
}

// historicalCommit is the commit of a secret that gitleaks found in the history. The file may no longer exist.
func historicalCommit(w *wireResult) string {
	commit := strings.TrimSpace(w.PartialFingerprints["commitSha"])
	if len(commit) < 7 || len(commit) > 64 || strings.Trim(commit, "0123456789abcdefABCDEF") != "" {
		return ""
	}
	return strings.ToLower(commit)
}
