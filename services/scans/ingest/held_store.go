package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/heldclose"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// States of held closes.
const (
	// HoldPending closes wait for a scan or a person.
	HoldPending = "pending"
	// HoldConfirmed closes were applied.
	HoldConfirmed = "confirmed"
	// HoldRejected closes were refused by a person.
	HoldRejected = "rejected"
	// HoldSuperseded closes are void: a later scan reported all of the findings, or held other closes.
	HoldSuperseded = "superseded"
)

// hold has held closes in memory. All lists of findings are sorted.
type hold struct {
	row       *ent.HeldClose
	decisions []heldDecision
	// waiting are the findings that later scans neither reported nor closed; left are the others.
	waiting, left []int64
	// rejected are the findings whose close a person rejected before.
	rejected []int64
	// closed is how many findings this scan closed.
	closed  int
	changed bool
}

type heldDecision struct {
	decision
	ids []int64
}

// answer is what held closes mean for a later scan that misses a finding again.
type answer int

const (
	unheld      answer = iota // nothing: the close is new
	closesAgain               // it was held, and now it applies
	waitsAgain                // it waits, because a person rejected it or because the scan covers too little
)

// answer must also work without held closes.
func (h *hold) answer(id int64, c *Coverage) answer {
	if h == nil || !contains(h.waiting, id) {
		return unheld
	}
	sameVersion := h.sameVersion(c)
	switch {
	case h.row.State == HoldRejected && sameVersion:
		return waitsAgain
	case h.row.State == HoldRejected:
		return unheld
	case sameVersion && contains(h.rejected, id), !coversAll(c.Products, splitList(h.row.Products)):
		return waitsAgain
	}
	return closesAgain
}

// leave removes the findings that satisfy a condition from the waiting ones. It returns their number.
func (h *hold) leave(gone func(id int64) bool) (n int) {
	var stays []int64
	for _, id := range h.waiting {
		if gone(id) {
			h.left = append(h.left, id)
			n++
		} else {
			stays = append(stays, id)
		}
	}
	if n > 0 {
		slices.Sort(h.left)
		h.waiting, h.changed = stays, true
	}
	return n
}

// close removes the findings that a scan closed.
func (h *hold) close(now closings) {
	ids := make([]int64, 0, now.total())
	for _, list := range now {
		ids = append(ids, list...)
	}
	slices.Sort(ids)
	h.closed += h.leave(func(id int64) bool { return contains(ids, id) })
}

// waitsForAll reports whether all of these findings wait already.
func (h *hold) waitsForAll(wait closings) bool {
	for _, ids := range wait {
		if slices.ContainsFunc(ids, func(id int64) bool { return !contains(h.waiting, id) }) {
			return false
		}
	}
	return true
}

func contains(sorted []int64, id int64) bool {
	_, found := slices.BinarySearch(sorted, id)
	return found
}

func splitList(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// activeHolds reads the held closes of this ref that matter for later scans: the latest of each analysis, if it is
// pending or rejected.
func (s *session) activeHolds(ctx context.Context) (map[Analysis]*hold, error) {
	rows, err := s.tx.HeldClose.Query().
		Where(heldclose.DeploymentID(s.deploymentID), heldclose.ProjectID(s.project.ID), heldclose.Ref(s.scan.Ref), heldclose.Active(true)).All(ctx)
	if err != nil {
		return nil, err
	}
	active := make(map[Analysis]*hold, len(rows))
	for _, row := range rows {
		h, err := decodeHold(row)
		if err != nil {
			return nil, err
		}
		active[Analysis{row.Tool, row.AnalysisCategory}] = h
	}
	return active, nil
}

// saveHold stores which findings left.
func (s *session) saveHold(ctx context.Context, h *hold) error {
	if !h.changed {
		return nil
	}
	return h.save(ctx, s.tx, "scan", s.scan.ID, s.now)
}

// save stores which findings left. Pending closes that wait for no finding any more are decided.
func (h *hold) save(ctx context.Context, tx *ent.Tx, actorKind string, actorID, now int64) error {
	content, err := h.encode()
	if err != nil {
		return err
	}
	update := tx.HeldClose.UpdateOne(h.row).SetContent(content).SetWaiting(int32(len(h.waiting))).SetActive(h.row.Active && len(h.waiting) > 0)
	if h.row.State == HoldPending && len(h.waiting) == 0 {
		state := HoldSuperseded
		if h.closed > 0 {
			state = HoldConfirmed
		}
		update.SetState(state).SetActorKind(actorKind).SetActorID(actorID).SetDecidedAt(now)
	}
	return update.Exec(ctx)
}

// createHold stores new held closes. They replace the earlier ones of the analysis.
func (s *session) createHold(ctx context.Context, g *matches, wait closings, about Held, last *hold) (*ent.HeldClose, error) {
	h := &hold{}
	for _, key := range wait.inOrder() {
		h.add(key.decision, wait[key])
	}
	if last != nil {
		h.rejected = slices.DeleteFunc(slices.Clone(h.waiting), func(id int64) bool { return !last.isRejected(id, g.coverage) })
		if err := s.supersede(ctx, last); err != nil {
			return nil, err
		}
	}
	content, err := h.encode()
	if err != nil {
		return nil, err
	}
	return s.tx.HeldClose.Create().SetDeploymentID(s.deploymentID).SetProjectID(s.project.ID).SetRef(s.scan.Ref).SetTool(g.Tool).
		SetToolVersion(g.coverage.GetToolVersion()).SetAnalysisCategory(g.Category).SetProducts(g.coverage.stored().GetProduct()).SetScanID(s.scan.ID).
		SetState(HoldPending).SetActive(true).SetFindings(int32(about.Closes)).SetOpen(int32(about.Open)).SetWaiting(int32(about.Closes)).
		SetRejectedBefore(len(h.rejected) > 0).SetContent(content).SetCreatedAt(s.now).Save(ctx)
}

// sameVersion reports whether the version of the tool may be the same. A report without a version says nothing.
func (h *hold) sameVersion(c *Coverage) bool {
	return h.row.ToolVersion == c.GetToolVersion() || h.row.ToolVersion == "" || c.GetToolVersion() == ""
}

// isRejected reports whether a person rejected the close of a finding, for the same version of the tool.
func (h *hold) isRejected(id int64, c *Coverage) bool {
	if !h.sameVersion(c) {
		return false
	}
	return contains(h.rejected, id) || h.row.State == HoldRejected && contains(h.waiting, id)
}

// supersede ends held closes, because the scan holds others.
func (s *session) supersede(ctx context.Context, h *hold) error {
	h.row.Active, h.changed = false, true
	if h.row.State != HoldPending || len(h.waiting) == 0 {
		return nil // saveHold writes it
	}
	row, err := s.tx.HeldClose.UpdateOne(h.row).SetState(HoldSuperseded).SetActive(false).SetActorKind("scan").SetActorID(s.scan.ID).SetDecidedAt(s.now).Save(ctx)
	if err != nil {
		return err
	}
	h.row = row
	return nil
}

// add adds a decision about findings that wait.
func (h *hold) add(f decision, ids []int64) {
	ids = slices.Sorted(slices.Values(ids))
	if n := slices.IndexFunc(h.decisions, func(d heldDecision) bool { return d.decision == f }); n >= 0 {
		h.decisions[n].ids = slices.Sorted(slices.Values(append(h.decisions[n].ids, ids...)))
	} else {
		h.decisions = append(h.decisions, heldDecision{f, ids})
	}
	h.waiting = append(h.waiting, ids...)
	slices.Sort(h.waiting)
}

func (h *hold) encode() ([]byte, error) {
	content := &storev1.HeldCloses{Left: differences(h.left), Rejected: differences(h.rejected)}
	for _, d := range h.decisions {
		content.Decisions = append(content.Decisions, &storev1.HeldDecision{
			State: d.state, Prefix: d.prefix, Suffix: d.suffix, About: d.about, Findings: differences(d.ids),
		})
	}
	return Compress(content)
}

func decodeHold(row *ent.HeldClose) (*hold, error) {
	content := &storev1.HeldCloses{}
	if err := Decompress(row.Content, content); err != nil {
		return nil, fmt.Errorf("held closes %d: %w", row.ID, err)
	}
	h := &hold{row: row}
	for _, d := range content.GetDecisions() {
		h.add(decision{state: d.GetState(), prefix: d.GetPrefix(), suffix: d.GetSuffix(), about: d.GetAbout()}, sums(d.GetFindings()))
	}
	h.left, h.rejected = sums(content.GetLeft()), sums(content.GetRejected())
	h.waiting = slices.DeleteFunc(h.waiting, func(id int64) bool { return contains(h.left, id) })
	return h, nil
}

// differences makes a sorted list small: neighbours are close to each other.
func differences(ids []int64) []int64 {
	out := make([]int64, len(ids))
	before := int64(0)
	for n, id := range ids {
		out[n], before = id-before, id
	}
	return out
}

// sums is the inverse of differences.
func sums(differences []int64) []int64 {
	out := make([]int64, len(differences))
	id := int64(0)
	for n, difference := range differences {
		id += difference
		out[n] = id
	}
	return out
}
