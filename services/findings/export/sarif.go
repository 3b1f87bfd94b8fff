package export

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/rule"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/pathignore"
)

// sarifFormat writes a run per analysis, with what its latest scan reported. The rules of a run come after its results,
// when they are known; the order of members means nothing in JSON.
type sarifFormat struct {
	lookup   lookup
	deciders deciders
	buffer   bytes.Buffer
	current  *group // nil before the first
	rules    map[int64]bool
	project  *ent.Project
	first    bool // of the run
}

func newSARIF(about *about) format {
	return &sarifFormat{lookup: about.lookup, deciders: deciders{about.lookup.db, map[int64]*ent.FindingEvent{}}}
}

func (*sarifFormat) needs() needs { return needs{events: true} }

func (*sarifFormat) begin() ([]byte, error) {
	return []byte(`{"$schema":"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json","version":"2.1.0","runs":[`), nil
}

func (f *sarifFormat) end(ctx context.Context) ([]byte, error) {
	f.buffer.Reset()
	err := f.close(ctx)
	f.buffer.WriteString("]}\n")
	return f.buffer.Bytes(), err
}

// group begins a run.
func (f *sarifFormat) group(ctx context.Context, g *group) ([]byte, error) {
	f.buffer.Reset()
	more := f.current != nil
	if err := f.close(ctx); err != nil {
		return nil, err
	}
	if more {
		f.buffer.WriteByte(',')
	}
	f.current, f.rules, f.first, f.project = g, map[int64]bool{}, true, nil
	f.buffer.WriteString("\n" + `{"columnKind":"unicodeCodePoints","results":[`)
	return f.buffer.Bytes(), nil
}

func (f *sarifFormat) batch(ctx context.Context, b *batch) ([]byte, error) {
	f.buffer.Reset()
	decided, err := f.deciders.of(ctx, b.rows)
	if err != nil {
		return nil, err
	}
	names, err := f.lookup.names(ctx, actorsOf(slices.Collect(maps.Values(decided))))
	if err != nil {
		return nil, err
	}
	for _, e := range b.rows {
		f.rules[e.RuleID], f.project = true, e.project
		if !f.first {
			f.buffer.WriteByte(',')
		}
		f.first = false
		result, err := sarifResultOf(e, authorOf(e, decided[e.ID], names))
		if err != nil {
			return nil, fmt.Errorf("finding %d: %w", e.ID, err)
		}
		f.buffer.WriteByte('\n')
		if err := encode(&f.buffer, result); err != nil {
			return nil, err
		}
	}
	return f.buffer.Bytes(), nil
}

// close ends the run, if there is one.
func (f *sarifFormat) close(ctx context.Context) error {
	if f.current == nil {
		return nil
	}
	run := sarifRun{Properties: map[string]string{"ref": f.current.Ref}}
	run.Tool.Driver.Name = f.current.Tool
	if f.current.Category != "" {
		run.Automation = &sarifAutomation{ID: f.current.Category + "/"}
	}
	if f.project != nil {
		run.Properties["project"] = f.project.Name
		if f.project.URL != "" {
			run.Versions = []sarifVersion{{RepositoryURI: f.project.URL, Branch: f.current.Ref}}
		}
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(f.rules)), rowsAtOnce) {
		rows, err := f.lookup.db.Rule.Query().Where(store.WithIDs[predicate.Rule](ids)).Order(ent.Asc(rule.FieldID)).All(ctx)
		if err != nil {
			return fmt.Errorf("read rules: %w", err)
		}
		for _, r := range rows {
			content := &findingsv1.FindingRule{}
			if err := proto.Unmarshal(r.Content, content); err != nil {
				return fmt.Errorf("rule %d: %w", r.ID, err)
			}
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRuleOf(r.Name, content))
		}
	}
	f.buffer.WriteString("],")
	var rest bytes.Buffer
	if err := encode(&rest, run); err != nil {
		return err
	}
	f.buffer.Write(rest.Bytes()[1:]) // without its opening brace
	f.current = nil
	return nil
}

// suppressionsOf says why a result needs no attention: by a decision, or by the code itself. An empty list says that it
// needs attention. author made the decision.
func suppressionsOf(e *exported, author string) []sarifSuppression {
	list := []sarifSuppression{}
	switch {
	case e.IgnoredByPattern != nil:
		list = append(list, sarifSuppression{
			Kind: "external", Status: "accepted", Justification: pathignore.Reason(*e.IgnoredByPattern), Properties: sarifDecision{State: e.State},
		})
	case e.State == lifecycle.Muted:
		told := e.content.GetSuppression()
		kind := firstOf(told.GetKind(), "inSource")
		list = append(list, sarifSuppression{
			Kind: kind, Status: "accepted", Justification: firstOf(told.GetJustification(), e.content.GetSuppressionReason()),
			Properties: sarifDecision{State: e.State, Author: told.GetAuthor(), Date: stamp(&e.StateUpdatedAt)},
		})
	}
	status := map[string]string{lifecycle.Ignored: "accepted", lifecycle.ProvisionallyIgnored: "underReview"}[e.TriageState]
	if status == "" {
		return list
	}
	return append(list, sarifSuppression{
		Kind: "external", Status: status, Justification: text(e.TriageComment),
		Properties: sarifDecision{
			State: e.TriageState, Reason: text(e.TriageReason), Author: author, Date: stamp(e.TriagedAt),
		},
	})
}

// levels are the levels of severities.
var levels = map[string]string{
	vocabulary.SeverityCritical: "error", vocabulary.SeverityHigh: "error", vocabulary.SeverityMedium: "warning", vocabulary.SeverityLow: "note",
}

// encode appends JSON without escapes for HTML.
func encode(to *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	to.Truncate(to.Len() - 1) // the line end
	return nil
}
