package blocking

import (
	"slices"
	"strings"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// Code is how a scanner recognises the code of a finding.
type Code struct{ MatchBasedID, CodeHash, PatternHash, Path string }

// CodeOf is the code of a stored finding.
func CodeOf(content *storev1.FindingContent) Code {
	return Code{content.GetMatchBasedId(), content.GetCodeHash(), content.GetPatternHash(), content.GetLocation().GetFilePath()}
}

// Ignored reports whether one of the ignored findings is the same code: it has the id by which scanners recognise it,
// or is in a renamed file. An equal identity is not enough, because it survives edits, and a diff scan reports a copy
// of known code alone. renamed has the former paths of renamed files.
func (c Code) Ignored(ignored []Code, renamed map[string]bool) bool {
	return slices.ContainsFunc(ignored, func(of Code) bool {
		same := of.CodeHash != "" && of.CodeHash == c.CodeHash && of.PatternHash == c.PatternHash
		return of.MatchBasedID != "" && (of.MatchBasedID == c.MatchBasedID || same && renamed[of.Path])
	})
}

// Occurrence is a match-based id: the hash of rule, path and code, and which of its occurrences in the file it is.
type Occurrence struct{ code, number string }

// Located is an occurrence with its file.
type Located struct {
	Occurrence
	Path string
}

// Occurrence is the occurrence of the code.
func (c Code) Occurrence() (o Occurrence) {
	o.code, o.number, _ = strings.Cut(c.MatchBasedID, "_")
	return o
}

// KnownTo reports whether a diff scan's finding is in its base. A diff scan leaves out what the base has, so a copy of
// known code comes alone, and gets the identity of the original. It is new if the scanner's id says that it is another
// occurrence in the file, or if it is in another file that was not renamed. base has the occurrences of the base, and
// equal the ones of the same identity.
func (o Located) KnownTo(base map[Occurrence]bool, equal []Located, renamed map[string]bool) bool {
	return o.code != "" && base[o.Occurrence] || slices.ContainsFunc(equal, func(of Located) bool {
		if o.code == "" || of.code == "" {
			return true // an old scanner, which has no ids
		}
		if of.Path != o.Path {
			return renamed[of.Path]
		}
		return o.code != of.code // the code was edited
	})
}
