package ingest

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/traffic"
	"github.com/palisade/palisade/services/policies/pathignore"
)

// batchSize is the number of results that are compared and written at a time.
const batchSize = 500

// Target is the scan that the results belong to.
type Target struct {
	Store *store.Store
	// Project is locked by the transaction.
	Project *ent.Project
	// Scan is stored already. Its ref and whether it is a full scan are used; the commit comes from the reading.
	Scan *ent.Scan
}

// session has what the steps of the transaction share.
type session struct {
	store        *store.Store
	tx           *ent.Tx
	project      *ent.Project
	scan         *ent.Scan
	deploymentID int64
	now          int64 // the time of everything that the scan writes
	work         *traffic.Work
	space        spool.Space
	names        *ruleNames // as the transaction sees them
	ignores      *pathignore.Matcher
}

// Store writes findings, their events, their matches and the coverage, and closes findings that are gone. It does not
// update the row of the scan (see SetCounts), and sends no notifications. It consumes the reading.
//
// Store matches the evidence of the results with the stored findings, and then writes new and changed findings. The
// transaction has to hold the lock of the project, so that its findings do not change in between.
func Store(ctx context.Context, tx *ent.Tx, of Target, read *Reading) (*Summary, error) {
	defer read.Release() // before the commit, so that a large report does not stay in memory
	read.work.Resume()
	s := &session{
		store: of.Store, tx: tx, project: of.Project, scan: of.Scan, deploymentID: of.Scan.DeploymentID, now: store.Now(), work: read.work, space: read.Spool,
	}
	fresh, err := s.refresh(ctx, read)
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
	summary.Coverages, summary.scanID, summary.groups = read.covered, s.scan.ID, map[Analysis]*matches{}
	for _, g := range matched.groups {
		summary.groups[g.Analysis] = g
	}
	return summary, nil
}

// refresh brings the reading up to date: ignored paths, names and ids of rules, and the evidence of stored findings. It
// returns the ids of the rules that it created.
func (s *session) refresh(ctx context.Context, read *Reading) (fresh map[int64]bool, err error) {
	if err := s.refreshIgnores(ctx, read); err != nil {
		return nil, fmt.Errorf("ignored paths: %w", err)
	}
	if err := s.refreshNames(ctx, read); err != nil {
		return nil, fmt.Errorf("rule aliases: %w", err)
	}
	s.work = read.work // the report may have been read again
	if err := s.upgradeIdentities(ctx); err != nil {
		return nil, fmt.Errorf("upgrade identities: %w", err)
	}
	if fresh, err = s.storeRules(ctx, read.journal.rules); err != nil {
		return nil, fmt.Errorf("store rules: %w", err)
	}
	return fresh, nil
}

// refreshIgnores reads the patterns of the project. If they are others than when the report was read, the report is
// read again. They may change after that: the job of the change then waits for the lock of the project.
func (s *session) refreshIgnores(ctx context.Context, read *Reading) error {
	policy, err := pathignore.Read(ctx, s.tx.Client())
	if err != nil {
		return err
	}
	s.ignores = policy.For(s.project)
	if s.ignores.Equal(read.Ignores) {
		return nil
	}
	read.Ignores = s.ignores
	return read.read(ctx, s.tx.Client(), read.names)
}
