package scans

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/riverqueue/river"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/managedscan"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/blocking"
	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/scans/managed"
	"github.com/palisade/palisade/services/scans/managed/packages"
	"github.com/palisade/palisade/services/supplychain/lockfiles"
	"github.com/palisade/palisade/services/supplychain/matching"
)

// recheck is the job that looks for vulnerable packages among the stored dependencies of a project. It fetches no code.
type recheck struct {
	DeploymentID int64 `json:"deployment_id"`
	ProjectID    int64 `json:"project_id"`
}

// Kind is the name in the queue.
func (recheck) Kind() string { return "recheck_dependencies" }

// InsertOpts lets one run cover all advisories that changed before it.
func (recheck) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = matching.CompareQueue
	return opts
}

type recheckWorker struct {
	river.WorkerDefaults[recheck]
	ManagedOptions
}

// Work stores the findings of one project, for each source of its dependencies: managed scans, and tools that write
// bills of materials.
func (w *recheckWorker) Work(ctx context.Context, job *river.Job[recheck]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	of, err := w.Store.Reader.Project.Query().Where(project.ID(job.Args.ProjectID), project.ArchivedAtIsNil()).Only(ctx)
	if err != nil {
		return ignoreNotFound(err)
	}
	sources, err := storedSources(ctx, w.Store.Reader, of)
	if err != nil {
		return err
	}
	for _, s := range sources {
		if s.scan, err = s.last(ctx, w.Store.Reader); err == nil && s.scan != nil {
			err = w.check(ctx, s)
		}
		if errors.Is(err, errNewerScan) {
			return river.JobSnooze(time.Second)
		}
		if err != nil {
			return fmt.Errorf("check the dependencies of %s: %w", s.name, err)
		}
	}
	return nil
}

// ofManaged is the source of the dependencies that managed scans find.
const ofManaged = packages.Tool + "/" + managed.Category

// dependencySource is what one tool says about the dependencies of a project.
type dependencySource struct {
	of *ent.Project
	// name is the tool and its category, separated by a slash.
	name string
	// newest is the id of the scan that last added some of them, and asOf the one that last added some of any source.
	newest, asOf int64
	places       []packages.Place
	// others has the lockfiles with dependencies of other sources.
	others map[string]bool
	// scan is the last one of the source.
	scan *ent.Scan
}

// storedSources reads the dependencies of a project. What scanners report is left out: they find the vulnerable ones
// themselves.
func storedSources(ctx context.Context, db *ent.Client, of *ent.Project) ([]*dependencySource, error) {
	rows, err := db.Dependency.Query().Where(dependency.ProjectID(of.ID)).Order(ent.Asc(dependency.FieldID)).
		Select(dependency.FieldLockfile, dependency.FieldEcosystem, dependency.FieldPackage, dependency.FieldVersion, dependency.FieldTransitivity, dependency.FieldScanID, dependency.FieldContent).All(ctx)
	if err != nil {
		return nil, err
	}
	byName, asOf := map[string]*dependencySource{}, int64(0)
	for _, row := range rows {
		asOf = max(asOf, row.ScanID)
		content := &storev1.DependencyContent{}
		if err := proto.Unmarshal(row.Content, content); err != nil {
			return nil, err
		}
		name := content.GetSource()
		s := byName[name]
		if s == nil {
			s = &dependencySource{of: of, name: name, others: map[string]bool{}}
			byName[name] = s
		}
		s.newest = max(s.newest, row.ScanID)
		s.places = append(s.places, packages.Place{Lockfile: row.Lockfile, Package: lockfiles.Package{
			Ecosystem: row.Ecosystem, Name: row.Package, Version: row.Version, Transitivity: row.Transitivity, Line: int(content.GetLine()),
		}})
	}
	var sources []*dependencySource
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if name == "" { // a scanner
			continue
		}
		s := byName[name]
		s.asOf = asOf
		for _, other := range byName {
			for _, p := range other.places {
				if other != s {
					s.others[p.Lockfile] = true
				}
			}
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// last returns the last scan of the source; nil if it does not count: a tool that has reported findings looks for
// vulnerable packages itself.
func (s *dependencySource) last(ctx context.Context, db *ent.Client) (*ent.Scan, error) {
	if s.name == ofManaged {
		return lastManaged(ctx, db, s.of)
	}
	tool, _, _ := strings.Cut(s.name, "/")
	if own, err := db.Finding.Query().Where(finding.ProjectID(s.of.ID), finding.Tool(tool)).Exist(ctx); err != nil || own {
		return nil, err
	}
	row, err := db.Scan.Query().Where(scan.ID(s.newest), scan.ProjectID(s.of.ID)).Only(ctx)
	return row, ignoreNotFound(err)
}

// category separates the findings of the source from the ones of others.
func (s *dependencySource) category() string {
	if s.name == ofManaged {
		return managed.Category
	}
	return strings.TrimSuffix(s.name, "/")
}

// lastManaged returns the last managed scan of the primary branch; nil if there is none.
func lastManaged(ctx context.Context, db *ent.Client, of *ent.Project) (*ent.Scan, error) {
	row, err := db.Scan.Query().Where(scan.ProjectID(of.ID), scan.Ref(blocking.Primary(of)), scan.Status(scansv1.ScanStatus_SCAN_STATUS_COMPLETED.String()), func(s *entsql.Selector) {
		about := entsql.Table(managedscan.Table)
		s.Where(entsql.In(s.C(scan.FieldID), entsql.Select(about.C(managedscan.FieldScanID)).From(about).
			Where(entsql.And(entsql.EQ(about.C(managedscan.FieldDeploymentID), of.DeploymentID), entsql.EQ(about.C(managedscan.FieldProjectID), of.ID)))))
	}).Order(ent.Desc(scan.FieldID)).First(ctx)
	return row, ignoreNotFound(err)
}

// looksAt returns the lockfiles in which a check may close findings: not the ones that only other sources know now.
func (s *dependencySource) looksAt(ctx context.Context, db *ent.Client) ([]string, error) {
	paths, err := db.Finding.Query().Where(finding.ProjectID(s.of.ID), finding.Tool(packages.Tool), finding.Ref(s.scan.Ref), finding.FilePathNotNil()).
		Unique(true).Select(finding.FieldFilePath).Strings(ctx)
	if err != nil {
		return nil, err
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return s.others[path] })
	for _, p := range s.places {
		paths = append(paths, p.Lockfile)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// check imports what the advisories say about a source, like an upload.
func (w *recheckWorker) check(ctx context.Context, s *dependencySource) error {
	owner, err := w.Store.Reader.Deployment.Query().Where(deployment.ID(s.of.DeploymentID)).Only(ctx)
	if err != nil {
		return err
	}
	target := &scansv1.UploadReportTarget{Project: s.of.Name, Ref: s.scan.Ref, Commit: s.scan.Commit, Category: s.category()}
	if s.scan.CommitTime != nil {
		target.CommitTime = timestamppb.New(store.Time(*s.scan.CommitTime))
	}
	lockfiles, err := s.looksAt(ctx, w.Store.Reader)
	if err != nil {
		return err
	}
	search := formats.Format{Name: "managed", Convert: func(_ *formats.Input, out *formats.Writer) error {
		packages.Begin(out)
		for _, path := range lockfiles {
			out.Scanned(path)
		}
		_, err := packages.Match(ctx, w.Store.Reader, s.places, out)
		return err
	}}
	uploads, err := w.uploads(ctx)
	if err != nil {
		return err
	}
	opened, err := openAs(ctx, search, bytes.NewReader(nil), target, uploads.options)
	if err != nil {
		return err
	}
	defer func() { _ = opened.close() }() // an unnamed file
	_, err = uploads.ingest(ctx, owner.Slug, target, opened, &recheckScan{s})
	return err
}

// errNewerScan says that the dependencies may have changed in the meantime.
var errNewerScan = errors.New("another scan of the source has ended in the meantime")

// recheckScan is the scan that receives what a check found.
type recheckScan struct{ *dependencySource }

func (r *recheckScan) projectID() int64 { return r.of.ID }

func (*recheckScan) ofCode() bool { return false }

// open stores a scan, unless the dependencies may have changed since they were read.
func (r *recheckScan) open(ctx context.Context, tx *ent.Tx, u *upload, of *ent.Project) (*ent.Scan, error) {
	now, err := r.last(ctx, tx.Client())
	if err != nil {
		return nil, err
	}
	if now == nil || now.ID != r.scan.ID {
		return nil, errNewerScan
	}
	changed, err := tx.Dependency.Query().Where(dependency.ProjectID(of.ID), dependency.ScanIDGT(r.asOf)).Exist(ctx)
	if err == nil && changed {
		err = errNewerScan
	}
	if err != nil {
		return nil, err
	}
	return u.create(ctx, tx, of, "advisories")
}

func (*recheckScan) complete(context.Context, *ent.Tx, *scansv1.UploadReportResponse) error {
	return nil
}
