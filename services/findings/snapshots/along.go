package snapshots

import (
	"slices"

	"github.com/palisade/palisade/services/findings/columns"
)

// era is a time in which an analysis counts on a branch: until the next one begins.
type era struct {
	ref   string
	begin uint32
	// left is when another branch became the primary one. What happens here afterwards does not count, although the
	// state goes on until the other branch is scanned.
	left uint32
}

// eras returns the eras of an analysis. found is when it first had a finding on each branch.
func (p *projectPast) eras(found map[string]uint32) []era {
	list := []era{{ref: p.changes[0].from, left: p.changes[0].at}}
	for n, c := range p.changes {
		first, has := found[c.to]
		if !has {
			first = c.scanned
		}
		next := era{ref: c.to, begin: max(c.at, first), left: never}
		if n+1 < len(p.changes) {
			next.left = p.changes[n+1].at
		}
		for last := len(list) - 1; last > 0 && list[last].begin >= next.begin; last-- {
			list = list[:last] // it was not scanned before the next one
		}
		list = append(list, next)
	}
	return list
}

// alongBranches returns one row for each identity: the finding of the last branch that has it, with the histories of
// the branches one after the other. All are on today's primary branch.
func (p *past) alongBranches(of *projectPast) []columns.Row {
	found, same := map[uint64]map[string]uint32{}, map[identityOf]map[string]columns.Row{}
	var order []identityOf
	for _, row := range of.rows {
		identity, ref := p.identities[row.ID], of.refs[row.Place]
		if same[identity] == nil {
			same[identity], order = map[string]columns.Row{}, append(order, identity)
		}
		same[identity][ref] = row
		if len(row.Transitions) == 0 {
			continue
		}
		if found[identity.analysis] == nil {
			found[identity.analysis] = map[string]uint32{}
		}
		if first, known := found[identity.analysis][ref]; !known || row.Transitions[0].At < first {
			found[identity.analysis][ref] = row.Transitions[0].At
		}
	}
	erasOf := map[uint64][]era{}
	rows, place := make([]columns.Row, 0, len(order)), of.place(of.current())
	for _, identity := range order {
		eras, known := erasOf[identity.analysis]
		if !known {
			eras = of.eras(found[identity.analysis])
			erasOf[identity.analysis] = eras
		}
		if row, ok := join(eras, same[identity]); ok {
			row.Place = place
			rows = append(rows, row)
		}
	}
	return rows
}

// join joins the histories of a finding on several branches. It has the attributes of the last one; ok is false if no
// branch of an era has it.
func join(eras []era, on map[string]columns.Row) (joined columns.Row, ok bool) {
	var history []columns.Transition
	status := columns.None
	for n, e := range eras {
		end := uint32(never)
		if n+1 < len(eras) {
			end = eras[n+1].begin
		}
		row, here := on[e.ref]
		if here {
			joined, ok = row, true
		}
		if n > 0 && e.begin < never {
			now := statusAt(row.Transitions, e.begin)
			if now == columns.None && status != columns.None {
				now = columns.Removed
			}
			if now != status {
				history = append(history, columns.Transition{At: e.begin, Status: now})
				status = now
			}
		}
		for _, t := range row.Transitions {
			if n > 0 && t.At <= e.begin {
				continue
			}
			// A branch may end in the second of the change.
			if t.At >= end || t.At > e.left || t.At == e.left && t.Status == columns.Removed {
				break
			}
			history, status = append(history, t), t.Status
		}
	}
	joined.Transitions = history
	return joined, ok
}

// statusAt is the status at the end of a second.
func statusAt(history []columns.Transition, at uint32) columns.Status {
	after := slices.IndexFunc(history, func(t columns.Transition) bool { return t.At > at })
	if after < 0 {
		after = len(history)
	}
	if after == 0 {
		return columns.None
	}
	return history[after-1].Status
}
