package scans

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/riverqueue/river"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/pullrequestfeedback"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/triagechangefinding"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/scans/feedback"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

const (
	// feedbackWorkers is how many pull requests of a node are written at once.
	feedbackWorkers = 4
	// feedbackTimeout applies to one pull request.
	feedbackTimeout = 5 * time.Minute
	// feedbackWait is how long a job waits for another one that writes about the same pull request.
	feedbackWait = 5 * time.Second
	// maxRefreshed is how many pull requests one triage change refreshes, the latest ones.
	maxRefreshed = 500
)

// FeedbackBackground writes feedback about pull requests. publicURL is the server's.
func FeedbackBackground(st *store.Store, hosts *connect.Hosts, publicURL string, log *slog.Logger) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &feedbackWorker{store: st, hosts: hosts, requests: NewPullRequests(st), publicURL: publicURL, log: log})
			jobs.AddWorker(workers, &refreshWorker{store: st})
		},
		Queues: []jobs.Queue{{Name: feedback.Queue, Workers: feedbackWorkers}},
	}
}

// refreshWorker asks for new feedback on the open pull requests whose project has triaged findings.
type refreshWorker struct {
	river.WorkerDefaults[feedback.Refresh]
	store *store.Store
}

// Work implements river.Worker.
func (w *refreshWorker) Work(ctx context.Context, job *river.Job[feedback.Refresh]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	rows, err := w.store.Reader.PullRequestFeedback.Query().Where(pullrequestfeedback.Closed(false), inProjectsOf(job.Args)).
		Order(ent.Desc(pullrequestfeedback.FieldID)).Limit(maxRefreshed).All(ctx)
	if err != nil {
		return err
	}
	return w.store.Write(ctx, func(ctx context.Context, _ *ent.Tx) error {
		for _, row := range rows {
			err := jobs.FromContext(ctx).Enqueue(ctx, feedback.Write{DeploymentID: row.DeploymentID, ProjectID: row.ProjectID, Number: row.Number}, nil)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// inProjectsOf selects feedback in the projects of a triage change's findings.
func inProjectsOf(args feedback.Refresh) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		b := entsql.Dialect(s.Dialect())
		changed, found := b.Table(triagechangefinding.Table).As("changed"), b.Table(finding.Table).As("found")
		s.Where(entsql.In(s.C(pullrequestfeedback.FieldProjectID), b.Select(found.C(finding.FieldProjectID)).From(changed).Join(found).
			OnP(entsql.And(entsql.ColumnsEQ(changed.C(triagechangefinding.FieldDeploymentID), found.C(finding.FieldDeploymentID)),
				entsql.ColumnsEQ(changed.C(triagechangefinding.FieldFindingID), found.C(finding.FieldID)))).
			Where(entsql.And(entsql.EQ(changed.C(triagechangefinding.FieldDeploymentID), args.DeploymentID),
				entsql.EQ(changed.C(triagechangefinding.FieldChangeID), args.ChangeID)))))
	}
}

// feedbackWorker writes what a pull request adds and what blocks it at the pull request's host. It may run again at any
// point: statuses replace each other by name, and the comment is found by its marker.
type feedbackWorker struct {
	river.WorkerDefaults[feedback.Write]
	store     *store.Store
	hosts     *connect.Hosts
	requests  *PullRequests
	publicURL string
	log       *slog.Logger
}

// Timeout implements river.Worker.
func (*feedbackWorker) Timeout(*river.Job[feedback.Write]) time.Duration { return feedbackTimeout }

// Work implements river.Worker.
func (w *feedbackWorker) Work(ctx context.Context, job *river.Job[feedback.Write]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	f, err := w.prepare(ctx, job.Args)
	if err != nil || f == nil {
		return err
	}
	row, err := w.claim(ctx, job.Args)
	if err != nil {
		return err
	}
	if row == nil {
		return river.JobSnooze(feedbackWait)
	}
	if f.host, err = w.hosts.Open(ctx, f.config); err == nil {
		err = f.write(ctx, w.store, row)
	}
	if problem := connect.ErrorText(err); problem != "" {
		row.Problem = problem
		w.log.InfoContext(ctx, "a host refused the feedback on a pull request", "project_id", row.ProjectID, "number", row.Number, "error", err)
	}
	if saved := w.save(context.WithoutCancel(ctx), row); saved != nil {
		return saved
	}
	return connect.Retry(err, job.CreatedAt)
}

// requestFeedback is the feedback that a pull request should have.
type requestFeedback struct {
	statuses, comments bool
	// lines is how many findings get a comment on their line. replies to these triage, if it is true.
	lines   int
	replies bool
	config  *ent.ScmConfig
	host    host.Host
	// repository is its name at the host, page the pull request in the console, finding the prefix of pages of findings.
	repository, page, finding string
	view                      *scansv1.GetPullRequestResponse
	// unfinished is the managed scan of the request that did not succeed; nil for none.
	unfinished *unfinishedScan
	// policies are the names of the policies that may block, addenda the texts for comments by product.
	policies []string
	addenda  map[string]string
}

// prepare reads what to write; nil if there is nothing to write, or nowhere.
func (w *feedbackWorker) prepare(ctx context.Context, args feedback.Write) (*requestFeedback, error) {
	owner, err := w.store.Reader.Deployment.Query().Where(deployment.ID(args.DeploymentID)).Only(ctx)
	if err != nil || !owner.PullRequestStatuses && !owner.PullRequestComments && owner.PullRequestLineComments == 0 {
		return nil, ignoreNotFound(err)
	}
	of, err := w.store.Reader.Project.Query().Where(project.ID(args.ProjectID)).Only(ctx)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	configs, err := w.store.Reader.ScmConfig.Query().Order(ent.Asc(scmconfig.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	f := &requestFeedback{
		statuses: owner.PullRequestStatuses, comments: owner.PullRequestComments,
		lines: int(owner.PullRequestLineComments), replies: owner.TriageViaComment,
		page:    pullRequestPage(w.publicURL+"/console/"+owner.Slug, of.Name, args.Number),
		finding: w.publicURL + "/console/" + owner.Slug + "/findings/",
	}
	if f.config, f.repository, _ = connect.Reached(configs, of); f.config == nil || connect.Callable(f.config) != nil {
		return nil, nil
	}
	f.view, err = w.requests.GetPullRequest(ctx, &scansv1.GetPullRequestRequest{Project: of.Name, Number: args.Number})
	if status.Code(err) == codes.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if f.unfinished, err = findUnfinished(ctx, w.store.Reader, of.ID, args.Number); err != nil {
		return nil, err
	}
	return f, w.texts(ctx, f)
}

// texts reads the names of policies, and the texts of people for comments (contract operation 8).
func (w *feedbackWorker) texts(ctx context.Context, f *requestFeedback) error {
	policies, err := remediation.Load(ctx, w.store.Reader)
	if err != nil {
		return err
	}
	for i := range policies {
		if slices.Contains(policies[i].Actions(), remediation.ActionBlock) {
			f.policies = append(f.policies, policies[i].Name())
		}
	}
	rows, err := w.store.Reader.ReviewCommentContent.Query().All(ctx)
	f.addenda = make(map[string]string, len(rows))
	for _, row := range rows {
		f.addenda[row.ProductType] = row.Content
	}
	return err
}

func ignoreNotFound(err error) error {
	if ent.IsNotFound(err) {
		return nil
	}
	return err
}

// claim reads the stored feedback about a pull request, and creates it. It returns nil while another job writes.
func (w *feedbackWorker) claim(ctx context.Context, args feedback.Write) (row *ent.PullRequestFeedback, err error) {
	err = w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now := store.Now()
		of := pullrequestfeedback.And(pullrequestfeedback.ProjectID(args.ProjectID), pullrequestfeedback.Number(args.Number))
		err := tx.PullRequestFeedback.Create().SetDeploymentID(args.DeploymentID).SetProjectID(args.ProjectID).SetNumber(args.Number).
			SetMarker(rand.Text()).SetUpdatedAt(now).
			OnConflictColumns(pullrequestfeedback.FieldDeploymentID, pullrequestfeedback.FieldProjectID, pullrequestfeedback.FieldNumber).
			Ignore().Exec(ctx)
		if err != nil {
			return err
		}
		n, err := tx.PullRequestFeedback.Update().Where(of, pullrequestfeedback.ClaimedUntilLTE(now)).
			SetClaimedUntil(now + (2 * feedbackTimeout).Microseconds()).Save(ctx)
		if err != nil || n == 0 {
			return err
		}
		row, err = tx.PullRequestFeedback.Query().Where(of).Only(ctx)
		return err
	})
	return row, err
}

// save stores what was written, and ends the claim.
func (w *feedbackWorker) save(ctx context.Context, row *ent.PullRequestFeedback) error {
	return w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.PullRequestFeedback.Update().Where(pullrequestfeedback.ID(row.ID)).SetCommit(row.Commit).SetStatuses(row.Statuses).
			SetCommentID(row.CommentID).SetCommentDigest(row.CommentDigest).SetProblem(row.Problem).SetClosed(row.Closed).
			SetClaimedUntil(0).SetUpdatedAt(store.Now()).Exec(ctx)
	})
}

// write brings the host up to date, and notes in row what was written.
func (f *requestFeedback) write(ctx context.Context, st *store.Store, row *ent.PullRequestFeedback) error {
	request, err := f.host.PullRequest(ctx, f.repository, row.Number)
	if err != nil {
		return err
	}
	row.Problem = ""
	if row.Closed = !request.Open; row.Closed {
		return nil
	}
	if err := f.writeOnHead(ctx, st, row, request); err != nil {
		return err
	}
	if f.comments {
		return f.writeComment(ctx, row)
	}
	return nil
}

// writeOnHead writes what is about the head: a slow scan of an earlier commit says nothing about it.
func (f *requestFeedback) writeOnHead(ctx context.Context, st *store.Store, row *ent.PullRequestFeedback, request host.PullRequest) error {
	if !f.statuses && f.lines == 0 {
		return nil
	}
	scanned := f.view.GetPullRequest().GetCommit()
	if scanned != "" && scanned != request.Commit && scanned != request.MergeCommit {
		row.Problem = fmt.Sprintf("the latest scan is of the commit %s, and the head of the pull request is %s: no status is set until that commit is scanned",
			short(scanned), short(request.Commit))
		return nil
	}
	if f.statuses {
		if err := f.writeStatuses(ctx, row, request); err != nil {
			return err
		}
	}
	if f.lines > 0 {
		return f.writeLines(ctx, st, row, request)
	}
	return nil
}

// writeStatuses sets the statuses that changed.
func (f *requestFeedback) writeStatuses(ctx context.Context, row *ent.PullRequestFeedback, request host.PullRequest) error {
	stored := map[string]string{}
	if row.Commit == request.Commit {
		maps.Copy(stored, row.Statuses)
	}
	row.Commit, row.Statuses = request.Commit, stored
	for _, status := range f.wantedStatuses(stored) {
		text := strconv.FormatBool(status.Passed) + " " + status.Text
		if status.Pending {
			text = "pending " + status.Text
		}
		if stored[status.Name] == text {
			continue
		}
		status.Number = row.Number
		if err := f.host.SetStatus(ctx, f.repository, request.Commit, status); err != nil {
			return err
		}
		stored[status.Name] = text
	}
	return nil
}

func short(commit string) string { return commit[:min(len(commit), 12)] }
