package scans

import (
	"context"
	"slices"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/riverqueue/river"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/advisory"
	"github.com/palisade/palisade/ent/advisorychange"
	"github.com/palisade/palisade/ent/advisorypackage"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/tenant"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/managed/packages"
	"github.com/palisade/palisade/services/supplychain/matching"
	"github.com/palisade/palisade/services/supplychain/osv"
)

const (
	// changesAtOnce is how many changed advisories are compared in one step.
	changesAtOnce = 1000
	// compareTimeout is enough for all advisories. A run that is aborted keeps its progress.
	compareTimeout = time.Hour
	// recheckDelay lets one check of a project cover many parts of an import.
	recheckDelay = 2 * time.Second
	// compareWorkers is how many projects one node compares at a time.
	compareWorkers = 2
)

// AdvisoriesBackground compares stored dependencies with new and changed advisories.
func AdvisoriesBackground(o ManagedOptions) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &compareWorker{store: o.Store})
			jobs.AddWorker(workers, &recheckWorker{ManagedOptions: o})
		},
		Queues: []jobs.Queue{{Name: matching.CompareQueue, Workers: compareWorkers, Poll: 5 * time.Second}},
	}
}

type compareWorker struct {
	river.WorkerDefaults[matching.Compare]
	store *store.Store
}

// Timeout is the maximum duration of a run.
func (*compareWorker) Timeout(*river.Job[matching.Compare]) time.Duration { return compareTimeout }

// Work finds the projects that changed advisories concern, step by step.
func (w *compareWorker) Work(ctx context.Context, job *river.Job[matching.Compare]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	var known spellings
	for {
		changes, err := w.store.Reader.AdvisoryChange.Query().Order(ent.Asc(advisorychange.FieldID)).Limit(changesAtOnce).All(ctx)
		if err != nil || len(changes) == 0 {
			return err
		}
		if known == nil {
			if known, err = readSpellings(ctx, w.store.Reader); err != nil {
				return err
			}
		}
		if err := w.compare(ctx, job.Args.DeploymentID, known, changes); err != nil {
			return err
		}
	}
}

// compare enqueues checks of the projects that some changes concern, and removes the changes.
func (w *compareWorker) compare(ctx context.Context, deploymentID int64, known spellings, changes []*ent.AdvisoryChange) error {
	var ids, changed []int64
	for _, c := range changes {
		ids, changed = append(ids, c.ID), append(changed, c.AdvisoryID)
	}
	projects, err := concerned(ctx, w.store.Reader, known, changed)
	if err != nil {
		return err
	}
	return w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		for _, id := range projects {
			job := recheck{DeploymentID: deploymentID, ProjectID: id}
			opts := job.InsertOpts()
			opts.ScheduledAt = time.Now().Add(recheckDelay)
			if err := jobs.FromContext(ctx).Enqueue(ctx, job, &opts); err != nil {
				return err
			}
		}
		_, err := tx.AdvisoryChange.Delete().Where(store.OneOf(advisorychange.FieldID, ids)).Exec(ctx)
		return err
	})
}

// spellings are the names of the deployment's packages as their lockfiles write them, by ecosystem and normalised name.
type spellings map[[2]string][]string

func readSpellings(ctx context.Context, db *ent.Client) (spellings, error) {
	rows, err := db.DependencyPackage.Query().All(ctx)
	out := spellings{}
	for _, row := range rows {
		if p, ok := matching.Normal(row.Ecosystem, row.Package, ""); ok {
			key := [2]string{p.Ecosystem, p.Name}
			if !slices.Contains(out[key], row.Package) {
				out[key] = append(out[key], row.Package)
			}
		}
	}
	return out, err
}

// concerned returns the projects with a package that one of the advisories affects, or with a finding of one.
func concerned(ctx context.Context, db *ent.Client, known spellings, advisories []int64) ([]int64, error) {
	rows, err := db.Advisory.Query().Where(store.OneOf(advisory.FieldID, advisories)).All(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	counts := map[int64]bool{}
	for _, row := range rows {
		counts[row.ID] = row.WithdrawnAt == nil
		details := &storev1.AdvisoryDetails{}
		if err := proto.Unmarshal(row.Details, details); err != nil {
			return nil, err
		}
		for _, id := range slices.Concat([]string{row.OsvID}, details.GetAliases(), details.GetUpstream()) {
			names = append(names, strings.ToUpper(id)) // as findings have it
		}
	}
	slices.Sort(names)
	having, err := db.Finding.Query().Where(finding.Tool(packages.Tool), store.OneOf(finding.FieldAdvisory, slices.Compact(names)),
		finding.StatusIn(lifecycle.Open, lifecycle.Reviewing, lifecycle.Fixing)).Unique(true).Select(finding.FieldProjectID).Ints(ctx)
	if err != nil {
		return nil, err
	}
	due := map[int64]bool{}
	for _, id := range having {
		due[int64(id)] = true
	}
	affecting, err := db.AdvisoryPackage.Query().Where(store.OneOf(advisorypackage.FieldAdvisoryID, advisories)).All(ctx)
	if err != nil {
		return nil, err
	}
	affecting = slices.DeleteFunc(affecting, func(p *ent.AdvisoryPackage) bool { return !counts[p.AdvisoryID] })
	if err := addAffected(ctx, db, known, affecting, due); err != nil {
		return nil, err
	}
	ids := make([]int64, 0, len(due))
	for id := range due {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

// addAffected adds the projects that depend on an affected version.
func addAffected(ctx context.Context, db *ent.Client, known spellings, affecting []*ent.AdvisoryPackage, due map[int64]bool) error {
	byPackage, names := map[[2]string][]*storev1.AffectedVersions{}, map[string]bool{}
	for _, p := range affecting {
		key := [2]string{p.Ecosystem, p.Package}
		if len(known[key]) == 0 {
			continue
		}
		versions := &storev1.AffectedVersions{}
		if err := proto.Unmarshal(p.Affected, versions); err != nil {
			return err
		}
		byPackage[key] = append(byPackage[key], versions)
		for _, name := range known[key] {
			names[name] = true
		}
	}
	all := make([]string, 0, len(names))
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	verdicts := map[matching.Package]bool{}
	for some := range slices.Chunk(all, changesAtOnce) {
		var found []struct {
			ProjectID int64  `sql:"project_id"`
			Ecosystem string `sql:"ecosystem"`
			Package   string `sql:"package"`
			Version   string `sql:"version"`
		}
		err := db.Dependency.Query().Where(store.OneOf(dependency.FieldPackage, some)).Modify(func(s *entsql.Selector) {
			s.Distinct().Select(s.Columns(dependency.FieldProjectID, dependency.FieldEcosystem, dependency.FieldPackage, dependency.FieldVersion)...)
		}).Scan(ctx, &found)
		if err != nil {
			return err
		}
		for _, row := range found {
			p, _ := matching.Normal(row.Ecosystem, row.Package, row.Version)
			verdict, judged := verdicts[p]
			if !judged {
				verdict = slices.ContainsFunc(byPackage[[2]string{p.Ecosystem, p.Name}], func(v *storev1.AffectedVersions) bool {
					return osv.Affects(v, p.Ecosystem, p.Version)
				})
				verdicts[p] = verdict
			}
			if verdict {
				due[row.ProjectID] = true
			}
		}
	}
	return nil
}
