package automations

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scancoverage"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/scans/blocking"
	"github.com/palisade/palisade/services/scans/ingest"
)

// comparison compares the findings of a scan with its base, as its gate does.
type comparison struct {
	blocking.Comparison
	base *blocking.Base
}

// comparisonOf reads the base of a scan; nil if the project was deleted.
func comparisonOf(ctx context.Context, db *ent.Client, of *ent.Scan) (*comparison, error) {
	owner, err := db.Project.Query().Where(project.ID(of.ProjectID)).Only(ctx)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	kept := &storev1.ScannerScan{}
	if of.Scanner != nil {
		if err := proto.Unmarshal(*of.Scanner, kept); err != nil {
			return nil, err
		}
	}
	c := &comparison{Comparison: blocking.Comparison{DB: db, Project: owner, Scan: of, MergeBase: kept.GetMergeBase(), Renamed: map[string]bool{}}}
	if !of.IsFullScan {
		if err := c.addRenamed(ctx); err != nil {
			return nil, err
		}
	}
	c.base, err = c.Base(ctx)
	return c, err
}

func ignoreNotFound(err error) error {
	if ent.IsNotFound(err) {
		return nil
	}
	return err
}

// addRenamed reads which files a diff scan calls renamed.
func (c *comparison) addRenamed(ctx context.Context) error {
	rows, err := c.DB.ScanCoverage.Query().
		Where(scancoverage.ProjectID(c.Project.ID), scancoverage.ScanID(c.Scan.ID)).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		about, err := ingest.StoredCoverage(row)
		if err != nil {
			return err
		}
		for _, path := range about.GetRenamed() {
			c.Renamed[path] = true
		}
	}
	return nil
}

// mark sets which findings are new, and which ones a decision about the same code covers.
func (c *comparison) mark(ctx context.Context, subjects []*subject) error {
	rows := make([]*ent.Finding, len(subjects))
	for i, s := range subjects {
		rows[i] = s.Finding
	}
	known, err := c.Known(ctx, c.base, rows)
	if err != nil {
		return err
	}
	covered, err := c.Covered(ctx, rows)
	if err != nil {
		return err
	}
	for _, s := range subjects {
		s.facts.New, s.covered = !known[s.ID], covered[s.ID]
	}
	return nil
}
