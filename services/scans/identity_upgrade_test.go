package scans_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scans"
)

// clearEvidence leaves the findings as a version without evidence stored them.
func clearEvidence(t *testing.T, s *apitest.Server) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM settings WHERE name = 'identity_version'"); err != nil {
			return err
		}
		return tx.Finding.Update().ClearEvidence().ClearMatchKey().Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func evidenceOf(t *testing.T, s *apitest.Server) (list [][]byte) {
	t.Helper()
	for _, row := range s.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).AllX(s.System(t)) {
		var evidence []byte
		if row.Evidence != nil && row.MatchKey != nil {
			evidence = *row.Evidence
		}
		list = append(list, evidence)
	}
	return list
}

// Findings of a version without evidence, or with evidence of another ladder, are matched by the next import: none is
// lost, and none counts as changed.
func TestImportUpgradesIdentities(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ranAtStart(t, s, "upgrade_identities")
		report := testdata(t, "gosec.sarif")
		upload(t, s, "main", report)
		upload(t, s, "dev", report)
		ignore(t, s, "G104")
		before, events := evidenceOf(t, s), len(kinds(t, s))
		clearEvidence(t, s)
		wantCounts(t, "without evidence", upload(t, s, "main", report), [6]int32{0, 0, 309, 0, 0, 0})
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Finding.Update().SetEvidence([]byte{99, 1, 2, 3}).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		wantCounts(t, "another version", upload(t, s, "main", report), [6]int32{0, 0, 309, 0, 0, 0})
		for n, evidence := range evidenceOf(t, s) {
			if !bytes.Equal(evidence, before[n]) {
				t.Fatalf("finding %d has evidence %x, want %x", n, evidence, before[n])
			}
		}
		if now := len(kinds(t, s)); now != events {
			t.Errorf("%d events were made", now-events)
		}
		if body := s.Get(t, "/api/v1/deployments/acme/findings?ref=main&rules=G104&status=open"); !strings.Contains(body, `"findings":[]`) {
			t.Errorf("decisions are lost: %.300s", body)
		}
	})
}

// The job does the same for all projects, once.
func TestJobUpgradesIdentities(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ranAtStart(t, s, "upgrade_identities")
		upload(t, s, "main", testdata(t, "gosec.sarif"))
		s.Upload(t, "acme/api", "main", testdata(t, "eslint.sarif"))
		before := evidenceOf(t, s)
		clearEvidence(t, s)
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		for range 2 {
			if err := scans.UpgradeIdentities(t.Context(), s.Store, log); err != nil {
				t.Fatal(err)
			}
		}
		for n, evidence := range evidenceOf(t, s) {
			if !bytes.Equal(evidence, before[n]) {
				t.Fatalf("finding %d has evidence %x, want %x", n, evidence, before[n])
			}
		}
		if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `msg="the identities of findings were upgraded" version=4 findings=1038`) {
			t.Errorf("logged:\n%s", got)
		}
	})
}
