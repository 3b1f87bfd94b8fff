package scans

import (
	"context"
	"fmt"
	"io"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/scans/blocking"
	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/scans/vex"
	"github.com/palisade/palisade/services/supplychain/dependencies"
)

// facts are the dependencies and decisions of a report.
type facts struct {
	dependencies int
	decided      vex.Outcome
	// warning says why the dependencies were not stored.
	warning string
}

// storeFacts stores the dependencies of a report, and applies its decisions to the findings of the project. The
// findings of the report are stored already, and the project is locked.
func (s *ReportUploads) storeFacts(ctx context.Context, tx *ent.Tx, of *ent.Project, u *upload) error {
	if u.report.facts == nil {
		return nil
	}
	u.facts = facts{}
	byLockfile := map[string][]dependencies.Dependency{}
	statements := vex.NewStatements()
	n := 0
	if _, err := u.report.facts.Seek(0, io.SeekStart); err != nil {
		return err
	}
	err := formats.ReadFacts(u.report.facts, func(f *formats.Fact) error {
		if d := f.Dependency; d != nil {
			n++
			byLockfile[d.Lockfile] = append(byLockfile[d.Lockfile], dependencies.Dependency{
				Ecosystem: d.Ecosystem, Package: d.Name, Version: d.Version, Transitivity: d.Transitivity, Line: d.Line, Licenses: d.Licenses, Children: d.Children,
			})
		}
		if f.Decision != nil {
			statements.Add(f.Decision)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n > 0 || u.own != nil && u.own.ofCode() { // a scan that found no package says that the lockfiles are gone
		if err := s.storeDependencies(ctx, tx, of, u, byLockfile, n); err != nil {
			return fmt.Errorf("store dependencies: %w", err)
		}
	}
	u.facts.decided, err = statements.Apply(ctx, s.store, tx, vex.Target{DeploymentID: of.DeploymentID, ProjectID: of.ID, ScanID: u.scan.ID})
	if err != nil {
		return fmt.Errorf("apply VEX statements: %w", err)
	}
	return nil
}

// storeDependencies replaces the dependencies that an earlier document of the same tool and category listed. Like those
// of scanners, they are the dependencies of the primary branch.
func (s *ReportUploads) storeDependencies(
	ctx context.Context, tx *ent.Tx, of *ent.Project, u *upload, byLockfile map[string][]dependencies.Dependency, n int,
) error {
	run := u.report.report.Runs[0]
	if primary := blocking.Primary(of); u.scan.Ref != primary {
		if u.own != nil { // its pull requests are scanned, too
			return nil
		}
		u.facts.warning = fmt.Sprintf("its %d packages are not stored: the dependencies of a project are those of its primary branch, %s", n, primary)
		return nil
	}
	source := u.report.groupOf(run)
	if newer, older := u.result.Older[source]; older {
		u.facts.warning = fmt.Sprintf("its %d packages are not stored: scan %d %s listed them before", n, newer.ScanID, newer.By)
		return nil
	}
	skipped, _ := run.Failed()
	err := dependencies.Replace(ctx, s.store, tx, dependencies.Scan{
		DeploymentID: of.DeploymentID, ProjectID: of.ID, ScanID: u.scan.ID, At: u.scan.StartedAt,
		Source: source.Tool + "/" + source.Category, Complete: u.report.unreadable(0) == 0, Skipped: skipped,
	}, byLockfile)
	u.facts.dependencies = n
	if err != nil || u.own != nil {
		return err
	}
	advised, err := tx.Advisory.Query().Exist(ctx)
	if err != nil || !advised {
		return err
	}
	return s.jobs.Enqueue(ctx, recheck{DeploymentID: of.DeploymentID, ProjectID: of.ID}, nil)
}
