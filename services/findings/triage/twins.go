package triage

import (
	"context"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// identity is what is equal of the same finding on several refs.
type identity struct {
	ProjectID   int64  `sql:"project_id"`
	Fingerprint string `sql:"fingerprint"`
}

// fewTwins is up to how many findings PostgreSQL joins well, whatever its statistics say.
const fewTwins = 100

// twins returns the chosen findings and the same ones on other refs of their projects: all, and those that a list may
// show. A removed finding shares decisions too, since it may come back.
func twins(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID int64, issueType string, chosen []int64) (all, shown []int64, err error) {
	same := twinsByJoin(deploymentID, chosen)
	if st.Postgres() && len(chosen) > fewTwins {
		if same, err = twinsByValues(ctx, tx, chosen); err != nil {
			return nil, nil, err
		}
	}
	var rows []struct {
		ID     int64  `sql:"id"`
		Status string `sql:"status"`
	}
	err = tx.Finding.Query().Where(finding.IssueType(issueType), same).Select(finding.FieldID, finding.FieldStatus).Scan(ctx, &rows)
	if err != nil {
		return nil, nil, err
	}
	all, shown = make([]int64, 0, len(rows)), make([]int64, 0, len(rows))
	for _, row := range rows {
		all = append(all, row.ID)
		if row.Status != lifecycle.Removed {
			shown = append(shown, row.ID)
		}
	}
	return all, shown, nil
}

// twinsByJoin limits findings to the identities of the chosen ones in one statement. SQLite makes a table of them and looks each up in the
// index by identity.
func twinsByJoin(deploymentID int64, chosen []int64) predicate.Finding {
	return func(s *entsql.Selector) {
		source := entsql.Table(finding.Table).As("chosen")
		same := entsql.Dialect(s.Dialect()).Select(source.C(finding.FieldProjectID), source.C(finding.FieldFingerprint)).From(source)
		same.Where(entsql.And(
			entsql.EQ(source.C(finding.FieldDeploymentID), deploymentID),
			store.InIDs(source.C(finding.FieldID), chosen),
		))
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteByte('(').WriteString(s.C(finding.FieldProjectID)).Comma().WriteString(s.C(finding.FieldFingerprint)).WriteString(") IN ")
			b.Wrap(func(b *entsql.Builder) { b.Join(same) })
		}))
	}
}

// twinsByValues reads the identities of the chosen findings and limits findings to them: in one project by a list of
// fingerprints, in several by pairs, each looked up in the index by identity. PostgreSQL joins 100,000 findings with themselves
// in nested loops (18 s against 0.2 s) as long as its statistics do not know of a large import.
func twinsByValues(ctx context.Context, tx *ent.Tx, chosen []int64) (predicate.Finding, error) {
	var rows []identity
	err := tx.Finding.Query().Where(store.WithIDs[predicate.Finding](chosen)).Select(finding.FieldProjectID, finding.FieldFingerprint).Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	seen := make(map[identity]struct{}, len(rows))
	projects, fingerprints := make([]int64, 0, len(rows)), make([]string, 0, len(rows))
	for _, row := range rows {
		if _, known := seen[row]; known {
			continue
		}
		seen[row] = struct{}{}
		projects, fingerprints = append(projects, row.ProjectID), append(fingerprints, row.Fingerprint)
	}
	several := len(projects) == 0 || slices.ContainsFunc(projects, func(id int64) bool { return id != projects[0] })
	return func(s *entsql.Selector) {
		project, fingerprint := s.C(finding.FieldProjectID), s.C(finding.FieldFingerprint)
		s.Where(entsql.P(func(b *entsql.Builder) {
			if several {
				b.WriteString("(" + project + ", " + fingerprint + ") IN (SELECT * FROM unnest(").Arg(projects).WriteString("::bigint[], ").
					Arg(fingerprints).WriteString("::text[]))")
			} else {
				b.WriteString(project + " = ").Arg(projects[0]).WriteString(" AND " + fingerprint + " = ANY(").Arg(fingerprints).WriteByte(')')
			}
		}))
	}, nil
}
