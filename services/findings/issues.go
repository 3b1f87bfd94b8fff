package findings

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/export"
	"github.com/palisade/palisade/services/findings/issue"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/snapshots"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// Issues is the service group "issues".
type Issues struct {
	findingsv1.UnimplementedIssuesServiceServer
	store    *store.Store
	jobs     *jobs.Jobs
	columns  *snapshots.Snapshots
	previews previewTokens
	exports  *export.Exports
}

// NewIssues serves issues from the store and its columns. The keyring opens the tokens of previews.
func NewIssues(st *store.Store, queue *jobs.Jobs, columnsOf *snapshots.Snapshots, keyring *secret.Keyring, exports *export.Exports) *Issues {
	return &Issues{store: st, jobs: queue, columns: columnsOf, previews: previewTokens{keyring}, exports: exports}
}

// ExportIssues starts an export of findings to a file.
func (s *Issues) ExportIssues(ctx context.Context, r *findingsv1.ExportIssuesRequest) (*findingsv1.ExportIssuesResponse, error) {
	return s.exports.Start(ctx, r)
}

// GetIssue returns a finding with its context.
func (s *Issues) GetIssue(ctx context.Context, r *findingsv1.GetIssueRequest) (*findingsv1.Issue, error) {
	row, err := s.shown(ctx, r.GetIssueId())
	if err != nil {
		return nil, err
	}
	out, err := issue.Whole(ctx, s.store.Reader, row)
	if err != nil {
		return nil, err
	}
	if !r.GetIncludeCodeSnippet() {
		issue.LeaveOutCode(out)
	}
	if !r.GetIncludeIsArchived() {
		out.IsArchived = nil
	}
	return out, nil
}

// GetIssueCodeSnippets returns the code of a finding and of the steps of its data flows.
func (s *Issues) GetIssueCodeSnippets(ctx context.Context, r *findingsv1.GetIssueCodeSnippetsRequest) (*findingsv1.GetIssueCodeSnippetsResponse, error) {
	row, err := s.shown(ctx, r.GetIssueId())
	if err != nil {
		return nil, err
	}
	list, err := issue.Snippets(row)
	return &findingsv1.GetIssueCodeSnippetsResponse{CodeSnippets: list}, err
}

// shown reads a finding that the API shows.
func (s *Issues) shown(ctx context.Context, id int64) (*ent.Finding, error) {
	row, err := s.store.Reader.Finding.Query().
		Where(finding.ID(id), issuefilter.Shown().Where).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, noFinding(id)
	}
	return row, err
}
