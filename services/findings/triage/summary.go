package triage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// Summary describes findings that conditions select.
type Summary struct {
	// Findings is their number; Identities counts a finding that is on several refs once.
	Findings, Identities int64
	// ByType and ByStatus are the numbers by issue type and by status.
	ByType, ByStatus map[string]int64
	// Revision changes when other findings are selected, or when somebody decides about one of them.
	Revision string
}

// checksums are two sums over the ids of findings and the times of their decisions. They do not depend on the order, so
// that the database computes them without sorting. Their products stay below 2^63. Together they have about 60 bits,
// which is enough to detect changes. They need not resist forgery: the token that has them is sealed.
const checksums = "CAST(SUM((id % 1000000007) * (id % 998244353) % 2147483629) AS bigint)," +
	" CAST(SUM((id % 1000000007) * ((COALESCE(triaged_at, 0) + id) % 998244353) % 2147483629) AS bigint)"

// Summarise describes the findings that the conditions and the caller's teams select.
func Summarise(ctx context.Context, st *store.Store, db querier, where ...predicate.Finding) (*Summary, error) {
	groups, err := selected(ctx, st, where, "issue_type, status, triage_state, count(*), "+checksums)
	if err != nil {
		return nil, err
	}
	groups.GroupBy("issue_type", "status", "triage_state")
	out := &Summary{ByType: map[string]int64{}, ByStatus: map[string]int64{}}
	var lines []string
	err = each(ctx, st, db, func(rows *sql.Rows) error {
		var issueType, status, triageState string
		var n, first, second int64
		if err := rows.Scan(&issueType, &status, &triageState, &n, &first, &second); err != nil {
			return err
		}
		out.Findings += n
		out.ByType[issueType] += n
		out.ByStatus[status] += n
		lines = append(lines, fmt.Sprintln(issueType, status, triageState, n, first, second))
		return nil
	}, groups)
	if err != nil {
		return nil, fmt.Errorf("summarise findings: %w", err)
	}
	slices.Sort(lines)
	sum := sha256.Sum256(fmt.Append(nil, lines))
	out.Revision = base64.RawURLEncoding.EncodeToString(sum[:16])
	identities, err := selected(ctx, st, where, "DISTINCT "+identityColumns)
	if err != nil {
		return nil, err
	}
	out.Identities, err = count(ctx, st, db, "SELECT count(*) FROM (", identities, ") AS chosen")
	return out, err
}

// Statuses are the statuses of a summary, the most frequent first.
func (s *Summary) Statuses() []string {
	list := make([]string, 0, len(s.ByStatus))
	for word := range s.ByStatus {
		list = append(list, word)
	}
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.ByStatus[b], s.ByStatus[a]), cmp.Compare(a, b))
	})
	return list
}

// CountChanges counts the findings that the decision would change if it chose the findings of the conditions.
func (d Decision) CountChanges(ctx context.Context, st *store.Store, db querier, where ...predicate.Finding) (int64, error) {
	if !lifecycle.Spreads(d.State) {
		ids, err := selected(ctx, st, where, "findings.id")
		if err != nil {
			return 0, err
		}
		return count(ctx, st, db, join("SELECT count(*) FROM findings f WHERE +f.deployment_id = ", arg{d.DeploymentID}, " AND f.id IN (", ids, ") AND ", d.changes("f"))...)
	}
	identities, err := selected(ctx, st, where, "DISTINCT "+identityColumns)
	if err != nil {
		return 0, err
	}
	return count(ctx, st, db, join("SELECT count(*) FROM ", sameIdentity(st, d.DeploymentID, identities), " AND ", d.changes("twin"))...)
}
