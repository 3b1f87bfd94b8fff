package main

import (
	"fmt"
	"slices"
)

// rows say what each program cost, and how many times ours that is.
func (p *peers) rows() []row {
	ours := p.palisade
	var rows []row
	for _, one := range append(p.all, p.file) {
		r := one.page.row()
		r.note += fmt.Sprintf("; %d KB", one.pageBytes/1000)
		if one != ours {
			r = times(r, ours.page.cpu, map[*peer]*bar{p.pocket: atLeast(peerListBar), p.plain: atLeast(1)}[one])
		}
		rows = append(rows, r)
	}
	deepAt := len(rows)
	for _, one := range append(p.all, p.fileDeep) {
		r := one.deepPage.row()
		if one != ours {
			r = times(r, ours.deepPage.cpu, map[*peer]*bar{p.pocket: atLeast(peerDeepBar), p.plain: atLeast(1)}[one])
		}
		rows = append(rows, r)
	}
	jump := p.jump.row()
	jump.ratio, jump.base = jump.value.over(p.pocket.deepPage.cpu), p.pocket.name
	jump.note += "; each of a list that was never asked for"
	rows = slices.Insert(rows, deepAt+1, jump)
	rows[deepAt].note += "; " + p.walks.span(ours.deepPage.requests)
	rows[0].note += "; token, access rule, metrics, a line of the log"
	return append(append(rows, p.insertRows()...), p.memoryRows()...)
}

// times says how many times our figure that is.
func times(r row, ours sample, b *bar) row {
	r.ratio, r.base, r.bar = r.value.over(ours), "Palisade", b
	return r
}

func (p *peers) insertRows() []row {
	var rows []row
	for _, kind := range []struct {
		what      string
		took, cpu func(*peer) sample
		reference float64
	}{
		{"new", func(o *peer) sample { return o.inserted }, func(o *peer) sample { return o.insertCPU }, referenceBar},
		{"again", func(o *peer) sample { return o.again }, func(o *peer) sample { return o.againCPU }, referenceBar},
	} {
		for _, one := range p.all {
			r := row{
				what: fmt.Sprintf("%s: %d results, %s", one.name, peerResults, kind.what), value: kind.took(one), unit: millis,
				note: fmt.Sprintf("%.0f ms CPU", kind.cpu(one).median()),
			}
			switch one {
			case p.palisade:
				r.ratio, r.base, r.bar = r.value.over(kind.took(p.plain)), p.plain.name, atMost(kind.reference)
				r.note += "; identity, lifecycle, coverage and history"
			case p.pocket:
				r = times(r, kind.took(p.palisade), atLeast(1))
				r.note += "; one batch"
			default:
				r.note += "; upsert by a hash, nothing else"
			}
			rows = append(rows, r)
		}
	}
	return rows
}

func (p *peers) memoryRows() []row {
	var rows []row
	for _, one := range append(p.all, p.file) {
		r := row{what: one.name + ": memory (RSS)", value: one.memory, unit: megabytes}
		if one == p.pocket || one == p.plain {
			r = times(r, p.palisade.memory, atLeast(1))
		}
		rows = append(rows, r)
	}
	return rows
}
