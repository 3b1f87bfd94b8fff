package export

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/palisade/palisade/services/findings/printout"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/codehost"
	"github.com/palisade/palisade/services/projects/gitref"
)

// csvColumns are the columns of the contract (facts, section 4), and columns of single products.
var csvColumns = []string{
	"Id", "Rule name", "Product", "Severity", "Status", "Confidence", "Multimodal component", "Repository name", "Repository URL",
	"Line of code URL", "Semgrep platform link", "Created at", "Last Opened at", "Branch", "Triaged at", "Triage comment", "Triage reason",
	"Rule description", "File", "Line", "Validation state", "Secret type", "Dependency", "Dependency version", "Ecosystem", "Vulnerability",
	"Reachability", "Transitivity", "Fixed in", "EPSS score", "Malicious",
}

// products are the products in the words of the contract's documents.
var products = map[string]string{vocabulary.SAST: "Code", vocabulary.SCA: "Supply Chain", vocabulary.Secrets: "Secrets", vocabulary.AISAST: "AI Code"}

// csvFormat writes one row per finding, newest last.
type csvFormat struct {
	link   func(id int64) string
	buffer bytes.Buffer
	out    *printout.CSV
}

func newCSV(about *about) format {
	f := &csvFormat{link: about.link}
	f.out = printout.NewCSV(&f.buffer)
	return f
}

func (*csvFormat) needs() needs { return needs{exploits: true} }

func (f *csvFormat) begin() ([]byte, error)            { return f.rows([][]string{csvColumns}) }
func (*csvFormat) end(context.Context) ([]byte, error) { return nil, nil }

func (f *csvFormat) batch(_ context.Context, b *batch) ([]byte, error) {
	rows := make([][]string, len(b.rows))
	for i, e := range b.rows {
		rows[i] = f.row(b, e)
	}
	return f.rows(rows)
}

func (f *csvFormat) rows(rows [][]string) ([]byte, error) {
	f.buffer.Reset()
	for _, row := range rows {
		if err := f.out.Row(row...); err != nil {
			return nil, err
		}
	}
	err := f.out.End()
	return f.buffer.Bytes(), err
}

func (f *csvFormat) row(b *batch, e *exported) []string {
	at, about := e.content.GetLocation(), e.rule.content
	row := []string{
		strconv.FormatInt(e.ID, 10), e.rule.Name, products[e.IssueType], e.Severity, e.Status, e.rule.Confidence, text(e.ComponentTag), e.project.Name, e.project.URL,
		codehost.LineURL(e.project.ScmType, e.project.URL, e.content.GetCommit(), at.GetFilePath(), at.GetLine()), f.link(e.ID),
		stamp(&e.CreatedAt), stamp(&e.RelevantSince), gitref.Short(e.Ref), stamp(e.TriagedAt), text(e.TriageComment), text(e.TriageReason),
		firstOf(about.GetMessage(), e.content.GetMessage()), text(e.FilePath), number(at.GetLine()), text(e.ValidationState), text(e.rule.SecretType),
	}
	return append(row, f.dependency(b, e)...)
}

// dependency are the columns of supply-chain findings.
func (*csvFormat) dependency(b *batch, e *exported) []string {
	if e.IssueType != vocabulary.SCA {
		return make([]string, len(csvColumns)-22)
	}
	found := e.content.GetFoundDependency()
	var fixes []string
	for _, fix := range e.content.GetFixRecommendations() {
		fixes = append(fixes, strings.TrimSpace(fix.GetPackage()+" "+fix.GetVersion()))
	}
	score, malicious := "", ""
	if known := b.exploits.Score(text(e.Advisory)); known != nil {
		score = strconv.FormatFloat(known.GetScore(), 'g', -1, 64)
	}
	if e.Malicious != nil && *e.Malicious {
		malicious = "true"
	}
	return []string{
		firstOf(found.GetPackage(), text(e.Package)), found.GetVersion(), found.GetEcosystem(), firstOf(e.content.GetVulnerabilityIdentifier(), text(e.Advisory)),
		text(e.Exposure), text(e.Transitivity), strings.Join(fixes, ", "), score, malicious,
	}
}

// stamp is a time in the form of the API.
func stamp(micros *int64) string {
	if micros == nil {
		return ""
	}
	return store.Time(*micros).Format("2006-01-02T15:04:05.000000Z")
}

// number is a number of a line; empty if it is unknown.
func number(line int32) string {
	if line == 0 {
		return ""
	}
	return strconv.Itoa(int(line))
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
