package ingest

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/traffic"
)

// batchSize is how many results are compared and written at a time.
const batchSize = 500

// Target is the scan whose results are stored.
type Target struct {
	Store *store.Store
	// Project is held by the transaction.
	Project *ent.Project
	// Scan is stored already. Its ref counts, and whether it is a full scan; its commit is that of the reading.
	Scan *ent.Scan
}

// session is what the steps in the transaction have in common.
type session struct {
	store        *store.Store
	tx           *ent.Tx
	project      *ent.Project
	scan         *ent.Scan
	deploymentID int64
	now          int64 // the time of all that the scan writes
	work         *traffic.Work
	names        *ruleNames // as they are in the transaction
}

// Store stores findings, their events, how they were recognised and what was looked at, and closes what is gone. It
// does not change the row of the scan (see SetCounts), nor does it tell others about it. It uses the reading up.
//
// The evidence of the results is matched with what is stored; then those are written that bring news. The transaction
// holds the project, so that nobody else changes its findings between the two.
func Store(ctx context.Context, tx *ent.Tx, of Target, read *Reading) (*Summary, error) {
	defer read.Release() // so that a large report does not fill the memory until it is committed
	read.work.Resume()
	s := &session{
		store: of.Store, tx: tx, project: of.Project, scan: of.Scan, deploymentID: of.Scan.DeploymentID, now: store.Now(), work: read.work,
	}
	fresh, err := s.settle(ctx, read)
	if err != nil {
		return nil, err
	}
	matched, err := s.match(ctx, read, fresh)
	if err != nil {
		return nil, fmt.Errorf("match findings: %w", err)
	}
	summary, err := s.write(ctx, read, matched)
	if err != nil {
		return nil, err
	}
	if err := s.close(ctx, matched, summary); err != nil {
		return nil, err
	}
	summary.Coverages = read.covered
	return summary, nil
}

// settle brings what was read up to now: names and ids of rules, and the evidence of what is stored. It returns the ids
// of rules that the scan made.
func (s *session) settle(ctx context.Context, read *Reading) (fresh map[int64]bool, err error) {
	if err := s.settleNames(ctx, read); err != nil {
		return nil, fmt.Errorf("rule aliases: %w", err)
	}
	s.work = read.work // it may have been read again
	if err := s.upgradeIdentities(ctx); err != nil {
		return nil, fmt.Errorf("upgrade identities: %w", err)
	}
	if fresh, err = s.storeRules(ctx, read.journal.rules); err != nil {
		return nil, fmt.Errorf("store rules: %w", err)
	}
	return fresh, nil
}
