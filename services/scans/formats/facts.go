package formats

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/sarif"
)

const (
	// maxDependencies is how many packages of a document become dependencies. They are stored in one transaction.
	maxDependencies = 100_000
	// maxDecisions is how many pairs of a vulnerability and a package the statements of a document may be about.
	maxDecisions = 100_000
)

// Dependency is a package that a bill of materials lists.
type Dependency struct {
	// Lockfile is the file that the package comes from, or what the document is about.
	Lockfile string
	// Line is its line there; 0 if it is unknown.
	Line int `json:",omitzero"`
	// Ecosystem is the API's word, or empty.
	Ecosystem, Name, Version string
	// Transitivity is direct, transitive, or empty if it is unknown.
	Transitivity string
	Licenses     []string
	// Children are the packages that it requires, as name@version.
	Children []string
}

// The words of [Decision.Status].
const (
	NotAffected   = "not_affected"
	FalsePositive = "false_positive"
	Affected      = "affected"
	FixedStatus   = "fixed"
	Investigating = "under_investigation"
)

// Decision is a VEX statement about one package.
type Decision struct {
	// Vulnerabilities are the names of one vulnerability.
	Vulnerabilities []string
	// PURL names the package.
	PURL string
	// Status is a word of this package. Justification is the document's own word, Detail a text of its author.
	Status, Justification, Detail string
	// Author and Document say who decided, and where.
	Author, Document string
	// At is the time of the statement; zero if it has none.
	At time.Time
}

// Fact is a line of the facts of a document.
type Fact struct {
	Dependency *Dependency `json:",omitzero"`
	Decision   *Decision   `json:",omitzero"`
}

// Facts starts a document that has no results: the dependencies and decisions follow. It closes no finding.
func (w *Writer) Facts(t Tool) {
	w.Run(t)
	w.notes().FactsOnly = true
}

// Dependency adds a package.
func (w *Writer) Dependency(d Dependency) error {
	if w.kept.dependencies++; w.kept.dependencies > maxDependencies {
		return errManyPackages
	}
	for _, text := range []*string{&d.Lockfile, &d.Name, &d.Version} {
		*text = sarif.RedactTokens(*text)
	}
	for _, list := range [][]string{d.Licenses, d.Children} {
		for i := range list {
			list[i] = sarif.RedactTokens(list[i])
		}
	}
	return w.fact(Fact{Dependency: &d})
}

var errManyPackages = &jsonstream.LimitError{What: "it lists more packages than a bill of materials may have", Max: maxDependencies}

// Decision adds a statement.
func (w *Writer) Decision(d Decision) error {
	if w.kept.decisions++; w.kept.decisions > maxDecisions {
		return &jsonstream.LimitError{What: "its statements are about more vulnerabilities and packages than a document may have", Max: maxDecisions}
	}
	for i, id := range d.Vulnerabilities {
		d.Vulnerabilities[i] = short(id, 255)
	}
	d.PURL, d.Justification, d.Detail = short(d.PURL, 1024), short(d.Justification, 100), short(d.Detail, 1024)
	d.Author, d.Document = short(d.Author, 200), short(d.Document, 300)
	return w.fact(Fact{Decision: &d})
}

// short makes a text storable.
func short(text string, most int) string {
	return jsonstream.Cut(sarif.RedactTokens(jsonstream.Clean(text)), most)
}

func (w *Writer) fact(f Fact) error {
	if w.err == nil {
		if w.err = json.MarshalWrite(w.facts, f, jsonstream.Options); w.err == nil {
			w.err = w.facts.WriteByte('\n')
		}
	}
	return w.err
}

// ReadFacts reads what [Convert] wrote.
func ReadFacts(src io.Reader, use func(*Fact) error) error {
	lines := jsontext.NewDecoder(src, jsonstream.Options)
	for {
		var f Fact
		switch err := json.UnmarshalDecode(lines, &f, jsonstream.Options); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the facts of a report: %w", err)
		}
		if err := use(&f); err != nil {
			return err
		}
	}
}
