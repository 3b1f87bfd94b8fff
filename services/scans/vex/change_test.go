package vex

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/formats"
)

var (
	statuses       = []string{formats.NotAffected, formats.FalsePositive, formats.Affected, formats.FixedStatus, formats.Investigating}
	justifications = []string{"", "component_not_present", "inline_mitigations_already_exist", "Code_Not_Reachable", "something"}
	triageStates   = []string{
		lifecycle.Untriaged, lifecycle.Ignored, lifecycle.Reopened, lifecycle.Reviewing, lifecycle.Fixing, lifecycle.ProvisionallyIgnored,
	}
)

const now = int64(1_800_000_000_000_000)

func drawStatement(t *rapid.T) *statement {
	return &statement{Decision: formats.Decision{
		Status: rapid.SampledFrom(statuses).Draw(t, "status"), Justification: rapid.SampledFrom(justifications).Draw(t, "justification"),
		Detail: rapid.SampledFrom([]string{"", "never called"}).Draw(t, "detail"), Author: "Acme",
		At: time.Unix(int64(rapid.IntRange(0, 10).Draw(t, "at")), 0).UTC(),
	}}
}

// apply stores a change, as the database would.
func apply(row *ent.Finding, of *owner, c *change) {
	if c == nil {
		return
	}
	row.TriageState, row.Status, row.TriagedAt = c.state, c.status, c.triagedAt
	row.TriageReason, row.TriageComment = nil, nil
	if c.reason != "" {
		row.TriageReason = &c.reason
	}
	if c.comment != "" {
		row.TriageComment = &c.comment
	}
	of.statement = of.statement || c.kind == "triaged"
	of.notes = append(of.notes, c.by.note())
}

// TestSequencesOfStatements: after any sequence of documents the newest one counts, in any order of arrival; repeating
// a document changes nothing; a person's decision and notes never change.
func TestSequencesOfStatements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mine := "mine"
		row := &ent.Finding{State: lifecycle.Unresolved, TriageState: lifecycle.Untriaged, Status: lifecycle.Open}
		of := &owner{}
		if rapid.Bool().Draw(t, "noted") {
			row.TriageComment = &mine
		}
		noted := row.TriageComment
		var newest *statement
		for i := range rapid.IntRange(1, 8).Draw(t, "documents") {
			if rapid.IntRange(0, 5).Draw(t, "person") == 0 {
				of.person = true
				row.TriageState = rapid.SampledFrom(triageStates).Draw(t, "decision")
				row.Status = lifecycle.Status(row.State, row.TriageState)
			}
			by := drawStatement(t)
			by.order = i
			before := *row
			c, kept := ruling{row, by}.change(of, now)
			if kept && c != nil {
				t.Fatal("kept and changed")
			}
			if of.person {
				if c != nil || !kept {
					t.Fatalf("a person decided %s, a statement says %s: %+v", before.TriageState, by.Status, c)
				}
				continue
			}
			apply(row, of, c)
			if noted != nil && *row.TriageComment != mine {
				t.Fatalf("the note is %q", *row.TriageComment)
			}
			if row.Status != lifecycle.Status(row.State, row.TriageState) {
				t.Fatalf("status %s, state %s, triage %s", row.Status, row.State, row.TriageState)
			}
			if (row.TriageState == lifecycle.Ignored) != (row.TriageReason != nil) {
				t.Fatalf("%s with reason %v", row.TriageState, row.TriageReason)
			}
			if again, _ := (ruling{row, by}).change(of, now); again != nil && (newest == nil || !by.At.Before(newest.At)) {
				t.Fatalf("repeated: %+v", again)
			}
			if by.Status != formats.FixedStatus && (newest == nil || !by.At.Before(newest.At)) && (by.Status != formats.Affected || row.TriagedAt != nil) {
				newest = by
			}
		}
		if newest == nil || of.person {
			return
		}
		want := map[string]string{
			formats.NotAffected: lifecycle.Ignored, formats.FalsePositive: lifecycle.Ignored, formats.Affected: lifecycle.Reopened,
			formats.Investigating: lifecycle.Reviewing,
		}[newest.Status]
		if row.TriageState != want || *row.TriagedAt != store.Micros(newest.At) {
			t.Fatalf("%s at %d, the newest statement says %s at %s", row.TriageState, *row.TriagedAt, newest.Status, newest.At)
		}
	})
}

// A suppression in the code, and a decision that no event explains, are kept.
func TestKept(t *testing.T) {
	for _, status := range statuses {
		for _, row := range []*ent.Finding{
			{State: lifecycle.Muted, TriageState: lifecycle.Untriaged, Status: lifecycle.Ignored},
			{State: lifecycle.Unresolved, TriageState: lifecycle.Ignored, Status: lifecycle.Ignored},
		} {
			c, kept := ruling{row, &statement{Decision: formats.Decision{Status: status}}}.change(&owner{}, now)
			if c != nil || !kept {
				t.Errorf("%s about %s %s: %+v", status, row.State, row.TriageState, c)
			}
		}
	}
}

func TestReasons(t *testing.T) {
	for text, want := range map[string]string{
		"not_affected component_not_present":                             "false_positive",
		"not_affected vulnerable_code_not_present":                       "false_positive",
		"not_affected vulnerable_code_not_in_execute_path":               "false_positive",
		"not_affected vulnerable_code_cannot_be_controlled_by_adversary": "false_positive",
		"not_affected inline_mitigations_already_exist":                  "acceptable_risk",
		"not_affected code_not_reachable":                                "false_positive",
		"not_affected protected_at_perimeter":                            "acceptable_risk",
		"not_affected requires_environment":                              "acceptable_risk",
		"not_affected anything_else":                                     "no_triage_reason",
		"not_affected ":                                                  "no_triage_reason",
		"false_positive ":                                                "false_positive",
	} {
		var status, justification string
		if _, err := fmt.Sscanf(text+" -", "%s %s", &status, &justification); err != nil {
			t.Fatal(err)
		}
		st := &statement{Decision: formats.Decision{Status: status, Justification: justification}}
		if got := st.reason(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// FuzzStatements checks that the newest statement is about the package and the vulnerability that it is found by, in
// any spelling of the names.
func FuzzStatements(f *testing.F) {
	f.Add("CVE-2026-1", "pkg:npm/lodash@1?a=b", "lodash", "1")
	f.Add("ghsa-AAAA-bbbb-cccc", "pkg:golang/acme.test/web", "acme.test/web", "")
	f.Fuzz(func(t *testing.T, name, url, pkg, version string) {
		s := NewStatements()
		s.Add(&formats.Decision{Vulnerabilities: []string{name, "other", name}, PURL: url})
		by := s.newest([]string{name, "OTHER"}, "", pkg, version)
		if (by != nil) != (s.unmatched() == 0) {
			t.Errorf("%v, but %d unmatched", by, s.unmatched())
		}
		if by != nil && !by.about.Names("", pkg, version) {
			t.Errorf("%q is said to be about %q %q", url, pkg, version)
		}
		if st := s.list[0]; st.isAbout && name != "" {
			if s.newest([]string{name}, st.about.Ecosystem, st.about.Name, st.about.Version) == nil {
				t.Errorf("%q is not about its own package", url)
			}
			if !slices.Contains(s.byName["OTHER"], st) {
				t.Error("the second name is lost")
			}
		}
	})
}
