package scans

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/managedscan"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scmconfig"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/byname"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scans/blocking"
	"github.com/palisade/palisade/services/scans/managed"
	"github.com/palisade/palisade/services/scm/connect"
)

// maxManagedProjects is how many projects one request scans, as in the proto.
const maxManagedProjects = 100

// ManagedScans is the service group "managed scans".
type ManagedScans struct {
	scansv1.UnimplementedManagedScansServiceServer
	store *store.Store
	jobs  *jobs.Jobs
}

// NewManagedScans serves managed scans from the store.
func NewManagedScans(st *store.Store, queue *jobs.Jobs) *ManagedScans {
	return &ManagedScans{store: st, jobs: queue}
}

// GetManagedScan returns how a managed scan went.
func (s *ManagedScans) GetManagedScan(ctx context.Context, r *scansv1.GetManagedScanRequest) (*scansv1.GetManagedScanResponse, error) {
	out, err := managedScan(ctx, s.store.Reader, r.GetScanId())
	return &scansv1.GetManagedScanResponse{ManagedScan: out}, err
}

// CancelManagedScan cancels a managed scan that has not ended. The node that runs it stops within seconds.
func (s *ManagedScans) CancelManagedScan(ctx context.Context, r *scansv1.CancelManagedScanRequest) (*scansv1.CancelManagedScanResponse, error) {
	if _, err := managedScan(ctx, s.store.Reader, r.GetScanId()); err != nil {
		return nil, err
	}
	if err := cancelManaged(ctx, s.store, s.jobs, r.GetScanId()); err != nil {
		return nil, err
	}
	out, err := managedScan(ctx, s.store.Reader, r.GetScanId())
	return &scansv1.CancelManagedScanResponse{ManagedScan: out}, err
}

func managedScan(ctx context.Context, db *ent.Client, scanID int64) (*scansv1.ManagedScan, error) {
	// The scan is read first: once it has ended, the rest is there too.
	row, err := db.Scan.Query().Where(scan.ID(scanID)).Only(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return nil, err
	}
	about, err := db.ManagedScan.Query().Where(managedscan.ScanID(scanID)).Only(ctx)
	if ent.IsNotFound(err) || row == nil {
		return nil, apierr.NotFound("managed scan %d not found", scanID)
	}
	if err != nil {
		return nil, err
	}
	out := &scansv1.ManagedScan{
		Id: about.ID, ScanId: row.ID, ProjectId: row.ProjectID, Ref: row.Ref, Commit: row.Commit, Cause: causeOf(about), Status: scanStatus(row),
		Problem: about.Problem, Log: about.Log, CreatedAt: timestamp(about.CreatedAt), StartedAt: store.Timestamp(about.BegunAt),
		CompletedAt: store.Timestamp(row.CompletedAt),
	}
	if about.RetryOf != nil {
		out.RetryOf = *about.RetryOf
	}
	return out, nil
}

// isManaged reports whether Palisade itself ran a scan.
func isManaged(ctx context.Context, db *ent.Client, row *ent.Scan) (bool, error) {
	return db.ManagedScan.Query().Where(managedscan.ScanID(row.ID)).Exist(ctx)
}

func causeOf(about *ent.ManagedScan) scansv1.ManagedScanCause {
	return scansv1.ManagedScanCause(scansv1.ManagedScanCause_value[about.Cause])
}

// RunManagedScans starts managed scans of projects (contract facts, section 10).
func (s *Scans) RunManagedScans(ctx context.Context, r *scansv1.RunManagedScansRequest) (*scansv1.RunManagedScansResponse, error) {
	if n := len(r.GetScanConfigs()) + len(r.GetProjects()); n == 0 || n > maxManagedProjects {
		return nil, apierr.InvalidArgument("projects", "projects and scanConfigs must name 1 to %d projects; got %d", maxManagedProjects, n)
	}
	named, err := s.namedProjects(ctx, r)
	if err != nil {
		return nil, err
	}
	configs, err := s.store.Reader.ScmConfig.Query().Order(ent.Asc(scmconfig.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &scansv1.RunManagedScansResponse{}
	var wanted []managed.Request
	for _, one := range named {
		request, why := requestOf(configs, one.row, one.ref)
		if why != "" {
			refused := &scansv1.ManagedScanError{Project: one.given, Message: why}
			if one.row != nil {
				refused.RepoId = strconv.FormatInt(one.row.ID, 10)
			}
			response.Errors = append(response.Errors, refused)
			continue
		}
		request.Cause = scansv1.ManagedScanCause_MANAGED_SCAN_CAUSE_REQUEST
		wanted = append(wanted, request)
	}
	added, err := addManaged(ctx, s.store, s.jobs, wanted)
	if err != nil {
		return nil, err
	}
	for i, about := range added {
		task := &scansv1.ManagedScanTask{}
		task.RepoId, task.ScanId, task.ConfigId, task.Branch, task.TaskId, task.ManagedScanId = taskOf(about, wanted[i].Ref)
		response.Tasks = append(response.Tasks, task)
	}
	return response, nil
}

// namedProject is a project as a request names it; row is nil if there is none.
type namedProject struct {
	given, ref string
	row        *ent.Project
}

// namedProjects finds the projects of a request. A project is there once for each ref.
func (s *Scans) namedProjects(ctx context.Context, r *scansv1.RunManagedScansRequest) (list []namedProject, err error) {
	byName, err := byname.All(ctx, s.store.Reader, r.GetProjects())
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, one := range r.GetScanConfigs() {
		ids = append(ids, one.GetRepoId())
	}
	for _, found := range byName {
		ids = append(ids, found.ID)
	}
	rows, err := s.store.Reader.Project.Query().Where(store.OneOf(project.FieldID, ids)).All(ctx)
	if err != nil {
		return nil, err
	}
	of := map[int64]*ent.Project{}
	for _, row := range rows {
		of[row.ID] = row
	}
	for _, one := range r.GetScanConfigs() {
		list = append(list, namedProject{
			given: strconv.FormatInt(one.GetRepoId(), 10), ref: gitref.Full(cmp.Or(one.GetBranch(), r.GetRef())), row: of[one.GetRepoId()],
		})
	}
	for _, name := range r.GetProjects() {
		n := namedProject{given: name, ref: gitref.Full(r.GetRef())}
		if found := byName[name]; found != nil {
			n.row = of[found.ID]
		}
		list = append(list, n)
	}
	seen := map[string]bool{}
	for _, n := range list {
		if err := checkRef("ref", n.ref, n.ref); n.ref != "" && err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(list, func(n namedProject) bool {
		key := n.ref + " " + n.given
		if n.row != nil {
			key = n.ref + " " + strconv.FormatInt(n.row.ID, 10)
		}
		again := seen[key]
		seen[key] = true
		return again
	}), nil
}

// requestOf is the scan of a ref of a project; why says what prevents it. An empty ref is the primary branch.
func requestOf(configs []*ent.ScmConfig, row *ent.Project, ref string) (r managed.Request, why string) {
	if row == nil {
		return r, "project not found"
	}
	if row.ArchivedAt != nil {
		return r, "the project is archived: unarchive it first"
	}
	config, _, why := connect.Reached(configs, row)
	if why != "" {
		return r, why
	}
	if err := connect.Callable(config); err != nil {
		return r, err.Error()
	}
	if ref = cmp.Or(ref, blocking.Primary(row)); ref == "" {
		return r, "the default branch of the project is not known yet: name a branch as ref"
	}
	return managed.Request{Project: row, ConfigID: config.ID, Ref: ref}, ""
}

// addManaged requests scans, all of them or none.
func addManaged(ctx context.Context, st *store.Store, queue *jobs.Jobs, wanted []managed.Request) (list []*ent.ManagedScan, err error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	err = st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		list = nil
		for _, r := range wanted {
			about, err := managed.Add(ctx, st, tx, queue, r)
			if err != nil {
				return err
			}
			list = append(list, about)
			audit.Change(ctx, "managed scan", about.ID, nil, &scansv1.ManagedScan{
				Id: about.ID, ScanId: about.ScanID, ProjectId: about.ProjectID, Ref: r.Ref, Cause: causeOf(about), RetryOf: r.RetryOf,
			})
		}
		return nil
	})
	return list, err
}

// taskOf has the fields of a task: ids as text.
func taskOf(about *ent.ManagedScan, ref string) (repo, scanID, config, branch, task, managedScan string) {
	text := func(id int64) string { return strconv.FormatInt(id, 10) }
	return text(about.ProjectID), text(about.ScanID), text(about.ConfigID), ref, text(about.JobID), text(about.ID)
}

// why a scan is not retried, by its status.
var notRetried = map[scansv1.ScanStatus]string{
	scansv1.ScanStatus_SCAN_STATUS_COMPLETED: "it succeeded: start a new scan instead",
	scansv1.ScanStatus_SCAN_STATUS_RUNNING:   "it has not ended yet",
	scansv1.ScanStatus_SCAN_STATUS_PENDING:   "it has not begun yet",
	scansv1.ScanStatus_SCAN_STATUS_CANCELLED: "it was cancelled: start a new scan instead",
}

// RetryScans starts a new scan of the same ref for each managed scan that failed or never finished.
func (s *ScansV2) RetryScans(ctx context.Context, r *scansv1.RetryScansRequest) (*scansv1.RetryScansResponse, error) {
	var ids []int64
	for _, text := range r.GetScanIds() {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	known, err := s.retryable(ctx, ids)
	if err != nil {
		return nil, err
	}
	configs, err := s.store.Reader.ScmConfig.Query().Order(ent.Asc(scmconfig.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &scansv1.RetryScansResponse{}
	var wanted []managed.Request
	for _, text := range r.GetScanIds() {
		one := known[text]
		request, why := one.request(configs)
		if why != "" {
			refused := &scansv1.RetryScansError{ScanId: text, Message: why}
			if one.scan != nil {
				refused.RepoId = strconv.FormatInt(one.scan.ProjectID, 10)
			}
			response.Errors = append(response.Errors, refused)
			continue
		}
		wanted = append(wanted, request)
	}
	added, err := addManaged(ctx, s.store, s.jobs, wanted)
	if err != nil {
		return nil, err
	}
	for i, about := range added {
		task := &scansv1.RetryScansTask{}
		task.RepoId, task.ScanId, task.ConfigId, task.Branch, task.TaskId, task.ManagedScanId = taskOf(about, wanted[i].Ref)
		response.Tasks = append(response.Tasks, task)
	}
	return response, nil
}

// retryableScan is a scan that a caller wants to retry.
type retryableScan struct {
	scan    *ent.Scan
	managed bool
	project *ent.Project
}

func (o retryableScan) request(configs []*ent.ScmConfig) (r managed.Request, why string) {
	switch {
	case o.scan == nil:
		return r, notFound
	case !o.managed:
		return r, notManaged
	case notRetried[scanStatus(o.scan)] != "":
		return r, notRetried[scanStatus(o.scan)]
	}
	r, why = requestOf(configs, o.project, o.scan.Ref)
	r.Cause, r.RetryOf = scansv1.ManagedScanCause_MANAGED_SCAN_CAUSE_RETRY, o.scan.ID
	return r, why
}

// retryable reads scans with what a retry needs, by their id as text.
func (s *ScansV2) retryable(ctx context.Context, ids []int64) (map[string]retryableScan, error) {
	rows, err := s.store.Reader.Scan.Query().Where(store.OneOf(scan.FieldID, ids)).All(ctx)
	if err != nil {
		return nil, err
	}
	abouts, err := s.store.Reader.ManagedScan.Query().Where(store.OneOf(managedscan.FieldScanID, ids)).All(ctx)
	if err != nil {
		return nil, err
	}
	of := make([]int64, len(rows))
	for i, row := range rows {
		of[i] = row.ProjectID
	}
	projects, err := s.store.Reader.Project.Query().Where(store.OneOf(project.FieldID, of)).All(ctx)
	if err != nil {
		return nil, err
	}
	known := make(map[string]retryableScan, len(rows))
	for _, row := range rows {
		one := retryableScan{scan: row, managed: slices.ContainsFunc(abouts, func(m *ent.ManagedScan) bool { return m.ScanID == row.ID })}
		if at := slices.IndexFunc(projects, func(p *ent.Project) bool { return p.ID == row.ProjectID }); at >= 0 {
			one.project = projects[at]
		}
		known[strconv.FormatInt(row.ID, 10)] = one
	}
	return known, nil
}
