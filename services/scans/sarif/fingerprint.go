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

// maxFingerprint is where a fingerprint is replaced by its hash: some tools put whole messages there.
const maxFingerprint = 512

// fingerprints chooses what to recognise a result by: the match-based id by itself, and the best other one as
// "name:value". Of the partial fingerprints only the line hash is one; gitleaks writes names, mails and dates there.
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

// usable drops values that are none: empty ones, and what Semgrep writes without a login, the same for every result.
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

// fingerprintVersion is n of "name/vn"; a name without a version is the oldest (SARIF 3.27.16).
func fingerprintVersion(name string) int {
	slash := strings.LastIndexByte(name, '/')
	version, ok := strings.CutPrefix(name[slash+1:], "v")
	n, err := strconv.Atoi(version)
	if slash < 0 || !ok || err != nil || n < 0 {
		return 0
	}
	return n
}

// historicalCommit is the commit in which gitleaks found a secret when it searched the history; the file may be gone
// since.
func historicalCommit(w *wireResult) string {
	commit := strings.TrimSpace(w.PartialFingerprints["commitSha"])
	if len(commit) < 7 || len(commit) > 64 || strings.Trim(commit, "0123456789abcdefABCDEF") != "" {
		return ""
	}
	return strings.ToLower(commit)
}
