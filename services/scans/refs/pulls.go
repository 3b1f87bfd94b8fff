package refs

import (
	"context"
	"errors"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

const (
	// pullsPerRun is how many refs of pull requests one run asks the hosts about. Each costs two or three requests, and
	// hosts allow some thousand per hour.
	pullsPerRun = 300
	// filesPerRun is how many findings of one pull request are compared with its files.
	filesPerRun = 20_000
)

// actorHost is the actor of what a source-code host says.
const actorHost = "host"

// conversation is a connection to a host during one run.
type conversation struct {
	host.Host
	// over says that the host does not answer, or not any more.
	over bool
}

// tidyPulls asks the hosts about pull requests with open findings. If there are too many, each run takes others. All
// requests to the hosts are made outside of transactions.
func (t *Tidier) tidyPulls(ctx context.Context, pulls []openRef) error {
	if len(pulls) == 0 {
		return nil
	}
	configs, err := t.store.Reader.ScmConfig.Query().Order(ent.Asc(scmconfig.FieldID)).All(ctx)
	if err != nil || len(configs) == 0 {
		return err
	}
	open := map[int64]*conversation{}
	for _, r := range thisRun(pulls, time.Now()) {
		config, repository, _ := connect.Reached(configs, r.project)
		if config == nil {
			continue
		}
		with := open[config.ID]
		if with == nil {
			with = t.open(ctx, config)
			open[config.ID] = with
		}
		if with.over {
			continue
		}
		if err := t.tidyPull(ctx, with, repository, r); err != nil {
			var refused *host.Error
			if !errors.As(err, &refused) {
				return err
			}
			with.over = !host.Is(err, host.NotFound) && !host.Is(err, host.Unsupported)
			t.log.InfoContext(ctx, "a pull request could not be checked", "project", r.project.Name, "ref", r.ref, "error", err)
		}
	}
	return ctx.Err()
}

// thisRun chooses the refs of a run: the next ones each time.
func thisRun(pulls []openRef, now time.Time) []openRef {
	runs := (len(pulls) + pullsPerRun - 1) / pullsPerRun
	begin := int(now.Unix()/int64(sweepInterval.Seconds())) % runs * pullsPerRun
	return pulls[begin:min(begin+pullsPerRun, len(pulls))]
}

func (t *Tidier) open(ctx context.Context, config *ent.ScmConfig) *conversation {
	h, err := t.hosts.Open(ctx, config)
	if err != nil {
		t.log.InfoContext(ctx, "pull requests of a source-code host are not checked", "config", config.ID, "error", err)
	}
	return &conversation{h, err != nil}
}

// tidyPull removes the findings of a closed pull request, or those in files that an open one does not change any more.
func (t *Tidier) tidyPull(ctx context.Context, with *conversation, repository string, r openRef) error {
	pull, err := with.PullRequest(ctx, repository, r.pullRequest())
	if err != nil {
		return err
	}
	switch {
	case pull.Merged:
		return t.remove(ctx, r, nil, ingest.Removal{ActorKind: actorHost, Reason: "pull request merged"})
	case !pull.Open:
		return t.remove(ctx, r, nil, ingest.Removal{ActorKind: actorHost, Reason: "pull request closed"})
	}
	found, err := t.ofDiffScans(ctx, r)
	if err != nil || len(found) == 0 {
		return err
	}
	changed, err := with.ChangedFiles(ctx, repository, r.pullRequest())
	if err != nil {
		return err
	}
	var reverted []int64
	for _, f := range found {
		if !changes(changed, f.FilePath) {
			reverted = append(reverted, f.ID)
		}
	}
	if len(reverted) == 0 {
		return nil
	}
	return t.remove(ctx, r, store.WithIDs[predicate.Finding](reverted), ingest.Removal{ActorKind: actorHost, Reason: ingest.RevertedReason, NamesFile: true})
}

// changes reports whether a file is one of the changed files. A project may be a directory of its repository: then
// its paths begin there.
func changes(changed []string, path string) bool {
	for _, file := range changed {
		if file == path || strings.HasSuffix(file, "/"+path) {
			return true
		}
	}
	return false
}

// located is a finding with its file.
type located struct {
	ID       int64  `sql:"id"`
	FilePath string `sql:"file_path"`
}

// ofDiffScans returns the open findings that only diff scans of a ref reported. They are all in files that the pull
// request changed, except dependencies, whose lockfile may be unchanged, and secrets of earlier commits.
func (t *Tidier) ofDiffScans(ctx context.Context, r openRef) (found []located, err error) {
	deploymentID, _ := tenant.FromContext(ctx)
	full, err := t.store.Reader.Scan.Query().Where(scan.ProjectID(r.project.ID), scan.Ref(r.ref), scan.IsFullScan(true)).
		Order(ent.Desc(scan.FieldID)).Limit(1).IDs(ctx)
	if err != nil {
		return nil, err
	}
	firstSeenByDiff := func(s *entsql.Selector) {
		scans := entsql.Table(scan.Table)
		where := []*entsql.Predicate{
			entsql.EQ(scans.C(scan.FieldDeploymentID), deploymentID), entsql.EQ(scans.C(scan.FieldProjectID), r.project.ID),
			entsql.EQ(scans.C(scan.FieldRef), r.ref), entsql.EQ(scans.C(scan.FieldIsFullScan), false),
		}
		if len(full) > 0 {
			where = append(where, entsql.GT(scans.C(scan.FieldID), full[0]))
		}
		s.Where(entsql.In(s.C(finding.FieldFirstSeenScanID), entsql.Dialect(s.Dialect()).Select(scans.C(scan.FieldID)).From(scans).Where(entsql.And(where...))))
	}
	err = t.store.Reader.Finding.Query().
		Where(finding.ProjectID(r.project.ID), finding.Ref(r.ref), finding.StateIn(lifecycle.Unresolved, lifecycle.Muted),
			finding.FilePathNotNil(), finding.HistoricalIsNil(), finding.IssueTypeNEQ(vocabulary.SCA), firstSeenByDiff).
		Order(ent.Asc(finding.FieldID)).Limit(filesPerRun).Select(finding.FieldID, finding.FieldFilePath).Scan(ctx, &found)
	return found, err
}
