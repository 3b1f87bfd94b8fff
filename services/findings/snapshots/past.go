package snapshots

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"github.com/palisade/palisade/services/findings/columns"
)

// past has the columns of a deployment in which primary branches changed. In its views a finding has, at each time, the
// history of the branch that was the primary one then, and it is at the branch that is the primary one today. So
// readers need to know only today's branches.
type past struct {
	of         *columns.Snapshot
	changes    []branchChange
	edits      identityEdits
	identities map[int64]identityOf // of the findings of these branches
	seed       maphash.Seed

	primary, others *columns.Snapshot // nil before the first use
}

func (p *past) size() int64 {
	if p == nil {
		return 0
	}
	n := int64(48 * len(p.identities))
	for _, view := range []*columns.Snapshot{p.primary, p.others} {
		if view != nil && view != p.of {
			n += view.Bytes()
		}
	}
	return n
}

// branchChange is a change of a project's primary branch.
type branchChange struct {
	project  int64
	from, to string
	at       uint32
	scanned  uint32 // when to was scanned first; never if it was not
}

// never is later than all events.
const never = math.MaxUint32

// identityOf has hashes of what findings of several branches have in common. Findings with the same name are one
// finding. Tools report the findings of one analysis together.
type identityOf struct{ name, analysis uint64 }

// identityEdits tells whether a person changed the identities of findings.
type identityEdits struct{ made, undone int64 }

// OfPrimaryBranches returns the columns for what was on the primary branches. A finding that the former and the new
// primary branch have in common goes on when the branch changes: it is not opened again, and keeps its age. The new
// branch counts for an analysis since its first finding there or, without findings, since the first scan.
func (s *Snapshots) OfPrimaryBranches(ctx context.Context, deploymentID int64) (*columns.Snapshot, error) {
	return s.of(ctx, deploymentID, func(ctx context.Context, e *entry, l loader) (*columns.Snapshot, error) {
		if changed, err := e.readPast(ctx, l); err != nil || !changed {
			return e.snapshot, err
		}
		p := e.past
		if p.primary == nil {
			if err := p.readIdentities(ctx, l); err != nil {
				return nil, err
			}
			p.primary = p.view((*past).alongBranches)
		}
		return p.primary, nil
	})
}

// OfOtherRefs returns the columns for what was on other refs than the primary branches when it appeared.
func (s *Snapshots) OfOtherRefs(ctx context.Context, deploymentID int64) (*columns.Snapshot, error) {
	return s.of(ctx, deploymentID, func(ctx context.Context, e *entry, l loader) (*columns.Snapshot, error) {
		if changed, err := e.readPast(ctx, l); err != nil || !changed {
			return e.snapshot, err
		}
		if e.past.others == nil {
			e.past.others = e.past.view((*past).byAppearance)
		}
		return e.past.others, nil
	})
}

// readPast makes the past current. It reports whether a branch ever changed.
func (e *entry) readPast(ctx context.Context, l loader) (changed bool, err error) {
	changes, err := l.branchChanges(ctx)
	if err != nil {
		return false, err
	}
	if len(changes) == 0 {
		e.past = nil
		return false, nil
	}
	edits, err := l.identityEdits(ctx)
	if err != nil {
		return false, err
	}
	now := &past{of: e.snapshot, changes: changes, edits: edits, identities: map[int64]identityOf{}, seed: maphash.MakeSeed()}
	if p := e.past; p != nil && p.edits == edits {
		now.identities, now.seed = p.identities, p.seed
		if p.of == now.of && slices.Equal(p.changes, changes) {
			return true, nil
		}
	}
	e.past = now
	return true, nil
}

// branchChanges reads all changes of primary branches, by project and in the order of time.
func (l loader) branchChanges(ctx context.Context) (list []branchChange, err error) {
	rows, err := l.query(ctx, `SELECT c.project_id, c.from_ref, c.to_ref, c.at / 1000000, (SELECT MIN(s.started_at) FROM scans s
		WHERE s.deployment_id = c.deployment_id AND s.project_id = c.project_id AND s.ref = c.to_ref) / 1000000
		FROM branch_changes c WHERE c.deployment_id = ? ORDER BY c.project_id, c.id`)
	if err != nil {
		return nil, fmt.Errorf("read changes of branches for columns: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		c := branchChange{scanned: never}
		var scanned *uint32
		if err := rows.Scan(&c.project, &c.from, &c.to, &c.at, &scanned); err != nil {
			return nil, err
		}
		if scanned != nil {
			c.scanned = *scanned
		}
		list = append(list, c)
	}
	return list, rows.Err()
}

func (l loader) identityEdits(ctx context.Context) (edits identityEdits, err error) {
	reader, _ := l.store.DB()
	query := l.store.Placeholders("SELECT COUNT(*), COUNT(undone_at) FROM identity_changes WHERE deployment_id = ?")
	if err := reader.QueryRowContext(ctx, query, l.deploymentID).Scan(&edits.made, &edits.undone); err != nil {
		return edits, fmt.Errorf("count changes of identities for columns: %w", err)
	}
	return edits, nil
}

// readIdentities reads the identities that are not known yet.
func (p *past) readIdentities(ctx context.Context, l loader) error {
	var ids []int64
	for _, row := range p.of.Rows(p.places()) {
		if _, known := p.identities[row.ID]; !known {
			ids = append(ids, row.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	in, args := l.store.InIDs(ids)
	rows, err := l.query(ctx, "SELECT id, tool, analysis_category, fingerprint FROM findings WHERE deployment_id = ? AND id"+in, args...)
	if err != nil {
		return fmt.Errorf("read identities for columns: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int64
		var tool, category, name string
		if err := rows.Scan(&id, &tool, &category, &name); err != nil {
			return err
		}
		p.identities[id] = identityOf{maphash.Comparable(p.seed, [2]string{category, name}), maphash.Comparable(p.seed, [2]string{tool, category})}
	}
	return rows.Err()
}

// places selects the places that are or were primary branches.
func (p *past) places() []bool {
	ever := map[columns.Place]bool{}
	for _, c := range p.changes {
		ever[columns.Place{Project: c.project, Ref: c.from}], ever[columns.Place{Project: c.project, Ref: c.to}] = true, true
	}
	places := make([]bool, len(p.of.Places()))
	for n, place := range p.of.Places() {
		places[n] = ever[place]
	}
	return places
}

// projectPast is the past of one project.
type projectPast struct {
	changes []branchChange      // in the order of time
	refs    map[uint32]string   // of places
	rows    []columns.Row       // findings of all its primary branches
	place   func(string) uint32 // of a ref
}

// current is today's primary branch.
func (p *projectPast) current() string { return p.changes[len(p.changes)-1].to }

// view replaces the findings of branches that are or were primary ones.
func (p *past) view(replace func(*past, *projectPast) []columns.Row) *columns.Snapshot {
	places, numbers := slices.Clone(p.of.Places()), map[columns.Place]uint32{}
	for n, place := range places {
		numbers[place] = uint32(n)
	}
	byProject := map[int64][]columns.Row{}
	for _, row := range p.of.Rows(p.places()) {
		project := places[row.Place].Project
		byProject[project] = append(byProject[project], row)
	}
	var replaced []columns.Row
	for first := 0; first < len(p.changes); {
		id, end := p.changes[first].project, first
		for end < len(p.changes) && p.changes[end].project == id {
			end++
		}
		of := &projectPast{changes: p.changes[first:end], rows: byProject[id], refs: map[uint32]string{}}
		of.place = func(ref string) uint32 {
			place := columns.Place{Project: id, Ref: ref}
			n, known := numbers[place]
			if !known {
				n = uint32(len(places))
				places, numbers[place] = append(places, place), n
			}
			return n
		}
		for _, row := range of.rows {
			of.refs[row.Place] = places[row.Place].Ref
		}
		replaced = append(replaced, replace(p, of)...)
		first = end
	}
	return p.of.WithPlaces(places, replaced)
}

// byAppearance moves findings that appeared on the primary branch of that time to today's, and findings of today's that
// appeared before to no branch.
func (p *past) byAppearance(of *projectPast) []columns.Row {
	moved := slices.Clone(of.rows)
	for n, row := range moved {
		ref := ""
		if len(row.Transitions) == 0 || of.wasPrimary(of.refs[row.Place], row.Transitions[0].At) {
			ref = of.current()
		}
		moved[n].Place = of.place(ref)
	}
	return moved
}

// wasPrimary reports whether a ref was the primary branch at a time.
func (p *projectPast) wasPrimary(ref string, at uint32) bool {
	since := uint32(0)
	for _, c := range p.changes {
		if c.from == ref && since <= at && at <= c.at {
			return true
		}
		since = c.at
	}
	return ref == p.current() && since <= at
}
