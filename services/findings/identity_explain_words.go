package findings

import (
	"fmt"
	"strings"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/vocabulary"
)

// maxQuoted is how much of a message or of code an explanation quotes, in characters.
const maxQuoted = 120

// words describes the evidence, the strongest first. All evidence includes the rule, and the file unless it was moved.
func (e *explanation) words(known identity.Evidence) (out []*findingsv1.IdentityEvidence) {
	where := fmt.Sprintf("rule %s in %s", e.rule, e.content.GetLocation().GetFilePath())
	add := func(rung string, hash uint64, text string) {
		if hash == 0 {
			return
		}
		piece := &findingsv1.IdentityEvidence{Rung: rung, MadeOf: text + ", with " + where}
		if e.row.IssueType != vocabulary.Secrets { // a short secret could be guessed from its hash
			piece.Hash = fmt.Sprintf("%016x", hash)
		}
		out = append(out, piece)
	}
	add(identity.RungMatchBasedID, known.MatchBased, "the match-based id that the scanner gave"+e.quoted(e.content.GetMatchBasedId()))
	add(identity.RungToolFingerprint, known.ToolFingerprint, "the fingerprint that the tool gave"+e.quoted(e.content.GetToolFingerprint()))
	if known.Code != 0 {
		add(identity.RungCode, known.Code, "the scanner's hash of the matched code")
	}
	if known.Pattern != 0 {
		add(identity.RungCode, known.Pattern, "the scanner's hash of the rule's pattern with its values")
	}
	add(identity.RungSnippet, known.Snippet, "the matched lines without their indentation"+e.quoted(e.content.GetSnippet()))
	if known.Snippet == 0 {
		add(identity.RungMessage, known.Message, "the message without line numbers"+e.quoted(e.content.GetMessage()))
	}
	of := "matched lines"
	if known.Snippet == 0 {
		of = "message"
	}
	add(identity.RungShape, known.Shape, "the shape of the "+of+": names, numbers and strings do not count")
	if known.Line > 0 {
		out = append(out, &findingsv1.IdentityEvidence{
			Rung: identity.RungLine, MadeOf: fmt.Sprintf("nearness to line %d, with %s, where nothing stronger is left", known.Line, where),
		})
	}
	return out
}

// quoted returns the beginning of a text. It returns "" for secrets, because the text may contain the secret.
func (e *explanation) quoted(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" || e.row.IssueType == vocabulary.Secrets {
		return ""
	}
	if runes := []rune(text); len(runes) > maxQuoted {
		text = string(runes[:maxQuoted]) + "…"
	}
	return " (" + text + ")"
}

// rungWords describe the rungs.
var rungWords = map[string]string{
	identity.RungMatchBasedID: "the scanner's match-based id", identity.RungToolFingerprint: "the tool's fingerprint",
	identity.RungCode: "the scanner's hash of the code", identity.RungSnippet: "the matched lines",
	identity.RungMessage: "the message", identity.RungShape: "the shape of the code, names and values aside",
	identity.RungLine: "the nearest line", "name": "the code, which is as it was when the finding was first seen",
}

// describeRung describes the evidence that joined a result to a finding.
func describeRung(rung string) string {
	beginning, rest, moved := strings.Cut(rung, ":")
	if !moved {
		rest = beginning
	}
	words, known := rungWords[rest]
	if !known {
		return rung
	}
	switch {
	case !moved:
		return words
	case beginning == "moved_file":
		return words + ", in a file that was moved"
	}
	return words + ", in another file"
}
