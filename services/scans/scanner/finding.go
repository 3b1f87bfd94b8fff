package scanner

import (
	"regexp"
	"strings"
	"time"
	"unicode"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/scans/sarif"
)

const (
	maxMessage  = 32 << 10
	maxSnippet  = 16 << 10
	maxMetadata = 256 << 10
	maxTrace    = 256 << 10
	maxFixed    = 64 << 10
	maxHash     = 512
)

// wireFinding is a finding as the scanner sends it (scan protocol, section 6).
type wireFinding struct {
	CheckID      text     `json:"check_id"`
	Path         text     `json:"path"`
	Line         number   `json:"line"`
	Column       number   `json:"column"`
	EndLine      number   `json:"end_line"`
	EndColumn    number   `json:"end_column"`
	Message      text     `json:"message"`
	Severity     severity `json:"severity"`
	Index        number   `json:"index"`
	CommitDate   text     `json:"commit_date"`
	SyntacticID  text     `json:"syntactic_id"`
	MatchBasedID text     `json:"match_based_id"`
	Hashes       struct {
		StartLine text `json:"start_line_hash"`
		EndLine   text `json:"end_line_hash"`
		Code      text `json:"code_hash"`
		Pattern   text `json:"pattern_hash"`
	} `json:"hashes"`
	Metadata        raw         `json:"metadata"`
	IsBlocking      flag        `json:"is_blocking"`
	FixedLines      texts       `json:"fixed_lines"`
	SCA             *wireSCA    `json:"sca_info"`
	Trace           raw         `json:"dataflow_trace"`
	ValidationState text        `json:"validation_state"`
	Historical      *historical `json:"historical_info"`
	Engine          variant     `json:"engine_kind"`
}

type historical struct {
	Commit text `json:"git_commit"`
	Blob   text `json:"git_blob"`
	At     text `json:"git_commit_timestamp"`
}

type wireSCA struct {
	ReachabilityRule flag    `json:"reachability_rule"`
	Reachable        flag    `json:"reachable"`
	Kind             variant `json:"kind"`
	Match            struct {
		Pattern struct {
			SemverRange text `json:"semver_range"`
		} `json:"dependency_pattern"`
		Found    wireDependency `json:"found_dependency"`
		Lockfile text           `json:"lockfile"`
	} `json:"dependency_match"`
}

// unusable returns why a finding cannot be stored, or "".
func (w *wireFinding) unusable() string {
	switch {
	case strings.TrimSpace(plain(string(w.CheckID), maxName)) == "":
		return "it has no check_id"
	case len(w.CheckID) > maxName:
		return "its check_id is too long"
	case strings.TrimSpace(plain(string(w.Path), maxName)) == "":
		return "it has no path"
	case len(w.Path) > maxName:
		return "its path is too long"
	}
	return ""
}

// finding converts the finding to its stored form, without secrets.
func (w *wireFinding) finding(o Options) *storev1.ScannerFinding {
	out := &storev1.ScannerFinding{
		CheckId: plain(string(w.CheckID), maxName), Path: strings.TrimPrefix(plain(string(w.Path), maxName), "./"),
		Line: atLeast(w.Line, 1), Column: atLeast(w.Column, 1), EndLine: atLeast(w.EndLine, 1), EndColumn: atLeast(w.EndColumn, 1),
		Message: plain(string(w.Message), maxMessage), Severity: int32(w.Severity), Index: atLeast(w.Index, 0),
		SyntacticId: plain(string(w.SyntacticID), maxHash), MatchBasedId: plain(string(w.MatchBasedID), maxHash),
		CodeHash: plain(string(w.Hashes.Code), maxHash), PatternHash: plain(string(w.Hashes.Pattern), maxHash),
		StartLineHash: plain(string(w.Hashes.StartLine), maxHash), EndLineHash: plain(string(w.Hashes.EndLine), maxHash),
		IsBlocking: bool(w.IsBlocking), ValidationState: plain(string(w.ValidationState), 64), EngineKind: plain(string(w.Engine), 64),
		CommitDate: plain(string(w.CommitDate), 64),
	}
	if len(w.Metadata) <= maxMetadata && len(w.Metadata) > 0 && w.Metadata[0] == '{' {
		out.Metadata = plainJSON(w.Metadata)
	}
	if len(w.Trace) <= maxTrace {
		out.DataflowTrace = plainJSON(w.Trace)
	}
	out.FixedLines = lines(w.FixedLines)
	if h := w.Historical; h != nil {
		out.HistoricalCommit, out.HistoricalBlob = plain(string(h.Commit), 64), plain(string(h.Blob), 64)
		out.HistoricalAt = micros(string(h.At))
	}
	if w.SCA != nil {
		out.Sca = w.SCA.match()
	}
	if w.sensitive(out, o) {
		w.redact(out, o)
	}
	withoutTokens(out)
	return out
}

// withoutTokens removes well-known tokens from all texts, whatever the rule is about.
func withoutTokens(f *storev1.ScannerFinding) {
	for _, text := range []*string{&f.CheckId, &f.Message, &f.SyntacticId, &f.MatchBasedId, &f.CodeHash, &f.PatternHash} {
		*text = sarif.RedactTokens(*text)
	}
	for i := range f.GetFixedLines() {
		f.FixedLines[i] = sarif.RedactTokens(f.FixedLines[i])
	}
	for _, encoded := range []*[]byte{&f.DataflowTrace, &f.Metadata} {
		if len(*encoded) > 0 && sarif.RedactTokens(string(*encoded)) != string(*encoded) {
			*encoded = redactedJSON(*encoded, sarif.RedactTokens)
		}
	}
}

// sensitive reports whether texts of a finding may contain a secret.
func (w *wireFinding) sensitive(f *storev1.ScannerFinding, o Options) bool {
	if w.Historical != nil || w.ValidationState != "" && f.GetSca() == nil && !strings.EqualFold(string(w.ValidationState), "NO_VALIDATOR") {
		return true
	}
	if _, known := o.SecretRules[f.GetCheckId()]; known {
		return true
	}
	m := ParseMetadata(w.Metadata)
	return m.Product == vocabulary.Secrets || sarif.Sensitive(f.GetCheckId(), m.Tags, m.CWE)
}

// redact removes secrets. Code is removed completely, because only the tool knows where the secret is in it. The
// message is the rule's own if it is known, without the values that the scanner filled in.
func (w *wireFinding) redact(f *storev1.ScannerFinding, o Options) {
	redactor := sarif.NewRedactor(o.RedactionKey, append(codeOf(w.Trace), w.FixedLines...)...)
	f.FixedLines, f.DataflowTrace = nil, nil
	if own := o.SecretRules[f.GetCheckId()]; own != "" {
		f.Message = plain(own, maxMessage)
	} else {
		f.Message = keyLike.ReplaceAllStringFunc(redactor.Text(f.GetMessage()), withoutKeys)
	}
	f.Metadata = redactedJSON(f.GetMetadata(), redactor.Text)
	for _, id := range []*string{&f.SyntacticId, &f.MatchBasedId, &f.CodeHash, &f.PatternHash, &f.StartLineHash, &f.EndLineHash} {
		if redactor.Text(*id) != *id {
			*id = ""
		}
	}
}

// keyLike matches words that are as long as keys and passwords.
var keyLike = regexp.MustCompile(`[0-9A-Za-z_+/=.~!@#$%^&*-]{8,}`)

// withoutKeys redacts a word that mixes letters and digits.
func withoutKeys(word string) string {
	if strings.ContainsAny(word, "0123456789") && strings.ContainsFunc(word, unicode.IsLetter) {
		return sarif.Redacted
	}
	return word
}

func (w *wireSCA) match() *storev1.ScannerDependencyMatch {
	m := &storev1.ScannerDependencyMatch{
		Reachable: bool(w.Reachable), ReachabilityRule: bool(w.ReachabilityRule), Kind: plain(string(w.Kind), 64),
		Dependency: w.Match.Found.dependency(), Lockfile: plain(string(w.Match.Lockfile), maxName),
		SemverRange: plain(string(w.Match.Pattern.SemverRange), maxName),
	}
	if m.GetLockfile() == "" {
		m.Lockfile = m.GetDependency().GetLockfilePath()
	}
	return m
}

func atLeast(n number, least int32) int32 { return max(int32(n), least) }

// lines returns the lines of a fix, up to the maximal size.
func lines(all []string) (kept []string) {
	size := 0
	for _, line := range all {
		if size += len(line) + 1; size > maxFixed {
			return nil // a partial fix is useless
		}
		kept = append(kept, plain(line, maxFixed))
	}
	return kept
}

// micros converts a time to microseconds since 1970. A time without a zone is UTC. An invalid time is 0.
func micros(s string) int64 {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04:05-07:00"} {
		if at, err := time.Parse(layout, strings.TrimSpace(s)); err == nil {
			return at.UnixMicro()
		}
	}
	return 0
}
