package ruleset

import (
	"cmp"
	"context"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/ruledocument"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// A version of a rule is quarantined when a scanner calls it broken, unless it is proven. It is proven when a scan has
// run it, or when a person has released it. A new version is neither. docs/decisions/0031 says why.

const (
	// MaxBroken is how many rules one scan may call broken. More say something about the scanner.
	MaxBroken = 10
	// MaxQuarantined is how many rules reports of scans can keep in quarantine. More need a person.
	MaxQuarantined = 50
	// maxReason is the length of a stored reason in bytes.
	maxReason = 1000
)

// Sent is a version of a rule that a scan got.
type Sent struct {
	Version int32
	// StoredAt is when the version was stored, in microseconds.
	StoredAt int64
}

// SentTo returns the rules of a selection by name.
func SentTo(ctx context.Context, reader *ent.Client, selection Selection) (map[string]Sent, error) {
	all, err := selection.load(ctx, reader)
	if err != nil {
		return nil, err
	}
	sent, wanted := map[string]Sent{}, selection.filter()
	for _, r := range all {
		if wanted(r) {
			sent[r.name] = Sent{r.version, r.storedAt}
		}
	}
	return sent, nil
}

func isQuarantined(row *ent.RuleDocument) bool { return row.QuarantinedVersion == row.Version }

// InQuarantine selects the rules in quarantine.
func InQuarantine() predicate.RuleDocument {
	return func(s *entsql.Selector) {
		s.Where(entsql.ColumnsEQ(s.C(ruledocument.FieldQuarantinedVersion), s.C(ruledocument.FieldVersion)))
	}
}

// Quarantined returns the names of the deployment's rules in quarantine, sorted.
func Quarantined(ctx context.Context, db *ent.Client) ([]string, error) {
	return db.RuleDocument.Query().Where(InQuarantine()).Order(ent.Asc(ruledocument.FieldName)).Select(ruledocument.FieldName).Strings(ctx)
}

// unproven selects the rules whose present version no scan has run.
func unproven(s *entsql.Selector) {
	s.Where(entsql.ColumnsLT(s.C(ruledocument.FieldProvenVersion), s.C(ruledocument.FieldVersion)))
}

// Unproven returns the unproven rules of some products that have not changed since a time, by name.
func Unproven(ctx context.Context, db *ent.Client, products []string, unchangedSince int64) (map[string]int64, error) {
	rows, err := db.RuleDocument.Query().Where(unproven, store.OneOf(ruledocument.FieldProduct, products), ruledocument.UpdatedAtLTE(unchangedSince)).
		Select(ruledocument.FieldID, ruledocument.FieldName).All(ctx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ids := make(map[string]int64, len(rows))
	for _, row := range rows {
		ids[row.Name] = row.ID
	}
	return ids, nil
}

// Prove records that a scan has run the present versions of rules that have not changed since a time.
func Prove(ctx context.Context, tx *ent.Tx, ids []int64, unchangedSince int64) error {
	for part := range slices.Chunk(ids, rowsAtOnce) {
		err := tx.RuleDocument.Update().
			Where(ruledocument.UpdatedAtLTE(unchangedSince), store.WithIDs[predicate.RuleDocument](part)).
			Modify(func(u *entsql.UpdateBuilder) {
				u.Set(ruledocument.FieldProvenVersion, entsql.Expr(ruledocument.FieldVersion))
			}).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// Broken is a rule that a scanner calls broken.
type Broken struct {
	Name string
	// Reason is the scanner's text.
	Reason string
	// Version is the version that the scanner got.
	Version int32
}

// CanQuarantine reports whether Quarantine would change one of the rules. It needs no transaction.
func CanQuarantine(ctx context.Context, reader *ent.Client, broken []Broken) (bool, error) {
	rows, err := candidates(ctx, reader, broken)
	return len(rows) > 0, err
}

// candidates returns the rules that are neither proven nor quarantined, and still have the version that was broken.
func candidates(ctx context.Context, db *ent.Client, broken []Broken) ([]*ent.RuleDocument, error) {
	versions := make(map[string]int32, len(broken))
	names := make([]string, len(broken))
	for i, b := range broken {
		names[i], versions[b.Name] = b.Name, b.Version
	}
	rows, err := db.RuleDocument.Query().Where(store.OneOf(ruledocument.FieldName, names), unproven).All(ctx)
	return slices.DeleteFunc(rows, func(row *ent.RuleDocument) bool {
		return isQuarantined(row) || row.Version != versions[row.Name]
	}), err
}

// Quarantine takes broken rules out of the deployment's scans and returns the ones that it changed, by name. Call it
// inside store.Write.
func Quarantine(ctx context.Context, st *store.Store, tx *ent.Tx, scanID int64, broken []Broken) ([]Broken, error) {
	now, err := BeginChange(ctx, st, tx)
	if err != nil {
		return nil, err
	}
	rows, err := candidates(ctx, tx.Client(), broken)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	quarantined, err := tx.RuleDocument.Query().Where(InQuarantine()).Count(ctx)
	if err != nil || quarantined+len(rows) > MaxQuarantined {
		return nil, err
	}
	reasons := map[string]string{}
	for _, b := range broken {
		reasons[b.Name] = strings.ToValidUTF8(b.Reason[:min(len(b.Reason), maxReason)], "")
	}
	var changed []Broken
	for _, row := range rows {
		after, err := row.Update().SetQuarantinedVersion(row.Version).SetQuarantineReason(reasons[row.Name]).SetQuarantineScanID(scanID).
			SetQuarantinedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return nil, err
		}
		audit.Change(ctx, AuditKind, row.ID, Convert(row), Convert(after))
		changed = append(changed, Broken{row.Name, after.QuarantineReason, row.Version})
	}
	slices.SortFunc(changed, func(a, b Broken) int { return cmp.Compare(a.Name, b.Name) })
	return changed, nil
}

// Release ends the quarantine of a rule. Reports of scans no longer quarantine its present version.
func Release(ctx context.Context, row *ent.RuleDocument, now int64) (*ent.RuleDocument, error) {
	if !isQuarantined(row) {
		return row, nil
	}
	after, err := row.Update().SetQuarantinedVersion(0).SetQuarantineReason("").SetQuarantineScanID(0).ClearQuarantinedAt().
		SetProvenVersion(row.Version).SetUpdatedAt(now).Save(ctx)
	if err != nil {
		return nil, err
	}
	audit.Change(ctx, AuditKind, row.ID, Convert(row), Convert(after))
	return after, nil
}
