package sarif

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

const matchBasedKey = "matchBasedId/v1"

// maxFingerprint is the length above which a fingerprint is replaced by its hash. Some tools put whole messages there.
const maxFingerprint = 512

// maxFingerprints is the number of fingerprints that are kept beside the best one.
const maxFingerprints = 3

// prints are the fingerprints of a result: the match-based id, the best other one, and further ones that identify the
// result. The last two are "name:value".
type prints struct {
	matchBased, best string
	others           []string
}

// fingerprintsOf selects the fingerprints of a result. According to SARIF 3.27.16 each of fingerprints identifies the
// result, in the latest version that is given. Partial fingerprints are anything that contributes to it: only those
// that seem to identify the result are used, and the line hash.
func fingerprintsOf(w *wireResult) (p prints) {
	p.matchBased = usable(w.Fingerprints[matchBasedKey])
	best, bestVersion := "", -1
	latest := latestVersions(w.Fingerprints)
	for _, name := range latest {
		if version := fingerprintVersion(name); version > bestVersion {
			best, bestVersion = name, version
		}
	}
	if best != "" {
		p.best = named(best, w.Fingerprints)
	}
	for _, name := range latest {
		if name != best {
			p.others = append(p.others, named(name, w.Fingerprints))
		}
	}
	const lineHash = "primaryLocationLineHash"
	for _, name := range []string{lineHash, lineHash + "/v1"} {
		if value := usable(w.PartialFingerprints[name]); value != "" && p.best == "" {
			p.best = lineHash + ":" + value
		}
	}
	for _, name := range latestVersions(w.PartialFingerprints) {
		switch words := nameWords(name); {
		case len(words) == 0 || slices.ContainsFunc(words, func(word string) bool { return partWords[word] }):
		case p.best == "" && idWords[words[len(words)-1]]:
			p.best = named(name, w.PartialFingerprints)
		default:
			p.others = append(p.others, named(name, w.PartialFingerprints))
		}
	}
	p.others = p.others[:min(len(p.others), maxFingerprints)]
	return p
}

// drop removes the fingerprints that a predicate selects.
func (p *prints) drop(bad func(string) bool) {
	if bad(p.matchBased) {
		p.matchBased = ""
	}
	if bad(p.best) {
		p.best = ""
	}
	p.others = slices.DeleteFunc(p.others, bad)
}

func named(name string, values dict[string]) string {
	return jsonstream.Clean(jsonstream.Cut(name, 100)) + ":" + usable(values[name])
}

// latestVersions returns the names of usable fingerprints, sorted, and of several versions ("x/v1", "x/v2") the latest.
func latestVersions(values dict[string]) (names []string) {
	latest := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		family := familyOf(name)
		other, seen := latest[family]
		if name != matchBasedKey && usable(values[name]) != "" && (!seen || fingerprintVersion(name) > fingerprintVersion(other)) {
			latest[family] = name
		}
	}
	return slices.Sorted(maps.Values(latest))
}

// familyOf is a name without its version. Snyk Code names its fingerprints by their version alone.
func familyOf(name string) string {
	if strings.Trim(name, "0123456789") == "" {
		return ""
	}
	if slash := strings.LastIndexByte(name, '/'); slash >= 0 && fingerprintVersion(name) > 0 {
		return name[:slash]
	}
	return name
}

// partWords are words in names of partial fingerprints that do not identify a result: facts about a commit, places, and
// hashes of code, which change with the code.
var partWords = wordSet("commit author email user date time timestamp message build run scan count ordinal number index column line row " +
	"offset version path file uri url rule check type category severity level cwe tool " +
	"code context snippet region content source text statement procedure prototype cause flaw method function")

// idWords are the last words of names of fingerprints that are certainly meant to identify a result.
var idWords = wordSet("id guid uuid key identifier fingerprint")

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// nameWords splits a name without its version into lower-case words: "InstanceId/v1" is instance and id.
func nameWords(name string) (words []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	before := ' '
	for _, r := range familyOf(name) {
		if !unicode.IsLetter(r) || unicode.IsUpper(r) && unicode.IsLower(before) {
			end()
		}
		if unicode.IsLetter(r) {
			word = append(word, r)
		}
		before = r
	}
	end()
	return words
}

// usable drops values that identify nothing: empty ones, and the constant that Semgrep writes without a login.
func usable(value string) string {
	value = strings.TrimSpace(jsonstream.Clean(value))
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
	if number, err := strconv.Atoi(name); err == nil && number >= 0 {
		return number
	}
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
