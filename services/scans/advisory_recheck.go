package scans

import (
	"bytes"
	"context"
	"errors"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/riverqueue/river"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/deployment"
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

// Work stores the findings of one project, like its last managed scan with the advisories of now.
func (w *recheckWorker) Work(ctx context.Context, job *river.Job[recheck]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	of, err := w.Store.Reader.Project.Query().Where(project.ID(job.Args.ProjectID), project.ArchivedAtIsNil()).Only(ctx)
	if err != nil {
		return ignoreNotFound(err)
	}
	last, err := lastManaged(ctx, w.Store.Reader, of)
	if err != nil || last == nil {
		return err
	}
	places, err := storedPlaces(ctx, w.Store.Reader, of)
	if err != nil {
		return err
	}
	err = w.check(ctx, of, last, places)
	if errors.Is(err, errNewerScan) {
		return river.JobSnooze(time.Second)
	}
	return err
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

// storedPlaces reads the dependencies that managed scans found.
func storedPlaces(ctx context.Context, db *ent.Client, of *ent.Project) (places []packages.Place, err error) {
	rows, err := db.Dependency.Query().Where(dependency.ProjectID(of.ID)).Order(ent.Asc(dependency.FieldID)).
		Select(dependency.FieldLockfile, dependency.FieldEcosystem, dependency.FieldPackage, dependency.FieldVersion, dependency.FieldTransitivity, dependency.FieldContent).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		content := &storev1.DependencyContent{}
		if err := proto.Unmarshal(row.Content, content); err != nil {
			return nil, err
		}
		if content.GetSource() == packages.Tool+"/"+managed.Category {
			places = append(places, packages.Place{Lockfile: row.Lockfile, Package: lockfiles.Package{
				Ecosystem: row.Ecosystem, Name: row.Package, Version: row.Version, Transitivity: row.Transitivity, Line: int(content.GetLine()),
			}})
		}
	}
	return places, nil
}

// check imports what the advisories say, like an upload.
func (w *recheckWorker) check(ctx context.Context, of *ent.Project, last *ent.Scan, places []packages.Place) error {
	owner, err := w.Store.Reader.Deployment.Query().Where(deployment.ID(of.DeploymentID)).Only(ctx)
	if err != nil {
		return err
	}
	target := &scansv1.UploadReportTarget{Project: of.Name, Ref: last.Ref, Commit: last.Commit, Category: managed.Category}
	if last.CommitTime != nil {
		target.CommitTime = timestamppb.New(store.Time(*last.CommitTime))
	}
	search := formats.Format{Name: "managed", Convert: func(_ *formats.Input, out *formats.Writer) error {
		packages.Begin(out)
		_, err := packages.Match(ctx, w.Store.Reader, places, out)
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
	_, err = uploads.ingest(ctx, owner.Slug, target, opened, &recheckScan{of: of, last: last})
	return err
}

// errNewerScan says that a managed scan has found other dependencies in the meantime.
var errNewerScan = errors.New("a managed scan has ended in the meantime")

// recheckScan is the scan that receives what a recheck found.
type recheckScan struct {
	of   *ent.Project
	last *ent.Scan
}

func (r *recheckScan) projectID() int64 { return r.of.ID }

func (*recheckScan) ofCode() bool { return false }

// open stores a scan, unless the dependencies may have changed since they were read.
func (r *recheckScan) open(ctx context.Context, tx *ent.Tx, u *upload, of *ent.Project) (*ent.Scan, error) {
	now, err := lastManaged(ctx, tx.Client(), of)
	if err == nil && (now == nil || now.ID != r.last.ID) {
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
